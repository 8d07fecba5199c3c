"""Flopwatch for Python: regions of a program, files of GPU captures, sessions of a cluster, and a profiling suite for PyTorch.

>>> import flopwatch
>>> profiler = flopwatch.get_profiler()
>>> with profiler.profile("step"):
...     pass
"""

from ._native import (
    AnalysisError,
    ClientError,
    FlopwatchError,
    ForbiddenError,
    NotFoundError,
    ReadError,
    RequestError,
    SessionFailedError,
    WriteError,
    __version__,
)
from .capture import Capture, ReaderWarning, Result, Table, analyze, catalogue, compare, convert, open
from .cluster import Artifact, AsyncClient, AsyncRemoteCapture, Client, RemoteCapture, RemoteFile, Session, SessionCapture
from .notebook import View, view
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
    "Artifact",
    "AsyncClient",
    "AsyncRemoteCapture",
    "Capture",
    "Client",
    "ClientError",
    "CompileReport",
    "FlameGraphGenerator",
    "FlopwatchError",
    "ForbiddenError",
    "GPUProfiler",
    "HTAAnalyzer",
    "HTAReport",
    "MemoryProfiler",
    "NotFoundError",
    "ProfileEntry",
    "ProfileSession",
    "ProfileSummary",
    "ReadError",
    "ReaderWarning",
    "RemoteCapture",
    "RemoteFile",
    "RequestError",
    "Result",
    "Session",
    "SessionCapture",
    "SessionFailedError",
    "Table",
    "TimelineGenerator",
    "TorchCompileAnalyzer",
    "UnifiedProfiler",
    "View",
    "WriteError",
    "__version__",
    "analyze",
    "catalogue",
    "compare",
    "convert",
    "get_profiler",
    "open",
    "view",
]
