"""Regions of a program: how long each took, on the host and on the GPU."""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from random import random
from typing import Any, Literal, TextIO, TypeVar, get_args
from weakref import WeakSet

from flopwatch._native import Mark
from flopwatch.publication import published

from . import backend, nvtx
from .entry import ProfileEntry, ProfileSummary
from .sums import Sums

Device = Literal["gpu", "cpu"]
_DEVICES = frozenset(get_args(Device))
F = TypeVar("F", bound=Callable[..., Any])

#: Entries that are kept, the latest ones. Summaries are of all calls.
MAX_ENTRIES = 100_000
#: Regions whose GPU time is waited for. Behind them a region keeps its host time alone.
MAX_PENDING = 4096
#: Regions whose GPU time is asked for at the end of a region.
_ASKED = 2


def _epoch_ns() -> int:
    """The wall clock's time at which the clock of lengths was 0, by the closest of some pairs of readings: a thread may wait for a processor between two."""
    readings = []
    for _ in range(5):
        before, now, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        readings.append((after - before, now - (before + after) // 2))
    return min(readings)[1]


# The wall clock may be set while a program runs; lengths must not follow it.
_EPOCH_NS = _epoch_ns()

_clock = time.perf_counter_ns
_thread_clock = time.thread_time_ns


class _Off:
    """A region that measures nothing."""

    __slots__ = ()

    def __enter__(self) -> _Off:
        return self

    def __exit__(self, *_: object) -> None:
        return None


_OFF = _Off()

#: Profilers of this process, for what a fork must not take along.
_profilers: WeakSet[GPUProfiler] = WeakSet()

#: The region around this place: of each thread and each task of asyncio by itself. Around what is left out of the sample it is ``_OFF``.
_around: ContextVar[_Region | _Off | None] = ContextVar("flopwatch_region", default=None)


class _Region:
    """A call that is being measured."""

    __slots__ = (
        "_around",
        "_backend",
        "_cpu",
        "_device",
        "_first",
        "_memory",
        "_metadata",
        "_name",
        "_profiler",
        "_range",
        "_start",
    )

    def __init__(self, profiler: GPUProfiler, name: str, device: Device, metadata: dict[str, Any]) -> None:
        self._profiler = profiler
        self._name = name
        self._device = device
        self._metadata = metadata

    def __enter__(self) -> _Region | _Off:
        profiler = self._profiler
        self._around = around = _around.get()
        self._range = None
        if around is _OFF or (around is None and profiler._rate < 1.0 and random() >= profiler._rate):
            # What is inside of it is left out with it.
            if around is None:
                _around.set(_OFF)
            self._start = -1
            return _OFF
        _around.set(self)
        self._backend = found = backend.find() if self._device == "gpu" else None
        self._first = self._memory = None
        if found is not None:
            if profiler.memory:
                self._memory = found.memory(profiler.device_id)
            self._first = found.mark(profiler.device_id)
        if profiler.nvtx:
            self._range = nvtx.begin(self._name)
        self._cpu = _thread_clock()
        self._start = _clock()
        return self

    def __exit__(self, *_: object) -> None:
        end = _clock()
        _around.set(self._around)
        if self._start < 0:
            return
        cpu = _thread_clock() - self._cpu
        if self._range is not None:
            nvtx.end(self._range)
        profiler, found = self._profiler, self._backend
        second = kept = peak = None
        if found is not None:
            if self._first is not None:
                second = found.mark(profiler.device_id)
            if self._memory is not None:
                after = found.memory(profiler.device_id)
                if after is not None:
                    kept = after[0] - self._memory[0]
                    peak = after[1] if after[1] > self._memory[1] else None
        profiler._record(self, end, cpu, second, kept, peak)


class _Record:
    """A call that was measured. Its entry is made when somebody asks for it."""

    __slots__ = ("backend", "cpu", "end", "gpu_ms", "kept", "metadata", "name", "peak", "start")

    def __init__(self, region: _Region, end: int, cpu: int, kept: int | None, peak: int | None) -> None:
        self.name = region._name
        self.start = region._start
        self.end = end
        self.cpu = cpu
        self.backend = region._backend
        self.gpu_ms: float | None = None
        self.kept = kept
        self.peak = peak
        self.metadata = region._metadata

    def entry(self) -> ProfileEntry:
        length = (self.end - self.start) / 1e6
        return ProfileEntry(
            operation=self.name,
            start_time=(_EPOCH_NS + self.start) / 1e9,
            end_time=(_EPOCH_NS + self.end) / 1e9,
            duration_ms=length,
            device="cpu" if self.backend is None else "gpu",
            backend="cpu" if self.backend is None else self.backend.name,
            gpu_time_ms=self.gpu_ms,
            cpu_time_ms=self.cpu / 1e6,
            memory_allocated_mb=None if self.kept is None else self.kept / 2**20,
            memory_peak_mb=None if self.peak is None else self.peak / 2**20,
            gpu_utilization=None if self.gpu_ms is None or not length else 100 * self.gpu_ms / length,
            metadata=self.metadata,
        )


class GPUProfiler:
    """Measures regions of a program while it runs.

    >>> profiler = GPUProfiler()
    >>> with profiler.profile("load", device="cpu", batch=3):
    ...     pass
    >>> profiler.get_summary()["load"].call_count
    1

    Each region is an NVTX range as well, so that captures and the flight recorder show it. GPU time is that between two marks in the device's current
    stream: it is known once the GPU came there, and nothing waits for it before a summary is asked for. A region across an ``await`` counts the
    processor time of whatever its thread did meanwhile.

    :param enabled: whether regions measure; it may be set at any time.
    :param device_id: the GPU whose stream is marked, from 0 on.
    :param rate: the share of outermost regions that are measured, with all that is inside of them: 0.01 is one request of a hundred. It may be set
        at any time.
    :param memory: whether entries tell of device memory; asking PyTorch costs some 20 us.
    :param nvtx: whether regions are NVTX ranges.
    """

    def __init__(
        self,
        enabled: bool = True,
        device_id: int = 0,
        *,
        rate: float = 1.0,
        memory: bool = False,
        nvtx: bool = True,
    ) -> None:
        if device_id < 0:
            msg = f"device_id is the number of a GPU, from 0 on, not {device_id}"
            raise ValueError(msg)
        self.enabled = enabled
        self.device_id = device_id
        self.memory = memory
        self.nvtx = nvtx
        self.rate = rate
        self._clear()
        _profilers.add(self)

    @property
    def rate(self) -> float:
        """The share of outermost regions that are measured."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        if not 0.0 <= rate <= 1.0:
            msg = f"rate is a share from 0 to 1, not {rate!r}"
            raise ValueError(msg)
        self._rate = float(rate)

    def profile(self, operation: str, device: Device = "gpu", **metadata: Any) -> AbstractContextManager[Any]:
        """A region. Where no framework drives a GPU, ``gpu`` measures what ``cpu`` does.

        :raises ValueError: where ``device`` is neither, also while the profiler is off.
        """
        if device not in _DEVICES:
            raise _no_device(device)
        if not self.enabled:
            return _OFF
        return _Region(self, operation, device, metadata)

    def profile_function(self, operation: str | None = None, device: Device = "gpu") -> Callable[[F], F]:
        """Makes each call of a function a region, also of one that is ``async``; it is called as the function unless ``operation`` says otherwise.

        :raises ValueError: as :meth:`profile`, and at once.
        """
        if device not in _DEVICES:
            raise _no_device(device)

        def decorate(function: F) -> F:
            name = operation if operation is not None else str(getattr(function, "__qualname__", function))
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def measured(*args: Any, **kwargs: Any) -> Any:
                    with self.profile(name, device):
                        return await function(*args, **kwargs)

            else:

                @functools.wraps(function)
                def measured(*args: Any, **kwargs: Any) -> Any:
                    with self.profile(name, device):
                        return function(*args, **kwargs)

            return measured  # type: ignore[return-value]

        return decorate

    def _clear(self) -> None:
        self._lock = threading.Lock()
        self._records: deque[_Record] = deque(maxlen=MAX_ENTRIES)
        self._sums: dict[str, Sums] = {}
        self._pending: deque[tuple[_Record, Mark, Mark]] = deque()
        self._calls = 0
        #: Regions whose GPU time was given up, as too many were waited for.
        self.gpu_times_left_out = 0

    def _record(self, region: _Region, end: int, cpu: int, second: Mark | None, kept: int | None, peak: int | None) -> None:
        record = _Record(region, end, cpu, kept, peak)
        with self._lock:
            sums = self._sums.get(record.name)
            if sums is None:
                sums = self._sums[record.name] = Sums()
            sums.add(end - record.start, cpu)
            if kept is not None:
                sums.add_memory(kept)
            self._records.append(record)
            self._calls += 1
            first = region._first
            if first is not None and second is not None:
                if len(self._pending) < MAX_PENDING:
                    self._pending.append((record, first, second))
                else:
                    self.gpu_times_left_out += 1
                self._resolve(_ASKED)

    def _resolve(self, most: int) -> None:
        """Takes the GPU times of the first regions that wait for theirs, as far as they are known."""
        while most and self._pending:
            record, first, second = self._pending[0]
            gpu_ms = first.elapsed_ms(second)
            if gpu_ms is None:
                return
            self._pending.popleft()
            record.gpu_ms = gpu_ms
            self._sums[record.name].add_gpu(gpu_ms, record.end - record.start)
            most -= 1

    def _resolve_all(self) -> None:
        """Waits for the GPU, and takes the times of all regions. Called with the lock."""
        if self._pending:
            backend_of_first = self._pending[0][0].backend
            if backend_of_first is not None:
                backend_of_first.synchronize(self.device_id)
            self._resolve(len(self._pending))

    def get_entries(self) -> list[ProfileEntry]:
        """The latest calls, :data:`MAX_ENTRIES` at most, in the order of their ends. Waits for the GPU."""
        with self._lock:
            self._resolve_all()
            records = list(self._records)
        return [record.entry() for record in records]

    def get_summary(self) -> dict[str, ProfileSummary]:
        """Figures of all calls by operation, those that take longest in all first. Waits for the GPU."""
        with self._lock:
            self._resolve_all()
            summaries = [sums.summary(name) for name, sums in self._sums.items()]
        summaries.sort(key=lambda summary: (-summary.total_time_ms, summary.operation))
        return {summary.operation: summary for summary in summaries}

    def get_bottlenecks(self, top_n: int = 5) -> list[ProfileSummary]:
        """The operations that take longest in all."""
        return list(self.get_summary().values())[: max(top_n, 0)]

    def print_summary(self, file: TextIO | None = None) -> None:
        """Prints :meth:`get_summary` as a table."""
        _print("Operations", self.get_summary().values(), file or sys.stdout)

    def print_bottlenecks(self, top_n: int = 5, file: TextIO | None = None) -> None:
        """Prints :meth:`get_bottlenecks` as a table."""
        _print(f"Bottlenecks: the {top_n} longest", self.get_bottlenecks(top_n), file or sys.stdout)

    def export_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the entries and the summary, as the dashboard and the analysis ``operations-profile`` have them. The file appears whole or not at all."""
        entries = [asdict(entry) for entry in self.get_entries()]
        profile = {
            "entries": entries,
            "entries_left_out": self._calls - len(entries),
            "gpu_times_left_out": self.gpu_times_left_out,
            "summary": {name: asdict(summary) for name, summary in self.get_summary().items()},
        }
        with published(Path(path), overwrite=True) as out:
            # What the caller put into the metadata may be anything.
            json.dump(profile, out, default=repr, allow_nan=False)

    def reset(self) -> None:
        """Forgets all calls."""
        self._clear()


def _no_device(device: object) -> ValueError:
    return ValueError(f"device is 'gpu' or 'cpu', not {device!r}")


def _print(title: str, summaries: Iterable[ProfileSummary], out: TextIO) -> None:
    rows = list(summaries)
    width = max([len("operation"), *(min(len(row.operation), 48) for row in rows)])
    print(title, file=out)
    heads = f"{'calls':>8} {'total ms':>12} {'avg ms':>10} {'min ms':>10} {'max ms':>10} {'GPU ms':>10}"
    print(f"{'operation':<{width}} {heads}", file=out)
    for row in rows:
        gpu = "-" if row.total_gpu_time_ms is None else f"{row.total_gpu_time_ms:.3f}"
        name = row.operation if len(row.operation) <= width else row.operation[: width - 1] + "…"
        print(
            f"{name:<{width}} {row.call_count:>8} {row.total_time_ms:>12.3f} {row.avg_time_ms:>10.3f} "
            f"{row.min_time_ms:>10.3f} {row.max_time_ms:>10.3f} {gpu:>10}",
            file=out,
        )


def _forget_in_child() -> None:
    """A child's calls are its own, and the parent's lock may have been held by a thread that the child does not have."""
    for profiler in list(_profilers):
        profiler.reset()


os.register_at_fork(after_in_child=_forget_in_child)

_of_process: GPUProfiler | None = None
_of_process_lock = threading.Lock()

#: What the process's profiler does where nobody says: ``0`` is off, ``1`` on, a number between them on for that share of the outermost regions.
SWITCH = "FLOPWATCH_REGIONS"


def _switch() -> float:
    word = os.environ.get(SWITCH, "1")
    try:
        rate = float(word)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:
        # A program does not end for what its profiler is told.
        print(f"flopwatch: {SWITCH}={word!r} is no share from 0 to 1; regions are off", file=sys.stderr)
        return 0.0
    return rate


def get_profiler(enabled: bool | None = None) -> GPUProfiler:
    """The process's profiler, made at the first call. ``enabled`` switches it; without it the environment's :data:`SWITCH` decides at that call."""
    global _of_process
    with _of_process_lock:
        if _of_process is None:
            rate = _switch()
            _of_process = GPUProfiler(enabled=rate > 0, rate=rate or 1.0)
        if enabled is not None:
            _of_process.enabled = enabled
        return _of_process
