"""The viewer and the timelines that are shown, on a loopback port. One server per process, which ends with it.

Every address begins with a random token, which only the notebook knows: programs of other users of the machine, and pages of other sites, do not. There is
nothing to write, and no file but those that were published. Of a capture at a gateway it shows what that gives; who asks here sees no token of the cluster.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from flopwatch import _native

from .files import Served

#: Timelines that are kept; of more, those that were published first go.
_MOST = 32
#: Bytes that are read at once.
_PART = 1 << 20
#: Seconds that a connection may say nothing.
_PATIENCE = 60

#: Statuses of what goes wrong at a gateway. The viewer has words for the first two.
_FAILURES = (
    (_native.ForbiddenError, HTTPStatus.FORBIDDEN),
    (_native.NotFoundError, HTTPStatus.NOT_FOUND),
    (_native.ClientError, HTTPStatus.BAD_GATEWAY),
    (TimeoutError, HTTPStatus.BAD_GATEWAY),
)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    server_version = "flopwatch"
    sys_version = ""

    def do_GET(self) -> None:
        found = re.fullmatch(r"/([^/?]+)(/[^?]*)(?:\?.*)?", self.path)
        if found is None or not hmac.compare_digest(found[1].encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
        elif found[2].startswith("/files/"):
            self._file(found[2][1:])
        else:
            self._viewer(found[2])

    def do_HEAD(self) -> None:
        self.do_GET()

    def _viewer(self, path: str) -> None:
        status, headers, content = _native.viewer(path, self.headers.get("Accept-Encoding", ""))
        if status != HTTPStatus.OK:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        self.send_response(status)
        for name, value in headers:
            if name == "content-security-policy":
                # The frame stands in a notebook, whose address nobody here knows; this one is secret.
                kept = [rule for rule in value.split(";") if not rule.strip().startswith("frame-ancestors")]
                self.send_header(name, ";".join(kept))
            elif name != "content-length":
                self.send_header(name, value)
        self._end(len(content))
        self._write(content)

    def _file(self, path: str) -> None:
        served = self.server.find(path)
        if served is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        begin, end, status = 0, served.size, HTTPStatus.OK
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        # There is no tag that a condition could name.
        if asked is not None and asked[0] != "bytes=-" and "If-Range" not in self.headers:
            begin, end, status = *_part(asked[1], asked[2], served.size), HTTPStatus.PARTIAL_CONTENT
            if begin >= end:
                self._refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"bytes */{served.size}")
                return
        if self.command != "HEAD":
            try:
                served.bring(begin, end)
            except (_native.FlopwatchError, OSError) as error:
                self._fail(error)
                return
        self.send_response(status)
        if status == HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{served.size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/x-hdf5")
        # Without a tag the viewer keeps nothing in the browser: the next process has another address.
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self._end(end - begin)
        for at in range(begin, end, _PART):
            self._write(served.read(at, min(_PART, end - at)))

    def _refuse(self, status: HTTPStatus, whole: str | None = None) -> None:
        self.send_response(status)
        if whole is not None:
            self.send_header("Content-Range", whole)
        self._end(0)

    def _fail(self, error: Exception) -> None:
        """Says why there are no bytes: before any of them was sent, as half of an answer cannot be told from all of it."""
        status = next((status for kind, status in _FAILURES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
        reason = getattr(error, "reason", "")
        # The viewer shows this line alone.
        self.send_response(status, f"{status.phrase}: {reason}" if re.fullmatch(r"[A-Za-z]{1,40}", reason) else status.phrase)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        said = f"{error}\n".encode()
        self._end(len(said))
        self._write(said)

    def _end(self, length: int) -> None:
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _write(self, content: bytes) -> None:
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def _part(begin: str, end: str, size: int) -> tuple[int, int]:
    """The first byte of a range and the one behind its last."""
    if not begin:
        return max(0, size - int(end)), size
    return int(begin), min(size, int(end) + 1) if end else size


class Server(socketserver.ThreadingTCPServer):
    """Serves until the process ends."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        #: The first part of every path.
        self.token = secrets.token_urlsafe(32)
        self._files: dict[str, Served] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, name="flopwatch-viewer", daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.server_address[1]
        return port

    def publish(self, served: Served) -> None:
        """Serves a file."""
        with self._lock:
            self._files[served.path] = served
            while len(self._files) > _MOST:
                del self._files[next(iter(self._files))]

    def has(self, served: Served) -> bool:
        """Whether the file is still served."""
        return self.find(served.path) is served

    def find(self, path: str) -> Served | None:
        """The file of that path."""
        with self._lock:
            return self._files.get(path)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Browsers hang up when they have seen enough."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Process:
    """What there is one of per process: a fork takes no threads along."""

    lock = threading.Lock()
    server: Server | None = None


def server() -> Server:
    """The process's server."""
    with _Process.lock:
        if _Process.server is None:
            _Process.server = Server()
        return _Process.server


def _forked() -> None:
    _Process.lock = threading.Lock()
    if _Process.server is not None:
        # The parent has it still.
        _Process.server.socket.close()
    _Process.server = None


os.register_at_fork(after_in_child=_forked)
