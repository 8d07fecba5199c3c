"""What GPUs did with their time: see :class:`HTAAnalyzer`."""

from __future__ import annotations

from dataclasses import dataclass

from flopwatch.capture import Path

from .report import Report


@dataclass(frozen=True, slots=True)
class TopKernel:
    """A kernel."""

    name: str
    #: Total time of its launches in µs.
    time_us: float


@dataclass(frozen=True, slots=True)
class HTAReport:
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
    """Holistic analysis of traces."""

    def __init__(self) -> None:
        self._report = Report("profiler-hta")

    def analyze_trace(self, path: Path) -> HTAReport:
        """Reads a trace.

        :raises ReadError: with what is wrong with the file.
        """
        found = self._report.read(path)
        kernels = [TopKernel(**kernel) for kernel in found["top_kernels"]]
        return HTAReport(**{**found, "top_kernels": kernels})

    def export_report(self, path: Path, format: str | None = None, *, overwrite: bool = False) -> None:
        """Writes the report of the trace that was read last as a page (``html``) or as ``json``, as ``format`` or the ending of the name says. The file
        appears whole or not at all.

        :raises FileExistsError: where something is there already.
        """
        self._report.export(path, format, overwrite=overwrite)
