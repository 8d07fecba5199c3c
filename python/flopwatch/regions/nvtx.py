"""NVTX ranges, through the engine's own library: nobody needs another package for them."""

from __future__ import annotations

from asyncio import _get_running_loop

from flopwatch import _native

_push = _native.range_push
_pop = _native.range_pop
_start = _native.range_start
_end = _native.range_end


def begin(name: str) -> int:
    """Begins a range; gives what :func:`end` needs.

    Tasks of asyncio take turns on one thread: their ranges do not nest, and so they are ranges of the process instead of the thread.
    """
    if _get_running_loop() is None:
        _push(name)
        return -1
    return _start(name)


def end(range_id: int) -> None:
    """Ends a range."""
    if range_id < 0:
        _pop()
    else:
        _end(range_id)
