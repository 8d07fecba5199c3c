"""Results of analyses as files for people and programs."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from flopwatch.capture import Capture, Path, Result, open, result_of, write

from .recording import of_profile

#: Formats by the ending of a file's name.
_ENDINGS = {".html": "html", ".htm": "html", ".json": "json"}
_FORMATS = ("html", "json")


def format_of(path: Path, format: str | None) -> str:
    """How a file is written: ``format``, else as its name ends.

    :raises ValueError: where neither says it.
    """
    chosen = format if format is not None else _ENDINGS.get(PurePath(os.fspath(path)).suffix.lower())
    if chosen not in _FORMATS:
        msg = f"{os.fspath(path)}: format is one of {', '.join(_FORMATS)}; without it a name ends in .html or .json"
        raise ValueError(msg)
    return chosen


def export(result: Result, path: Path, format: str | None, *, overwrite: bool) -> None:
    """Writes a result; the file appears whole or not at all."""
    write(result.analysis, result._captures, path, format=format_of(path, format), overwrite=overwrite, **result._parameters)


class Report:
    """The analysis that reports are made by."""

    def __init__(self, analysis: str, **parameters: Any) -> None:
        self.analysis = analysis
        self._parameters = parameters

    def read(self, path: Path) -> Result:
        """The result of a file.

        :raises ReadError: with what is wrong with the file.
        """
        return self.of(open(path))

    def of_profile(self, profile: Any) -> Result:
        """The result of a finished ``torch.profiler.profile``."""
        return self.of(of_profile(profile))

    def of(self, capture: Capture) -> Result:
        """The result of a capture."""
        return result_of(self.analysis, [capture], self._parameters)
