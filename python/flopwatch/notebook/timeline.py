"""A capture in a notebook: the viewer in a frame, which reads the capture's timeline file by ranges from this process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .files import LocalFile
from .server import server
from .wording import escaped

if TYPE_CHECKING:
    from flopwatch.capture import BaseCapture, Capture

_HEIGHT = 480


class View:
    """A capture as the viewer shows it. A notebook shows it as a frame."""

    __slots__ = ("_capture", "_height", "_saving", "_title", "address")

    def __init__(self, capture: BaseCapture[Any], address: str, height: int) -> None:
        #: What a browser on this machine opens, or one that reaches ``base_url``. It ends with this process, and whoever has it can read the capture.
        self.address = address
        self._capture = repr(capture)
        self._title = capture._title
        #: How to have a file of it: the words to run, and what they do and which file that is.
        self._saving = capture._saving
        self._height = height

    def __repr__(self) -> str:
        return f"<View of {self._capture}>"

    def _repr_html_(self) -> str:
        words, does, file = self._saving
        return (
            f'<iframe title="{escaped(self._title)}" src="{escaped(self.address)}" referrerpolicy="no-referrer" '
            f'style="width:100%;height:{self._height}px;border:1px solid #8886"></iframe>'
            f"<p><small>{escaped(self._capture.strip('<>'))}. The frame shows it while this Python runs, to a browser on the same machine. "
            f"Is it empty, as with JupyterHub? <code>{escaped(words)}</code> {does} a file, which "
            f"<code>flopwatch serve {escaped(file)}</code> shows on your machine.</small></p>"
        )


def view(capture: BaseCapture[Any], *, base_url: str | None = None, height: int = _HEIGHT) -> View:
    """Shows a capture in the viewer; a capture at the end of a notebook's cell does the same. Of a capture at a gateway what the viewer looks at is moved.

    It is served on a loopback port of this process, at an address that nobody can guess. Where the browser is elsewhere, ``base_url`` is what a proxy makes
    of that port: ``"/user/ada/proxy/{port}"`` of jupyter-server-proxy.

    :raises WriteError: where there is no room for the timeline file.
    """
    serving = server()
    if capture._served is None or not serving.has(capture._served):
        capture._served = capture._to_serve()
        serving.publish(capture._served)
    base = f"http://127.0.0.1:{serving.port}" if base_url is None else base_url.format(port=serving.port).rstrip("/")
    return View(capture, f"{base}/{serving.token}/?file={capture._served.path}#page=timeline", height)


def written(capture: Capture) -> LocalFile:
    """The timeline file, which has no name: it is gone with the process, however and whenever that ends."""
    with tempfile.TemporaryFile() as file:
        capture._native.overwrite(f"/proc/self/fd/{file.fileno()}")
        return LocalFile(file.fileno(), Path(capture.path).stem)
