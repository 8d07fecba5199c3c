"""Flopwatch for Python: regions of a program, and files of GPU captures.

>>> import flopwatch
>>> profiler = flopwatch.get_profiler()
>>> with profiler.profile("step"):
...     pass
"""

from ._native import (
    AnalysisError,
    FlopwatchError,
    ReadError,
    RequestError,
    WriteError,
    __version__,
)
from .capture import Capture, Result, Table, analyze, catalogue, compare, convert, open
from .regions import GPUProfiler, ProfileEntry, ProfileSummary, get_profiler

__all__ = [
    "AnalysisError",
    "Capture",
    "FlopwatchError",
    "GPUProfiler",
    "ProfileEntry",
    "ProfileSummary",
    "ReadError",
    "RequestError",
    "Result",
    "Table",
    "WriteError",
    "__version__",
    "analyze",
    "catalogue",
    "compare",
    "convert",
    "get_profiler",
    "open",
]
