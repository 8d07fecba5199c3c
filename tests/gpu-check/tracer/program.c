// A small CUDA program that needs a driver and nothing else of CUDA. It does what its standard input
// says, a line each, and answers each with a line; `failed FUNCTION CODE` is the answer of one that
// the driver refuses, and its last one.
//
// | line | answer |
// |---|---|
// | init | `ready VERSION`, or `unavailable REASON` |
// | launch N | `launched N COUNTED`: kernels, and how many of them the GPU ran |
// | copy N | `copied N`: so many copies to the GPU, and so many memsets |
// | spin N NS | `spun NS...`: the time of each of N kernels, by events around it |
// | graph NODES | `graph NODES`: makes a graph of so many kernels |
// | replay N | `replayed N COUNTED`: launches of the graph, and kernels that the GPU ran |
// | pace MS, replay_pace MS | `paced LAUNCHES NS`: launches of an empty kernel or the graph for so long |
// | free | `free BYTES`: memory of the GPU that nobody has |
// | bare PATH N | what a libcupti answers without the tracer, see bare.h |
// | load PATH | `loaded 1` |
// | run | `running`, and launches kernels for ever |
// | exit CODE, abort | none |
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bare.h"
#include "driver.h"
#include "kernels.h"

enum { CANNOT_RUN = 3, REFUSED = 4, COPY_BYTES = 4096, MAX_SPINS = 256, AT_ONCE = 1000, GRAPHS_AT_ONCE = 20 };

#define DECLARE(name, parameters) static int(*name) parameters;
DRIVER(DECLARE)

static handle stream, count_kernel, empty_kernel, spin_kernel, graph;
static uint64_t counter, memory;
static long nodes;

#define DO(call)                                                                                   \
    do {                                                                                           \
        int code = (call);                                                                         \
        if (code)                                                                                  \
            refused(#call, code);                                                                  \
    } while (0)

static void refused(const char *call, int code)
{
    printf("failed %.*s %d\n", (int)strcspn(call, "("), call, code);
    exit(REFUSED);
}

static void unavailable(const char *reason)
{
    printf("unavailable %s\n", reason);
    exit(CANNOT_RUN);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void init(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        unavailable("no libcuda.so.1");
#define FIND(name, parameters)                                                                     \
    if (!(name = (int(*) parameters)dlsym(driver, #name)))                                         \
        unavailable("the driver lacks " #name);
    DRIVER(FIND)
    int version = 0, device = 0;
    handle context, module;
    if (cuInit(0))
        unavailable("cuInit fails");
    DO(cuDriverGetVersion(&version));
    if (cuDeviceGet(&device, 0))
        unavailable("no GPU");
    DO(cuDevicePrimaryCtxRetain(&context, device));
    DO(cuCtxSetCurrent(context));
    DO(cuModuleLoadData(&module, KERNELS));
    DO(cuModuleGetFunction(&count_kernel, module, "flopwatch_kernel_count"));
    DO(cuModuleGetFunction(&empty_kernel, module, "flopwatch_kernel_empty"));
    DO(cuModuleGetFunction(&spin_kernel, module, "flopwatch_kernel_spin"));
    DO(cuMemAlloc_v2(&counter, sizeof counter));
    DO(cuMemAlloc_v2(&memory, COPY_BYTES));
    DO(cuStreamCreate(&stream, 0));
    DO(cuMemsetD8Async(counter, 0, sizeof counter, stream));
    DO(cuStreamSynchronize(stream));
    printf("ready %d\n", version);
}

static void start(handle kernel, void *parameter)
{
    void *parameters[] = {parameter};
    DO(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameter ? parameters : NULL, NULL));
}

static uint64_t counted(void)
{
    uint64_t value = 0;
    DO(cuMemcpyDtoH_v2(&value, counter, sizeof value));
    return value;
}

static void launch(long count)
{
    for (long at = 0; at < count; at++)
        start(count_kernel, &counter);
    DO(cuStreamSynchronize(stream));
}

static void copy(long count)
{
    static char bytes[COPY_BYTES];
    for (long at = 0; at < count; at++) {
        DO(cuMemcpyHtoDAsync_v2(memory, bytes, sizeof bytes, stream));
        DO(cuMemsetD8Async(memory, 1, sizeof bytes, stream));
    }
    DO(cuStreamSynchronize(stream));
}

static void spin(long count, uint64_t ns)
{
    handle events[2 * MAX_SPINS];
    count = count < MAX_SPINS ? count : MAX_SPINS;
    for (long at = 0; at < 2 * count; at++)
        DO(cuEventCreate(&events[at], 0));
    for (long at = 0; at < count; at++) {
        DO(cuEventRecord(events[2 * at], stream));
        start(spin_kernel, &ns);
        DO(cuEventRecord(events[2 * at + 1], stream));
        DO(cuStreamSynchronize(stream));
    }
    printf("spun");
    for (long at = 0; at < count; at++) {
        float ms = 0;
        DO(cuEventElapsedTime(&ms, events[2 * at], events[2 * at + 1]));
        printf(" %.0f", ms * 1e6);
    }
    puts("");
}

static void make_graph(long count)
{
    handle made;
    // Relaxed: nothing else of the program captures.
    DO(cuStreamBeginCapture_v2(stream, 2));
    for (long at = 0; at < count; at++)
        start(count_kernel, &counter);
    DO(cuStreamEndCapture(stream, &made));
    DO(cuGraphInstantiateWithFlags(&graph, made, 0));
    nodes = count;
}

static void replay(long count)
{
    for (long at = 0; at < count; at++) {
        DO(cuGraphLaunch(graph, stream));
        if (at % GRAPHS_AT_ONCE == GRAPHS_AT_ONCE - 1)
            DO(cuStreamSynchronize(stream));
    }
    DO(cuStreamSynchronize(stream));
}

// Launches for so long, and says how many and how long they took.
static void pace(uint64_t ms, int of_graph)
{
    uint64_t begin = now_ns(), end = begin + ms * 1000000;
    long launches = 0;
    while (now_ns() < end) {
        if (of_graph) {
            replay(GRAPHS_AT_ONCE);
            launches += GRAPHS_AT_ONCE;
            continue;
        }
        for (int at = 0; at < AT_ONCE; at++)
            start(empty_kernel, NULL);
        DO(cuStreamSynchronize(stream));
        launches += AT_ONCE;
    }
    printf("paced %ld %llu\n", launches, (unsigned long long)(now_ns() - begin));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    char line[1024], word[32], path[1000];
    while (fgets(line, sizeof line, stdin)) {
        long a = 0, b = 0;
        if (sscanf(line, "%31s %ld %ld", word, &a, &b) < 1)
            continue;
        uint64_t before = 0;
        if (!strcmp(word, "launch") || !strcmp(word, "replay"))
            before = counted();
        if (!strcmp(word, "init"))
            init();
        else if (!strcmp(word, "launch")) {
            launch(a);
            printf("launched %ld %llu\n", a, (unsigned long long)(counted() - before));
        } else if (!strcmp(word, "copy")) {
            copy(a);
            printf("copied %ld\n", a);
        } else if (!strcmp(word, "spin"))
            spin(a, (uint64_t)b);
        else if (!strcmp(word, "graph")) {
            make_graph(a);
            printf("graph %ld\n", nodes);
        } else if (!strcmp(word, "replay")) {
            replay(a);
            printf("replayed %ld %llu\n", a, (unsigned long long)(counted() - before));
        } else if (!strcmp(word, "pace") || !strcmp(word, "replay_pace"))
            pace((uint64_t)a, word[0] == 'r');
        else if (!strcmp(word, "free")) {
            size_t left = 0, all = 0;
            DO(cuMemGetInfo_v2(&left, &all));
            printf("free %zu\n", left);
        } else if (!strcmp(word, "bare") && sscanf(line, "%*s %999s %ld", path, &a) == 2)
            bare(path, a, launch);
        else if (!strcmp(word, "load") && sscanf(line, "%*s %999s", path) == 1)
            printf("loaded %d\n", dlopen(path, RTLD_NOW) != NULL);
        else if (!strcmp(word, "run"))
            for (puts("running");;)
                launch(AT_ONCE);
        else if (!strcmp(word, "exit"))
            exit((int)a);
        else if (!strcmp(word, "abort"))
            abort();
        else
            puts("failed what 0");
    }
    return 0;
}
