"""What the server of a notebook reads: files of this machine, and files at a gateway."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from abc import ABC, abstractmethod

from flopwatch import _native

#: Seconds for which nothing of a file may come from the gateway. The viewer asks three times before it says what is wrong.
_PATIENCE = 30.0


class Served(ABC):
    """A file that is read by parts, by several threads at once."""

    __slots__ = ("path", "size")

    _numbers = itertools.count(1)

    def __init__(self, title: str, size: int) -> None:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", title).strip(".") or "capture"
        #: Where it is below the viewer's page.
        self.path = f"files/{next(self._numbers)}/{name[:80]}.h5"
        self.size = size

    @abstractmethod
    def bring(self, begin: int, end: int) -> None:
        """Sees to it that these bytes are here: whoever asked for them gets all of them, or hears why not."""

    @abstractmethod
    def read(self, begin: int, length: int) -> bytes:
        """Bytes that are here."""


class LocalFile(Served):
    """An open file of this machine, which stays open as long as somebody has this."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int, title: str) -> None:
        self._descriptor = os.dup(descriptor)
        super().__init__(title, os.fstat(self._descriptor).st_size)

    def bring(self, begin: int, end: int) -> None:
        """They are."""

    def read(self, begin: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, begin)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._descriptor)


class GatewayFile(Served):
    """A file at a gateway, of which the parts are here that somebody asked for."""

    __slots__ = ("_file",)

    def __init__(self, file: _native.RemoteFile, title: str) -> None:
        super().__init__(title, file.size)
        self._file = file

    def bring(self, begin: int, end: int) -> None:
        """Moves what of them is not here, and nothing else.

        :raises ClientError: where the gateway does not give them.
        :raises TimeoutError: where it says nothing.
        """
        file, moved, until = self._file, -1, 0.0

        def tick() -> None:
            nonlocal moved, until
            now, before, moved = time.monotonic(), moved, file.moved
            if moved != before:
                until = now + _PATIENCE
            elif now > until:
                msg = f"nothing came from the gateway for {_PATIENCE:.0f} s"
                raise TimeoutError(msg)

        file.bring(begin, end - begin, ahead=False).wait(tick)

    def read(self, begin: int, length: int) -> bytes:
        held = self._file.held(begin, length)
        if held is None:
            msg = f"bytes from {begin} on were not brought"
            raise OSError(msg)
        return held
