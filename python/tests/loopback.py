"""A browser of the server that notebooks' frames read from."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import flopwatch
from flopwatch.capture import BaseCapture
from flopwatch.notebook.server import server


@contextmanager
def _answer(path: str, method: str, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server().port, timeout=20)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        yield connection.getresponse()
    finally:
        connection.close()


def asked(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """What the server answers."""
    with _answer(path, method, headers) as answer:
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def status_line(path: str, **headers: str) -> str:
    """What the viewer shows of an answer that has no bytes for it."""
    with _answer(path, "GET", headers) as answer:
        return f"{answer.status} {answer.reason}"


def file_of(capture: BaseCapture[Any]) -> str:
    """Path of the capture's timeline at the server."""
    address = urlsplit(flopwatch.view(capture).address)
    return address.path + address.query.removeprefix("file=")
