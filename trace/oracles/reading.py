"""What an oracle found in a file: events, allocations, and arithmetic on intervals.

Times are integers of nanoseconds, intervals are half open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Hashable, Iterable, Optional

KERNEL, MEMSET, SYNC, CALL = "cuda_kernel", "cuda_memset", "cuda_sync", "cuda_api"
GRAPH, MIGRATION, SAMPLE = "cuda_graph", "cuda_migration", "cpu_sample"
CUDNN, CUBLAS, RUNNING = "cudnn_api", "cublas_api", "cpu_running"
RANGE, OS_CALL, OPERATOR, ANNOTATION, STEP = (
    "nvtx_range",
    "os_runtime",
    "cpu_op",
    "annotation",
    "step",
)
PYTHON, OVERHEAD, GPU_ANNOTATION, OTHER = "python_function", "overhead", "gpu_annotation", "other"
COPIES = {name: f"cuda_memcpy_{name}" for name in ("h2d", "d2h", "d2d", "p2p", "other")}
# What a GPU does with its time. Waits, migrations of pages, and ranges that a profiler draws over
# the work are none.
WORK = {KERNEL, MEMSET, GRAPH, *COPIES.values()}
# What has a size.
SIZED = {MEMSET, MIGRATION, *COPIES.values()}


class Unreadable(Exception):
    """A file that an oracle does not read, with the reason."""


@dataclass
class Event:
    """An event; `start` and `end` in the clock of the file."""

    kind: str
    name: str
    start: int
    end: int
    # Whose it is: a process, and of it a thread or (device, context, stream).
    process: Hashable
    place: Hashable
    # Numbers that a call and its work share: the first of them that both have joins them.
    keys: tuple = ()
    size: Optional[int] = None
    # Where it stood in the file.
    order: int = 0
    # Whether it is a range that may end on another thread, and so is no frame of a stack.
    apart: bool = False
    call: Optional["Event"] = None

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def device(self) -> Hashable:
        return self.place[0]


@dataclass
class Allocation:
    """A change of the memory that one allocator gave out; bytes below 0 are taken back, and 0 are
    where the file does not say how many."""

    time: int
    pool: Hashable
    address: Optional[int]
    change: int
    total: Optional[int]


@dataclass
class Reading:
    """All that an oracle found in a file."""

    events: list[Event] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)

    def of(self, kinds: Iterable[str]) -> list[Event]:
        kinds = set(kinds)
        return [event for event in self.events if event.kind in kinds]


def union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Intervals without overlap that cover the same time."""
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > start:
            merged.append([start, end])
    return [(start, end) for start, end in merged]


def covered(intervals: Iterable[tuple[int, int]]) -> int:
    """Length of a union."""
    return sum(end - start for start, end in union(intervals))


def shared(a: Iterable[tuple[int, int]], b: Iterable[tuple[int, int]]) -> int:
    """Length of what is in both: |A| + |B| - |A or B|."""
    a, b = list(a), list(b)
    return covered(a) + covered(b) - covered(a + b)


def spans(events: Iterable[Event]) -> list[tuple[int, int]]:
    return [(event.start, event.end) for event in events]
