"""Figures of a reading, after the definitions in docs/analyses: names with values to compare."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Hashable, Iterable

from reading import (
    ANNOTATION,
    CALL,
    COPIES,
    GRAPH,
    KERNEL,
    OPERATOR,
    PYTHON,
    RANGE,
    SIZED,
    STEP,
    WORK,
    Event,
    Reading,
    covered,
    shared,
    spans,
    union,
)

# Kernels that move data between GPUs, by a part of their names: of NCCL and RCCL, NVSHMEM, MSCCL++,
# all-reduces of servers, and expert parallelism.
COMMUNICATION = re.compile(
    r"(?i)^(nccl|rccl)|nccl(dev)?kernel|rcclgeneric|msccl|nvshmem|cross_device_reduce|quick_?reduce"
    r"|(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)|deep_ep::|dpsk::ep::|moe_?a2a"
)
# Frames of a stack, the outermost first where times are equal.
FRAMES = (STEP, RANGE, ANNOTATION, PYTHON, OPERATOR, CALL)
NO_CALL = "(launch not captured)"


def communicates(event: Event) -> bool:
    return event.kind == COPIES["p2p"] or (
        event.kind == KERNEL and COMMUNICATION.search(event.name) is not None
    )


def computes(event: Event) -> bool:
    return event.kind in (KERNEL, GRAPH) and not communicates(event)


def join(reading: Reading) -> None:
    """Gives each work its launching call: the one with a number that both have, in the same
    process; of several the last that had begun when the work began, else the first."""
    calls: dict[Hashable, list[Event]] = defaultdict(list)
    for call in reading.of([CALL]):
        for key in call.keys:
            calls[key].append(call)
    for candidates in calls.values():
        candidates.sort(key=lambda call: (call.start, call.order))
    for work in reading.events:
        if work.kind not in WORK:
            continue
        for key in work.keys:
            candidates = calls.get(key)
            if candidates:
                begun = [call for call in candidates if call.start <= work.start]
                work.call = begun[-1] if begun else candidates[0]
                break


def counts(reading: Reading) -> dict:
    found: dict = {}
    number: Counter = Counter()
    time: Counter = Counter()
    sizes: Counter = Counter()
    for event in reading.events:
        number[event.kind] += 1
        time[event.kind] += event.length
        sizes[event.kind] += event.size or 0
    for kind, count in number.items():
        found[f"events of {kind}"] = count
        found[f"time of {kind}, ns"] = time[kind]
        if kind in SIZED:
            found[f"bytes of {kind}"] = sizes[kind]
    return found


def origin(reading: Reading) -> int:
    return min((event.start for event in reading.events), default=0)


def each_event(reading: Reading) -> Counter:
    """Each event by what it is, when, and where its call began; times since the first event."""
    first = origin(reading)
    return Counter(
        (
            event.kind,
            event.name,
            event.start - first,
            event.length,
            event.size if event.kind in SIZED else None,
            None if event.call is None else event.call.start - first,
        )
        for event in reading.events
    )


def by_gpu(reading: Reading) -> list[list[Event]]:
    gpus: dict[Hashable, list[Event]] = defaultdict(list)
    for event in reading.of(WORK):
        gpus[event.device].append(event)
    return sorted(
        gpus.values(),
        key=lambda work: (min(e.start for e in work), max(e.end for e in work), len(work)),
    )


def gpus(reading: Reading) -> dict:
    found: dict = {}
    for at, work in enumerate(by_gpu(reading)):
        compute = spans(event for event in work if computes(event))
        communication = spans(event for event in work if communicates(event))
        memory = spans(event for event in work if not computes(event) and not communicates(event))
        both = compute + communication
        window = max(event.end for event in work) - min(event.start for event in work)
        busy = covered(both + memory)
        for what, value in (
            ("works", len(work)),
            ("window, ns", window),
            ("busy, ns", busy),
            ("compute, ns", covered(compute)),
            ("communication, ns", covered(communication)),
            ("exposed communication, ns", covered(both) - covered(compute)),
            ("exposed memory, ns", busy - covered(both)),
            ("idle, ns", window - busy),
            ("idle pieces", max(len(union(both + memory)) - 1, 0)),
            ("communication under compute, ns", shared(communication, compute)),
            ("memory, ns", covered(memory)),
            ("memory under compute, ns", shared(memory, compute)),
            ("memory under communication, ns", shared(memory, communication)),
        ):
            found[f"gpu {at}: {what}"] = value
    return found


def launches(reading: Reading) -> dict:
    work = reading.of(WORK)
    first: dict[int, Event] = {}
    for event in sorted(
        (event for event in work if event.call is not None),
        key=lambda event: (event.start, event.order),
    ):
        first.setdefault(id(event.call), event)
    begun = list(first.values())
    return {
        "launches: works": len(work),
        "launches: joined": sum(event.call is not None for event in work),
        "launches: calls": len(begun),
        "launches: time of calls, ns": sum(event.call.length for event in begun),
        "launches: delay, ns": sum(max(event.start - event.call.end, 0) for event in begun),
        "launches: shorter than their call": sum(
            event.length < event.call.length for event in begun
        ),
    }


def queues(reading: Reading) -> dict:
    """The longest queue of each stream, as a list: of how many works, and how long."""
    streams: dict[Hashable, list[Event]] = defaultdict(list)
    for event in reading.of(WORK):
        if event.call is not None and event.call.start <= event.start:
            streams[(event.process, event.place)].append(event)
    rows = []
    for work in streams.values():
        changes = sorted(
            [(event.call.start, 0) for event in work] + [(event.start, 1) for event in work]
        )
        length = longest = 0
        for _, leaves in changes:
            length += -1 if leaves else 1
            longest = max(longest, length)
        rows.append((len(work), longest))
    return {"queues: works and longest of each stream": sorted(rows)}


def frames_by_thread(reading: Reading, kinds: Iterable[str]) -> dict[Hashable, list[Event]]:
    threads: dict[Hashable, list[Event]] = defaultdict(list)
    for event in reading.of(kinds):
        if not event.apart:
            threads[(event.process, event.place)].append(event)
    for frames in threads.values():
        # An event is around another that begins with it and is shorter; of equal ones the kind
        # decides, then the file's order.
        frames.sort(
            key=lambda event: (event.start, -event.end, FRAMES.index(event.kind), event.order)
        )
    return threads


def frame(name: str) -> str:
    return name.replace(";", ":")


def stacks_of_gpu(reading: Reading) -> Counter:
    """Time of GPU work by the stack of its launching thread when the call began."""
    threads = frames_by_thread(reading, FRAMES[:-1])
    called: dict[Hashable, list[Event]] = defaultdict(list)
    found: Counter = Counter()
    for work in reading.of(WORK):
        if work.call is None:
            found[(NO_CALL, frame(work.name))] += work.length
        else:
            called[(work.call.process, work.call.place)].append(work)
    for thread, works in called.items():
        works.sort(key=lambda work: work.call.start)
        frames, at, open_frames = threads.get(thread, []), 0, []
        for work in works:
            now = work.call.start
            while at < len(frames) and frames[at].start <= now:
                open_frames.append(frames[at])
                at += 1
            open_frames = [event for event in open_frames if event.end > now]
            found[(*(frame(event.name) for event in open_frames), frame(work.name))] += work.length
    return Counter({stack: time for stack, time in found.items() if time > 0})


def stacks_of_cpu(reading: Reading) -> Counter:
    """Own time of each stack of each thread: each moment is of what has begun and not ended."""
    found: Counter = Counter()
    for frames in frames_by_thread(reading, FRAMES).values():
        open_frames: list[Event] = []
        clock = 0

        def until(time: int) -> None:
            nonlocal clock, open_frames
            while open_frames:
                ends = min(event.end for event in open_frames)
                upto = min(ends, time)
                if upto > clock:
                    found[tuple(frame(event.name) for event in open_frames)] += upto - clock
                    clock = upto
                if ends > time:
                    break
                open_frames = [event for event in open_frames if event.end > ends]
            clock = max(clock, time)

        for event in frames:
            until(event.start)
            if event.end > event.start:
                open_frames.append(event)
        until(max((event.end for event in frames), default=0))
    return found


def steps(reading: Reading) -> dict:
    """Steps that the profiler marked: when, and how many kernels were launched in each."""
    first = origin(reading)
    marked = [event for event in reading.of([STEP]) if event.length > 0]
    if not marked:
        return {}
    # A kernel belongs to the step that its call began in; one without a call to that in which it
    # began itself.
    rows = []
    for step in marked:
        inside = 0
        for event in reading.of([KERNEL]):
            began = event.start if event.call is None else event.call.start
            is_own = event.call is None or event.call.process == step.process
            inside += is_own and step.start <= began < step.end
        rows.append((step.start - first, step.length, inside))
    return {"steps: start, length, kernels of each": sorted(rows)}


def memory(reading: Reading) -> dict:
    """The peak of each pool. Without totals as much was given out before as is taken back without
    having been given out; where no address tells that, as keeps the level from falling below 0."""
    pools: dict[Hashable, list] = defaultdict(list)
    for change in reading.allocations:
        pools[change.pool].append(change)
    peaks = []
    for changes in pools.values():
        changes.sort(key=lambda change: change.time)
        if all(change.total is not None for change in changes):
            peaks.append(max(change.total for change in changes))
            continue
        level, before, levels = 0, 0, []
        given: dict[int, int] = {}
        for change in changes:
            size = change.change
            if size > 0 and change.address:
                given[change.address] = size
            elif size <= 0 and change.address:
                known = given.pop(change.address, None)
                size = size if size or known is None else -known
                before -= size if known is None else 0
            level += size
            levels.append(level)
        if not all(change.address for change in changes):
            before = max(0, -min(levels))
        peaks.append(max(levels) + before)
    return {"memory: peak of each pool, bytes": sorted(peaks)} if peaks else {}


def all_of(reading: Reading) -> dict:
    """Every figure, the multisets of events and stacks among them."""
    join(reading)
    return {
        **counts(reading),
        **gpus(reading),
        **launches(reading),
        **queues(reading),
        **steps(reading),
        **memory(reading),
        "each event": each_event(reading),
        "stacks of GPU work": stacks_of_gpu(reading),
        "stacks and own times of threads": stacks_of_cpu(reading),
    }
