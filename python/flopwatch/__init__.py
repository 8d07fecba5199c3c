"""Flopwatch for Python: regions of a program, files of GPU captures, and a profiling suite for PyTorch.

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
from .suite import (
    CompileReport,
    FlameGraphGenerator,
    HTAAnalyzer,
    HTAReport,
    MemoryProfiler,
    ProfileSession,
    TimelineGenerator,
    TorchCompileAnalyzer,
    UnifiedProfiler,
)

__all__ = [
    "AnalysisError",
    "Capture",
    "CompileReport",
    "FlameGraphGenerator",
    "FlopwatchError",
    "GPUProfiler",
    "HTAAnalyzer",
    "HTAReport",
    "MemoryProfiler",
    "ProfileEntry",
    "ProfileSession",
    "ProfileSummary",
    "ReadError",
    "RequestError",
    "Result",
    "Table",
    "TimelineGenerator",
    "TorchCompileAnalyzer",
    "UnifiedProfiler",
    "WriteError",
    "__version__",
    "analyze",
    "catalogue",
    "compare",
    "convert",
    "get_profiler",
    "open",
]
