// The functions of CUDA's driver that the program calls, found by name: no toolkit is needed.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef void *handle;

#define DRIVER(FUNCTION)                                                                           \
    FUNCTION(cuInit, (unsigned))                                                                   \
    FUNCTION(cuDriverGetVersion, (int *))                                                          \
    FUNCTION(cuDeviceGet, (int *, int))                                                            \
    FUNCTION(cuDevicePrimaryCtxRetain, (handle *, int))                                            \
    FUNCTION(cuCtxSetCurrent, (handle))                                                            \
    FUNCTION(cuModuleLoadData, (handle *, const void *))                                           \
    FUNCTION(cuModuleGetFunction, (handle *, handle, const char *))                                \
    FUNCTION(cuMemAlloc_v2, (uint64_t *, size_t))                                                  \
    FUNCTION(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                          \
    FUNCTION(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, handle))                       \
    FUNCTION(cuMemsetD8Async, (uint64_t, unsigned char, size_t, handle))                           \
    FUNCTION(cuMemGetInfo_v2, (size_t *, size_t *))                                                \
    FUNCTION(cuStreamCreate, (handle *, unsigned))                                                 \
    FUNCTION(cuStreamSynchronize, (handle))                                                        \
    FUNCTION(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
                              unsigned, handle, void **, void **))                                 \
    FUNCTION(cuEventCreate, (handle *, unsigned))                                                  \
    FUNCTION(cuEventRecord, (handle, handle))                                                      \
    FUNCTION(cuEventElapsedTime, (float *, handle, handle))                                        \
    FUNCTION(cuStreamBeginCapture_v2, (handle, int))                                               \
    FUNCTION(cuStreamEndCapture, (handle, handle *))                                               \
    FUNCTION(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                  \
    FUNCTION(cuGraphLaunch, (handle, handle))
