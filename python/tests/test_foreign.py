"""Files that are read by a process of their own: what comes of them, and what becomes of this process where they break their reader."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import flopwatch
import flopwatch.capture

ROOT = Path(__file__).parents[2]

#: Timeline files, and programs of XLA.
FILES = [*(ROOT / "web/tests/data" / f"{name}.h5" for name in ("synthetic", "window", "prelude")), *sorted((ROOT / "trace/tests/data/jax").glob("*.hlo.pb"))]
#: HDF5 that is neither a timeline file nor an export.
OTHERS = [ROOT / "web/tests/data" / f"{name}.h5" for name in ("plain", "structures")]

#: An operator with texts, and memory that it allocates.
ALLOCATES = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "GPU"}],
    "traceEvents": [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 7,
            "tid": 7,
            "ts": 10,
            "dur": 30,
            "args": {"External id": 7, "Input Dims": [[64, 3], []], "Input type": ["float", "Scalar"]},
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 7,
            "tid": 7,
            "ts": 20,
            "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512, "Total Reserved": 2048},
        },
    ],
}

#: What Nsight Compute writes of two launches.
DETAILS = """"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name",\
"Metric Name","Metric Unit","Metric Value"
"3","77","a.out","host","axpy(int)","1","7","(128, 1, 1)","(40, 2, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","us","6.50"
"4","77","a.out","host","axpy(int)","1","7","(128, 1, 1)","(40, 2, 1)","0","9.0","Occupancy","Achieved Occupancy","%","25"
"""


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A message of protobuf, of numbers below 128 and of short bytes."""
    made = b""
    for number, value in fields:
        made += bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value
    return made


#: A profile in the format of pprof: a sample of 5 bytes in the function f of a.py.
PPROF = message(
    (1, message((1, 1), (2, 2))),
    (2, message((1, 1), (2, 5))),
    (4, message((1, 1), (4, message((1, 1), (2, 3))))),
    (5, message((1, 1), (2, 3), (4, 4))),
    *((6, text) for text in (b"", b"space", b"bytes", b"f", b"a.py")),
)

#: A trace that takes some seconds to read, and hundreds of MiB of memory.
EVENT = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":%d,"dur":1}'


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.json"
    with path.open("w") as file:
        file.write('{"schemaVersion":1,"traceEvents":[')
        file.write(",".join(EVENT % at for at in range(1_500_000)))
        file.write("]}")
    return path


def awaited(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, what
        threading.Event().wait(0.02)


def readers(path: Path) -> list[str]:
    """The processes that read this file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "_reader.py" in words and str(path) in words:
            found.append(process.name)
    return found


def test_a_file_is_the_same_by_whichever_process_it_is_read(trace: Path, timeline: Path, tmp_path: Path) -> None:
    (tmp_path / "details.csv").write_text(DETAILS)
    (tmp_path / "space.pb").write_bytes(PPROF)
    (tmp_path / "memory.json").write_text(json.dumps(ALLOCATES))
    files = [trace, timeline, *(tmp_path / name for name in ("details.csv", "space.pb", "memory.json")), *FILES]
    assert len(files) > 8
    for file in files:
        one, other = tmp_path / "one.h5", tmp_path / "other.h5"
        child, here = flopwatch.open(file), flopwatch.open(file, trusted=True)
        assert (child.session_id, child.categories, child.summary()) == (here.session_id, here.categories, here.summary()), file
        # Equal timelines give equal bytes, whatever is in them.
        child.save(one, overwrite=True)
        here.save(other, overwrite=True)
        assert one.read_bytes() == other.read_bytes(), file
        assert flopwatch.convert(file, one, overwrite=True) == flopwatch.convert(file, other, overwrite=True, trusted=True), file
        assert one.read_bytes() == other.read_bytes(), file
    for file in OTHERS:
        told = []
        for trusted in (False, True):
            with pytest.raises(flopwatch.ReadError) as raised:
                flopwatch.open(file, trusted=trusted)
            told.append(str(raised.value))
        assert told[0] == told[1], file


def test_a_file_that_breaks_its_reader_raises_and_the_interpreter_goes_on(trace: Path, long_trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An allocation that fails ends the reader by abort(), as a fault of libhdf5 does.
    monkeypatch.setenv("FLOPWATCH_READER_MEMORY_MIB", "64")
    with pytest.raises(flopwatch.ReadError, match=r"long\.json: cannot be read: the process that reads it failed: .*64 MiB.*`trusted=True`"):
        flopwatch.open(long_trace)
    with pytest.raises(flopwatch.ReadError, match="64 MiB"):
        flopwatch.convert(long_trace, long_trace.with_suffix(".h5"))
    assert not long_trace.with_suffix(".h5").exists()
    monkeypatch.delenv("FLOPWATCH_READER_MEMORY_MIB")
    assert flopwatch.open(trace).categories["cuda_kernel"] == 10


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import os; os.abort()", "signal: 6"),
        ("raise SystemExit('no engine')", "no engine"),
        # Whatever it says, it is no capture.
        ("import sys; sys.stdout.buffer.write(b'\\x01' * 1000); sys.stdout.flush()", "failed"),
        ("import sys; sys.stdout.buffer.write((0xffff_ffff_ffff).to_bytes(8, 'little')); sys.stdout.flush()", "failed"),
    ],
)
def test_a_reader_that_ends_or_lies_raises(script: str, told: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.py"
    other.write_text(script)
    monkeypatch.setattr(flopwatch.capture, "_SCRIPT", str(other))
    with pytest.raises(flopwatch.ReadError, match=told):
        flopwatch.open(trace)
    assert flopwatch.open(trace, trusted=True).categories["cuda_kernel"] == 10


def test_a_file_is_called_as_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").write_bytes(b"no capture")
    (tmp_path / "link").symlink_to("other")
    monkeypatch.chdir(tmp_path)
    for name in ("other", "link", "missing", "."):
        with pytest.raises(flopwatch.ReadError) as raised:
            flopwatch.open(name)
        with pytest.raises(flopwatch.ReadError) as here:
            flopwatch.open(name, trusted=True)
        assert str(raised.value) == str(here.value), name
        assert str(raised.value).startswith(f"{name}: "), name


def test_files_in_any_folder_are_read(trace: Path, tmp_path: Path) -> None:
    closed = tmp_path / "a folder" / "nobody else's"
    closed.mkdir(parents=True)
    closed.chmod(0o700)
    file = closed / "träce.json"
    file.write_bytes(trace.read_bytes())
    file.chmod(0o400)
    assert flopwatch.open(file).session_id == "träce.json"


def test_an_interpreter_that_is_none_and_a_wrong_bound_are_told(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOPWATCH_READER_MEMORY_MIB", "much")
    with pytest.raises(flopwatch.RequestError, match="no number of MiB"):
        flopwatch.open(trace)
    monkeypatch.delenv("FLOPWATCH_READER_MEMORY_MIB")
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(flopwatch.ReadError, match="`trusted=True`"):
        flopwatch.open(trace)


def test_what_the_reader_lacks_is_told_once(recwarn: pytest.WarningsRecorder) -> None:
    usual = ("a user of its own: the caller may not change users", "a bound on processes: it has no user of its own")
    flopwatch.capture._tell(usual)
    assert len(recwarn) == 0
    lacking = (*usual, "processes, files and a network of its own: Operation not permitted")
    for _ in range(2):
        flopwatch.capture._tell(lacking)
    assert [str(warning.message) for warning in recwarn] == ["the process that reads files lacks protections here: " + lacking[-1]]
    assert recwarn[0].category is flopwatch.ReaderWarning


def test_many_files_leave_no_process_and_no_descriptor_behind(trace: Path) -> None:
    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    flopwatch.open(trace)
    before = held()
    for _ in range(30):
        flopwatch.open(trace)
    assert held() == before
    assert readers(trace) == []


WAITS = """
import flopwatch, sys
try:
    flopwatch.open(sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("signal", [2, 9])
def test_a_reader_ends_with_whoever_waits_for_it(signal: int, long_trace: Path) -> None:
    command = [sys.executable, "-c", WAITS, long_trace]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        awaited("no reader was started", lambda: bool(readers(long_trace)))
        program.send_signal(signal)
        if signal == 2:
            assert program.stdout
            assert program.stdout.readline() == "interrupted\n"
            # The program goes on, and its reader does not.
        awaited("the reader goes on", lambda: not readers(long_trace))
        program.kill()
