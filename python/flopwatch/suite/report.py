"""Results of analyses as files for people and programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from flopwatch import _native
from flopwatch.capture import Capture, Path, open, result_of, write

from .recording import of_profile

#: Formats by the ending of a file's name.
_ENDINGS = {".html": "html", ".htm": "html", ".json": "json"}


def format_of(path: Path, format: str | None, among: Sequence[str] = ("html", "json")) -> str:
    """How a file is written: ``format``, else as its name ends.

    :raises ValueError: where neither says it.
    """
    chosen = format if format is not None else _ENDINGS.get(PurePath(os.fspath(path)).suffix.lower())
    if chosen is None or chosen not in among:
        msg = f"{os.fspath(path)}: format is one of {', '.join(among)}; without it a name ends in .html or .json"
        raise ValueError(msg)
    return chosen


class Report:
    """A capture and the analysis that reports of it are made by."""

    def __init__(self, analysis: str, **parameters: Any) -> None:
        self._analysis = analysis
        self._parameters = parameters
        self._capture: Capture | None = None

    def read(self, path: Path) -> dict[str, Any]:
        """The result of a file.

        :raises ReadError: with what is wrong with the file.
        """
        return self.of(open(path))

    def of_profile(self, profile: Any) -> dict[str, Any]:
        """The result of a finished ``torch.profiler.profile``."""
        return self.of(of_profile(profile))

    def of(self, capture: Capture) -> dict[str, Any]:
        """The result of a capture."""
        result = result_of(self._analysis, [capture], self._parameters).to_dict()
        self._capture = capture
        return result

    @property
    def capture(self) -> Capture:
        """The capture that was given last.

        :raises RequestError: before one was given.
        """
        if self._capture is None:
            msg = f"there is nothing to report yet: {self._analysis} was given no capture"
            raise _native.RequestError(msg)
        return self._capture

    def export(self, path: Path, format: str | None, *, overwrite: bool) -> None:
        """Writes the result of the capture that was given last; the file appears whole or not at all."""
        capture = self.capture
        write(self._analysis, [capture], path, format=format_of(path, format), overwrite=overwrite, **self._parameters)
