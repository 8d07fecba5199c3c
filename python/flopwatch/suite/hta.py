"""What GPUs did with their time: see :class:`HTAAnalyzer`."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass

from flopwatch.capture import Path

from .found import Found, origin
from .report import Report, export


@dataclass(frozen=True, slots=True, eq=False)
class TopKernel(Found):
    """A kernel."""

    name: str
    #: Total time of its launches in µs.
    time_us: float


@dataclass(frozen=True, slots=True, eq=False)
class HTAReport(Found):
    """What GPUs did with their time, from the first work of each to its last. Shares are ``None`` where no GPU was captured."""

    #: Share in percent in which a GPU did nothing.
    gpu_idle_time_pct: float | None
    #: Share in percent in which a GPU computed.
    compute_time_pct: float | None
    #: Share in percent in which a GPU communicated, hidden behind computation or not: the three are no parts of a whole.
    communication_time_pct: float | None
    #: The ten kernels that take longest.
    top_kernels: list[TopKernel]
    #: What to do.
    recommendations: list[str]
    #: What is slow.
    bottlenecks: list[str]


class HTAAnalyzer:
    """Holistic analysis of traces.

    :param output_dir: where reports go that are given no name; it is made at the first one.
    """

    def __init__(self, output_dir: Path = "hta_output") -> None:
        self.output_dir = pathlib.Path(output_dir)
        self._report = Report("profiler-hta")

    def analyze_trace(self, path: Path) -> HTAReport:
        """Reads a trace.

        :raises ReadError: with what is wrong with the file.
        """
        result = self._report.read(path)
        found = result.to_dict()
        kernels = [TopKernel(**kernel) for kernel in found["top_kernels"]]
        return HTAReport(**{**found, "top_kernels": kernels})._made_of(result)

    def export_report(self, report: HTAReport, path: Path | None = None, format: str | None = None, *, overwrite: bool = True) -> pathlib.Path:
        """Writes a report as a page (``html``) or as ``json``, as ``format`` or the ending of the
        name says. The file appears whole or not at all.

        :param path: without it the file is ``hta_report.html``, or ``hta_report.json``, in
            ``output_dir``.
        :param overwrite: whether it replaces what is there.
        :raises FileExistsError: where something is there that stays.
        """
        result = origin(report, self._report.analysis)
        if path is None:
            self.output_dir.mkdir(parents=True, exist_ok=True)
            path = self.output_dir / f"hta_report.{'html' if format is None else format}"
        export(result, path, format, overwrite=overwrite)
        return pathlib.Path(os.fspath(path))
