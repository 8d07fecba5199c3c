"""A client as it was written against the earlier service: it profiles, follows by polling and by Socket.IO, and reads the timeline.

    earlier.py URL [TOKEN]

It knows the fields, columns and events of that service and nothing else: no capture names, no pages of lists, no problem details, no
`auth` of Socket.IO. A token, where one is needed, is a header of every request."""

import io
import json
import sys
import threading
import time
import urllib.request

import h5py
import numpy
import socketio

EVERY_CATEGORY = ["start_ns", "duration_ns", "stream", "name_idx"]
KERNEL = ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared_static", "shared_dynamic"]
PATIENCE = 30


class Service:
    def __init__(self, url, headers):
        self.url, self.headers = url, headers

    def ask(self, method, path, body=None, headers=()):
        data = None if body is None else json.dumps(body).encode()
        sent = self.headers | dict(headers)
        if data is not None:
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read()

    def json(self, method, path, body=None):
        status, headers, text = self.ask(method, path, body)
        assert headers["Content-Type"] == "application/json", headers["Content-Type"]
        return status, json.loads(text)


class Listener:
    """What is told of one session."""

    def __init__(self, url, headers):
        self.heard = []
        self.over = threading.Event()
        self.client = socketio.Client(reconnection=False)
        for event in ("profiling_started", "profiling_progress", "profiling_complete", "profiling_error"):
            self.client.on(event, lambda said, event=event: self.hear(event, said))
        self.client.connect(url, headers=headers, wait_timeout=PATIENCE)

    def hear(self, event, said):
        self.heard.append((event, said))
        if event in ("profiling_complete", "profiling_error"):
            self.over.set()

    def of(self, session):
        assert self.over.wait(PATIENCE), f"no end was told: {self.heard}"
        self.transport = self.client.transport()
        self.client.disconnect()
        return [(event, said) for event, said in self.heard if said["session_id"] == session]


def until(wanted, look):
    """Looks until `wanted` is seen."""
    seen = []
    for _ in range(10 * PATIENCE):
        seen.append(look())
        if seen[-1] == wanted:
            return seen
        time.sleep(0.1)
    raise AssertionError(f"{wanted} was not seen: {seen[-1]}")


def fetch(service, path):
    """The file: how long it is by HEAD, then its bytes in ranges."""
    status, headers, body = service.ask("HEAD", path)
    assert (status, body) == (200, b"")
    assert headers["Accept-Ranges"] == "bytes" and headers["ETag"] and not headers["Content-Encoding"], headers
    length, step = int(headers["Content-Length"]), 1 << 16
    content = b""
    for begin in range(0, length, step):
        end = min(begin + step, length) - 1
        status, part, bytes_ = service.ask("GET", path, headers={"Range": f"bytes={begin}-{end}"})
        assert (status, part["Content-Range"]) == (206, f"bytes {begin}-{end}/{length}")
        content += bytes_
    assert service.ask("GET", path)[2] == content
    return content


def check(file):
    """The schema that the earlier service published; gives total duration and events."""
    meta = file["meta"].attrs
    assert isinstance(meta["session_id"], str)
    assert meta["total_duration_ns"].dtype == numpy.uint64
    assert meta["total_events"].dtype in (numpy.uint32, numpy.uint64)
    total = 0
    empty = []
    for category in file["meta/categories"].asstr()[:]:
        columns = {name: file[category][name] for name in EVERY_CATEGORY}
        names = file[f"names/{category}"].asstr()[:]
        assert {len(column) for column in columns.values()} == {len(columns["start_ns"])}, category
        assert columns["start_ns"].dtype == columns["duration_ns"].dtype == numpy.uint64, category
        assert columns["stream"].dtype.kind == columns["name_idx"].dtype.kind == "u", category
        start = columns["start_ns"][:]
        assert (start[1:] >= start[:-1]).all(), category
        assert (columns["name_idx"][:] < len(names)).all(), category
        further = KERNEL if category == "cuda_kernel" else ["color"] if category == "nvtx_range" else []
        further += ["bytes"] if category.startswith("cuda_memcpy") else []
        for name in further:
            assert len(file[category][name]) == len(start), f"{category}/{name}"
        total += len(start)
        if not len(start):
            empty.append(category)
    assert total == meta["total_events"] and total > 0
    assert empty, "the file has no category without events to try"
    return int(meta["total_duration_ns"]), total


def halves_hold_all(service, session, timeline):
    """By `from` and `to` the first and the second half of the time hold every event, and those that reach over the middle twice."""
    events, middle = timeline["events"], timeline["total_duration_ns"] // 2

    def asked(query):
        return service.json("GET", f"/api/profiling/timeline/{session}?{query}")[1]["events"]

    def told(some):
        return sorted(json.dumps(one, sort_keys=True) for one in some)

    assert told(asked(f"to={middle}")) == told(one for one in events if one["start_ns"] < middle)
    assert told(asked(f"from={middle}")) == told(one for one in events if one["start_ns"] + one["duration_ns"] > middle)
    kinds = {one["category"] for one in events}
    parts = {kind: asked(f"category={kind}") for kind in kinds}
    assert all(one["category"] == kind for kind, part in parts.items() for one in part)
    assert sum(map(len, parts.values())) == len(events)


def main(url, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    service = Service(url, headers)
    modes = service.json("GET", "/api/profiling/modes")[1]["modes"]
    assert any(mode["id"] == "nsys" for mode in modes), modes
    before = {one["session_id"] for one in service.json("GET", "/api/profiling/sessions")[1]["sessions"]}

    listener = Listener(url, headers)
    asked = {"mode": "nsys", "solver": "cg", "mesh_file": "wing.msh"}
    status, accepted = service.json("POST", "/api/profiling/run", asked)
    assert (status, accepted["status"]) == (202, "pending"), accepted
    session = accepted["session_id"]
    assert service.json("GET", f"/api/profiling/timeline/{session}/status")[1]["status"] in ("pending", "ready")

    stood = until("completed", lambda: service.json("GET", f"/api/profiling/session/{session}")[1]["status"])
    assert set(stood) <= {"pending", "running", "completed"}, stood
    until("ready", lambda: service.json("GET", f"/api/profiling/timeline/{session}/status")[1]["status"])

    told = listener.of(session)
    assert told[0] == ("profiling_started", {"session_id": session, "solver": "cg", "mesh": "wing.msh", "mode": "nsys"}), told
    assert told[-1] == ("profiling_complete", {"session_id": session, "status": "completed"}), told
    steps = [said for event, said in told[1:-1] if event == "profiling_progress"]
    assert len(steps) == len(told) - 2 and steps, told
    assert all({"status", "stage", "message"} <= set(said) for said in steps), told

    listed = service.json("GET", "/api/profiling/sessions")[1]["sessions"]
    (mine,) = [one for one in listed if one["session_id"] == session]
    assert mine["request"] == {"solver": "cg", "mesh_file": "wing.msh"}, mine
    # A client that knows no pages sees every session, the one of its own included.
    assert {one["session_id"] for one in listed} == before | {session}, listed

    with h5py.File(io.BytesIO(fetch(service, f"/api/profiling/timeline/{session}.h5"))) as file:
        duration, events = check(file)
    timeline = service.json("GET", f"/api/profiling/timeline/{session}")[1]
    assert timeline["session_id"] and timeline["total_duration_ns"] == duration
    assert len(timeline["events"]) == events
    halves_hold_all(service, session, timeline)
    middle = duration // 2
    part = service.json("GET", f"/api/profiling/timeline/{session}?from={middle}&category=cuda_kernel&limit=100")[1]
    assert 0 < len(part["events"]) <= 100, part["matching_events"]
    assert all(one["category"] == "cuda_kernel" and one["start_ns"] + one["duration_ns"] > middle for one in part["events"])

    assert service.json("DELETE", f"/api/profiling/session/{session}")[0] == 200
    print(f"{events} events, by {listener.transport}")


if __name__ == "__main__":
    main(*sys.argv[1:])
