"""What is asked of a cluster: the same for those who wait in a thread and those who wait in an event loop."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, cast

from flopwatch import _native
from flopwatch.capture import Result
from flopwatch.progress import Progress

from .session import Session, read_session, read_sessions

if TYPE_CHECKING:
    from flopwatch._catalogue import Profiler

T = TypeVar("T")

AnyPath = str | os.PathLike[str]
#: A pod's name, the path of a manifest, or a manifest.
Target = str | os.PathLike[str] | Mapping[str, Any]


class ProfileOptions(TypedDict, total=False):
    """Options of ``kubectl flopwatch profile``, whose help says more of each."""

    #: Length of the window: seconds, or text such as ``"2m"``. 10 s unless it is given.
    duration: int | str
    profiler: Profiler
    #: Containers; those that ask for a GPU, else those that were prepared, unless some are given.
    container: str | Sequence[str]
    #: Profiles a copy of the pod, which is made for it and deleted afterwards.
    replica: bool
    #: When the window opens.
    start: Literal["now", "container-start"]
    #: Categories that Nsight Systems must be able to record, such as ``["cuda", "nvtx"]``.
    trace: str | Sequence[str]
    #: Categories of the timeline that must hold events for success.
    require: str | Sequence[str]
    #: What is published, of ``timeline``, ``summary`` and ``raw``.
    outputs: str | Sequence[str]
    cuda_graph_trace: Literal["graph", "node"]
    capture_range: str
    #: Samples of hardware counters in a second; ``True`` for 10,000.
    gpu_metrics: bool | int
    ncu_set: Literal["basic", "detailed", "full", "roofline"]
    kernel: str
    top_kernels_of: str
    launches: int
    #: Name of the session; one is made of the pod's unless it is given.
    name: str


def words(options: Mapping[str, Any]) -> list[str]:
    """Options as the plugin's command line has them.

    >>> words({"trace": ["cuda", "nvtx"], "duration": 5, "replica": True, "name": None})
    ['--trace=cuda', '--trace=nvtx', '--duration=5', '--replica']
    """
    made: list[str] = []
    for name, value in options.items():
        word = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            made.append(word)
        elif isinstance(value, str) or not isinstance(value, Iterable):
            made.append(f"{word}={value}")
        else:
            made.extend(f"{word}={item}" for item in value)
    return made


class Asked(Generic[T]):
    """Something that is under way."""

    __slots__ = ("_call", "_read", "_what")

    def __init__(self, what: str, call: _native.Call, read: Callable[[Any], T]) -> None:
        self._what = what
        self._call = call
        self._read = read

    def waited(self) -> T:
        """What came of it. A terminal shows how far it is, Ctrl-C ends it."""
        call = self._call
        with Progress(self._what) as progress:
            made = call.wait(lambda: progress.tick(call.told))
        return self._read(made)

    async def awaited(self) -> T:
        """What came of it. Whoever cancels the waiting ends it."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        descriptor = self._call.descriptor()
        loop.add_reader(descriptor, end)
        try:
            await ended
        except BaseException:
            self._call.cancel()
            raise
        finally:
            loop.remove_reader(descriptor)
        return self._read(self._call.result())


class Requests:
    """What can be asked of a cluster. Each begins at once."""

    __slots__ = ("_native",)

    def __init__(self, **options: Any) -> None:
        options = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in options.items()}
        self._native = _native.Client(words(options))

    def run(self, target: Target, options: Mapping[str, Any]) -> Asked[Session]:
        unknown = options.keys() - ProfileOptions.__annotations__.keys()
        if unknown:
            msg = f"run() got an unexpected keyword argument {min(unknown)!r}"
            raise TypeError(msg)
        made = words(options)
        if isinstance(target, str):
            call = self._native.run([*made, "--", target])
        elif isinstance(target, Mapping):
            call = self._native.run(made, manifest=json.dumps(target))
        else:
            call = self._native.run(made, manifest_path=os.fspath(target))
        return Asked("making a session", call, read_session)

    def sessions(self, *, all_namespaces: bool, selector: str | None) -> Asked[list[Session]]:
        return Asked("listing sessions", self._native.sessions(all_namespaces, selector), read_sessions)

    def session(self, name: str) -> Asked[Session]:
        return Asked(f"reading session {name}", self._native.session(name), read_session)

    def wait(self, name: str, timeout: float | None) -> Asked[Session]:
        # A time of 0 is one without an end there.
        seconds = 0 if timeout is None else max(1, ceil(timeout))
        return Asked(f"waiting for session {name}", self._native.wait(name, seconds), read_session)

    def stop(self, name: str, *, discard: bool) -> Asked[None]:
        return Asked(f"stopping session {name}", self._native.stop(name, discard), _nothing)

    def fetch(self, name: str, to: AnyPath | None, *, capture: str | None, artifacts: Sequence[str], overwrite: bool) -> Asked[list[Path]]:
        # What ends so is a folder, also where one file is fetched.
        output = None if to is None else os.path.join(os.fspath(to), "")  # noqa: PTH118
        call = self._native.fetch(name, output, capture=capture, artifacts=list(artifacts), overwrite=overwrite)
        return Asked(f"fetching session {name}", call, lambda paths: [Path(path) for path in paths])

    def _analysis(self, name: str, analysis: str, format: str, *, capture: str | None, others: Sequence[str], parameters: Mapping[str, Any]) -> _native.Call:
        return self._native.analyze(name, analysis, json.dumps(parameters), capture=capture, others=list(others), format=format)

    def analyze(self, name: str, analysis: str, *, capture: str | None, others: Sequence[str], parameters: Mapping[str, Any]) -> Asked[Result]:
        call = self._analysis(name, analysis, "json", capture=capture, others=others, parameters=parameters)
        return Asked(analysis, call, lambda outcome: Result(analysis, outcome))

    def render(
        self,
        name: str,
        analysis: str,
        format: str,
        *,
        capture: str | None,
        others: Sequence[str],
        parameters: Mapping[str, Any],
    ) -> Asked[str]:
        call = self._analysis(name, analysis, format, capture=capture, others=others, parameters=parameters)
        return Asked(analysis, call, read_text)

    def file(self, name: str, artifact: str, *, capture: str | None) -> Asked[_native.RemoteFile]:
        return Asked(f"finding {artifact}", self._native.file(name, artifact, capture=capture), _file)

    def open(self, name: str, *, capture: str | None) -> Asked[_native.RemoteCapture]:
        return Asked(f"opening session {name}", self._native.open(name, capture=capture), _opened)


class BaseClient:
    """What every client is given; :class:`flopwatch.Client` says what it means."""

    def __init__(
        self,
        *,
        namespace: str | None = None,
        context: str | None = None,
        kubeconfig: AnyPath | None = None,
        flopwatch_namespace: str | None = None,
        gateway: str | None = None,
        gateway_ca: AnyPath | None = None,
        token: str | None = None,
    ) -> None:
        self._requests = Requests(
            namespace=namespace,
            context=context,
            kubeconfig=kubeconfig,
            flopwatch_namespace=flopwatch_namespace,
            gateway=gateway,
            gateway_ca=gateway_ca,
            token=token,
        )


def read_text(outcome: _native.Outcome) -> str:
    """A result for people."""
    return outcome.content.decode()


def _nothing(_made: Any) -> None:
    return None


def _file(made: Any) -> _native.RemoteFile:
    return cast("_native.RemoteFile", made)


def _opened(made: Any) -> _native.RemoteCapture:
    return cast("_native.RemoteCapture", made)
