"""All events of a file as frames of polars, one per category."""

import sys

import measure
import polars as pl

import flopwatch


def job() -> dict[str, int]:
    capture = flopwatch.open(sys.argv[1])
    frames = [pl.DataFrame(capture.events(category)) for category in capture.categories]
    return {"events": sum(frame.height for frame in frames), "total_ns": sum(int(frame["duration_ns"].sum()) for frame in frames)}


measure.run(job)
