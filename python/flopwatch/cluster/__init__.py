"""Sessions of a cluster: profile pods, wait, fetch, and read what came of it where it is."""

from .aio import AsyncClient, AsyncRemoteCapture
from .client import Client
from .remote import RemoteCapture, RemoteFile
from .session import Artifact, Session, SessionCapture

__all__ = [
    "Artifact",
    "AsyncClient",
    "AsyncRemoteCapture",
    "Client",
    "RemoteCapture",
    "RemoteFile",
    "Session",
    "SessionCapture",
]
