"""Captures at a gateway in a notebook: the server behind the frame reads them by ranges, there."""

from __future__ import annotations

import asyncio
import html
import io
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import h5py
import pytest
from fake_cluster import FakeCluster
from loopback import asked, file_of, status_line

import flopwatch
from flopwatch.notebook import files


@pytest.fixture
def content(cluster: FakeCluster, timeline: Path) -> bytes:
    """The timeline file of the session ``first``."""
    content = timeline.read_bytes()
    cluster.add("first", {"timeline.h5": content})
    return content


@pytest.fixture
def client(cluster: FakeCluster, content: bytes) -> flopwatch.Client:
    assert content
    return flopwatch.Client(**cluster.options())


def ranged(path: str, begin: int, end: int) -> tuple[int, bytes]:
    """What the server answers whoever asks for a range."""
    status, _, part = asked(path, Range=f"bytes={begin}-{end - 1}")
    return status, part


class Ranged(io.RawIOBase):
    """The file at the server, read as the viewer does: by ranges."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self._path, self._size, self._at = path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: bytearray, /) -> int:  # type: ignore[override]
        end = min(self._size, self._at + len(buffer))
        if end <= self._at:
            return 0
        status, part = ranged(self._path, self._at, end)
        assert status == 206 and len(part) == end - self._at
        buffer[: len(part)] = part
        self._at = end
        return len(part)


def words_of(shown: str) -> str:
    """What the line under the frame says to run."""
    found = re.search(r"Is it empty, as with JupyterHub\? <code>(.*?)</code>", shown)
    assert found is not None
    return html.unescape(found[1])


def test_a_remote_capture_shows_itself(cluster: FakeCluster, client: flopwatch.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = client.open("first")
    shown = remote._repr_html_()
    address = re.search(r'<iframe [^>]*src="([^"]+)"', shown)
    assert address is not None and html.unescape(address[1]) == flopwatch.view(remote).address
    assert shown.count("<iframe") == 1 and "timeline.h5 of session first: " in shown
    assert all(secret not in shown for secret in ("of-ada", cluster.gateway, cluster.api))
    # What it says is what helps.
    monkeypatch.chdir(tmp_path)
    assert eval(words_of(shown), {"client": client}) == [Path("first/timeline.h5")]
    assert (tmp_path / "first" / "timeline.h5").exists() and "<code>flopwatch serve first/timeline.h5</code>" in shown


def test_so_does_one_of_an_event_loop(cluster: FakeCluster, client: flopwatch.Client, content: bytes) -> None:
    assert client is not None

    async def opened() -> flopwatch.AsyncRemoteCapture:
        return await flopwatch.AsyncClient(**cluster.options()).open("first")

    remote = asyncio.run(opened())
    assert words_of(remote._repr_html_()).startswith('await client.fetch("first", ')
    assert ranged(file_of(remote), 1000, 2000) == (206, content[1000:2000])


def test_the_ranges_that_are_asked_for_are_moved_once(cluster: FakeCluster, client: flopwatch.Client, content: bytes) -> None:
    remote = client.open("first")
    path, before, middle = file_of(remote), remote.bytes_read, len(content) // 2
    assert before < middle
    cluster.ranges.clear()
    assert asked(path, "HEAD")[1]["content-length"] == str(len(content))
    assert ranged(path, 0, 100) == (206, content[:100]), "the structure is there already"
    assert cluster.ranges == []
    assert ranged(path, middle, middle + 1000) == ranged(path, middle, middle + 1000) == (206, content[middle : middle + 1000])
    assert ranged(path, middle + 500, middle + 1500) == (206, content[middle + 500 : middle + 1500])
    assert ranged(file_of(remote), middle + 100, middle + 1400)[1] == content[middle + 100 : middle + 1400]
    assert cluster.ranges == [(middle, middle + 1000), (middle + 1000, middle + 1500)]
    assert remote.bytes_read == before + 1500
    # The capture itself has them too, and the other way round.
    remote.events("cuda_kernel")
    moved = remote.bytes_read
    with h5py.File(Ranged(path, len(content))) as opened:
        assert int(opened["cuda_kernel/duration_ns"][:].sum()) == 3_000_000
    assert remote.bytes_read == moved < len(content) / 2
    assert asked(path)[0::2] == (200, content), "whoever wants all of it gets it"


def test_threads_ask_at_once(client: flopwatch.Client, content: bytes) -> None:
    remote = client.open("first")
    path, random = file_of(remote), Random(11)
    parts = [(begin, begin + random.randrange(1, 50_000)) for begin in (random.randrange(len(content) - 50_000) for _ in range(48))]
    found: dict[tuple[int, int], tuple[int, bytes]] = {}

    def ask(mine: list[tuple[int, int]]) -> None:
        for part in mine:
            found[part] = ranged(path, *part)

    threads = [threading.Thread(target=ask, args=(parts[at::8],)) for at in range(8)]
    threads.append(threading.Thread(target=remote.events, args=("cpu_op",)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {(begin, end): (206, content[begin:end]) for begin, end in parts}


@pytest.mark.parametrize(
    ("trouble", "status", "said"),
    [
        (403, 403, "it is Troubled here"),
        (404, 404, "it is Troubled here"),
        (409, 502, "it is Troubled here"),
        ("cut", 502, "broke off"),
        ("hang", 502, "nothing came from the gateway for"),
        ("changed", 502, "changed while it was read"),
    ],
)
def test_a_gateway_that_fails_is_told_and_asked_again(
    trouble: int | str,
    status: int,
    said: str,
    cluster: FakeCluster,
    client: flopwatch.Client,
    content: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remote = client.open("first")
    path, middle = file_of(remote), len(content) // 2
    assert ranged(path, middle, middle + 100) == (206, content[middle : middle + 100])
    monkeypatch.setattr(files, "_PATIENCE", 0.5 if trouble == "hang" else 30)
    if trouble == "changed":
        cluster.files["timeline.h5"] = bytes(len(content))
    else:
        cluster.trouble = trouble
    begin = time.monotonic()
    # Its first half is here: nothing of it is sent.
    answer, headers, text = asked(path, Range=f"bytes={middle}-{middle + 199}")
    assert (answer, headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert said in text.decode() and "of-ada" not in text.decode() and len(text) < 1000
    assert time.monotonic() - begin < 20
    assert ranged(path, middle, middle + 100) == (206, content[middle : middle + 100]), "what is here needs no gateway"
    cluster.trouble, cluster.files["timeline.h5"] = None, content
    assert ranged(path, middle, middle + 200) == (206, content[middle : middle + 200])


def test_the_viewer_is_told_the_reason(cluster: FakeCluster, client: flopwatch.Client) -> None:
    path = file_of(client.open("first"))
    cluster.trouble = 409
    with pytest.raises(flopwatch.ClientError) as raised:
        client.file("first", "timeline.h5")
    assert raised.value.reason == "Troubled"
    assert status_line(path, Range="bytes=600000-600010") == "502 Bad Gateway: Troubled"


def _look(remote: flopwatch.RemoteCapture, part: tuple[int, int], queue: multiprocessing.Queue[tuple[str, int, bytes]]) -> None:
    path = file_of(remote)
    queue.put((path, *ranged(path, *part)))


def test_a_fork_shows_it_too(client: flopwatch.Client, content: bytes) -> None:
    remote = client.open("first")
    path, middle = file_of(remote), len(content) // 2
    assert ranged(path, middle, middle + 10)[0] == 206
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[tuple[str, int, bytes]] = context.Queue()
    child = context.Process(target=_look, args=(remote, (middle, middle + 200), queue))
    child.start()
    theirs, status, part = queue.get(timeout=60)
    child.join(60)
    assert (child.exitcode, status, part) == (0, 206, content[middle : middle + 200])
    assert theirs != path and ranged(path, middle, middle + 300) == (206, content[middle : middle + 300])


SHOWS = """
import os, sys, urllib.request, flopwatch
options = dict(zip(("kubeconfig", "gateway", "gateway_ca"), sys.argv[1:]))
remote = flopwatch.Client(**options).open("first")
address = flopwatch.view(remote).address
del remote
request = urllib.request.Request(address.split("?")[0] + address.split("file=")[1], headers={"Range": "bytes=400000-400099"})
assert len(urllib.request.urlopen(request, timeout=20).read()) == 100, "what was shown stays, also where its capture is gone"
print(len(os.listdir(os.environ["TMPDIR"])))
"""


def test_no_file_of_it_has_a_name(cluster: FakeCluster, client: flopwatch.Client, tmp_path: Path) -> None:
    assert client is not None
    room = tmp_path / "room"
    room.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(flopwatch.__file__).parents[1]), "TMPDIR": str(room)}
    options = [str(option) for option in cluster.options().values()]
    ran = subprocess.run([sys.executable, "-c", SHOWS, *options], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "0\n"), ran.stderr
    assert list(room.iterdir()) == []
