"""Blocks and functions of a program, profiled as a whole: see :class:`UnifiedProfiler`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flopwatch import _native
from flopwatch.capture import Path as AnyPath
from flopwatch.capture import compare, open

from .recording import Recording
from .session import MemoryDiff, ProfileSession, SessionComparison, session_of

if TYPE_CHECKING:
    # Type checkers know the fields of a block: they are its session's.
    _Session = ProfileSession
else:
    _Session = Mapping


class ProfiledBlock(_Session):
    """A block that is profiled. Once it has ended, fields of its session are its own too, as
    attributes and as a mapping.
    """

    def __init__(self, recording: Recording, *, memory: bool, flame_graph: bool) -> None:
        self._recording = recording
        self._memory = memory
        self._flame_graph = flame_graph
        self._session: ProfileSession | None = None

    @property
    def session(self) -> ProfileSession:
        """What the block did.

        :raises RequestError: before its end.
        """
        if self._session is None:
            capture, path = self._recording.capture, self._recording.path
            trace = None if path is None else str(path)
            self._session = session_of(capture, trace_path=trace, memory=self._memory, flame_graph=self._flame_graph)
        return self._session

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name not in ProfileSession.__dataclass_fields__:
                raise AttributeError(name)
            return getattr(self.session, name)

    def __getitem__(self, name: str) -> Any:
        return self.session[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.session)

    def __len__(self) -> int:
        return len(self.session)

    def __enter__(self) -> ProfiledBlock:
        self._session = None
        self._recording.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._recording.__exit__(*raised)
        if raised[0] is None:
            _ = self.session


class UnifiedProfiler:
    """Profiles blocks and functions of a program that uses PyTorch.

    One block is profiled at a time: PyTorch takes no profile within another, and a ``RequestError`` says so.

    :param output_dir: where traces are kept; it is made at the first one.
    :param enable_trace: whether traces are kept. Sessions are compared by their traces.
    :param enable_memory: whether changes of memory are recorded.
    :param enable_flame_graph: whether sessions have a flame graph.
    """

    def __init__(
        self,
        output_dir: AnyPath = "profiles",
        enable_trace: bool = True,
        enable_memory: bool = True,
        enable_flame_graph: bool = True,
    ) -> None:
        self.output_dir = Path(output_dir)
        self.enable_trace = enable_trace
        self.enable_memory = enable_memory
        self.enable_flame_graph = enable_flame_graph

    def profile(self, name: str) -> ProfiledBlock:
        """Profiles the block of a ``with``. Its trace is ``NAME.json`` in ``output_dir``, or ``NAME-2.json`` and so on where that is there.

        :raises ImportError: where PyTorch is not installed.
        """
        return ProfiledBlock(self._recording(name), memory=self.enable_memory, flame_graph=self.enable_flame_graph)

    def profile_function(
        self,
        fn: Callable[..., Any],
        *args: Any,
        name: str | None = None,
        warmup: int = 5,
        iterations: int = 20,
        **kwargs: Any,
    ) -> ProfileSession:
        """Profiles ``iterations`` calls of a function with these arguments. Each is a step of the trace, and ends when the GPU has done its work.

        :param name: the function's own where it is not given.
        :param warmup: calls before, which are not recorded.
        :raises ValueError: where ``iterations`` is below 1 or ``warmup`` below 0.
        :raises ImportError: where PyTorch is not installed.
        """
        if iterations < 1 or warmup < 0:
            msg = f"at least 1 iteration and no less than 0 before are made, not {iterations} and {warmup}"
            raise ValueError(msg)
        recording = self._recording(name if name is not None else getattr(fn, "__name__", type(fn).__name__))
        block = ProfiledBlock(recording, memory=self.enable_memory, flame_graph=self.enable_flame_graph)
        for _ in range(warmup):
            fn(*args, **kwargs)
        with block:
            for number in range(iterations):
                with recording.step(number):
                    fn(*args, **kwargs)
        return block.session

    def compare_sessions(self, a: ProfileSession, b: ProfileSession) -> SessionComparison:
        """What changed from ``a`` to ``b``: the analysis ``compare`` of their traces.

        :raises RequestError: where a session's trace was not kept.
        :raises ReadError: where it cannot be read any more.
        """
        captures = []
        for session in (a, b):
            if session.trace_path is None:
                msg = "the session has no trace to compare: profile it with enable_trace=True"
                raise _native.RequestError(msg)
            captures.append(open(session.trace_path))
        found = compare(*captures)
        return SessionComparison(speedup=found.speedup, memory_diff=MemoryDiff(peak_mb=found.memory_diff["peak_mb"]))

    def _recording(self, name: str) -> Recording:
        folder = self.output_dir if self.enable_trace else None
        return Recording(name, user="UnifiedProfiler", folder=folder, memory=self.enable_memory)
