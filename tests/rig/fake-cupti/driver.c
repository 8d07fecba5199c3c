// What a program calls of CUDA's driver, without a GPU: the bundle of `cargo xtask gpu-check` for
// the tracer is rehearsed with it. Memory of the device is the program's, and time goes on by what
// is launched.
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

typedef void *handle;

enum { COUNT_KERNEL = 1, EMPTY_KERNEL, SPIN_KERNEL, SHORT_NS = 5000, STREAM = 7 };

int fakeCudaLaunch(int work, int name, uint64_t duration_ns, uint32_t stream);

static char kernels[4];
static uint64_t gpu_ns;
static int is_captured;
static uint64_t captured, *captured_counter;

int cuDeviceGet(int *device, int number)
{
    *device = number;
    return 0;
}

int cuDevicePrimaryCtxRetain(handle *context, int device)
{
    (void)device;
    *context = kernels;
    return 0;
}

int cuCtxSetCurrent(handle context)
{
    (void)context;
    return 0;
}

int cuModuleLoadData(handle *module, const void *image)
{
    (void)image;
    *module = kernels;
    return 0;
}

int cuModuleGetFunction(handle *function, handle module, const char *name)
{
    (void)module;
    int number = strstr(name, "count") ? COUNT_KERNEL : strstr(name, "spin") ? SPIN_KERNEL : EMPTY_KERNEL;
    *function = &kernels[number];
    return 0;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    *at = (uint64_t)(uintptr_t)calloc(1, bytes);
    return *at ? 0 : 2;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, handle stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    fakeCudaLaunch(COPY, 0, SHORT_NS, STREAM);
    return 0;
}

int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, handle stream)
{
    (void)stream;
    memset((void *)(uintptr_t)at, value, bytes);
    fakeCudaLaunch(SET, 0, SHORT_NS, STREAM);
    return 0;
}

int cuMemGetInfo_v2(size_t *left, size_t *all)
{
    *all = (size_t)80 << 30;
    *left = *all - ((size_t)1 << 30);
    return 0;
}

int cuStreamCreate(handle *stream, unsigned flags)
{
    (void)flags;
    *stream = kernels;
    return 0;
}

int cuStreamSynchronize(handle stream)
{
    (void)stream;
    return 0;
}

int cuLaunchKernel(handle kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, handle stream, void **parameters, void **more)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)stream, (void)more;
    int number = (int)((char *)kernel - kernels);
    uint64_t parameter = parameters ? *(uint64_t *)parameters[0] : 0;
    uint64_t *count = number == COUNT_KERNEL ? (uint64_t *)(uintptr_t)parameter : NULL;
    if (is_captured) {
        captured++;
        captured_counter = count;
        return 0;
    }
    if (count)
        (*count)++;
    uint64_t duration = number == SPIN_KERNEL ? parameter : SHORT_NS;
    gpu_ns += duration;
    fakeCudaLaunch(KERNEL, number, duration, STREAM);
    return 0;
}

int cuEventCreate(handle *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(uint64_t));
    return *event ? 0 : 2;
}

int cuEventRecord(handle event, handle stream)
{
    (void)stream;
    *(uint64_t *)event = gpu_ns;
    return 0;
}

int cuEventElapsedTime(float *ms, handle from, handle to)
{
    *ms = (float)(*(uint64_t *)to - *(uint64_t *)from) / 1e6f;
    return 0;
}

int cuStreamBeginCapture_v2(handle stream, int mode)
{
    (void)stream, (void)mode;
    is_captured = 1;
    captured = 0;
    return 0;
}

int cuStreamEndCapture(handle stream, handle *graph)
{
    (void)stream;
    is_captured = 0;
    *graph = kernels;
    return 0;
}

int cuGraphInstantiateWithFlags(handle *made, handle graph, unsigned long long flags)
{
    (void)flags;
    *made = graph;
    return 0;
}

// The stand-in for libcupti takes every graph for one of three kernels.
int cuGraphLaunch(handle graph, handle stream)
{
    (void)graph, (void)stream;
    if (captured_counter)
        *captured_counter += captured;
    gpu_ns += captured * SHORT_NS;
    fakeCudaLaunch(GRAPH, 0, SHORT_NS, STREAM);
    return 0;
}
