"""Reads a report of Nsight Systems with the standard library: the tables of an export that the tests ask for."""

import struct
from collections import defaultdict

MAGIC, END = b"NVIDIA Tegra Profiler Report ", b"U3w[END]"
ON_DEVICE = {1: "start", 2: "end", 3: "correlationId", 4: "deviceId", 5: "contextId", 6: "streamId", 8: "globalPid"}
WORK = {
    101: ("KERNEL", {
        1: "demangledName", 10: "gridX", 11: "gridY", 12: "gridZ", 13: "blockX", 14: "blockY", 15: "blockZ",
        16: "staticSharedMemory", 17: "dynamicSharedMemory", 21: "registersPerThread",
    }),
    102: ("MEMCPY", {1: "bytes", 2: "copyKind"}),
    103: ("MEMSET", {1: "bytes"}),
    105: ("SYNCHRONIZATION", {1: "eventId"}),
    107: ("GRAPH_TRACE", {1: "graphId", 2: "graphExecId"}),
}
CALL = {1: "start", 2: "end", 3: "correlationId", 6: "eventClass", 7: "nameId", 13: "globalTid"}
SWITCH = {1: "start", 3: "cpu", 4: "isSchedIn", 6: "globalTid"}
FRAME = {1: "symbol", 2: "module", 6: "unresolved"}
RANGE = {
    1: "eventType", 2: "start", 6: "color", 7: "text", 9: "globalTid", 10: "end", 12: "textId", 13: "domainId",
}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                length, at = varint(data, at)
            value = data[at : at + length]
            at += length
        yield key >> 3, value


def last(data):
    return dict(fields(data))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def inflate(block, size):
    out = bytearray()
    at = 0

    def length(first, at):
        if first == 15:
            while True:
                first += block[at]
                at += 1
                if block[at - 1] != 255:
                    break
        return first, at

    while at < len(block):
        token = block[at]
        literals, at = length(token >> 4, at + 1)
        out += block[at : at + literals]
        at += literals
        if at >= len(block):
            break
        back = block[at] | block[at + 1] << 8
        count, at = length(token & 15, at + 2)
        count += 4
        begin = len(out) - back
        while count > 0:
            piece = out[begin : begin + min(count, back)]
            out += piece
            count -= len(piece)
    assert len(out) == size, (len(out), size)
    return bytes(out)


def delimited(data, at):
    length, at = varint(data, at)
    return data[at : at + length], at + length


def chunk(data, at):
    stored, at = varint(data, at)
    size, at = varint(data, at)
    return delimited(inflate(data[at : at + stored], size), 0)[0], at + stored


def columns(message, names):
    row = {names[field]: value for field, value in fields(message) if field in names}
    return {key: signed(value) if key in ("start", "end") else value for key, value in row.items()}


def event(message, found):
    bodies = [(field, value) for field, value in fields(message) if field >= 100]
    for kind, body in bodies[-1:]:
        if kind == 107:
            own = [(field, value) for field, value in fields(body) if field in WORK]
            for field, value in own[-1:]:
                name, names = WORK[field]
                found[f"CUPTI_ACTIVITY_KIND_{name}"].append({**columns(body, ON_DEVICE), **columns(value, names)})
        elif kind == 108:
            row = columns(body, CALL)
            if row.get("eventClass", 0) in (0, 1):
                found["CUPTI_ACTIVITY_KIND_RUNTIME"].append({"eventClass": 0, **row})
            elif row["eventClass"] in (27, 31, 32):
                found["OSRT_API"].append(row)
            elif row["eventClass"] in (28, 33, 34):
                found["CUDNN_EVENTS"].append(row)
            elif row["eventClass"] in (29, 35, 36):
                found["CUBLAS_EVENTS"].append(row)
        elif kind == 106:
            found["SCHED_EVENTS"].append({"start": 0, "cpu": 0, "isSchedIn": 0, **columns(body, SWITCH)})
        elif kind == 102:
            row = columns(body, RANGE)
            row["text"] = row.get("text", b"").decode("utf-8", "replace")
            found["NVTX_EVENTS"].append(row)
        elif kind == 104:
            number = len(found["COMPOSITE_EVENTS"]) + 1
            found["COMPOSITE_EVENTS"].append({"id": number, "start": 0, **columns(body, {1: "start", 11: "globalTid"})})
            for depth, frame in enumerate(value for field, value in fields(body) if field == 4):
                row = {"id": number, "stackDepth": depth, "symbol": 0, **columns(frame, FRAME)}
                found["SAMPLING_CALLCHAINS"].append(row)


def start(state):
    offsets = {}
    for _, entry in fields(last(state).get(16, b"")):
        one = last(entry)
        if one.get(6) == b"Offset":
            offsets[one[1], one[2]] = signed(int(one[5]) & 0xFFFFFFFFFFFFFFFF)
    if (1, 3) in offsets and (3, 9) in offsets:
        return [{"utcEpochNs": -offsets[1, 3] - offsets[3, 9] - offsets.get((7, 1), 0)}]
    return []


def tables(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(MAGIC) and data.endswith(END)
    sections = {}
    for _, entry in fields(data[struct.unpack("<Q", data[-16:-8])[0] : -16]):
        one = last(entry)
        sections[one[1].decode()] = data[one[2] : one[2] + one[3]]
    raw = sections["Raw Sampling Data"]
    strings = 8 + last(sections["Sampling Data Offsets"])[2]
    state, at = delimited(raw, 8)
    _, at = delimited(raw, at)
    found = defaultdict(list)
    while at < strings:
        message, at = chunk(raw, at)
        for field, value in fields(message):
            if field == 1:
                event(value, found)
    texts = [value for field, value in fields(chunk(raw, strings)[0]) if field == 1]
    found["StringIds"] = [{"id": at, "value": text.decode("utf-8", "replace")} for at, text in enumerate(texts)]
    found["TARGET_INFO_SESSION_START_TIME"] = start(state)
    return lambda name: found.get(name, [])
