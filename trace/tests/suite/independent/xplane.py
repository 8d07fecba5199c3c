"""Reads an XSpace message field by field and prints what the reader under test must have found."""

import re
import struct
import sys
import zlib
from collections import defaultdict


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            value, at = None, at + 4
        yield key >> 3, value


def message(data):
    found = defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def first(found, number, otherwise=0):
    return found[number][-1] if found[number] else otherwise


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def table(entries):
    pairs = [message(entry) for entry in entries]
    return {first(pair, 1): message(first(pair, 2, b"")) for pair in pairs}


def stats(of, names):
    found = {}
    for raw in of:
        stat = message(raw)
        name = first(names.get(first(stat, 1), defaultdict(list)), 2, b"").decode()
        for number in (2, 3, 4, 5, 6):
            if stat[number]:
                found[name] = stat[number][-1]
        if stat[7]:
            found[name] = first(names.get(stat[7][-1], defaultdict(list)), 2, b"")
        if stat[8]:
            found[name] = zlib.decompress(stat[8][-1], 31)
    return found


def kind(plane, line, values, name):
    if plane.startswith("/device:GPU:") and line.startswith("Stream #"):
        if "kernel_details" in values:
            return "cuda_kernel"
        if name.startswith("CudaGraphExec:"):
            return "cuda_graph"
        for word, category in (("MemcpyH2D", "h2d"), ("MemcpyD2H", "d2h"), ("MemcpyD2D", "d2d"), ("MemcpyP2P", "p2p")):
            if name.startswith(word):
                return "cuda_memcpy_" + category
        return "cuda_memset" if name.startswith("Memset") else "cuda_kernel"
    if plane.startswith("/device:"):
        operations = not plane.startswith("/device:GPU:") and line in ("XLA Ops", "Async XLA Ops")
        return "device_op" if operations else "derived"
    if plane == "/host:CPU" and values.get("correlation_id"):
        return "cuda_api"
    if plane == "/host:CPU" and name.startswith("$"):
        return "python_function"
    if plane == "/host:CPU" and "step_num" in values:
        return "step"
    return "annotation" if plane.startswith("/host:") else "other"


def number(text, word):
    match = re.search(rb"(?:^|\s)" + word + rb":(\d+)", text)
    return int(match.group(1)) if match else 0


def main(path):
    with open(path, "rb") as file:
        space = message(file.read())
    rows = []
    profile_start = 0
    for plane in map(message, space[1]):
        plane_name = first(plane, 2, b"").decode()
        kinds, names = table(plane[4]), table(plane[5])
        profile_start = stats(plane[6], names).get("profile_start_time", profile_start)
        for line in map(message, plane[3]):
            line_name = (first(line, 11, b"") or first(line, 2, b"")).decode()
            for event in map(message, line[4]):
                if event[5]:
                    continue
                values = stats(event[4], names)
                what = kinds.get(first(event, 1), defaultdict(list))
                name = (first(what, 4, b"") or first(what, 2, b"")).decode()
                start = signed(first(line, 3)) * 1000 + signed(first(event, 2))
                end = (start + first(event, 3)) // 1000
                category = kind(plane_name, line_name, values, name)
                extra = stats(what[5], names) if category == "device_op" else {}
                rows.append((category, start // 1000, end, name, values, extra))
    origin = min(row[1] for row in rows)
    found = defaultdict(lambda: defaultdict(int))
    distinct = defaultdict(set)
    for category, start, end, name, values, extra in rows:
        sums = found[category]
        distinct[category].add(name)
        sums["events"] += 1
        sums["start"] += start - origin
        sums["duration"] += end - start
        sums["correlation"] += values.get("correlation_id", 0)
        if category == "cuda_kernel":
            details = values.get("kernel_details", b"")
            sums["grid_x"] += number(details, b"grid")
            sums["block_x"] += number(details, b"block")
        if category == "device_op":
            sums["bytes"] += extra.get("bytes_accessed", 0)
            sums["flops"] += extra.get("flops", 0)
    for category, sums in found.items():
        for what, value in sums.items():
            print(category, what, value)
        print(category, "names", len(distinct[category]))
    start = origin if origin >= 10**18 else (profile_start + origin if profile_start else 0)
    print("session", "start", start)


main(sys.argv[1])
