"""What type checkers know of the methods ``analyze``: each name with the parameters and the result of its analysis. At run time a method is what it is.

The types are in ``_catalogue.pyi``, which is written from the engine's catalogue. There is no such module: its hundreds of classes would take longer to load
than all of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ._catalogue import AnalyzeCapture, AnalyzeCaptureAwaited, AnalyzeCaptures, AnalyzeSession, AnalyzeSessionAwaited
    from .capture import Result


def of_capture(analyze: Callable[..., Result]) -> AnalyzeCapture:
    """Of a capture."""
    return cast("AnalyzeCapture", analyze)


def of_capture_awaited(analyze: Callable[..., Coroutine[Any, Any, Result]]) -> AnalyzeCaptureAwaited:
    """The same, awaited."""
    return cast("AnalyzeCaptureAwaited", analyze)


def of_captures(analyze: Callable[..., Result]) -> AnalyzeCaptures:
    """Of one or more captures."""
    return cast("AnalyzeCaptures", analyze)


def of_session(analyze: Callable[..., Result]) -> AnalyzeSession:
    """Of a session."""
    return cast("AnalyzeSession", analyze)


def of_session_awaited(analyze: Callable[..., Coroutine[Any, Any, Result]]) -> AnalyzeSessionAwaited:
    """The same, awaited."""
    return cast("AnalyzeSessionAwaited", analyze)
