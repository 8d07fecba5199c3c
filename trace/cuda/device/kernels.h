// The calls that Rust makes: C names, addresses of device memory, counts of events, a stream to run in.
//
// Every call returns 0 or the number of an error that flopwatch_error names, and returns before the work is done. Buffers hold
// `count` values unless said otherwise. Sorting is stable.
#ifndef FLOPWATCH_KERNELS_H
#define FLOPWATCH_KERNELS_H

#include <cstddef>
#include <cstdint>

#define FLOPWATCH_CALL extern "C" __attribute__((visibility("default")))

// "flopwatch-kernels <interface> <hash of the sources> <what built it>"
FLOPWATCH_CALL const char *flopwatch_version();
FLOPWATCH_CALL const char *flopwatch_error(int status);
// Scratch that is enough for every call below on `count` events.
FLOPWATCH_CALL int flopwatch_scratch(uint32_t count, size_t *bytes);

FLOPWATCH_CALL int flopwatch_sequence(uint32_t *out, uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_keys_u32(const uint32_t *values, const uint32_t *order, uint64_t *out, int falling,
                                      uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_keys_u64(const uint64_t *values, const uint32_t *order, uint64_t *out, int falling,
                                      uint32_t count, void *stream);
// Sorts by the bits [first_bit, end_bit) of the keys.
FLOPWATCH_CALL int flopwatch_sort(void *scratch, size_t scratch_bytes, const uint64_t *keys, uint64_t *sorted_keys,
                                  const uint32_t *values, uint32_t *sorted_values, int first_bit, int end_bit,
                                  uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_gather_u32(const uint32_t *values, const uint32_t *order, uint32_t *out, uint32_t count,
                                        void *stream);
FLOPWATCH_CALL int flopwatch_gather_u64(const uint64_t *values, const uint32_t *order, uint64_t *out, uint32_t count,
                                        void *stream);
// `out` is longer than every position.
FLOPWATCH_CALL int flopwatch_scatter(const uint32_t *values, const uint32_t *positions, uint32_t *out, uint32_t count,
                                     void *stream);
// Positions whose flag is not 0, in order; `selected` is one number.
FLOPWATCH_CALL int flopwatch_select(void *scratch, size_t scratch_bytes, const uint8_t *flags, uint32_t *positions,
                                    uint32_t *selected, uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_ends(const uint64_t *start, const uint64_t *duration, uint64_t *out, uint32_t count,
                                  void *stream);
// Running maximum of `ends` within runs of equal `group`.
FLOPWATCH_CALL int flopwatch_reach(void *scratch, size_t scratch_bytes, const uint32_t *group, const uint64_t *ends,
                                   uint64_t *out, uint32_t count, void *stream);
// The largest and the smallest of `values`, one number each; at least one value.
FLOPWATCH_CALL int flopwatch_largest(void *scratch, size_t scratch_bytes, const uint64_t *values, uint64_t *largest,
                                     uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_smallest(void *scratch, size_t scratch_bytes, const uint64_t *values, uint64_t *smallest,
                                      uint32_t count, void *stream);
// Running sum, modulo 2^64.
FLOPWATCH_CALL int flopwatch_sum(void *scratch, size_t scratch_bytes, const uint64_t *values, uint64_t *out,
                                 uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_overlaps(const uint32_t *group, const uint64_t *start, const uint64_t *reach,
                                      uint8_t *flags, uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_covered(const uint32_t *group, const uint64_t *start, const uint64_t *end,
                                     const uint64_t *reach, uint64_t *out, uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_heads(const uint32_t *group, uint8_t *flags, uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_differing(const uint32_t *group, const uint64_t *start, uint8_t *out, uint32_t count,
                                       void *stream);
FLOPWATCH_CALL int flopwatch_above(const uint8_t *values, uint8_t limit, uint8_t *flags, uint32_t count, void *stream);
// How often each value occurs; `bins` are 256 numbers.
FLOPWATCH_CALL int flopwatch_histogram(void *scratch, size_t scratch_bytes, const uint8_t *values, uint32_t *bins,
                                       uint32_t count, void *stream);
// Running count of the flags that are set; flags are 0 or 1.
FLOPWATCH_CALL int flopwatch_number(void *scratch, size_t scratch_bytes, const uint8_t *flags, uint32_t *out,
                                    uint32_t count, void *stream);
// `first` has `runs` values, all below `count`; `number` lies between 1 and `runs`.
FLOPWATCH_CALL int flopwatch_best(const uint32_t *number, const uint32_t *first, const uint64_t *values,
                                  const uint64_t *reach, uint8_t *flags, uint32_t runs, uint32_t count, void *stream);
FLOPWATCH_CALL int flopwatch_digit(const uint64_t *values, uint32_t digit, int square, uint64_t *out, uint32_t count,
                                   void *stream);

#endif
