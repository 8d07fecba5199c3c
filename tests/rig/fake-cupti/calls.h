// The calls that the stand-in for libcupti records.
#pragma once
#include <stdint.h>

// Functions of CUDA's runtime and of its driver, by CUPTI's numbers.
enum { MEMCPY_ASYNC = 41, STREAM_SYNCHRONIZE = 131, LAUNCH_KERNEL = 211, CU_LAUNCH_KERNEL = 307 };
// How long a call takes of which nobody says it.
enum { CALL_NS = 2000 };

// The name of a function of an interface: 2 is the runtime, 1 the driver.
static const char *name_of_call(int domain, uint32_t function)
{
    if (domain != 2)
        return "cuLaunchKernel";
    switch (function) {
    case MEMCPY_ASYNC:
        return "cudaMemcpyAsync_v3020";
    case STREAM_SYNCHRONIZE:
        return "cudaStreamSynchronize_v3020";
    default:
        return "cudaLaunchKernel_v7000";
    }
}
