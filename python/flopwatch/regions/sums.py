"""Running figures of one operation."""

from __future__ import annotations

import math

from .entry import ProfileSummary


class Sums:
    """Figures of the calls so far; lengths are in ns, memory is in bytes."""

    __slots__ = (
        "calls",
        "cpu_ns",
        "deviations",
        "gpu_ms",
        "gpu_of_ns",
        "gpu_times",
        "longest",
        "mean",
        "memory",
        "memory_times",
        "shortest",
        "total",
    )

    def __init__(self) -> None:
        self.calls = 0
        self.total = 0
        self.shortest = 0
        self.longest = 0
        self.mean = 0.0
        #: Sum of the squares of the distances from the mean.
        self.deviations = 0.0
        self.cpu_ns = 0
        self.gpu_ms = 0.0
        #: Calls whose GPU time is known, and their length.
        self.gpu_times = 0
        self.gpu_of_ns = 0
        self.memory = 0
        self.memory_times = 0

    def add(self, length: int, cpu: int) -> None:
        """Adds a call of that length and processor time."""
        self.calls = calls = self.calls + 1
        self.total += length
        self.cpu_ns += cpu
        if calls == 1 or length < self.shortest:
            self.shortest = length
        if length > self.longest:
            self.longest = length
        # Welford: the sum of squares would lose the digits that count.
        distance = length - self.mean
        self.mean = mean = self.mean + distance / calls
        self.deviations += distance * (length - mean)

    def add_gpu(self, gpu_ms: float, length: int) -> None:
        """Adds the GPU time of a call of that length, once it is known."""
        self.gpu_ms += gpu_ms
        self.gpu_times += 1
        self.gpu_of_ns += length

    def add_memory(self, kept: int) -> None:
        """Adds the memory that a call kept in use."""
        self.memory += kept
        self.memory_times += 1

    def summary(self, operation: str) -> ProfileSummary:
        """The figures in the published units."""
        calls = max(self.calls, 1)
        gpu = self.gpu_times > 0
        return ProfileSummary(
            operation=operation,
            call_count=self.calls,
            total_time_ms=self.total / 1e6,
            avg_time_ms=self.total / calls / 1e6,
            min_time_ms=self.shortest / 1e6,
            max_time_ms=self.longest / 1e6,
            std_dev_ms=math.sqrt(self.deviations / (calls - 1)) / 1e6 if calls > 1 else 0.0,
            total_gpu_time_ms=self.gpu_ms if gpu else None,
            total_cpu_time_ms=self.cpu_ns / 1e6,
            avg_memory_mb=self.memory / self.memory_times / 2**20 if self.memory_times else None,
            avg_gpu_utilization=self.gpu_ms * 1e8 / self.gpu_of_ns if gpu and self.gpu_of_ns else None,
        )
