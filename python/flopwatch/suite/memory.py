"""Memory of a program over time: see :class:`MemoryProfiler`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flopwatch.capture import Path

from .recording import Recording
from .report import Report


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """The memory at a time."""

    #: When, in ms since the block's begin.
    time_ms: float
    #: The most in MB of 10^6 bytes that was given out from then to the next point.
    allocated_mb: float


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The peak of memory. Both are ``None`` where nothing was given out."""

    #: Most MB of 10^6 bytes that were given out at a time.
    peak_allocated_mb: float | None
    #: When that was first reached, in ms since the block's begin.
    peak_time_ms: float | None


class MemoryProfiler:
    """Memory that PyTorch's allocator gives out: of all GPUs together, where there is none of the host.

    On GPUs that is all of it. Of the host's memory PyTorch counts what it gave out while it was profiled.

    :param sample_interval_ms: time from one point to the next in ms.
    :param record_history: whether there are points; without them only the peak is told.
    """

    def __init__(self, sample_interval_ms: float = 1.0, record_history: bool = True) -> None:
        self._report = Report("profiler-memory", sample_interval_ms=sample_interval_ms, record_history=record_history)
        self._result: dict[str, Any] = {}

    @contextmanager
    def track(self, name: str) -> Iterator[None]:
        """Records the block of a ``with``; its figures take the place of those of the block before.

        :raises ImportError: where PyTorch is not installed.
        """
        recording = Recording(name, user="MemoryProfiler", memory=True)
        with recording:
            yield
        self._result = self._report.of(recording.capture)

    def get_timeline(self) -> list[MemoryPoint] | None:
        """The memory over time; ``None`` where nothing was given out.

        :raises RequestError: before the first block has ended.
        """
        points = self._found()["points"]
        return None if points is None else [MemoryPoint(**point) for point in points]

    def get_peak_analysis(self) -> MemoryPeak:
        """The peak.

        :raises RequestError: before the first block has ended.
        """
        found = self._found()
        return MemoryPeak(peak_allocated_mb=found["peak_allocated_mb"], peak_time_ms=found["peak_time_ms"])

    def export(self, path: Path, format: str | None = None, *, overwrite: bool = False) -> None:
        """Writes a page (``html``) or the figures (``json``), as ``format`` or the ending of the name says. The file appears whole or not at all.

        :raises FileExistsError: where something is there already.
        """
        self._report.export(path, format, overwrite=overwrite)

    def _found(self) -> dict[str, Any]:
        _ = self._report.capture
        return self._result
