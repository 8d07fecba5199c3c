"""Memory of a program over time: see :class:`MemoryProfiler`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flopwatch import _native
from flopwatch.capture import Path, Result

from .found import Found
from .recording import Recording
from .report import Report, export


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPoint(Found):
    """The memory at a time."""

    #: When, in ms since the block's begin.
    time_ms: float
    #: The most in MB of 10^6 bytes that was given out from then to the next point.
    allocated_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPeak(Found):
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
        self._result: Result | None = None

    @contextmanager
    def track(self, name: str) -> Iterator[None]:
        """Records the block of a ``with``; its figures take the place of those of the block before.

        :raises ImportError: where PyTorch is not installed.
        """
        recording = Recording(name, user="MemoryProfiler", memory=True)
        with recording:
            yield
        self._result = self._report.of(recording.capture)

    def get_timeline(self) -> list[MemoryPoint]:
        """The memory over time; empty where nothing was given out.

        :raises RequestError: before the first block has ended.
        """
        points: list[dict[str, float]] | None = self._found().to_dict()["points"]
        return [MemoryPoint(**point) for point in points or ()]

    def get_peak_analysis(self) -> MemoryPeak:
        """The peak.

        :raises RequestError: before the first block has ended.
        """
        found: dict[str, Any] = self._found().to_dict()
        return MemoryPeak(peak_allocated_mb=found["peak_allocated_mb"], peak_time_ms=found["peak_time_ms"])

    def export(self, path: Path, format: str | None = None, *, overwrite: bool = True) -> None:
        """Writes a page (``html``) or the figures (``json``), as ``format`` or the ending of the name says. The file appears whole or not at all.

        :param overwrite: whether it replaces what is there.
        :raises FileExistsError: where something is there that stays.
        :raises RequestError: before the first block has ended.
        """
        export(self._found(), path, format, overwrite=overwrite)

    def _found(self) -> Result:
        if self._result is None:
            msg = "there is nothing to report yet: no block has ended"
            raise _native.RequestError(msg)
        return self._result
