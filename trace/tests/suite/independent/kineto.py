"""Reads a Chrome trace with the standard library alone and prints what the reader under test must have found."""

import gzip
import json
import sys
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal

KINDS = {
    "kernel": "cuda_kernel", "Kernel": "cuda_kernel", "cuda": "cuda_kernel",
    "gpu_memset": "cuda_memset", "Memset": "cuda_memset",
    "cuda_runtime": "cuda_api", "cuda_driver": "cuda_api", "Runtime": "cuda_api", "cuda_api": "cuda_api",
    "cuda_sync": "cuda_sync", "cpu_op": "cpu_op", "Operator": "cpu_op", "user_annotation": "annotation",
    "gpu_user_annotation": "gpu_annotation", "nvtx-kernel": "gpu_annotation", "nvtx": "nvtx_range",
    "python_function": "python_function", "overhead": "overhead",
}
COPIES = {"HtoD": "h2d", "DtoH": "d2h", "DtoD": "d2d", "PtoP": "p2p"}


def nanoseconds(value):
    return int((Decimal(str(value)) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def kind(event):
    category, name = event.get("cat"), event.get("name", "")
    if category in ("gpu_memcpy", "Memcpy"):
        words = name.split(" ")
        return "cuda_memcpy_" + COPIES.get(words[1] if words[0] == "Memcpy" else "", "other")
    if category in ("user_annotation", "cpu_op", "Operator") and name.startswith("ProfilerStep#"):
        return "step"
    return KINDS.get(category, "other")


def main(path):
    with (gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as file:
        # Decimals keep every digit of a time.
        document = json.loads(file.read(), parse_float=Decimal)
    events = document if isinstance(document, list) else document["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    memory = [e for e in events if e["ph"] == "i" and "Total Allocated" in e.get("args", {})]
    counters = [e for e in events if e["ph"] == "C"]
    origin = min(nanoseconds(event["ts"]) for event in spans + memory + counters)
    found = defaultdict(lambda: defaultdict(int))
    names = defaultdict(set)
    for event in spans:
        sums, arguments = found[kind(event)], event.get("args", {})
        names[kind(event)].add(event["name"])
        sums["events"] += 1
        sums["duration"] += nanoseconds(event["dur"])
        sums["start"] += nanoseconds(event["ts"]) - origin
        sums["correlation"] += arguments.get("correlation", arguments.get("correlationId", 0))
        if kind(event).startswith("cuda_mem"):
            sums["bytes"] += arguments.get("bytes", 0)
        if kind(event) == "cuda_kernel":
            sums["grid_x"] += (arguments.get("grid") or [0])[0]
            sums["block_y"] += (arguments.get("block") or [0, 0])[1]
            sums["registers"] += arguments.get("registers per thread", 0)
        if kind(event) == "cpu_op":
            sums["external_id"] += arguments.get("External id", arguments.get("external id", 0))
    for category, sums in found.items():
        for what, value in sums.items():
            print(category, what, value)
        print(category, "names", len(names[category]))
    print("samples", "events", 2 * len(memory) + sum(len(e["args"]) for e in counters))
    base = document.get("baseTimeNanoseconds") if isinstance(document, dict) else None
    absolute = origin + base if base is not None else (origin if origin >= 10**18 else 0)
    print("session", "start", absolute)


main(sys.argv[1])
