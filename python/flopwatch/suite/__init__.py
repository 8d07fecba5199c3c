"""The profiling suite for PyTorch: captures of a program that is running, and reports of them.

PyTorch is imported where a capture is made, not before: reports of files need none.
"""

from .compiled import CompileReport, GraphBreak, TorchCompileAnalyzer
from .flame import FlameGraph, FlameGraphGenerator
from .hta import HTAAnalyzer, HTAReport, TopKernel
from .memory import MemoryPeak, MemoryPoint, MemoryProfiler
from .session import MemoryDiff, ProfileSession, SessionComparison, SessionKernel
from .timeline import TimelineGenerator, TimelineReport
from .unified import ProfiledBlock, UnifiedProfiler

__all__ = [
    "CompileReport",
    "FlameGraph",
    "FlameGraphGenerator",
    "GraphBreak",
    "HTAAnalyzer",
    "HTAReport",
    "MemoryDiff",
    "MemoryPeak",
    "MemoryPoint",
    "MemoryProfiler",
    "ProfileSession",
    "ProfiledBlock",
    "SessionComparison",
    "SessionKernel",
    "TimelineGenerator",
    "TimelineReport",
    "TopKernel",
    "TorchCompileAnalyzer",
    "UnifiedProfiler",
]
