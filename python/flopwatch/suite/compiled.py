"""What torch.compile does for a model: see :class:`TorchCompileAnalyzer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from flopwatch.capture import Capture, Path, analyze

from .found import Found, origin
from .recording import Recording, load_torch
from .report import export

#: The analysis that reports are made by.
ANALYSIS: Literal["profiler-compile"] = "profiler-compile"
#: The modes of Inductor.
MODES = ("default", "reduce-overhead", "max-autotune")


@dataclass(frozen=True, slots=True, eq=False)
class GraphBreak(Found):
    """A place where the program leaves its compiled graph."""

    #: Why, with what was seen and where, as far as the capture says.
    reason: str
    #: What to do.
    suggestion: str


@dataclass(frozen=True, slots=True, eq=False)
class CompileReport(Found):
    """What torch.compile did. What was not measured is ``None``."""

    #: Mean iteration of the eager model over that of the compiled one: above 1 is faster.
    speedup: float | None
    #: Time that was spent compiling, in ms.
    compile_time_ms: float | None
    graph_breaks: list[GraphBreak]
    total_graph_breaks: int | None
    #: ``ops_before_fusion`` over ``ops_after_fusion``: above 1 is fused.
    fusion_ratio: float | None
    #: Mean kernels of a GPU per iteration of the eager model.
    ops_before_fusion: float | None
    #: The same of the compiled model.
    ops_after_fusion: float | None
    #: What to do.
    recommendations: list[str]


class TorchCompileAnalyzer:
    """Runs a model eagerly and compiled, and tells what compiling it costs and gains.

    :param backend: the backend of torch.compile, by its name or as a function.
    :param mode: the mode of torch.compile. Backends other than Inductor need not know modes but ``default``.
    """

    def __init__(self, backend: str | Callable[..., Any] = "inductor", mode: str = "default") -> None:
        self.backend = backend
        self.mode = mode

    def analyze(self, model: Callable[..., Any], input: Any, warmup: int = 3, iterations: int = 10) -> CompileReport:
        """Compiles the model anew and runs it. Code that the process compiled before, of other models too, is compiled again when it is next used.

        :param input: what the model is called with: a tuple are its arguments, a mapping those by name, anything else is its only one.
        :param warmup: calls that do not count; the first compiles, and so one is made at least.
        :param iterations: calls that count. Each ends when the GPU has done its work.
        :raises ValueError: where ``iterations`` is below 1.
        :raises ImportError: where PyTorch is not installed.
        """
        return self.compare_modes(model, input, warmup, iterations, modes=(self.mode,))[self.mode]

    def compare_modes(
        self,
        model: Callable[..., Any],
        input: Any,
        warmup: int = 3,
        iterations: int = 10,
        modes: Sequence[str] = MODES,
    ) -> dict[str, CompileReport]:
        """The same for several modes, beside one eager run; a report by mode."""
        if iterations < 1:
            msg = f"at least 1 iteration is made, not {iterations}"
            raise ValueError(msg)
        torch = load_torch("TorchCompileAnalyzer")
        eager = _run("eager", model, input, warmup, iterations)
        reports = {}
        for mode in modes:
            torch.compiler.reset()
            compiled = torch.compile(model, backend=self.backend, mode=mode)
            reports[mode] = _report(_run(mode, compiled, input, warmup, iterations), eager)
        return reports

    def export_report(self, report: CompileReport, path: Path, format: str | None = None, *, overwrite: bool = True) -> None:
        """Writes a report as a page (``html``) or as ``json``, as ``format`` or the ending of the
        name says. The file appears whole or not at all.

        :param overwrite: whether it replaces what is there.
        :raises FileExistsError: where something is there that stays.
        """
        export(origin(report, ANALYSIS), path, format, overwrite=overwrite)


def _run(name: str, model: Callable[..., Any], input: Any, warmup: int, iterations: int) -> Capture:
    """Step 0 is the warm-up: analyses leave the first step out, and those in which code is compiled."""
    recording = Recording(name, user="TorchCompileAnalyzer")
    with recording:
        with recording.step(0):
            for _ in range(max(warmup, 1)):
                _call(model, input)
        for number in range(1, iterations + 1):
            with recording.step(number):
                _call(model, input)
    return recording.capture


def _call(model: Callable[..., Any], input: Any) -> None:
    if isinstance(input, tuple):
        model(*input)
    elif isinstance(input, Mapping):
        model(**input)
    else:
        model(input)


def _report(compiled: Capture, eager: Capture) -> CompileReport:
    result = analyze(ANALYSIS, [compiled, eager])
    found = result.to_dict()
    breaks = [GraphBreak(**one) for one in found["graph_breaks"]]
    return CompileReport(**{**found, "graph_breaks": breaks})._made_of(result)
