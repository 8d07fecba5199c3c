"""nsys HDF5 export to a columnar HDF5 file with h5py and numpy: argsort per category, subtract the start, dedupe names, gzip."""

import os
import sys

import h5py
import numpy as np

import measure

KERNEL = ["start", "end", "streamId", "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
          "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"]
COPIES = {1: "cuda_memcpy_h2d", 2: "cuda_memcpy_d2h", 8: "cuda_memcpy_d2d", 10: "cuda_memcpy_p2p"}


def write(out, name, columns, names):
    group = out.create_group(name)
    for column, values in columns.items():
        group.create_dataset(column, data=values, chunks=(min(len(values), 65536),), shuffle=True, compression="gzip")
    out.create_dataset("names/" + name, data=names, dtype=h5py.string_dtype())


def job():
    total = 0
    with h5py.File(sys.argv[1], "r") as source, h5py.File(sys.argv[2], "w") as out:
        strings = source["StringIds"][:]
        texts = dict(zip(strings["id"].tolist(), strings["value"]))
        parts = {}
        if "CUPTI_ACTIVITY_KIND_KERNEL" in source:
            rows = source["CUPTI_ACTIVITY_KIND_KERNEL"].fields(KERNEL)[:]
            ids, index = np.unique(rows["demangledName"], return_inverse=True)
            parts["cuda_kernel"] = (rows, [texts[id] for id in ids.tolist()], index, KERNEL[4:], rows["streamId"])
        if "CUPTI_ACTIVITY_KIND_MEMCPY" in source:
            rows = source["CUPTI_ACTIVITY_KIND_MEMCPY"].fields(["start", "end", "streamId", "bytes", "copyKind"])[:]
            for kind, name in COPIES.items():
                some = rows[rows["copyKind"] == kind]
                parts[name] = (some, [name], np.zeros(len(some), np.uint16), ["bytes"], some["streamId"])
        if "NVTX_EVENTS" in source:
            rows = source["NVTX_EVENTS"].fields(["start", "end", "eventType", "text", "color"])[:]
            rows = rows[rows["eventType"] == 59]
            names = {}
            index = np.fromiter((names.setdefault(text, len(names)) for text in rows["text"]), np.int64, len(rows))
            parts["nvtx_range"] = (rows, list(names), index, ["color"], np.zeros(len(rows), np.uint8))
        origin = min(int(rows["start"].min()) for rows, *_ in parts.values() if len(rows))
        for name, (rows, names, index, own, stream) in parts.items():
            if not len(rows):
                continue
            order = np.argsort(rows["start"], kind="stable")
            start = rows["start"][order]
            columns = {
                "start_ns": (start - origin).astype(np.uint64),
                "duration_ns": (rows["end"][order] - start).astype(np.uint64),
                "stream": stream[order].astype(np.uint8),
                "name_idx": index[order].astype(np.uint16),
            }
            for column in own:
                columns[column] = rows[column][order]
            write(out, name, columns, names)
            total += len(rows)
    return {"events": total, "file_bytes": os.path.getsize(sys.argv[2])}


measure.run(job)
