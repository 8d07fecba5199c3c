"""Figures per name of raw columns with polars: what `nsys stats` tells of kernels."""

import os
import sys

import numpy as np
import polars as pl

import measure

count = os.path.getsize(sys.argv[1]) // 24
with open(sys.argv[1], "rb") as file:
    file.seek(8 * count)
    duration = np.fromfile(file, np.uint64, count)
    file.seek(20 * count)
    name = np.fromfile(file, np.uint32, count)
frame = pl.DataFrame({"name": name, "duration": duration})


def job():
    value = pl.col("duration")
    figures = frame.group_by("name").agg(
        value.len().alias("count"), value.sum().alias("total"), value.mean().alias("mean"), value.median().alias("median"),
        value.min().alias("min"), value.max().alias("max"), value.std().alias("std"))
    figures = figures.with_columns(share=100 * pl.col("total") / pl.col("total").sum()).sort("total", descending=True)
    return {"events": count, "total_ns": int(figures["total"].sum())}


measure.run(job)
