"""An API server and a gateway on loopback, which answer as the real ones do where the package's tests look."""

from __future__ import annotations

import hashlib
import json
import os
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: Where the certificate of the gateway and its key are, which the tests' program made.
TLS = Path(os.environ["FLOPWATCH_TEST_TLS"])


@dataclass
class FakeCluster:
    """What is in the cluster, and what was asked of it."""

    folder: Path
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    captures: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Artifacts and results of analyses by the end of their paths.
    files: dict[str, bytes] = field(default_factory=dict)
    #: What sessions that are made publish at once; ``None``: they wait for ever.
    result: dict[str, bytes] | None = None
    #: Status and reason of the API server's next answers.
    refusals: list[tuple[int, str]] = field(default_factory=list)
    #: Ranges of files that were asked for, and heads of requests to the gateway.
    ranges: list[tuple[int, int]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    #: Connections to the gateway.
    connections: set[object] = field(default_factory=set)
    #: Tokens that the gateway takes; none: all.
    taken: set[str] = field(default_factory=set)
    #: What goes wrong at the gateway: a status that it answers with, ``cut`` for halves of answers, ``hang`` for none until it is something else.
    trouble: int | str | None = None
    api: str = ""
    gateway: str = ""

    def add(self, name: str, files: dict[str, bytes], verdict: tuple[str, str] | None = ("True", "Succeeded")) -> None:
        """Adds a session with one capture that published these files."""
        when = "2026-01-01T00:00:00Z"
        conditions = []
        if verdict:
            conditions = [{"type": "Succeeded", "status": verdict[0], "reason": verdict[1], "message": "as it says", "lastTransitionTime": when}]
        self.sessions[name] = {
            "apiVersion": "flopwatch.dev/v1alpha1",
            "kind": "ProfilingSession",
            "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": when, "resourceVersion": "1"},
            "spec": {"target": {"podName": "trainer"}},
            "status": {"id": "0badcafe", "conditions": conditions, "requestedBy": "ada"},
        }
        self.add_capture(name, f"{name}-1", files)

    def add_capture(self, session: str, name: str, files: dict[str, bytes]) -> None:
        """Adds a capture to a session."""
        artifacts = [
            {"name": file, "type": "Timeline", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "mediaType": "application/x-hdf5"}
            for file, content in files.items()
        ]
        self.captures[name] = {
            "apiVersion": "flopwatch.dev/v1alpha1",
            "kind": "Capture",
            "metadata": {"name": name, "namespace": "team", "labels": {"flopwatch.dev/session": session}, "uid": f"uid-{name}", "resourceVersion": "1"},
            "spec": {
                "sessionRef": {"name": session, "id": "0badcafe"},
                "nodeName": "n1",
                "podRef": {"name": "trainer", "uid": "uid"},
                "containerName": "main",
                "durationSeconds": 5,
                "startDeadlineSeconds": 300,
                "outputs": ["Timeline"],
            },
            "status": {"artifacts": artifacts},
        }
        self.files.update(files)

    def kubeconfig(self, user: dict[str, Any]) -> Path:
        """A kubeconfig whose user authenticates so."""
        path = self.folder / "kubeconfig"
        made = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.api}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "users": [{"name": "u", "user": user}],
        }
        path.write_text(json.dumps(made))
        return path

    def options(self, user: dict[str, Any] | None = None) -> dict[str, Any]:
        """What leads a client here."""
        return {"kubeconfig": self.kubeconfig(user or {"token": "of-ada"}), "gateway": self.gateway, "gateway_ca": TLS / "ca.crt"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: FakeCluster

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status: int, body: object) -> None:
        self.answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    @property
    def token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")


class _Api(_Handler):
    def do_GET(self) -> None:
        place = urlsplit(self.path)
        query = parse_qs(place.query)
        if "watch" in query:
            # Nothing ever happens; whoever waits goes by themselves.
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.rfile.read(1)
            return
        if self.refused(place.path):
            return
        kind, name = self.parts(place.path)
        objects = self.cluster.captures if kind == "captures" else self.cluster.sessions
        if not name:
            (labels,) = query.get("labelSelector", [""])
            of = labels.removeprefix("flopwatch.dev/session=") if "=" in labels else None
            items = [one for one in objects.values() if of in {None, one["metadata"].get("labels", {}).get("flopwatch.dev/session")}]
            (fields,) = query.get("fieldSelector", [""])
            items = [one for one in items if fields in {"", f"metadata.name={one['metadata']['name']}"}]
            self.answer_json(200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
        elif name in objects:
            self.answer_json(200, objects[name])
        else:
            self.status(404, "NotFound", name)

    def parts(self, path: str) -> tuple[str, str]:
        found = re.search(r"/(profilingsessions|captures)(?:/([^/]+))?$", urlsplit(path).path)
        return (found[1], found[2] or "") if found else ("", "")

    def refused(self, path: str) -> bool:
        if not self.cluster.refusals:
            return False
        status, reason = self.cluster.refusals[0]
        self.status(status, reason, self.parts(path)[1])
        return True

    def status(self, code: int, reason: str, name: str) -> None:
        details = {"name": name, "group": "flopwatch.dev", "kind": "profilingsessions"}
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": f"{reason} as it says",
            "details": details,
        }
        self.answer_json(code, body)

    def do_POST(self) -> None:
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused(self.path):
            return
        metadata = made["metadata"]
        metadata.setdefault("name", metadata.get("generateName", "") + "abcde")
        metadata.setdefault("namespace", "team")
        self.cluster.sessions[metadata["name"]] = made
        if self.cluster.result is not None:
            self.cluster.add(metadata["name"], self.cluster.result)
        self.answer_json(201, made)

    def do_PATCH(self) -> None:
        change = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused(self.path):
            return
        session = self.cluster.sessions[self.parts(self.path)[1]]
        session["spec"].update(change["spec"])
        self.answer_json(200, session)


class _Gateway(_Handler):
    def do_GET(self) -> None:
        cluster = self.cluster
        cluster.asked.append(self.path)
        cluster.connections.add(self.client_address)
        cluster.tokens.append(self.token)
        if cluster.taken and self.token not in cluster.taken:
            self.problem(401, "Unauthenticated")
            return
        while cluster.trouble == "hang":
            time.sleep(0.02)
        if isinstance(cluster.trouble, int):
            self.problem(cluster.trouble, "Troubled")
            return
        content = cluster.files.get(urlsplit(self.path).path.rsplit("/", 1)[-1])
        if content is None:
            self.problem(404, "NotFound")
            return
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked or self.headers.get("If-Range", tag) != tag:
            self.answer(200, content, {"ETag": tag})
            return
        first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        if cluster.trouble == "cut":
            self.send_response(206)
            self.send_header("ETag", tag)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            self.send_header("Content-Length", str(last + 1 - first))
            self.end_headers()
            self.wfile.write(content[first : (first + last) // 2])
            self.close_connection = True
            return
        cluster.ranges.append((first, last + 1))
        self.answer(206, content[first : last + 1], {"ETag": tag, "Content-Range": f"bytes {first}-{last}/{len(content)}"})

    def problem(self, status: int, reason: str) -> None:
        self.answer_json(status, {"reason": reason, "detail": f"it is {reason} here"})


@contextmanager
def running(folder: Path) -> Iterator[FakeCluster]:
    """A cluster that goes with the ``with``."""
    cluster = FakeCluster(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "ca.crt", TLS / "key")
    servers = []
    for base in (_Api, _Gateway):
        server = ThreadingHTTPServer(("127.0.0.1", 0), type(base.__name__, (base,), {"cluster": cluster}))
        server.daemon_threads = True
        if base is _Gateway:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
    cluster.api = f"http://127.0.0.1:{servers[0].server_port}"
    cluster.gateway = f"https://localhost:{servers[1].server_port}"
    try:
        yield cluster
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
