"""Reads a Chrome trace (of Kineto or others; gzip, or a tar of several).

It uses the standard library alone. Sources of the format: the "Trace Event Format" document of
Chrome, and the output of Kineto in the versions that the corpus holds."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zlib
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, Hashable, Optional

import reading as r

KINDS = {
    "kernel": r.KERNEL,
    "Kernel": r.KERNEL,
    "cuda": r.KERNEL,
    "mtia_ccp_events": r.KERNEL,
    "gpu_memset": r.MEMSET,
    "Memset": r.MEMSET,
    "Runtime": r.CALL,
    "cuda_api": r.CALL,
    "cpu_op": r.OPERATOR,
    "Operator": r.OPERATOR,
    "user_annotation": r.ANNOTATION,
    "gpu_user_annotation": r.GPU_ANNOTATION,
    "nvtx-kernel": r.GPU_ANNOTATION,
    "nvtx": r.RANGE,
    "python_function": r.PYTHON,
    "overhead": r.OVERHEAD,
}
# Kineto names kinds of every accelerator alike: `cuda_runtime`, `xpu_driver`, `cuda_sync`.
OF_ANY = {"runtime": r.CALL, "driver": r.CALL, "sync": r.SYNC}
ARROWS = {"ac2g", "async", "async_cpu_to_gpu"}
DIRECTIONS = {
    "HtoD": "h2d",
    "DtoH": "d2h",
    "DtoD": "d2d",
    "PtoP": "p2p",
    "M2D": "h2d",
    "D2M": "d2h",
    "D2D": "d2d",
    "CopyHostToDevice": "h2d",
    "CopyDeviceToHost": "d2h",
    "CopyDeviceToDevice": "d2d",
    "HostToDevice": "h2d",
    "DeviceToHost": "d2h",
    "DeviceToDevice": "d2d",
}
# No program is recorded for ten years: times so far from the others are faults of the profiler.
LONGEST_NS = 10 * 365 * 86_400 * 10**9
# Of a file, unpacked. Python's objects take ten times as much.
MAX_BYTES = 1 << 30


def nanoseconds(value: Any) -> int:
    return int((Decimal(str(value)) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def documents(path: Path) -> list[Any]:
    """The JSON documents of a file, with every digit of their numbers."""
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            members = [
                archive.extractfile(member).read(MAX_BYTES)
                for member in archive
                if member.isfile()
            ]
        found = [parsed(unpacked(member)) for member in members]
        return [
            document
            for document in found
            if isinstance(document, list) or "traceEvents" in document
        ]
    return [parsed(unpacked(path.read_bytes()))]


def parsed(raw: bytes) -> Any:
    if raw.lstrip()[:1] not in (b"{", b"["):
        raise r.Unreadable("is no JSON")
    return json.loads(raw, parse_float=Decimal)


def unpacked(raw: bytes) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise r.Unreadable(f"is no whole gzip: {error}") from error
    if len(text) > MAX_BYTES:
        raise r.Unreadable(f"unpacks to more than {MAX_BYTES} bytes")
    return text


def kind_of(category: Optional[str], name: str) -> str:
    if category in ("gpu_memcpy", "Memcpy"):
        words = re.findall(r"\w+", name)
        direction = next((DIRECTIONS[word] for word in words if word in DIRECTIONS), "other")
        return r.COPIES[direction]
    if category in ("user_annotation", "cpu_op", "Operator") and name.startswith("ProfilerStep#"):
        return r.STEP
    return KINDS.get(category) or OF_ANY.get(str(category).rpartition("_")[2], r.OTHER)


def group(pid: Any) -> str:
    """What the names of processes of one rank begin with, where traces of several were merged:
    `[TP00] 4000` and `[TP00] 0`."""
    text = re.match(r"(\[[^\]]*\])", pid) if isinstance(pid, str) else None
    return text.group(1) if text else ""


def number(value: Any) -> Any:
    """A process or thread: the same where one event has its number and another one the text of it."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


def whole(events: list[dict]) -> list[dict]:
    """Complete events: those of phase X, and pairs of B and E of a thread by their times; of one
    time as they stand."""
    timed = [(at, event) for at, event in enumerate(events) if "ts" in event]
    found = [dict(event, order=at) for at, event in timed if event.get("ph") == "X"]
    threads: dict[Hashable, list[tuple[int, dict]]] = defaultdict(list)
    for at, event in timed:
        if event.get("ph") in ("B", "E"):
            threads[(event.get("pid"), event.get("tid"))].append((at, event))
    for pairs in threads.values():
        pairs.sort(key=lambda pair: nanoseconds(pair[1]["ts"]))
        open_events: list[tuple[int, dict]] = []
        for at, event in pairs:
            if event["ph"] == "B":
                open_events.append((at, event))
            elif open_events:
                began, begin = open_events.pop()
                arguments = {**(begin.get("args") or {}), **(event.get("args") or {})}
                found.append(
                    {
                        **begin,
                        "dur": Decimal(event["ts"]) - Decimal(begin["ts"]),
                        "args": arguments,
                        "order": began,
                    }
                )
    return found


def keys_of(event: dict, arguments: dict, of: str, flows: dict) -> tuple:
    words = [word for word in ("correlation", "correlationId") if arguments.get(word)]
    keys = [(of, "correlation", arguments[word]) for word in words]
    flow = flows.get((event.get("pid"), event.get("tid"), event["ts"]))
    if flow is not None:
        keys.append((of, "flow", flow))
    for word in ("External id", "external id"):
        if arguments.get(word) and not keys:
            keys.append((of, "external", arguments[word]))
    return tuple(keys)


def read(path: Path) -> r.Reading:
    """All events of a file; an event of a time that cannot be is left out."""
    found = r.Reading()
    for at, document in enumerate(documents(path)):
        read_document(found, document, at)
    last = sorted(event.start for event in found.events)
    if last:
        middle = last[len(last) // 2]
        found.events = [
            event
            for event in found.events
            if 0 <= event.length <= LONGEST_NS and abs(event.start - middle) <= LONGEST_NS
        ]
    if not found.events:
        raise r.Unreadable("holds no event")
    return found


def read_document(found: r.Reading, document: Any, at: int) -> None:
    events = document if isinstance(document, list) else document.get("traceEvents")
    if not isinstance(events, list):
        raise r.Unreadable("holds no traceEvents")
    base = int(document.get("baseTimeNanoseconds") or 0) if isinstance(document, dict) else 0
    flows = {
        (event.get("pid"), event.get("tid"), event["ts"]): event["id"]
        for event in events
        if event.get("ph") in ("s", "f") and event.get("cat") in ARROWS and "id" in event
    }
    numbered = any(
        (event.get("args") or {}).get("correlation") for event in events if event.get("ph") == "X"
    )
    for event in whole(events):
        arguments = event.get("args") or {}
        kind = kind_of(event.get("cat"), event.get("name", ""))
        of = (at, group(event.get("pid")))
        start = base + nanoseconds(event["ts"])
        is_gpu = kind in r.WORK or kind in (r.SYNC, r.GPU_ANNOTATION)
        if is_gpu:
            # A device is the same in all traces of an archive, an id of a call is not.
            device = (of[1], arguments.get("device", event.get("pid")))
            stream = str(arguments.get("stream", event.get("tid")))
            # Contexts number their streams by themselves; a handle (XPU) is no such number.
            context = arguments.get("context")
            context = context if isinstance(context, int) else None
            process, place = (of, "gpu"), (device, context, stream)
        else:
            process, place = (of, number(event.get("pid"))), number(event.get("tid"))
        keys = keys_of(event, arguments, str(of), {} if numbered else flows)
        found.events.append(
            r.Event(
                kind,
                str(event.get("name", "")),
                start,
                start + nanoseconds(event.get("dur", 0)),
                process,
                place,
                keys if kind in r.WORK or kind == r.CALL else (),
                arguments.get("bytes"),
                event["order"],
            )
        )
    for event in events:
        arguments = event.get("args") or {}
        if (
            event.get("ph") in ("i", "I")
            and event.get("name") == "[memory]"
            and "Bytes" in arguments
        ):
            pool = (at, event.get("pid"), arguments.get("Device Type"), arguments.get("Device Id"))
            time = base + nanoseconds(event["ts"])
            total, address = arguments.get("Total Allocated"), arguments.get("Addr")
            found.allocations.append(r.Allocation(time, pool, address, arguments["Bytes"], total))
