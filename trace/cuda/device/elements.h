// What the transform does to one event, as plain C++: nvcc compiles it for the device, the tests compile it for the host.
//
// Times are unsigned nanoseconds. Nothing here knows how events are spread over threads.
#ifndef FLOPWATCH_ELEMENTS_H
#define FLOPWATCH_ELEMENTS_H

#include <cstdint>

#ifdef __CUDACC__
#define FLOPWATCH_EVERYWHERE __host__ __device__
#else
#define FLOPWATCH_EVERYWHERE
#endif

namespace flopwatch {

// An end beyond the last representable time is that time.
FLOPWATCH_EVERYWHERE inline uint64_t end_of(uint64_t start, uint64_t duration) {
    uint64_t end = start + duration;
    return end < start ? UINT64_MAX : end;
}

// out[i] = i
struct Sequence {
    uint32_t *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const { out[i] = i; }
};

// Sort keys of the events in `order`; falling keys sort from the largest value down.
template <class T> struct Keys {
    const T *values;
    const uint32_t *order;
    uint64_t *out;
    bool falling;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const {
        uint64_t key = values[order[i]];
        out[i] = falling ? UINT64_MAX - key : key;
    }
};

template <class T> struct Gather {
    const T *values;
    const uint32_t *order;
    T *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const { out[i] = values[order[i]]; }
};

// Positions are distinct, so that no two threads write to one place.
struct Scatter {
    const uint32_t *values;
    const uint32_t *positions;
    uint32_t *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const { out[positions[i]] = values[i]; }
};

struct Ends {
    const uint64_t *start;
    const uint64_t *duration;
    uint64_t *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const { out[i] = end_of(start[i], duration[i]); }
};

// Marks events that share time with another of their group. `reach` is the running maximum of the ends within the group;
// events lie in the order of group and start.
struct Overlaps {
    const uint32_t *group;
    const uint64_t *start;
    const uint64_t *reach;
    uint8_t *flags;
    uint32_t count;
    FLOPWATCH_EVERYWHERE bool free_before(uint32_t i) const {
        return i == 0 || group[i - 1] != group[i] || reach[i - 1] <= start[i];
    }
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const {
        flags[i] = !(free_before(i) && (i + 1 == count || free_before(i + 1)));
    }
};

// How much each event adds to the union of its group's intervals.
struct Covered {
    const uint32_t *group;
    const uint64_t *start;
    const uint64_t *end;
    const uint64_t *reach;
    uint64_t *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const {
        uint64_t from = start[i];
        if (i > 0 && group[i - 1] == group[i] && reach[i - 1] > from)
            from = reach[i - 1];
        out[i] = end[i] > from ? end[i] - from : 0;
    }
};

// Marks the first event of each group.
struct Heads {
    const uint32_t *group;
    uint8_t *flags;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const { flags[i] = i == 0 || group[i - 1] != group[i]; }
};

// How many bits of the start, from the lowest, must be dropped until it equals that of the event before in the group: 64 where
// there is none.
struct Differing {
    const uint32_t *group;
    const uint64_t *start;
    uint8_t *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const {
        uint8_t bits = 64;
        if (i > 0 && group[i - 1] == group[i]) {
            uint64_t rest = start[i - 1] ^ start[i];
            for (bits = 0; rest != 0; bits++)
                rest >>= 1;
        }
        out[i] = bits;
    }
};

// Marks values above a limit.
struct Above {
    const uint8_t *values;
    uint8_t limit;
    uint8_t *flags;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const { flags[i] = values[i] > limit; }
};

// Marks the first of the largest values of each run. `number` counts runs from 1, `first` says where each begins, `reach` is the
// running maximum of the values within their run.
struct Best {
    const uint32_t *number;
    const uint32_t *first;
    const uint64_t *values;
    const uint64_t *reach;
    uint8_t *flags;
    uint32_t runs;
    uint32_t count;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const {
        uint32_t run = number[i] - 1;
        uint32_t last = (run + 1 < runs ? first[run + 1] : count) - 1;
        uint64_t best = reach[last];
        flags[i] = values[i] == best && (i == first[run] || reach[i - 1] < best);
    }
};

// One of the four 32-bit digits of a value's square, or of the value itself: sums of fewer than 2^32 digits fit 64 bits.
struct Digit {
    const uint64_t *values;
    uint32_t digit;
    bool square;
    uint64_t *out;
    FLOPWATCH_EVERYWHERE void operator()(uint32_t i) const {
        uint64_t value = values[i], digits[4] = {value & 0xffffffff, value >> 32, 0, 0};
        if (square) {
            uint64_t low = digits[0], high = digits[1];
            uint64_t mixed = low * high, bottom = low * low, top = high * high;
            uint64_t second = (bottom >> 32) + 2 * (mixed & 0xffffffff);
            uint64_t third = (second >> 32) + 2 * (mixed >> 32) + (top & 0xffffffff);
            digits[0] = bottom & 0xffffffff;
            digits[1] = second & 0xffffffff;
            digits[2] = third & 0xffffffff;
            digits[3] = (third >> 32) + (top >> 32);
        }
        out[i] = digits[digit & 3];
    }
};

} // namespace flopwatch

#endif
