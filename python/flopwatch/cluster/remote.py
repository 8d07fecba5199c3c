"""Captures and files that are read where they are, by parts."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any, cast

from flopwatch import _native, signatures
from flopwatch.capture import BaseCapture, Result, Table
from flopwatch.notebook.files import GatewayFile, Served
from flopwatch.progress import Progress

from .asked import Asked, read_text

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined]  # of Python 3.12

#: The artifact that is opened.
TIMELINE = "timeline.h5"


class Opened(BaseCapture[_native.RemoteCapture]):
    """What is known of a capture at a gateway once it is open, without asking again."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Size of the timeline file in bytes."""
        return self._native.size

    @property
    def bytes_read(self) -> int:
        """How many bytes of the file came so far."""
        return self._native.moved

    @property
    def _title(self) -> str:
        return self._native.path

    @property
    def _saving(self) -> tuple[str, str, str]:
        session = self._native.session
        words = f'client.fetch("{session}", artifacts=["{TIMELINE}"], capture="{self._native.capture}")'
        return words, "fetches", f"{session}/{TIMELINE}"

    def _to_serve(self) -> Served:
        return GatewayFile(self._native.file(), self._native.session)

    def _events(self, category: str) -> Asked[Table]:
        return Asked(f"reading {category}", self._native.events(category), lambda made: cast("Table", made))

    def _analyze(self, name: str, parameters: dict[str, Any]) -> Asked[Result]:
        call = self._native.analyze(name, json.dumps(parameters), "json")
        return Asked(name, call, lambda outcome: Result(name, outcome))

    def _render(self, name: str, format: str, parameters: dict[str, Any]) -> Asked[str]:
        return Asked(name, self._native.analyze(name, json.dumps(parameters), format), read_text)


class RemoteCapture(Opened):
    """A capture of a session, of which only what is asked for is moved: events of a category by parts of the timeline file, analyses by the gateway's own work.
    Every part is of the same file, or an error.
    """

    __slots__ = ()

    def events(self, category: str) -> Table:
        """The events of a category, as :meth:`flopwatch.Capture.events` has them.

        :raises RequestError: where there is no such category, or it was not captured.
        """
        return self._events(category).waited()

    def summary(self) -> dict[str, Any]:
        """Tables per name, GPU busy time and what is missing, as the artifact ``summary.json`` has them."""
        return self._analyze("summary", {}).waited().to_dict()

    @signatures.of_capture
    def analyze(self, name: str, /, **parameters: Any) -> Result:
        """Has the gateway run an analysis of the :func:`flopwatch.catalogue`.

        :raises RequestError: where there is no such analysis or parameter.
        :raises AnalysisError: where it has no result.
        """
        return self._analyze(name, parameters).waited()

    def render(self, name: str, /, format: str = "text", **parameters: Any) -> str:
        """The result of an analysis as ``text``, ``csv``, ``html``, ``page`` or ``json``."""
        return self._render(name, format, parameters).waited()


class RemoteFile(io.RawIOBase):
    """A file of a capture, read by parts where somebody looks: for h5py, pyarrow and whatever else takes a binary file. Every part is of the same file, or an
    error.
    """

    def __init__(self, native: _native.RemoteFile, name: str) -> None:
        super().__init__()
        self._native = native
        self._at = 0
        #: The artifact's name.
        self.name = name

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._native.size

    @property
    def bytes_read(self) -> int:
        """How many bytes of the file came so far."""
        return self._native.moved

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        self._checked()
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Goes elsewhere."""
        self._checked()
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}
        if whence not in base:
            msg = f"there is no whence {whence}"
            raise ValueError(msg)
        at = base[whence] + offset
        if at < 0:
            msg = f"there is no byte {at}"
            raise ValueError(msg)
        self._at = at
        return at

    def readinto(self, buffer: Buffer, /) -> int:
        """Reads as many bytes as there is place for, fewer at the end of the file."""
        self._checked()
        view = memoryview(buffer).cast("B")
        if not view:
            return 0
        found = self._native.held(self._at, len(view))
        if found is None:
            call = self._native.bring(self._at, len(view), ahead=True)
            with Progress(f"reading {self.name}") as progress:
                call.wait(progress.tick)
            found = self._native.held(self._at, len(view)) or b""
        view[: len(found)] = found
        self._at += len(found)
        return len(found)

    def readall(self) -> bytes:
        """All that is behind the place where the next byte is read."""
        rest = bytearray(max(0, self.size - self._at))
        count = self.readinto(rest)
        return bytes(rest[:count])

    def _checked(self) -> None:
        if self.closed:
            msg = "the file is closed"
            raise ValueError(msg)
