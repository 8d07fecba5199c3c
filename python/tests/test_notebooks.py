"""What notebooks show, the server behind it, and the notebooks of examples/notebooks."""

from __future__ import annotations

import gc
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import events
from loopback import asked, file_of
from nbclient import NotebookClient

import flopwatch
from flopwatch.notebook import pages
from flopwatch.notebook.server import server

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
HOSTILE = '</iframe><script>alert("x")</script>\u202e'


def write(folder: Path, made: list[dict[str, object]]) -> Path:
    """A trace of these events."""
    path = folder / "made.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": made}))
    return path


@pytest.fixture
def hostile(tmp_path: Path, trace: Path) -> flopwatch.Capture:
    """A capture whose file and kernels have names that are markup."""
    told = json.loads(trace.read_text())
    for event in told["traceEvents"]:
        if event["cat"] == "kernel":
            event["name"] = HOSTILE
    path = tmp_path / 'a"><script>.json'
    path.write_text(json.dumps(told))
    return flopwatch.open(path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel is this Python, whatever is installed in the user's folders.
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for folder in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "TMPDIR"):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(folder, str(tmp_path / folder))
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in book.cells), "notebooks are committed without outputs"
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output["data"].get("text/html", "") for cell in book.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("<iframe" in output and "http://127.0.0.1:" in output for output in shown), "a timeline"
    assert any("sandbox=" in output and "srcdoc=" in output for output in shown), "an analysis' page"


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["comparing-two-runs", "finding-a-slow-rank", "first-look"]


def test_a_capture_shows_itself_as_a_timeline(trace: Path, tmp_path: Path) -> None:
    capture = flopwatch.open(trace)
    shown = capture._repr_html_()
    address = re.search(r'<iframe [^>]*src="([^"]+)"', shown)
    assert address is not None
    assert html.unescape(address[1]) == flopwatch.view(capture).address, "shown twice, it is served once"
    assert "flopwatch serve" in shown
    status, _, content = asked(file_of(capture))
    assert status == 200
    (tmp_path / "served.h5").write_bytes(content)
    assert flopwatch.open(tmp_path / "served.h5").categories["cuda_kernel"] == 10


def test_a_proxy_may_stand_between(trace: Path) -> None:
    made = flopwatch.view(flopwatch.open(trace), base_url="/user/ada/proxy/{port}/", height=300)
    assert made.address.startswith(f"/user/ada/proxy/{server().port}/{server().token}/?file=files/")
    assert "height:300px" in made._repr_html_()


def test_the_viewer_is_served_for_frames() -> None:
    status, headers, content = asked(f"/{server().token}/")
    assert status == 200 and b"<html" in content
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    for asset in re.findall(r'(?:src|href)="\./(assets/[^"]+)"', content.decode()):
        status, headers, script = asked(f"/{server().token}/{asset}", Accept_Encoding="gzip")
        assert status == 200 and script and headers["content-encoding"] == "gzip"


def test_the_file_is_read_by_ranges(trace: Path) -> None:
    path = file_of(flopwatch.open(trace))
    _, headers, whole = asked(path)
    size = len(whole)
    assert headers["accept-ranges"] == "bytes" and "etag" not in headers
    for asked_for, begin, end in [("0-9", 0, 10), ("100-", 100, size), ("-7", size - 7, size), (f"5-{size * 2}", 5, size)]:
        status, headers, part = asked(path, Range=f"bytes={asked_for}")
        assert (status, part) == (206, whole[begin:end])
        assert headers["content-range"] == f"bytes {begin}-{end - 1}/{size}"
    for none in (f"{size}-", "9-3", "-0"):
        status, headers, _ = asked(path, Range=f"bytes={none}")
        assert (status, headers["content-range"]) == (416, f"bytes */{size}")
    for whole_answer in ({"Range": "lines=1-2"}, {"Range": "bytes=0-1,4-5"}, {"Range": "bytes=0-9", "If_Range": '"other"'}):
        assert asked(path, **whole_answer)[0::2] == (200, whole)
    status, headers, nothing = asked(path, "HEAD")
    assert (status, headers["content-length"], nothing) == (200, str(size), b"")


def test_nothing_else_is_served(trace: Path) -> None:
    path = file_of(flopwatch.open(trace))
    token, rest = server().token, path.removeprefix(f"/{server().token}")
    refused = [
        "/",
        rest,
        f"/{'x' * len(token)}{rest}",
        f"/{token[:-1]}{rest}",
        f"/{token}",
        f"/{token}/files/",
        f"/{token}/files/0/other.h5",
    ]
    refused += [f"/{token}/files/../../../../etc/passwd", f"/{token}//etc/passwd", f"/{token}/../{token}{rest}", f"/{token}/gateway.html", f"/{token}/%2e%2e"]
    for wrong in refused:
        status, _, content = asked(wrong)
        assert (status, content) == (404, b""), wrong
    assert asked(path, "POST")[0] == asked(path, "DELETE")[0] == 501
    assert server().server_address[0] == "127.0.0.1"


def test_no_file_is_left_behind(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    path = file_of(flopwatch.open(trace))
    assert list(room.iterdir()) == []
    assert asked(path)[0] == 200, "what was shown stays, also where its capture is gone"


def test_the_oldest_timelines_go(trace: Path) -> None:
    capture = flopwatch.open(trace)
    first = file_of(capture)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(40):
        flopwatch.view(flopwatch.open(trace))
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) < descriptors + 36
    assert asked(first)[0] == 404
    assert asked(file_of(capture))[0] == 200, "it is served anew when it is shown again"


def test_a_fork_has_a_server_of_its_own(trace: Path) -> None:
    program = f"""
import os, sys, urllib.request, flopwatch
capture = flopwatch.open({str(trace)!r})
before = flopwatch.view(capture).address
child = os.fork()
after = flopwatch.view(capture).address
urllib.request.urlopen(after.split("?")[0] + after.split("file=")[1], timeout=20).read()
if child == 0:
    os._exit(0 if before != after else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or before != after)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(flopwatch.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_a_table_shows_its_first_rows(trace: Path, tmp_path: Path) -> None:
    kernels = flopwatch.open(trace).events("cuda_kernel")
    assert repr(kernels).startswith("<Table of 10 rows: start_ns, duration_ns, name")
    shown = kernels._repr_html_()
    assert shown.count("<tr>") == 11 and "<th>start_ns</th>" in shown
    assert '<td style="text-align:left">gemm</td>' in shown and '<td style="text-align:right">1000000</td>' in shown
    assert "<small>10 rows</small>" in shown
    many = flopwatch.open(write(tmp_path, events() * 2)).events("cuda_kernel")
    assert many._repr_html_().count("<tr>") == 11
    assert "<small>20 rows, the first 10 of them shown</small>" in many._repr_html_()


def test_a_result_shows_its_page(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = flopwatch.open(trace)
    result = flopwatch.open(trace).analyze("cuda_gpu_trace")
    shown = result._repr_html_()
    assert shown is not None and 'sandbox="allow-scripts"' in shown and "allow-same-origin" not in shown
    page = re.search(r'srcdoc="([^"]*)"', shown)
    assert page is not None and html.unescape(page[1]) == capture.render("cuda_gpu_trace", "html")
    few = capture.analyze("events", limit=2)
    assert html.escape(capture.render("events", "html", limit=2)) in str(few._repr_html_())
    monkeypatch.setattr(pages, "MAX_BYTES", 1000)
    assert "<iframe" not in str(result._repr_html_()) and "page.html" in str(result._repr_html_()), "it is too long for a notebook"


def test_every_result_has_something_to_show(trace: Path) -> None:
    capture = flopwatch.open(trace)
    shown = {}
    for name, entry in flopwatch.catalogue().items():
        if entry["inputs"] == "one" and entry["result"] is not None:
            try:
                shown[name] = capture.analyze(name)
            except flopwatch.FlopwatchError:
                continue
    assert len(shown) > 40
    assert [name for name, result in shown.items() if "<iframe" not in str(result._repr_html_())] == []
    # A gateway's result comes without its captures.
    tabular = {name: flopwatch.Result(name, result._outcome) for name, result in shown.items() if result._outcome.table() is not None}
    assert tabular and all("<table>" in str(result._repr_html_()) for result in tabular.values())


def test_names_are_text_wherever_they_are_shown(hostile: flopwatch.Capture) -> None:
    results = [hostile.analyze(name) for name in ("cuda_gpu_trace", "kernel-types", "gpu-time")]
    shown = [hostile._repr_html_(), hostile.events("cuda_kernel")._repr_html_(), *(str(result._repr_html_()) for result in results)]
    for markup in shown:
        assert "<script" not in markup and "</iframe><" not in markup.replace("</iframe><p>", "") and "\u202e" not in markup
        assert markup.count("<iframe") == markup.count("</iframe>") <= 1
    assert "&lt;script&gt;" in shown[1] and "\ufffd" in shown[1]
    # The page is text again within its frame, and escapes what it names itself.
    page = html.unescape(re.findall(r'srcdoc="([^"]*)"', shown[2])[0])
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
