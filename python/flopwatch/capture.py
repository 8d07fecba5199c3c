"""Captures: files of any format that the engine reads, as tables, analyses and files for other programs."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _native, signatures
from .notebook import pages, tables
from .notebook.files import Served
from .notebook.timeline import view, written
from .progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._catalogue import CompareParameters, CompareResult

Native = TypeVar("Native", _native.Capture, _native.RemoteCapture)

Path = str | os.PathLike[str]

#: What the process that reads files runs, and the engine that it loads; known before the program may go to another folder.
_SCRIPT = str(pathlib.Path(__file__).with_name("_reader.py").absolute())
_ENGINE = str(pathlib.Path(_native.__file__).absolute())
#: How many MiB of memory that process may take, where it is not to be half of what is free, and 8 GiB at the most.
_MEMORY = "FLOPWATCH_READER_MEMORY_MIB"
#: What it lacks wherever the caller is an ordinary user, or root: these protect nothing that the others do not.
_USUAL = ("a user of its own:", "a bound on processes:", "a /proc of its own processes:", "the first place when memory runs short:")

#: Events as a table that polars, pyarrow, pandas and DuckDB take without a copy: ``polars.DataFrame(table)``.
Table = _native.Table


class ReaderWarning(RuntimeWarning):
    """The process that reads files lacks protections here. Limits on memory and time, and the filter of system calls, hold wherever a file is read."""


class Result:
    """What an analysis found. Its fields are attributes and items.

    ``capture.analyze("idle").gaps`` is ``capture.analyze("idle")["gaps"]``.

    It keeps its captures in memory, as a table of events does, for the page that a notebook shows; what :meth:`to_dict` gives does not.
    """

    __slots__ = ("_captures", "_data", "_outcome", "_parameters", "analysis")

    def __init__(
        self,
        analysis: str,
        outcome: _native.Outcome,
        captures: Sequence[Capture] = (),
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        #: Name of the analysis.
        self.analysis = analysis
        self._captures = tuple(captures)
        self._parameters = dict(parameters or {})
        self._outcome = outcome
        self._data: dict[str, Any] = json.loads(outcome.content)

    # Type checkers know the fields of each analysis, and that there are no others.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                return self._data[name]
            except KeyError:
                msg = f"the result of {self.analysis} has no field {name!r}; it has {', '.join(self._data)}"
                raise AttributeError(msg) from None

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def keys(self) -> KeysView[str]:
        """The names of the fields."""
        return self._data.keys()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._data})

    def __repr__(self) -> str:
        return f"<Result of {self.analysis}: {', '.join(self._data)}>"

    def _repr_html_(self) -> str | None:
        table = self._outcome.table()
        rows = None if table is None else tables.html(table)
        # Only the engine makes pages, of the captures: there are none here of an analysis that a gateway ran.
        if not self._captures:
            return rows
        page = render(self.analysis, self._captures, "html", **self._parameters)
        if len(page.encode()) > pages.MAX_BYTES:
            return (rows or "") + pages.beside(self.analysis)
        return pages.frame(self.analysis, page)

    @property
    def verdict(self) -> str | None:
        """The one word of the result, of analyses that have one."""
        return self._outcome.verdict

    def to_dict(self) -> dict[str, Any]:
        """The result as the engine writes it in JSON."""
        return self._data

    def table(self) -> Table:
        """The rows of the result, of analyses whose result is a table.

        :raises TypeError: where it is none.
        """
        table = self._outcome.table()
        if table is None:
            msg = f"the result of {self.analysis} is no table; its fields are {', '.join(self._data)}"
            raise TypeError(msg)
        return table


class BaseCapture(ABC, Generic[Native]):
    """What every capture has, wherever it is. A notebook shows it in the viewer."""

    __slots__ = ("_native", "_served")

    def __init__(self, native: Native) -> None:
        self._native: Native = native
        #: Its timeline file, once a notebook showed it.
        self._served: Served | None = None

    @property
    def session_id(self) -> str:
        """The session that the file names, else the file's own name."""
        return self._native.session_id

    @property
    def duration_ns(self) -> int:
        """Length of the window in ns."""
        return self._native.duration_ns

    @property
    def categories(self) -> dict[str, int]:
        """How many events there are of each category that was captured."""
        return self._native.categories

    def rows(self) -> Table:
        """The rows that events lie on: streams of GPUs, and threads."""
        return self._native.rows()

    def __repr__(self) -> str:
        events = sum(self.categories.values())
        return f"<{type(self).__name__} {self._title}: {events} events in {self.duration_ns / 1e9:.3f} s>"

    def _repr_html_(self) -> str:
        return view(self)._repr_html_()

    @property
    @abstractmethod
    def _title(self) -> str:
        """Which one it is."""

    @property
    @abstractmethod
    def _saving(self) -> tuple[str, str, str]:
        """How to have its timeline file: what to run, the verb for what that does, and which file it is then."""

    @abstractmethod
    def _to_serve(self) -> Served:
        """Its timeline file, for the viewer."""


class Capture(BaseCapture[_native.Capture]):
    """A capture in memory. :func:`open` makes one; it does not change."""

    __slots__ = ("path",)

    def __init__(self, native: _native.Capture, path: str) -> None:
        super().__init__(native)
        #: The file that was read.
        self.path = path

    def events(self, category: str) -> Table:
        """The events of a category. Times are integer ns from the session's start; ``row`` is a row of :meth:`rows`. The numbers are shared with the
        capture, not copied.

        :raises RequestError: where there is no such category, or it was not captured.
        """
        return self._native.events(category)

    def summary(self) -> dict[str, Any]:
        """Tables per name, GPU busy time and what is missing, as the artifact ``summary.json`` has them."""
        summary: dict[str, Any] = json.loads(self._native.summary())
        return summary

    @signatures.of_capture
    def analyze(self, name: str, /, **parameters: Any) -> Result:
        """Runs an analysis of the :func:`catalogue` on this capture.

        :raises RequestError: where there is no such analysis or parameter.
        :raises AnalysisError: where it has no result.
        """
        return result_of(name, [self], parameters)

    def render(self, name: str, /, format: str = "text", **parameters: Any) -> str:
        """The result of an analysis as ``text``, ``csv``, ``html``, ``page`` or ``json``."""
        return render(name, [self], format, **parameters)

    def export(
        self,
        name: str,
        /,
        target: Path,
        *,
        format: str | None = None,
        overwrite: bool = False,
        **parameters: Any,
    ) -> list[dict[str, Any]]:
        """Writes a file of the :func:`catalogue` for another program, or the result of an analysis in a format of :meth:`render`, JSON unless it is named;
        gives what the capture holds and the file does not. The file appears whole or not at all.

        :raises FileExistsError: where something is there already.
        """
        return write(name, [self], target, format=format, overwrite=overwrite, **parameters)

    def save(self, target: Path, *, overwrite: bool = False) -> None:
        """Writes the capture as a timeline file, which the viewer opens.

        :raises FileExistsError: where something is there already.
        """
        self._native.save(os.fspath(target), overwrite)

    @property
    def _title(self) -> str:
        return self.path

    @property
    def _saving(self) -> tuple[str, str, str]:
        return 'capture.save("timeline.h5")', "writes", "timeline.h5"

    def _to_serve(self) -> Served:
        return written(self)


def open(path: Path, *, trusted: bool = False) -> Capture:
    """Reads a file: an export of Nsight Systems, a Chrome trace of Kineto, an XPlane of JAX, a report of Nsight Compute, a pprof profile, a flight
    recorder's file, or a timeline file. The file is found out by its content.

    It is read by a process of its own, in a sandbox: a file that breaks its reader, or wants more memory than that may have, raises an error.

    :param trusted: reads it in this process, which is faster by the start of another one and has no bound: for files of one's own.
    :raises ReadError: with what is wrong with the file, or how its reader ended.
    """
    name = os.fspath(path)
    with Progress(f"reading {name}") as progress:
        native = _native.open(name, progress.tick, _child(trusted=trusted))
    _tell(tuple(native.missing))
    return Capture(native, name)


def convert(source: Path, target: Path, *, overwrite: bool = False, trusted: bool = False) -> dict[str, Any]:
    """Makes a timeline file of a file of any format, which is read as by :func:`open`; gives its summary.

    :raises FileExistsError: where something is there already.
    """
    with Progress(f"converting {os.fspath(source)}") as progress:
        made, missing = _native.convert(os.fspath(source), os.fspath(target), overwrite, progress.tick, _child(trusted=trusted))
    _tell(tuple(missing))
    summary: dict[str, Any] = json.loads(made)
    return summary


def _child(*, trusted: bool) -> tuple[str, str, str, str | None, int | None] | None:
    """How the process is started that reads a file; none where this one does."""
    if trusted:
        return None
    if not sys.executable or getattr(sys, "frozen", False):
        msg = "no process can be started to read the file: this program is no Python that would run another script; `trusted=True` reads it in this one"
        raise _native.ReadError(msg)
    memory = os.environ.get(_MEMORY)
    if memory and not memory.isdecimal():
        msg = f"{_MEMORY}={memory!r}: is no number of MiB"
        raise _native.RequestError(msg)
    return sys.executable, _SCRIPT, _ENGINE, os.environ.get("LD_LIBRARY_PATH"), int(memory) if memory else None


@functools.cache
def _tell(missing: tuple[str, ...]) -> None:
    """Says once what the process lacks that reads files."""
    told = [what for what in missing if not what.startswith(_USUAL)]
    if told:
        warnings.warn(f"the process that reads files lacks protections here: {'; '.join(told)}", ReaderWarning, stacklevel=3)


@signatures.of_captures
def analyze(name: str, /, captures: Sequence[Capture], **parameters: Any) -> Result:
    """Runs an analysis of the :func:`catalogue` on one or more captures."""
    return result_of(name, captures, parameters)


def result_of(name: str, captures: Sequence[Capture], parameters: dict[str, Any]) -> Result:
    """:func:`analyze`, of an analysis that is known when the program runs."""
    return Result(name, _run(name, captures, parameters, "json"), captures, parameters)


def _run(name: str, captures: Sequence[Capture], parameters: dict[str, Any], format: str) -> _native.Outcome:
    with Progress(name) as progress:
        natives = [capture._native for capture in captures]
        return _native.analyze(natives, name, json.dumps(parameters), format, progress.tick)


def render(name: str, /, captures: Sequence[Capture], format: str = "text", **parameters: Any) -> str:
    """:meth:`Capture.render` of one or more captures."""
    return _run(name, captures, parameters, format).content.decode()


def write(
    name: str,
    /,
    captures: Sequence[Capture],
    target: Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """:meth:`Capture.export` of one or more captures."""
    with Progress(f"writing {os.fspath(target)}") as progress:
        outcome = _native.analyze_to(
            [capture._native for capture in captures],
            name,
            json.dumps(parameters),
            os.fspath(target),
            format=format,
            overwrite=overwrite,
            tick=progress.tick,
        )
    left_out: list[dict[str, Any]] = json.loads(outcome.left_out)
    return left_out


def compare(before: Capture, after: Capture, **parameters: Unpack[CompareParameters]) -> CompareResult:
    """What changed from one capture to another."""
    return analyze("compare", [before, after], **parameters)


def catalogue() -> dict[str, Mapping[str, Any]]:
    """Every analysis by its name: what it tells, its parameters and its result."""
    return {entry["name"]: entry for entry in json.loads(_native.catalogue())}
