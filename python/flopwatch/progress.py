"""How long work has gone on, for whoever waits for it at a terminal."""

from __future__ import annotations

import sys
import time

#: Work that takes less says nothing.
_QUIET_S = 1.0
#: Time between two lines.
_STEP_S = 0.2


class Progress:
    """A line on the standard error, where that is a terminal. It goes with the work."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begin = time.monotonic()
        self._next = self._begin + _QUIET_S
        self._shown = False
        # Programs without a console have none.
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def tick(self, told: str = "") -> None:
        """Shows what is being done and how long it has been, now and then."""
        now = time.monotonic()
        if not self._terminal or now < self._next:
            return
        self._next = now + _STEP_S
        self._shown = True
        # What stood there may have been longer.
        print(f"\r{told or self._what} … {now - self._begin:.0f} s\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
