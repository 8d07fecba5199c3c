"""Captures by PyTorch's own profiler."""

from __future__ import annotations

import re
import tempfile
from contextlib import AbstractContextManager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from flopwatch import _native
from flopwatch.capture import Capture, open
from flopwatch.publication import move

#: Longest name of a trace without its ending, in characters.
_LONGEST = 100

#: Captures of profiles: PyTorch writes the trace of a profile once.
_of_profiles: WeakKeyDictionary[Any, Capture] = WeakKeyDictionary()


def load_torch(user: str) -> Any:
    """PyTorch, for ``user``.

    :raises ImportError: where it is not installed.
    """
    try:
        import_module("torch.profiler")
    except ImportError as error:
        msg = f"{user} needs PyTorch, which cannot be imported here: {error}"
        raise ImportError(msg, name="torch") from error
    return import_module("torch")


class Recording:
    """Captures the block of a ``with``. The capture is there at its end, and is not where the block raises.

    Where a profile of PyTorch runs already, or another one begins in the block, a ``RequestError`` says so.

    :param name: the range around the block, and the name of the trace.
    :param user: who needs PyTorch.
    :param folder: where the trace is kept as ``NAME.json``, else ``NAME-2.json`` and so on; ``None`` to keep none.
    :param memory: whether changes of memory are recorded.
    """

    def __init__(self, name: str, *, user: str, folder: Path | None = None, memory: bool = False) -> None:
        self._torch = load_torch(user)
        self._name = name
        self._folder = folder
        self._memory = memory
        self._capture: Capture | None = None
        #: The trace, where it is kept.
        self.path: Path | None = None

    @property
    def capture(self) -> Capture:
        """The capture.

        :raises RequestError: before the end of the block.
        """
        if self._capture is None:
            msg = f"{self._name} has not ended: its figures are there behind the `with`"
            raise _native.RequestError(msg)
        return self._capture

    def __enter__(self) -> Recording:
        if self._torch.autograd._profiler_enabled():
            msg = f"{self._name} cannot be profiled: a profile of PyTorch runs already, and it takes one at a time"
            raise _native.RequestError(msg)
        if self._folder is not None:
            # A folder that cannot be made is told before the work, not after it.
            self._folder.mkdir(parents=True, exist_ok=True)
        profiler = self._torch.profiler
        self._capture = None
        activities = [profiler.ProfilerActivity.CPU]
        if self._torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        self._profile = profiler.profile(activities=activities, profile_memory=self._memory)
        self._profile.__enter__()
        self._range = profiler.record_function(self._name)
        self._range.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._range.__exit__(*raised)
        self._profile.__exit__(*raised)
        if raised[0] is None:
            self._capture = self._read()

    def step(self, number: int) -> AbstractContextManager[Any]:
        """An iteration, which analyses find. It ends when the GPU has done its work."""
        return _Step(self._torch, number)

    def _read(self) -> Capture:
        stem = re.sub(r"[^\w.=+-]+", "_", self._name).strip("._")[:_LONGEST] or "trace"
        with tempfile.TemporaryDirectory(prefix=".flopwatch-", dir=self._folder) as folder:
            made = Path(folder) / f"{stem}.json"
            _write(self._profile, made)
            if self._folder is not None:
                self.path = _publish(made, self._folder.absolute(), stem)
                made = self.path
            # This process made it.
            return open(made, trusted=True)


class _Step:
    """A step of :class:`Recording`."""

    def __init__(self, torch: Any, number: int) -> None:
        self._cuda = torch.cuda
        # The name by which PyTorch's own schedule marks steps.
        self._range = torch.profiler.record_function(f"ProfilerStep#{number}")

    def __enter__(self) -> None:
        self._range.__enter__()

    def __exit__(self, *raised: object) -> None:
        # The length of a step is the host's, which is ahead of the GPU.
        if self._cuda.is_initialized():
            self._cuda.synchronize()
        self._range.__exit__(*raised)


def _publish(made: Path, folder: Path, stem: str) -> Path:
    """Moves a file to the first name that nothing has."""
    for number in count(1):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            move(made, path)
        except FileExistsError:
            continue
        break
    return path


def _write(profile: Any, path: Path) -> None:
    """Writes the trace of a profile."""
    results = getattr(getattr(profile, "profiler", profile), "kineto_results", None)
    if results is None:
        msg = "the profile has not ended: give it behind its `with`, or after stop()"
        raise _native.RequestError(msg)
    # PyTorch crashes where it is to write a profile that another one ended. Earlier versions count microseconds.
    began = results.trace_start_ns if hasattr(results, "trace_start_ns") else results.trace_start_us
    if began() == 0:
        msg = "the profile has no trace: another one began before its end, and PyTorch takes one at a time"
        raise _native.RequestError(msg)
    try:
        profile.export_chrome_trace(str(path))
    except RuntimeError as error:
        if "already saved" not in str(error):
            raise
        msg = "the profile's trace was written before, which PyTorch does once: give its file to from_chrome_trace"
        raise _native.RequestError(msg) from error


def of_profile(profile: Any) -> Capture:
    """The capture of a finished ``torch.profiler.profile``, whose trace it takes: PyTorch writes it once.

    :raises TypeError: where it is no profile.
    :raises RequestError: where it has not ended, or its trace was written before.
    """
    if not hasattr(profile, "export_chrome_trace"):
        msg = f"a finished torch.profiler.profile is wanted, not {type(profile).__name__}"
        raise TypeError(msg)
    known = _of_profiles.get(profile)
    if known is None:
        # The agent of a node looks after folders that are named flopwatch-UID.
        with tempfile.TemporaryDirectory(prefix=".flopwatch-") as folder:
            made = Path(folder) / "trace.json"
            _write(profile, made)
            # This process made it.
            known = open(made, trusted=True)
        _of_profiles[profile] = known
    return known
