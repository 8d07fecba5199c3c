"""A client for event loops of :mod:`asyncio`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flopwatch import signatures
from flopwatch.capture import Result, Table

from .asked import AnyPath, BaseClient, ProfileOptions, Target
from .remote import Opened, RemoteFile
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncClient(BaseClient):
    """:class:`flopwatch.Client` with methods that are awaited. Whoever cancels one ends what it does; a session that was made goes on. Nothing is shown at
    terminals.
    """

    async def run(self, target: Target, *, wait: bool = False, timeout: float | None = None, **options: Unpack[ProfileOptions]) -> Session:
        """:meth:`flopwatch.Client.run`."""
        made = await self._requests.run(target, options).awaited()
        return await self.wait(made.name, timeout) if wait else made

    async def sessions(self, all_namespaces: bool = False, selector: str | None = None) -> list[Session]:
        """:meth:`flopwatch.Client.sessions`."""
        return await self._requests.sessions(all_namespaces=all_namespaces, selector=selector).awaited()

    async def session(self, name: str) -> Session:
        """:meth:`flopwatch.Client.session`."""
        return await self._requests.session(name).awaited()

    async def wait(self, name: str, timeout: float | None = None) -> Session:
        """:meth:`flopwatch.Client.wait`."""
        return await self._requests.wait(name, timeout).awaited()

    async def stop(self, name: str, discard: bool = False) -> None:
        """:meth:`flopwatch.Client.stop`."""
        await self._requests.stop(name, discard=discard).awaited()

    async def fetch(
        self,
        name: str,
        directory: AnyPath | None = None,
        *,
        artifacts: Sequence[str] = (),
        capture: str | None = None,
        overwrite: bool = False,
    ) -> list[Path]:
        """:meth:`flopwatch.Client.fetch`."""
        return await self._requests.fetch(name, directory, capture=capture, artifacts=artifacts, overwrite=overwrite).awaited()

    @signatures.of_session_awaited
    async def analyze(self, name: str, analysis: str, /, capture: str | None = None, *, others: Sequence[str] = (), **parameters: Any) -> Result:
        """:meth:`flopwatch.Client.analyze`."""
        return await self._requests.analyze(name, analysis, capture=capture, others=others, parameters=parameters).awaited()

    async def render(
        self,
        name: str,
        analysis: str,
        /,
        format: str = "text",
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Any,
    ) -> str:
        """:meth:`flopwatch.Client.render`."""
        return await self._requests.render(name, analysis, format, capture=capture, others=others, parameters=parameters).awaited()

    async def open(self, name: str, capture: str | None = None) -> AsyncRemoteCapture:
        """:meth:`flopwatch.Client.open`."""
        return AsyncRemoteCapture(await self._requests.open(name, capture=capture).awaited())

    async def file(self, name: str, artifact: str, capture: str | None = None) -> RemoteFile:
        """:meth:`flopwatch.Client.file`. What is read of it is waited for in the thread that reads, for the libraries that take files."""
        return RemoteFile(await self._requests.file(name, artifact, capture=capture).awaited(), artifact)


class AsyncRemoteCapture(Opened):
    """:class:`flopwatch.RemoteCapture` with methods that are awaited."""

    __slots__ = ()

    async def events(self, category: str) -> Table:
        """:meth:`flopwatch.RemoteCapture.events`."""
        return await self._events(category).awaited()

    async def summary(self) -> dict[str, Any]:
        """:meth:`flopwatch.RemoteCapture.summary`."""
        return (await self._analyze("summary", {}).awaited()).to_dict()

    @signatures.of_capture_awaited
    async def analyze(self, name: str, /, **parameters: Any) -> Result:
        """:meth:`flopwatch.RemoteCapture.analyze`."""
        return await self._analyze(name, parameters).awaited()

    async def render(self, name: str, /, format: str = "text", **parameters: Any) -> str:
        """:meth:`flopwatch.RemoteCapture.render`."""
        return await self._render(name, format, parameters).awaited()

    @property
    def _saving(self) -> tuple[str, str, str]:
        words, does, file = super()._saving
        return f"await {words}", does, file
