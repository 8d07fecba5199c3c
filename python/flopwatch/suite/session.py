"""What a profiled block did: see :class:`ProfileSession`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flopwatch.capture import Capture

from .flame import FlameGraph, flame_graph_of
from .found import Found

if TYPE_CHECKING:
    from flopwatch._catalogue import FlameWeight, MemoryResult


@dataclass(frozen=True, slots=True, eq=False)
class SessionKernel(Found):
    """A kernel."""

    name: str
    #: Total time of its launches in µs.
    cuda_time_us: float


@dataclass(frozen=True, slots=True, eq=False)
class ProfileSession(Found):
    """What a profiled block did. What was not measured is ``None``, never 0; MB are 10^6 bytes."""

    #: Length of the capture in ms.
    total_time_ms: float
    #: Time in ms in which any GPU was active.
    cuda_time_ms: float | None
    #: Time in ms in which any thread was in an operator, a CUDA call or a Python function.
    cpu_time_ms: float | None
    #: Most memory in MB that was given out at a time: of all GPUs together, where there is none of the host, see :class:`MemoryProfiler`.
    peak_memory_mb: float | None
    #: Memory in MB that was given out at the end. ``None`` where several GPUs were used.
    allocated_memory_mb: float | None
    #: Most memory in MB that the allocator had, given out or not. ``None`` where several GPUs were used, and of the host.
    reserved_memory_mb: float | None
    #: The kernels, the longest total time first; empty without a GPU.
    kernels: list[SessionKernel]
    #: What makes it slow, in sentences, the gravest first. The rules are about GPUs: without one the list is empty.
    bottlenecks: list[str]
    #: What to do about it.
    recommendations: list[str]
    #: The Chrome trace, where it was kept.
    trace_path: str | None
    #: The result of the analysis ``flame-graph``: time of GPUs, without one of the CPU. ``None`` where it was not asked for.
    flame_graph_data: FlameGraph | None


@dataclass(frozen=True, slots=True, eq=False)
class MemoryDiff(Found):
    """The difference of two peaks of memory."""

    #: The highest peak of a GPU after less that before, in MB of 10^6 bytes.
    peak_mb: float | None


@dataclass(frozen=True, slots=True, eq=False)
class SessionComparison(Found):
    """What changed from one session to another."""

    #: Time before by time after: above 1 is faster. ``None`` where no time can be compared.
    speedup: float | None
    memory_diff: MemoryDiff


def session_of(capture: Capture, *, trace_path: str | None, memory: bool = True, flame_graph: bool = True) -> ProfileSession:
    """The session of a capture.

    :param trace_path: the file that it has.
    :param memory: whether memory is looked at.
    :param flame_graph: whether there is a flame graph.
    """
    active = capture.analyze("profiler-timeline", min_duration_us=0)
    peak = capture.analyze("profiler-memory", record_history=False).peak_allocated_mb if memory else None
    allocated, reserved = _allocator(capture.analyze("memory", limit=100, points=1)) if memory else (None, None)
    kernels = capture.analyze("profiler-kernels").kernels
    findings = capture.analyze("advice").findings
    weight: FlameWeight = "cpu" if active.gpu_active_time_us is None else "gpu"
    return ProfileSession(
        total_time_ms=capture.duration_ns / 1e6,
        cuda_time_ms=_ms(active.gpu_active_time_us),
        cpu_time_ms=_ms(active.cpu_active_time_us),
        peak_memory_mb=peak,
        allocated_memory_mb=_mb(allocated),
        reserved_memory_mb=_mb(reserved),
        kernels=[SessionKernel(**kernel) for kernel in kernels or ()],
        bottlenecks=[finding["sentence"] for finding in findings],
        recommendations=[action for finding in findings for action in finding["actions"]],
        trace_path=trace_path,
        flame_graph_data=flame_graph_of(capture.analyze("flame-graph", weight=weight)) if flame_graph else None,
    )


def _allocator(memory: MemoryResult) -> tuple[int | None, int | None]:
    """Bytes that the framework's allocator had given out at the end, and the most that it had: of the GPU, without one of the host."""
    pools = [pool for pool in memory.pools if pool["allocator"] == "framework"]
    of_gpus = [pool for pool in pools if pool["device"] is not None]
    # Several are not added up here: no analysis says the whole of them at the end.
    chosen = of_gpus or pools
    if len(chosen) != 1:
        return None, None
    return chosen[0]["end_bytes"], chosen[0]["peak_reserved_bytes"]


def _ms(us: float | None) -> float | None:
    return None if us is None else us / 1e3


def _mb(bytes: int | None) -> float | None:
    return None if bytes is None else bytes / 1e6
