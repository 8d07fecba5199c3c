// What the two stand-ins say to each other.
#pragma once
#include <stdint.h>

enum work { KERNEL, COPY, PEER, SET, GRAPH, WAIT };

// Kinds of memory, by CUPTI's numbers.
enum { PINNED_MEMORY = 2, DEVICE_MEMORY = 3 };

struct launch {
    enum work work;
    const char *name;
    // When the work begins; 0 for 3 us behind its call, which is now.
    uint64_t start_ns;
    uint64_t duration_ns;
    uint32_t stream;
    uint32_t device;
    // Of a program that says itself which function of CUDA's runtime it calls: the function, by the
    // number that CUPTI gives it, and when it is called and for how long. 0 for a launch by both
    // interfaces, which begins 3 us before the work.
    uint32_t function;
    uint64_t call_start_ns;
    uint64_t call_ns;
    // Of a copy: its size, and the kinds of memory; 0 for 4096 bytes to the device, of kinds that
    // nobody knows.
    uint64_t bytes;
    uint32_t source;
    uint32_t destination;
    // Blocks of a kernel; 0 for 108.
    uint32_t blocks;
};

// Gives how many records came of a launch.
typedef int (*launch_hook)(const struct launch *launch);

// Called for each launch from now on; null for nothing.
void fakeCudaAttach(launch_hook hook);
