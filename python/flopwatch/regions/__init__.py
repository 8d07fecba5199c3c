"""Regions of a program: see :class:`GPUProfiler`."""

from .entry import ProfileEntry, ProfileSummary
from .profiler import GPUProfiler, get_profiler

__all__ = ["GPUProfiler", "ProfileEntry", "ProfileSummary", "get_profiler"]
