"""When CPU and GPUs were active: see :class:`TimelineGenerator`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flopwatch.capture import Path

from .report import Report, format_of


@dataclass(frozen=True, slots=True)
class TimelineReport:
    """When CPU and GPUs were active. What was not captured is ``None``."""

    #: From the first event to the last, in µs.
    total_time_us: float
    #: Time in µs in which any thread was active.
    cpu_active_time_us: float | None
    #: Time in µs in which any GPU was active.
    gpu_active_time_us: float | None
    #: Time in µs in which both were.
    overlap_time_us: float | None


class TimelineGenerator:
    """Timelines of captures.

    :param min_duration_us: events shorter than this, in µs, do not count as activity.
    :param include_python_events: whether functions of the Python interpreter count as activity of the CPU.
    """

    def __init__(self, min_duration_us: float = 1.0, include_python_events: bool = True) -> None:
        self._report = Report("profiler-timeline", min_duration_us=min_duration_us, include_python_events=include_python_events)

    def from_profiler(self, profiler: Any) -> TimelineReport:
        """The timeline of a finished ``torch.profiler.profile``, whose trace it takes: PyTorch writes it once.

        :raises RequestError: where the profile has not ended, or its trace was written before.
        """
        return TimelineReport(**self._report.of_profile(profiler))

    def from_chrome_trace(self, path: Path) -> TimelineReport:
        """The timeline of a Chrome trace, or of any other file that the engine reads.

        :raises ReadError: with what is wrong with the file.
        """
        return TimelineReport(**self._report.read(path))

    def export(self, path: Path, format: str | None = None, *, overwrite: bool = False) -> None:
        """Writes what was read last. The file appears whole or not at all.

        :param format: ``html`` or ``json`` for the figures, ``chrome-trace`` for all events, which chrome://tracing and Perfetto open; without it the
            ending of the name says which of the first two.
        :raises FileExistsError: where something is there already.
        """
        chosen = format_of(path, format, ("html", "json", "chrome-trace"))
        if chosen == "chrome-trace":
            self._report.capture.export(chosen, path, overwrite=overwrite)
        else:
            self._report.export(path, chosen, overwrite=overwrite)
