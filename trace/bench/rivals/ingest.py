"""The needed fields of the kernel table of an nsys HDF5 export with h5py: only these, or whole rows, as the second argument says."""

import sys

import h5py
import numpy as np

import measure

FIELDS = ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName",
          "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
          "dynamicSharedMemory"]


def job():
    with h5py.File(sys.argv[1], "r") as source:
        table = source["CUPTI_ACTIVITY_KIND_KERNEL"]
        rows = table.fields(FIELDS)[:] if sys.argv[2] == "fields" else table[:]
        columns = {field: np.ascontiguousarray(rows[field]) for field in FIELDS}
    return {"events": len(rows), "total_ns": int((columns["end"] - columns["start"]).sum())}


measure.run(job)
