"""Makes structures.h5: every part of HDF5 that the viewer's own reader knows, in a file of a few KB.

    python structures.py        (h5py 3.10 or newer)
"""

import pathlib

import h5py
import numpy as np

path = pathlib.Path(__file__).with_name("structures.h5")
with h5py.File(path, "w", libver=("v110", "v110"), track_order=False) as file:
    file.attrs["few"] = "one attribute"
    many = file.create_group("many")
    for number in range(40):
        many.create_group(f"group {number:02}")
        many.attrs[f"attribute {number:02}"] = np.uint32(number)
    columns = file.create_group("columns")
    columns.create_dataset("none", shape=(0,), dtype="u4")
    columns.create_dataset("contiguous", data=np.arange(50, dtype="u2"))
    columns.create_dataset("one chunk", data=np.arange(50, dtype="u4") * 1_000_003, chunks=(50,), shuffle=True, compression=5)
    columns.create_dataset("chunks", data=np.arange(1000, dtype="u8") * 10_000_000_007, chunks=(64,), shuffle=True, compression=5)
    columns.create_dataset("plain chunks", data=np.arange(100, dtype="u1"), chunks=(16,))
    columns.create_dataset("many chunks", data=np.arange(1100, dtype="u2"), chunks=(1,), compression=1)
    columns.create_dataset("floats", data=np.linspace(0, 1, 11))
    texts = ["", "short", "ünïcödé", "x" * 10_000] + [f"name {number}" for number in range(300)]
    columns.create_dataset("texts", data=texts, dtype=h5py.string_dtype(), chunks=(64,), shuffle=True, compression=5)
    columns.create_dataset("text", data="a single text", dtype=h5py.string_dtype())
