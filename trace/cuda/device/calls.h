// The calls that do one thing per event: the same text for the device and for the tests' host build. Whoever includes it has
// defined `flopwatch::each(count, stream, element)`.
#include "elements.h"
#include "kernels.h"

using namespace flopwatch;

#ifndef FLOPWATCH_SOURCE
#error "build with -DFLOPWATCH_SOURCE=<hash of the sources>"
#endif
#define FLOPWATCH_TEXT_(text) #text
#define FLOPWATCH_TEXT(text) FLOPWATCH_TEXT_(text)

const char *flopwatch_version() {
    return "flopwatch-kernels 1 " FLOPWATCH_TEXT(FLOPWATCH_SOURCE) " " FLOPWATCH_BUILDER;
}
int flopwatch_sequence(uint32_t *out, uint32_t count, void *stream) { return each(count, stream, Sequence{out}); }
int flopwatch_keys_u32(const uint32_t *values, const uint32_t *order, uint64_t *out, int falling, uint32_t count,
                       void *stream) {
    return each(count, stream, Keys<uint32_t>{values, order, out, falling != 0});
}
int flopwatch_keys_u64(const uint64_t *values, const uint32_t *order, uint64_t *out, int falling, uint32_t count,
                       void *stream) {
    return each(count, stream, Keys<uint64_t>{values, order, out, falling != 0});
}
int flopwatch_gather_u32(const uint32_t *values, const uint32_t *order, uint32_t *out, uint32_t count, void *stream) {
    return each(count, stream, Gather<uint32_t>{values, order, out});
}
int flopwatch_gather_u64(const uint64_t *values, const uint32_t *order, uint64_t *out, uint32_t count, void *stream) {
    return each(count, stream, Gather<uint64_t>{values, order, out});
}
int flopwatch_scatter(const uint32_t *values, const uint32_t *positions, uint32_t *out, uint32_t count, void *stream) {
    return each(count, stream, Scatter{values, positions, out});
}
int flopwatch_ends(const uint64_t *start, const uint64_t *duration, uint64_t *out, uint32_t count, void *stream) {
    return each(count, stream, Ends{start, duration, out});
}
int flopwatch_overlaps(const uint32_t *group, const uint64_t *start, const uint64_t *reach, uint8_t *flags,
                       uint32_t count, void *stream) {
    return each(count, stream, Overlaps{group, start, reach, flags, count});
}
int flopwatch_covered(const uint32_t *group, const uint64_t *start, const uint64_t *end, const uint64_t *reach,
                      uint64_t *out, uint32_t count, void *stream) {
    return each(count, stream, Covered{group, start, end, reach, out});
}
int flopwatch_heads(const uint32_t *group, uint8_t *flags, uint32_t count, void *stream) {
    return each(count, stream, Heads{group, flags});
}
int flopwatch_differing(const uint32_t *group, const uint64_t *start, uint8_t *out, uint32_t count, void *stream) {
    return each(count, stream, Differing{group, start, out});
}
int flopwatch_above(const uint8_t *values, uint8_t limit, uint8_t *flags, uint32_t count, void *stream) {
    return each(count, stream, Above{values, limit, flags});
}
int flopwatch_best(const uint32_t *number, const uint32_t *first, const uint64_t *values, const uint64_t *reach,
                   uint8_t *flags, uint32_t runs, uint32_t count, void *stream) {
    return each(count, stream, Best{number, first, values, reach, flags, runs, count});
}
int flopwatch_digit(const uint64_t *values, uint32_t digit, int square, uint64_t *out, uint32_t count, void *stream) {
    return each(count, stream, Digit{values, digit, square != 0, out});
}
