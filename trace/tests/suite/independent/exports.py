"""Sums of a timeline file and of its forms for other programs, each read by its own library: h5py, csv, json, pyarrow, and the
protobuf schema that Perfetto publishes.

    exports.py timeline.h5 FILE.csv FILE.json FILE.parquet FILE.pftrace

Prints a JSON object: per file, per category, [events, sum of start_ns, sum of duration_ns, sum of correlation]."""

import collections
import csv
import json
import sys
from decimal import Decimal

import h5py
import pyarrow.parquet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2


def nothing():
    return [0, 0, 0, 0]


def add(sums, category, start, duration, correlation):
    of = sums[category]
    for at, value in enumerate((1, start, duration, correlation)):
        of[at] += int(value)


def timeline(path):
    sums = collections.defaultdict(nothing)
    with h5py.File(path) as file:
        for category in file["meta/categories"].asstr()[:]:
            events = file[category]
            columns = [[int(n) for n in events[c][:]] for c in ("start_ns", "duration_ns", "correlation")]
            for start, duration, correlation in zip(*columns):
                add(sums, category, start, duration, correlation)
    return sums


def table(path):
    sums = collections.defaultdict(nothing)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            add(sums, row["category"], row["start_ns"], row["duration_ns"], row["correlation"])
    return sums


def parquet(path):
    sums = collections.defaultdict(nothing)
    for row in pyarrow.parquet.read_table(path).to_pylist():
        add(sums, row["category"], row["start_ns"], row["duration_ns"], row["correlation"])
    return sums


def chrome(path):
    sums = collections.defaultdict(nothing)
    running = collections.defaultdict(list)
    with open(path) as file:
        trace = json.load(file, parse_float=Decimal)
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        start, duration = Decimal(event["ts"]) * 1000, Decimal(event["dur"]) * 1000
        # What shares a track nests: a viewer draws anything else wrong.
        track = running[event["pid"], event["tid"]]
        while track and track[-1] <= start:
            track.pop()
        assert not track or start + duration <= track[-1], event
        track.append(start + duration)
        add(sums, event["cat"], start, duration, event.get("args", {}).get("correlation", 0))
    return sums


def perfetto(path):
    sums = collections.defaultdict(nothing)
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    event_type = perfetto_trace_pb2.TrackEvent
    categories, names, annotations, tracks = {}, {}, {}, set()
    running, latest = collections.defaultdict(list), {}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        for entries, known in (
            (packet.interned_data.event_categories, categories),
            (packet.interned_data.event_names, names),
            (packet.interned_data.debug_annotation_names, annotations),
        ):
            known.update({entry.iid: entry.name for entry in entries})
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in tracks and (not descriptor.parent_uuid or descriptor.parent_uuid in tracks)
            tracks.add(descriptor.uuid)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks
        assert latest.get(event.track_uuid, 0) <= packet.timestamp, "time goes back on a track"
        latest[event.track_uuid] = packet.timestamp
        if event.type == event_type.TYPE_SLICE_BEGIN:
            said = {annotations[said.name_iid]: said.uint_value for said in event.debug_annotations}
            assert event.name_iid in names
            running[event.track_uuid].append((categories[event.category_iids[0]], packet.timestamp, said))
        elif event.type == event_type.TYPE_SLICE_END:
            category, start, said = running[event.track_uuid].pop()
            add(sums, category, start, packet.timestamp - start, said.get("correlation", 0))
    assert not any(running.values()), "an event has no end"
    return sums


readers = (timeline, table, chrome, parquet, perfetto)
result = {}
for read, path in zip(readers, sys.argv[1:], strict=True):
    sums = read(path)
    result[read.__name__] = {category: of for category, of in sorted(sums.items()) if of[0]}
print(json.dumps(result))
