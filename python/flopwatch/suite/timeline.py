"""When CPU and GPUs were active: see :class:`TimelineGenerator`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flopwatch.capture import Path, Result

from .found import Found, origin
from .report import Report, export


@dataclass(frozen=True, slots=True, eq=False)
class TimelineReport(Found):
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
        return _report_of(self._report.of_profile(profiler))

    def from_chrome_trace(self, path: Path) -> TimelineReport:
        """The timeline of a Chrome trace, or of any other file that the engine reads.

        :raises ReadError: with what is wrong with the file.
        """
        return _report_of(self._report.read(path))

    def export_chrome_trace(self, timeline: TimelineReport, path: Path, *, overwrite: bool = True) -> None:
        """Writes all events of a timeline's capture, which chrome://tracing and Perfetto open. The
        file appears whole or not at all.

        :param overwrite: whether it replaces what is there.
        :raises FileExistsError: where something is there that stays.
        """
        for capture in origin(timeline, self._report.analysis)._captures:
            capture.export("chrome-trace", path, overwrite=overwrite)

    def generate_html_viewer(self, timeline: TimelineReport, path: Path, *, overwrite: bool = True) -> None:
        """Writes the page of a timeline's figures. The file appears whole or not at all.

        :param overwrite: whether it replaces what is there.
        :raises FileExistsError: where something is there that stays.
        """
        export(origin(timeline, self._report.analysis), path, "html", overwrite=overwrite)


def _report_of(result: Result) -> TimelineReport:
    return TimelineReport(**result.to_dict())._made_of(result)
