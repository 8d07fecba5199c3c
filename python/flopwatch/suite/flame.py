"""Flame graphs of captures: see :class:`FlameGraphGenerator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from flopwatch.capture import Path, Result

from .found import Found, origin
from .report import Report, export

if TYPE_CHECKING:
    from flopwatch._catalogue import FlameFrame


class FlameGraph(Found):
    """The result of the analysis ``flame-graph``."""

    __slots__ = ()

    if TYPE_CHECKING:
        #: ``all``.
        name: str
        #: All time in ns.
        value: int
        #: The outermost frames, the longest first.
        children: list[FlameFrame]

    else:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                msg = f"the flame graph has no field {name!r}; it has {', '.join(self)}"
                raise AttributeError(msg) from None

    def __repr__(self) -> str:
        # Its frames are thousands.
        return f"<FlameGraph: {self.get('value')} ns in {self.get('frames')} frames>"


def flame_graph_of(result: Result) -> FlameGraph:
    """The flame graph of a result."""
    return FlameGraph(result.to_dict())._made_of(result)


class FlameGraphGenerator:
    """Flame graphs: time by the stack of ranges, operators and Python functions.

    :param min_duration_us: frames with less time in µs over the whole capture are summed.
    :param max_depth: most frames around each other.
    :param group_small_kernels: whether short GPU operations are summed, too.
    :param weight: the time of GPUs, that of the CPU's threads, or samples of the CPU.
    """

    def __init__(
        self,
        min_duration_us: float = 10.0,
        max_depth: int = 50,
        group_small_kernels: bool = True,
        weight: Literal["gpu", "cpu", "samples"] = "gpu",
    ) -> None:
        self._report = Report(
            "flame-graph",
            min_duration_us=min_duration_us,
            max_depth=max_depth,
            group_small_kernels=group_small_kernels,
            weight=weight,
        )

    def from_profiler(self, profiler: Any) -> FlameGraph:
        """The flame graph of a finished ``torch.profiler.profile``, whose trace it takes: PyTorch writes it once.

        :raises RequestError: where the profile has not ended, or its trace was written before.
        """
        return flame_graph_of(self._report.of_profile(profiler))

    def from_chrome_trace(self, path: Path) -> FlameGraph:
        """The flame graph of a Chrome trace, or of any other file that the engine reads.

        :raises ReadError: with what is wrong with the file.
        """
        return flame_graph_of(self._report.read(path))

    def export(self, data: FlameGraph, path: Path, format: str | None = None, *, overwrite: bool = True) -> None:
        """Writes a flame graph as a page (``html``) or as ``json``, as ``format`` or the ending of
        the name says. The file appears whole or not at all.

        :param overwrite: whether it replaces what is there.
        :raises FileExistsError: where something is there that stays.
        """
        export(origin(data, self._report.analysis), path, format, overwrite=overwrite)
