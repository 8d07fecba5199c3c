// The device's side of the transform. Sorting, scanning and selecting are CUB's.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/functional>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <initializer_list>

#include "elements.h"

namespace flopwatch {

constexpr uint32_t THREADS = 256;

template <class Element> __global__ void run(Element element, uint32_t count) {
    uint64_t i = uint64_t{blockIdx.x} * THREADS + threadIdx.x;
    if (i < count)
        element(static_cast<uint32_t>(i));
}

template <class Element> int each(uint32_t count, void *stream, Element element) {
    if (count == 0)
        return cudaSuccess;
    uint32_t blocks = static_cast<uint32_t>((uint64_t{count} + THREADS - 1) / THREADS);
    run<<<blocks, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(element, count);
    return cudaGetLastError();
}

struct Widen {
    __host__ __device__ uint32_t operator()(uint8_t flag) const { return flag; }
};

inline auto widened(const uint8_t *flags) { return thrust::make_transform_iterator(flags, Widen{}); }

constexpr int BIN_EDGES = 257;

} // namespace flopwatch

#define FLOPWATCH_BUILDER "cuda " FLOPWATCH_TEXT(__CUDACC_VER_MAJOR__) "." FLOPWATCH_TEXT(__CUDACC_VER_MINOR__)
#include "calls.h"

const char *flopwatch_error(int status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }

int flopwatch_sort(void *scratch, size_t scratch_bytes, const uint64_t *keys, uint64_t *sorted_keys,
                   const uint32_t *values, uint32_t *sorted_values, int first_bit, int end_bit, uint32_t count,
                   void *stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, sorted_keys, values, sorted_values, count,
                                           first_bit, end_bit, static_cast<cudaStream_t>(stream));
}

int flopwatch_select(void *scratch, size_t scratch_bytes, const uint8_t *flags, uint32_t *positions,
                     uint32_t *selected, uint32_t count, void *stream) {
    return cub::DeviceSelect::Flagged(scratch, scratch_bytes, thrust::counting_iterator<uint32_t>(0), flags, positions,
                                      selected, int64_t{count}, static_cast<cudaStream_t>(stream));
}

int flopwatch_reach(void *scratch, size_t scratch_bytes, const uint32_t *group, const uint64_t *ends, uint64_t *out,
                    uint32_t count, void *stream) {
    return cub::DeviceScan::InclusiveScanByKey(scratch, scratch_bytes, group, ends, out, cuda::maximum<uint64_t>{},
                                               count, cuda::std::equal_to<>{}, static_cast<cudaStream_t>(stream));
}

int flopwatch_sum(void *scratch, size_t scratch_bytes, const uint64_t *values, uint64_t *out, uint32_t count,
                  void *stream) {
    return cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, values, out, count,
                                         static_cast<cudaStream_t>(stream));
}

int flopwatch_largest(void *scratch, size_t scratch_bytes, const uint64_t *values, uint64_t *largest, uint32_t count,
                      void *stream) {
    return cub::DeviceReduce::Max(scratch, scratch_bytes, values, largest, count, static_cast<cudaStream_t>(stream));
}

int flopwatch_smallest(void *scratch, size_t scratch_bytes, const uint64_t *values, uint64_t *smallest, uint32_t count,
                       void *stream) {
    return cub::DeviceReduce::Min(scratch, scratch_bytes, values, smallest, count, static_cast<cudaStream_t>(stream));
}

int flopwatch_histogram(void *scratch, size_t scratch_bytes, const uint8_t *values, uint32_t *bins, uint32_t count,
                        void *stream) {
    return cub::DeviceHistogram::HistogramEven(scratch, scratch_bytes, values, bins, BIN_EDGES, 0, 256, int64_t{count},
                                               static_cast<cudaStream_t>(stream));
}

int flopwatch_number(void *scratch, size_t scratch_bytes, const uint8_t *flags, uint32_t *out, uint32_t count,
                     void *stream) {
    return cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, widened(flags), out, count,
                                         static_cast<cudaStream_t>(stream));
}

int flopwatch_scratch(uint32_t count, size_t *bytes) {
    size_t sort = 0, select = 0, reach = 0, sum = 0, largest = 0, smallest = 0, bins = 0, number = 0;
    // Without scratch CUB only says how much it wants; it reads none of the addresses.
    const uint64_t *in = nullptr;
    const uint32_t *numbers = nullptr;
    const uint8_t *flags = nullptr;
    uint64_t *out = nullptr;
    uint32_t *positions = nullptr;
    cudaError_t status = cub::DeviceRadixSort::SortPairs(nullptr, sort, in, out, numbers, positions, count, 0, 64);
    if (status == cudaSuccess)
        status = cub::DeviceSelect::Flagged(nullptr, select, thrust::counting_iterator<uint32_t>(0),
                                            flags, positions, positions, int64_t{count});
    if (status == cudaSuccess)
        status = cub::DeviceScan::InclusiveScanByKey(nullptr, reach, numbers, in, out, cuda::maximum<uint64_t>{}, count);
    if (status == cudaSuccess)
        status = cub::DeviceScan::InclusiveSum(nullptr, sum, in, out, count);
    if (status == cudaSuccess)
        status = cub::DeviceReduce::Max(nullptr, largest, in, out, count);
    if (status == cudaSuccess)
        status = cub::DeviceReduce::Min(nullptr, smallest, in, out, count);
    if (status == cudaSuccess)
        status = cub::DeviceHistogram::HistogramEven(nullptr, bins, flags, positions, BIN_EDGES, 0, 256, int64_t{count});
    if (status == cudaSuccess)
        status = cub::DeviceScan::InclusiveSum(nullptr, number, widened(flags), positions, count);
    *bytes = 0;
    for (size_t wanted : {sort, select, reach, sum, largest, smallest, bins, number})
        *bytes = wanted > *bytes ? wanted : *bytes;
    return status;
}
