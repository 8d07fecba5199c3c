"""What a user of CuPy would write for the same job, timed with its transfers.

Reads the columns that flopwatch-gpu-check wrote, sorts them, makes figures per name and one level of detail, and copies all of
it back. It does less than the transform: no lanes (they are sequential), one level instead of a pyramid, no busy time. Prints one
line of JSON; `checksum` is the sum of every event's new start times its place plus one, modulo 2^64.
"""

import json
import sys
import time

import numpy


def main() -> None:
    folder, shift = sys.argv[1], int(sys.argv[2])
    column = lambda name, kind: numpy.fromfile(f"{folder}/{name}.bin", dtype=kind)
    host = [
        column("start_ns", numpy.uint64),
        column("duration_ns", numpy.uint64),
        column("row", numpy.uint32),
        column("name", numpy.uint32),
    ]
    try:
        import cupy
    except ImportError as error:
        print(json.dumps({"unavailable": f"cupy: {error}"}))
        return

    def run():
        start, duration, row, name = (cupy.asarray(values) for values in host)
        order = cupy.lexsort(cupy.stack([name.astype(cupy.uint64), row.astype(cupy.uint64), ~duration, start]))
        start, duration, row, name = start[order], duration[order], row[order], name[order]
        names = int(name.max()) + 1
        count = cupy.bincount(name, minlength=names)
        by_name = cupy.lexsort(cupy.stack([duration, name.astype(cupy.uint64)]))
        sorted_duration = duration[by_name]
        total = cupy.zeros(names, dtype=cupy.uint64)
        cupyx_scatter_add(total, name, duration)
        ends = cupy.cumsum(count)
        first = ends - count
        used = count > 0
        last = cupy.maximum(ends - 1, 0)
        least, most = sorted_duration[first * used], sorted_duration[last]
        lower = sorted_duration[cupy.where(used, first + (count - 1) // 2, 0)]
        upper = sorted_duration[cupy.where(used, first + count // 2, 0)]
        key = (row.astype(cupy.uint64) << cupy.uint64(48)) | (start >> cupy.uint64(shift))
        buckets, inverse, bucket_count = cupy.unique(key, return_inverse=True, return_counts=True)
        longest = cupy.zeros(len(buckets), dtype=cupy.uint64)
        cupyx_scatter_max(longest, inverse, duration)
        device = [order, start, duration, row, name, count, total, least, most, lower, upper]
        device += [buckets, bucket_count, longest]
        return [cupy.asnumpy(values) for values in device]

    import cupyx

    # CuPy has no scatter for every integer type in every version; these are its own names for it.
    def cupyx_scatter_add(into, at, values):
        cupyx.scatter_add(into, at, values)

    def cupyx_scatter_max(into, at, values):
        cupyx.scatter_max(into, at, values)

    try:
        result = run()
        seconds = []
        for _ in range(3):
            cupy.cuda.Device().synchronize()
            begin = time.perf_counter()
            result = run()
            seconds.append(time.perf_counter() - begin)
    except Exception as error:  # an old CuPy, too little memory: the reason belongs into the results
        print(json.dumps({"unavailable": f"{type(error).__name__}: {error}"}))
        return
    start = result[1]
    place = numpy.arange(1, len(start) + 1, dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        checksum = int((start * place).sum(dtype=numpy.uint64))
    print(json.dumps({"seconds": seconds, "checksum": str(checksum), "cupy": cupy.__version__}))


main()
