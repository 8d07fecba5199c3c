"""All events of a file as frames of polars, one per category."""

import sys

import measure
import polars as pl

import flopwatch


def job() -> dict[str, int]:
    # The frames are measured, and not the start of another process.
    capture = flopwatch.open(sys.argv[1], trusted=True)
    frames = [pl.DataFrame(capture.events(category)) for category in capture.categories]
    return {"events": sum(frame.height for frame in frames), "total_ns": sum(int(frame["duration_ns"].sum()) for frame in frames)}


measure.run(job)
