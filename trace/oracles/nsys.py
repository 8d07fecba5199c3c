"""Reads an export of Nsight Systems: SQLite with the standard library, HDF5 with h5py.

Source of the tables: "Nsight Systems User Guide", the chapter on exporters, and the ENUM tables of
the exports themselves."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Callable

import reading as r

DIRECTIONS = {1: "h2d", 2: "d2h", 8: "d2d", 10: "p2p"}
# ENUM_CUDA_MEMCPY_OPER, as the exports themselves hold it.
OPERATIONS = {
    0: "Unknown",
    1: "Host-to-Device",
    2: "Device-to-Host",
    3: "Host-to-Array",
    4: "Array-to-Host",
    5: "Array-to-Array",
    6: "Array-to-Device",
    7: "Device-to-Array",
    8: "Device-to-Device",
    9: "Host-to-Host",
    10: "Peer-to-Peer",
    11: "Unified Host-to-Device",
    12: "Unified Device-to-Host",
    13: "Unified Device-to-Device",
}
# By the calls of the same correlation id. ENUM_CUPTI_SYNC_TYPE says the second for all versions.
OLD_WAITS = {0: "Unknown sync", 1: "Context sync", 2: "Event sync", 3: "Stream sync"}
WAITS = {0: "Unknown sync", 1: "Event sync", 2: "Stream sync", 3: "Stream sync", 4: "Context sync"}
NO_EVENTS = (None, 0, 0xFFFFFFFF)
# ENUM_CUDA_MEM_KIND: pageable and pinned memory.
OF_HOST = {0, 1}
# What the driver of unified memory moves.
MIGRATIONS = {11, 12, 13}
PUSH_POP, START_END, TEXT_PUSH_POP, TEXT_START_END, DOMAIN = 59, 60, 70, 71, 75
# Calls of threads that launch nothing: kind, table and the class of calls in ENUM_NSYS_EVENT_CLASS.
OTHER_CALLS = (
    (r.OS_CALL, "OSRT_API", 27),
    (r.CUDNN, "CUDNN_EVENTS", 28),
    (r.CUBLAS, "CUBLAS_EVENTS", 29),
)
Table = Callable[[str], list[dict]]


def sqlite_tables(path: Path) -> Table:
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    known = {
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
        )
    }
    if not known & {"StringIds", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL"}:
        raise r.Unreadable("is no export of Nsight Systems")

    def table(name: str) -> list[dict]:
        if name not in known:
            return []
        rows = connection.execute(f"SELECT * FROM {name}")
        names = [column[0] for column in rows.description]
        return [{key: row[key] for key in names if row[key] is not None} for row in rows]

    def columns(name: str) -> list[str]:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]

    table.columns = columns
    return table


def hdf_tables(path: Path) -> Table:
    try:
        import h5py
    except ImportError as error:
        raise r.Unreadable("is HDF5, and this Python has no h5py") from error
    file = h5py.File(path, "r")
    if "StringIds" not in file:
        raise r.Unreadable("is no export of Nsight Systems")

    def plain(value):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value.item()

    def table(name: str) -> list[dict]:
        if name not in file:
            return []
        rows = file[name][:]
        return [{key: plain(row[key]) for key in rows.dtype.names} for row in rows]

    table.columns = lambda name: list(file[name].dtype.names) if name in file else []
    return table


def process(global_id: int) -> int:
    """Machine and process of a `globalPid` or `globalTid`."""
    return (global_id >> 24) & 0xFFFFFFFFFF


def read(path: Path) -> r.Reading:
    with path.open("rb") as file:
        is_sqlite = file.read(6) == b"SQLite"
    table = sqlite_tables(path) if is_sqlite else hdf_tables(path)
    texts = {row["id"]: row.get("value", "") for row in table("StringIds")}
    found = r.Reading()

    def add(kind: str, row: dict, name: str, last: int = 0, **more) -> None:
        start, end = row["start"], row.get("end") or 0
        # What had not ended when the collection did lasts until the last time of its table.
        end = last if end == 0 and start > 0 else end
        if end >= start:
            found.events.append(r.Event(kind, name, start, end, **more, order=len(found.events)))

    gpu_work(table, texts, add)
    calls(table, texts, add)
    ranges(table, texts, add)
    samples(table, texts, add)
    scheduling(table, add)
    for row in table("CUDA_GPU_MEMORY_USAGE_EVENTS"):
        sign = 1 if row["memoryOperationType"] == 0 else -1
        kind = row.get("memKind")
        device = None if kind in OF_HOST else row.get("deviceId")
        pool, size = (process(row["globalPid"]), device, kind), sign * (row.get("bytes") or 0)
        change = r.Allocation(row["start"], pool, row.get("address"), size, None)
        found.allocations.append(change)
    if not found.events:
        raise r.Unreadable("holds no event")
    return found


def gpu_work(table: Table, texts: dict, add: Callable) -> None:
    last = 0

    def place(row: dict) -> dict:
        of = process(row.get("globalPid", 0))
        device = (of >> 24, row["deviceId"])
        keys = ((of, row["correlationId"]),) if row.get("correlationId") else ()
        return {
            "process": of,
            "place": (device, row.get("contextId"), row.get("streamId")),
            "keys": keys,
            "size": row.get("bytes") or None,
        }

    for row in table("CUPTI_ACTIVITY_KIND_KERNEL"):
        add(r.KERNEL, row, texts.get(row["demangledName"], ""), last, **place(row))
    for row in table("CUPTI_ACTIVITY_KIND_MEMCPY"):
        is_migration = row["copyKind"] in MIGRATIONS
        kind = r.MIGRATION if is_migration else r.COPIES[DIRECTIONS.get(row["copyKind"], "other")]
        operation = OPERATIONS.get(row["copyKind"], row["copyKind"])
        add(kind, row, f"[CUDA memcpy {operation}]", last, **place(row))
    for row in table("CUPTI_ACTIVITY_KIND_MEMSET"):
        add(r.MEMSET, row, "[CUDA memset]", last, **place(row))
    for row in table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
        # The file has no names of graphs: these are those that docs/formats.md gives them.
        words = (("", "graphId"), (" executable", "graphExecId"))
        numbers = "".join(f"{word} {row[number]}" for word, number in words if row.get(number))
        add(r.GRAPH, row, f"[CUDA graph{numbers}]", last, **place(row))
    waits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    is_new = "deprecatedSyncType" in table.columns(waits)
    for row in table(waits):
        add(
            r.SYNC,
            row,
            wait_of(row, is_new),
            last,
            **{**place(row), "keys": ()},
        )


def wait_of(row: dict, is_new: bool) -> str:
    number, names = row.get("syncType"), WAITS
    if not is_new or not number:
        number, names = row.get("deprecatedSyncType" if is_new else "syncType", 0), OLD_WAITS
    name = names.get(number, f"Sync type {number}")
    is_of_event = name == "Stream sync" and row.get("eventId") not in NO_EVENTS
    return "Stream wait sync" if is_of_event else name


def calls(table: Table, texts: dict, add: Callable) -> None:
    rows = table("CUPTI_ACTIVITY_KIND_RUNTIME")
    last = max((max(row["start"], row.get("end", 0)) for row in rows), default=0)
    for row in rows:
        if row.get("eventClass", 0) in (0, 1):
            of = process(row["globalTid"])
            name = re.sub(r"_v\d{4,5}$", "", texts.get(row["nameId"], ""))
            add(
                r.CALL,
                row,
                name,
                last,
                process=of,
                place=row["globalTid"] & 0xFFFFFF,
                keys=((of, row["correlationId"]),),
            )
    for kind, name, event_class in OTHER_CALLS:
        rows = table(name)
        last = max((max(row["start"], row.get("end", 0)) for row in rows), default=0)
        for row in rows:
            if row.get("eventClass", event_class) == event_class:
                add(
                    kind,
                    row,
                    texts.get(row["nameId"], ""),
                    last,
                    process=process(row["globalTid"]),
                    place=row["globalTid"] & 0xFFFFFF,
                )


def ranges(table: Table, texts: dict, add: Callable) -> None:
    rows = table("NVTX_EVENTS")
    last = max((max(row["start"], row.get("end", 0)) for row in rows), default=0)

    def text_of(row: dict) -> str:
        return row.get("text") or (texts.get(row["textId"], "") if row.get("textId") else "")

    domains = {
        (process(row["globalTid"]), row.get("domainId", 0)): text_of(row)
        for row in rows
        if row["eventType"] == DOMAIN
    }
    for row in rows:
        if row["eventType"] not in (PUSH_POP, START_END, TEXT_PUSH_POP, TEXT_START_END):
            continue
        of = process(row["globalTid"])
        domain = domains.get((of, row.get("domainId", 0)))
        name = text_of(row) if domain is None else f"{domain}:{text_of(row)}"
        apart = row["eventType"] in (START_END, TEXT_START_END)
        add(r.RANGE, row, name, last, process=of, place=row["globalTid"] & 0xFFFFFF, apart=apart)


def samples(table: Table, texts: dict, add: Callable) -> None:
    """A sample is named by its innermost function, or by what that is in where nobody knows it."""
    frames = (row for row in table("SAMPLING_CALLCHAINS") if row["stackDepth"] == 0)
    innermost = {row["id"]: row for row in frames}
    for row in table("COMPOSITE_EVENTS"):
        frame = innermost.get(row["id"], {})
        function = "" if frame.get("unresolved") else texts.get(frame.get("symbol"), "")
        module = texts.get(frame.get("module"), "").rsplit("/", 1)[-1]
        inside = module if not module or module.startswith("[") else f"[{module}]"
        add(
            r.SAMPLE,
            {**row, "end": row["start"]},
            function or inside or "[unknown]",
            process=process(row["globalTid"]),
            place=row["globalTid"] & 0xFFFFFF,
        )


def scheduling(table: Table, add: Callable) -> None:
    """A thread runs from a switch onto a CPU to its next one, where that is off the same CPU; who
    has not left the CPU runs until the last switch of all."""
    switches: dict[int, list[tuple]] = {}
    for row in table("SCHED_EVENTS"):
        of_thread = switches.setdefault(row["globalTid"], [])
        of_thread.append((row["start"], bool(row["isSchedIn"]), row["cpu"]))
    last = max((time for of in switches.values() for time, _, _ in of), default=0)
    for thread, of_thread in switches.items():
        of_thread.sort()
        following = [*of_thread[1:], (last, False, None)]
        for (start, onto, cpu), (end, still, where) in zip(of_thread, following):
            if onto and not still and where in (cpu, None):
                add(
                    r.RUNNING,
                    {"start": start, "end": end},
                    f"CPU {cpu}",
                    process=process(thread),
                    place=thread & 0xFFFFFF,
                )
