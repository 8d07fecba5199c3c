"""Flame graphs of captures: see :class:`FlameGraphGenerator`."""

from __future__ import annotations

from typing import Any, Literal

from flopwatch.capture import Path

from .report import Report


class FlameGraphGenerator:
    """Flame graphs: time by the stack of ranges, operators and Python functions.

    :param min_duration_us: frames with less time in µs over the whole capture are summed.
    :param max_depth: most frames around each other.
    :param group_small_kernels: whether short GPU operations are summed, too.
    :param weight: the time of GPUs, or that of the CPU's threads.
    """

    def __init__(
        self,
        min_duration_us: float = 10.0,
        max_depth: int = 50,
        group_small_kernels: bool = True,
        weight: Literal["gpu", "cpu"] = "gpu",
    ) -> None:
        self._report = Report(
            "flame-graph",
            min_duration_us=min_duration_us,
            max_depth=max_depth,
            group_small_kernels=group_small_kernels,
            weight=weight,
        )

    def from_profiler(self, profiler: Any) -> dict[str, Any]:
        """The flame graph of a finished ``torch.profiler.profile``, whose trace it takes: PyTorch writes it once.

        :raises RequestError: where the profile has not ended, or its trace was written before.
        """
        return self._report.of_profile(profiler)

    def from_chrome_trace(self, path: Path) -> dict[str, Any]:
        """The flame graph of a Chrome trace, or of any other file that the engine reads.

        :raises ReadError: with what is wrong with the file.
        """
        return self._report.read(path)

    def export(self, path: Path, format: str | None = None, *, overwrite: bool = False) -> None:
        """Writes the flame graph that was made last as a page (``html``) or as ``json``, as ``format`` or the ending of the name says. The file appears
        whole or not at all.

        :raises FileExistsError: where something is there already.
        """
        self._report.export(path, format, overwrite=overwrite)
