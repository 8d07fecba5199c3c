// The same calls over host memory, so that the tests can run the whole pipeline without a GPU: what is done per event is the
// device's own source, sorting and scanning are the standard library's. Proves nothing about CUB or the driver.
#include <algorithm>
#include <numeric>
#include <vector>

#include "elements.h"

namespace flopwatch {
template <class Element> int each(uint32_t count, void *, Element element) {
    // Backwards: no element may depend on another one's result.
    for (uint32_t i = count; i-- > 0;)
        element(i);
    return 0;
}
} // namespace flopwatch

#define FLOPWATCH_BUILDER "host"
#include "calls.h"

const char *flopwatch_error(int) { return "none on the host"; }

int flopwatch_scratch(uint32_t, size_t *bytes) {
    *bytes = 1;
    return 0;
}

int flopwatch_sort(void *, size_t, const uint64_t *keys, uint64_t *sorted_keys, const uint32_t *values,
                   uint32_t *sorted_values, int first_bit, int end_bit, uint32_t count, void *) {
    uint64_t low = end_bit == 64 ? UINT64_MAX : (uint64_t{1} << end_bit) - 1;
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return (keys[a] & low) >> first_bit < (keys[b] & low) >> first_bit;
    });
    for (uint32_t i = 0; i < count; i++) {
        sorted_keys[i] = keys[order[i]];
        sorted_values[i] = values[order[i]];
    }
    return 0;
}

int flopwatch_select(void *, size_t, const uint8_t *flags, uint32_t *positions, uint32_t *selected, uint32_t count,
                     void *) {
    *selected = 0;
    for (uint32_t i = 0; i < count; i++)
        if (flags[i])
            positions[(*selected)++] = i;
    return 0;
}

int flopwatch_reach(void *, size_t, const uint32_t *group, const uint64_t *ends, uint64_t *out, uint32_t count,
                    void *) {
    for (uint32_t i = 0; i < count; i++)
        out[i] = i > 0 && group[i - 1] == group[i] ? std::max(out[i - 1], ends[i]) : ends[i];
    return 0;
}

int flopwatch_sum(void *, size_t, const uint64_t *values, uint64_t *out, uint32_t count, void *) {
    std::partial_sum(values, values + count, out);
    return 0;
}

int flopwatch_largest(void *, size_t, const uint64_t *values, uint64_t *largest, uint32_t count, void *) {
    *largest = *std::max_element(values, values + count);
    return 0;
}

int flopwatch_histogram(void *, size_t, const uint8_t *values, uint32_t *bins, uint32_t count, void *) {
    std::fill(bins, bins + 256, 0);
    for (uint32_t i = 0; i < count; i++)
        bins[values[i]]++;
    return 0;
}

int flopwatch_number(void *, size_t, const uint8_t *flags, uint32_t *out, uint32_t count, void *) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < count; i++)
        out[i] = number += flags[i];
    return 0;
}

int flopwatch_smallest(void *, size_t, const uint64_t *values, uint64_t *smallest, uint32_t count, void *) {
    *smallest = *std::min_element(values, values + count);
    return 0;
}
