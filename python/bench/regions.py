"""What a region costs beside work of several lengths: the time of a turn of a loop less that of the work in it, and of a context that does nothing. One line
of JSON.
"""

import contextlib
import json
import statistics
import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from flopwatch import GPUProfiler

#: Length of the work in ms, turns of each kind in a block, and blocks.
WORK = ((0.0, 5000, 9), (0.25, 100, 9), (10.0, 10, 9), (100.0, 3, 5))
#: What the work reads: more than a core's own caches hold, as the work of a program does.
BUFFER = memoryview(bytes(8 << 20))

on = GPUProfiler()
off = GPUProfiler(enabled=False)
left_out = GPUProfiler(rate=0.0)

Kind = Callable[[], AbstractContextManager[object]]

KINDS: dict[str, Kind] = {
    "nothing": contextlib.nullcontext,
    "off": lambda: off.profile("step"),
    "left out of the sample": lambda: left_out.profile("step"),
    "on": lambda: on.profile("step"),
    "torch.profiler.record_function": lambda: torch.profiler.record_function("step"),
}

_clock = time.perf_counter_ns


def bytes_of(milliseconds: float) -> int:
    """How much of the buffer takes that long."""
    begin = _clock()
    zlib.crc32(BUFFER)
    whole = (_clock() - begin) / 1e6
    return int(len(BUFFER) * milliseconds / whole)


def work(count: int) -> None:
    """Reads so many bytes."""
    while count > 0:
        zlib.crc32(BUFFER[:count])
        count -= len(BUFFER)


def block(kind: Kind, count: int, turns: int) -> list[int]:
    """What each turn cost beside its work, in ns."""
    costs = []
    for _ in range(turns):
        begin = _clock()
        with kind():
            first = _clock()
            if count:
                work(count)
            last = _clock()
        costs.append(_clock() - begin - (last - first))
    return costs


def main() -> None:
    rows = []
    for milliseconds, turns, blocks in WORK:
        count = bytes_of(milliseconds)
        costs: dict[str, list[float]] = {name: [] for name in KINDS}
        for _ in range(blocks):
            for name, kind in KINDS.items():
                costs[name].append(statistics.median(block(kind, count, turns)))
        bare = statistics.median(costs["nothing"])
        for name, each in costs.items():
            own = [cost - bare for cost in each]
            figures = {"least_us": min(own) / 1000, "median_us": statistics.median(own) / 1000, "most_us": max(own) / 1000}
            rows.append({"work_ms": milliseconds, "kind": name, **figures})
    print(json.dumps(rows))


main()
