"""Makes plain.h5: a timeline file of a service that publishes the bare columns, in the layout that HDF5 writes by default.

    python plain.py        (h5py 3.10 or newer)
"""

import pathlib

import h5py
import numpy as np

with h5py.File(pathlib.Path(__file__).with_name("plain.h5"), "w") as file:
    meta = file.create_group("meta")
    meta.attrs["session_id"] = "plain"
    meta.attrs["total_duration_ns"] = np.uint64(1_000_000)
    meta.attrs["total_events"] = np.uint32(104)
    meta["categories"] = ["cuda_kernel", "nvtx_range"]
    kernels = file.create_group("cuda_kernel")
    kernels["start_ns"] = np.arange(100, dtype="u8") * 10_000
    kernels["duration_ns"] = np.full(100, 6_000, dtype="u8")
    kernels["stream"] = (np.arange(100) % 2 + 7).astype("u1")
    kernels["name_idx"] = (np.arange(100) % 3).astype("u2")
    kernels["grid_x"] = np.full(100, 128, dtype="u4")
    ranges = file.create_group("nvtx_range")
    ranges["start_ns"] = np.array([0, 0, 100_000, 500_000], dtype="u8")
    ranges["duration_ns"] = np.array([100_000, 1_000_000, 300_000, 400_000], dtype="u8")
    ranges["stream"] = np.zeros(4, dtype="u1")
    ranges["name_idx"] = np.array([1, 0, 2, 3], dtype="u2")
    names = file.create_group("names")
    names["cuda_kernel"] = ["gemm", "softmax", "layer_norm"]
    names["nvtx_range"] = ["epoch", "load", "forward", "backward"]
