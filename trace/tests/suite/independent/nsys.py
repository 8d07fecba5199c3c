"""Reads a report or an export of nsys (HDF5 with h5py, the others with the standard library) and prints what the reader under test
must have found."""

import re
import sqlite3
import sys
from collections import defaultdict

# Nothing is left beside the sources.
sys.dont_write_bytecode = True
import nsys_rep  # noqa: E402

COPIES = {1: "h2d", 2: "d2h", 8: "d2d", 10: "p2p"}
MIGRATIONS = (11, 12, 13)
GPU = {
    "cuda_kernel": "KERNEL", "cuda_graph": "GRAPH_TRACE", "memcpy": "MEMCPY", "cuda_memset": "MEMSET",
    "cuda_sync": "SYNCHRONIZATION",
}


def sqlite_tables(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row

    def table(name):
        known = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
        if known.fetchone()[0] == 0:
            return []
        rows = connection.execute(f"SELECT * FROM {name}")
        return [{key: row[key] for key in row.keys() if row[key] is not None} for row in rows]

    return table


def hdf_tables(path):
    import h5py

    file = h5py.File(path, "r")

    def plain(value):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value.item()

    def table(name):
        if name not in file:
            return []
        rows = file[name][:]
        return [{key: plain(row[key]) for key in rows.dtype.names} for row in rows]

    return table


def process(global_id):
    return (global_id >> 24) & 0xFFFFFFFFFF


def sampled(frame, texts):
    if frame is None:
        return "[unknown]"
    function = "" if frame.get("unresolved") else texts[frame["symbol"]]
    module = texts.get(frame.get("module"), "").rsplit("/", 1)[-1]
    in_module = module if module.startswith("[") else f"[{module}]" if module else "[unknown]"
    return function or in_module


def main(path):
    with open(path, "rb") as file:
        begin = file.read(len(nsys_rep.MAGIC))
    if begin == nsys_rep.MAGIC:
        table = nsys_rep.tables(path)
    else:
        table = sqlite_tables(path) if begin.startswith(b"SQLite") else hdf_tables(path)
    texts = {row["id"]: row.get("value", "") for row in table("StringIds")}
    spans = []

    def text_of(row):
        text = row.get("text", "")
        return text or (texts[row["textId"]] if row.get("textId") else "")

    def add(category, row, name, last=None):
        start, end = row["start"], row.get("end", 0)
        if end == 0 and start > 0 and last is not None:
            end = last
        if end >= start:
            spans.append((category, start, end, name, row))

    for category, activity in GPU.items():
        for row in table(f"CUPTI_ACTIVITY_KIND_{activity}"):
            name = texts[row["demangledName"]] if category == "cuda_kernel" else None
            kind = category
            if category == "memcpy":
                copied = "cuda_memcpy_" + COPIES.get(row["copyKind"], "other")
                kind = "cuda_migration" if row["copyKind"] in MIGRATIONS else copied
            add(kind, row, name)
    calls = [
        ("cuda_api", "CUPTI_ACTIVITY_KIND_RUNTIME", (0, 1)), ("os_runtime", "OSRT_API", (27,)),
        ("cudnn_api", "CUDNN_EVENTS", (28,)), ("cublas_api", "CUBLAS_EVENTS", (29,)),
    ]
    for category, name, classes in calls:
        rows = table(name)
        last = max((max(row["start"], row.get("end", 0)) for row in rows), default=0)
        for row in rows:
            if row["eventClass"] in classes:
                text = texts[row["nameId"]]
                add(category, row, re.sub(r"_v[0-9]{4,}$", "", text) if category == "cuda_api" else text, last)
    ranges = table("NVTX_EVENTS")
    last = max((max(row["start"], row.get("end", 0)) for row in ranges), default=0)
    domains = {(process(r["globalTid"]), r.get("domainId", 0)): text_of(r) for r in ranges if r["eventType"] == 75}
    for row in ranges:
        if row["eventType"] in (59, 60, 70, 71):
            domain = domains.get((process(row["globalTid"]), row.get("domainId", 0)))
            name = text_of(row)
            add("nvtx_range", row, name if domain is None else f"{domain}:{name}", last)

    innermost = {row["id"]: row for row in table("SAMPLING_CALLCHAINS") if row["stackDepth"] == 0}
    for row in table("COMPOSITE_EVENTS"):
        name = sampled(innermost.get(row["id"]), texts)
        spans.append(("cpu_sample", row["start"], row["start"], name, row))

    # Each switch onto a CPU with the next one of its thread, where that is off the same CPU; the last one of a thread lasts until the
    # last of all.
    switches = defaultdict(list)
    for row in table("SCHED_EVENTS"):
        switches[row["globalTid"]].append((row["start"], bool(row["isSchedIn"]), row["cpu"]))
    last = max((time for of_thread in switches.values() for time, _, _ in of_thread), default=0)
    for of_thread in switches.values():
        of_thread.sort()
        for (start, onto, cpu), (end, still, where) in zip(of_thread, of_thread[1:] + [(last, False, None)]):
            if onto and not still and where in (cpu, None):
                spans.append(("cpu_running", start, end, f"CPU {cpu}", {"cpu": cpu}))

    origin = min([0] + [start for _, start, _, _, _ in spans])
    found = defaultdict(lambda: defaultdict(int))
    names = defaultdict(set)
    for category, start, end, name, row in spans:
        sums = found[category]
        sums["events"] += 1
        sums["duration"] += end - start
        sums["start"] += start - origin
        if category not in ("nvtx_range", "cudnn_api", "cublas_api"):
            sums["correlation"] += row.get("correlationId", 0)
        if name is not None:
            names[category].add(name)
        if category.startswith(("cuda_mem", "cuda_migration")):
            sums["bytes"] += row["bytes"]
        if category == "cpu_running":
            sums["cpu"] += row["cpu"]
        if category == "cuda_kernel":
            for ours, theirs in [
                ("grid_x", "gridX"), ("grid_y", "gridY"), ("grid_z", "gridZ"), ("block_x", "blockX"),
                ("block_y", "blockY"), ("registers", "registersPerThread"), ("shared_dynamic", "dynamicSharedMemory"),
            ]:
                sums[ours] += row[theirs]
        if category == "nvtx_range":
            sums["range_style"] += int(row["eventType"] in (60, 71))
            sums["color"] += row.get("color", 0) & 0xFFFFFFFF
    for category, sums in found.items():
        for what, value in sums.items():
            print(category, what, value)
        if names[category]:
            print(category, "names", len(names[category]))
    for row in table("TARGET_INFO_SESSION_START_TIME")[:1]:
        print("session", "start", row["utcEpochNs"] + origin)


main(sys.argv[1])
