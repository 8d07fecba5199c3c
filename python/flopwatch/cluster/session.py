"""Sessions as they were when they were asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Artifact:
    """A file that a capture published."""

    name: str
    #: ``Timeline``, ``Summary`` or ``Raw``.
    output: str
    #: Its size.
    bytes: int
    #: Its checksum, 64 hexadecimal digits.
    sha256: str
    #: Whether it holds environments of processes, and needs a right of its own.
    sensitive: bool


@dataclass(frozen=True)
class SessionCapture:
    """A container's part of a session."""

    name: str
    pod: str
    container: str
    node: str
    #: ``waiting``, ``capturing``, ``succeeded`` or ``failed``.
    phase: str
    #: Why it failed, as one word; ``None`` where it did not.
    reason: str | None
    #: Why it failed.
    message: str | None
    #: What it published.
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True)
class Session:
    """A session."""

    name: str
    namespace: str
    #: Its name at the gateway; ``None`` before the controller saw it.
    id: str | None
    #: The pods that it profiles, such as ``pod/trainer``.
    target: str
    #: Which profiler was asked for, such as ``Auto``.
    profiler: str
    #: ``waiting``, ``capturing``, ``succeeded`` or ``failed``, which it also has where some of its captures failed.
    phase: str
    #: How it ended, as one word; ``None`` before anything is known.
    reason: str | None
    #: What it says of that.
    message: str | None
    #: Who asked for it.
    requested_by: str | None
    created: datetime | None
    captures: tuple[SessionCapture, ...]


def read_session(text: str) -> Session:
    """A session of the native module's JSON."""
    return _session(json.loads(text))


def read_sessions(text: str) -> list[Session]:
    """The same of several."""
    return [_session(one) for one in json.loads(text)]


def _session(found: dict[str, Any]) -> Session:
    created, captures = found.pop("created"), found.pop("captures")
    # Python 3.10 does not read the Z.
    at = None if created is None else datetime.fromisoformat(created.replace("Z", "+00:00"))
    return Session(**found, created=at, captures=tuple(map(_capture, captures)))


def _capture(found: dict[str, Any]) -> SessionCapture:
    artifacts = found.pop("artifacts")
    return SessionCapture(**found, artifacts=tuple(Artifact(**one) for one in artifacts))
