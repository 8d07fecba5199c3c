"""Files, tables and analyses."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import h5py
import pandas
import polars
import pyarrow
import pytest

import flopwatch

PROGRAM = os.environ["FLOPWATCH_PROGRAM"]
#: Captures of other people, which a clone need not have.
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def test_a_trace_is_read_by_its_content(trace: Path) -> None:
    capture = flopwatch.open(trace)
    assert capture.categories["cuda_kernel"] == 10
    assert capture.categories["cpu_op"] == 10
    assert "30 events" in repr(capture)


def test_a_report_of_nsight_systems_is_read_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = CORPUS / "gpubootcamp-jacobi" / "jacobi_report.qdrep"
    if not report.is_file():
        return
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FLOPWATCH_NSYS", raising=False)
    assert flopwatch.open(report).categories["cuda_kernel"] == 1001


def test_events_are_a_table_of_every_library(trace: Path) -> None:
    kernels = flopwatch.open(trace).events("cuda_kernel")
    assert len(kernels) == kernels.num_rows == 10
    frame = polars.DataFrame(kernels)
    assert frame["duration_ns"].sum() == 10_000_000
    assert frame["name"].cast(polars.String).unique().to_list() == ["gemm"]
    table = pyarrow.table(kernels)
    assert table.column("start_ns").to_pylist() == frame["start_ns"].to_list()
    assert pandas.DataFrame.from_arrow(kernels)["duration_ns"].sum() == 10_000_000
    assert duckdb.sql("select sum(duration_ns) from kernels").fetchall() == [(10_000_000,)]


def test_columns_are_shared_not_copied_and_outlive_the_capture(trace: Path) -> None:
    capture = flopwatch.open(trace)

    def address() -> int:
        return pyarrow.table(capture.events("cuda_kernel")).column("start_ns").chunk(0).buffers()[1].address

    first, second = address(), address()
    assert first == second
    # Nothing else keeps this capture.
    kernels = pyarrow.table(flopwatch.open(trace).events("cuda_kernel"))
    assert sum(kernels.column("duration_ns").to_pylist()) == 10_000_000


def test_rows_say_where_events_ran(trace: Path) -> None:
    capture = flopwatch.open(trace)
    kernels, rows = polars.DataFrame(capture.events("cuda_kernel")), polars.DataFrame(capture.rows())
    placed = kernels.join(rows, on="row")
    assert placed["stream"].unique().to_list() == [7]
    assert placed["track"].unique().to_list() == ["gpu_stream"]


def test_every_analysis_gives_what_the_command_line_gives(trace: Path) -> None:
    capture = flopwatch.open(trace)
    told = 0
    for name, entry in flopwatch.catalogue().items():
        # Files for other programs have no result in JSON.
        if entry["inputs"] == "two" or entry["result"] is None:
            continue
        said = subprocess.run([PROGRAM, "analyze", name, trace, "--format", "json"], capture_output=True, text=True, check=False)
        if said.returncode:
            with pytest.raises(flopwatch.FlopwatchError):
                capture.analyze(name)
            continue
        assert capture.analyze(name).to_dict() == json.loads(said.stdout), name
        told += 1
    assert told > 40


def test_a_result_has_its_fields_and_its_table(trace: Path) -> None:
    result = flopwatch.open(trace).analyze("kernel-types")
    assert set(result.to_dict()) <= set(dir(result))
    with pytest.raises(AttributeError, match="has no field 'nothing'"):
        _ = result.nothing
    tabular = [name for name, entry in flopwatch.catalogue().items() if entry["columns"] and entry["inputs"] != "two"]
    assert tabular
    for name in tabular:
        table = flopwatch.open(trace).analyze(name).table()
        assert polars.DataFrame(table).width == len(table.column_names)


def test_a_parameter_may_be_called_name(trace: Path, tmp_path: Path) -> None:
    capture = flopwatch.open(trace)
    result = capture.analyze("cuda_gpu_kern_sum", name="base")
    assert result.rows[0]["name"] == flopwatch.analyze("cuda_gpu_kern_sum", captures=[capture], name="base").rows[0]["name"] == "gemm"
    assert "<iframe" in str(result._repr_html_()) and "gemm" in capture.render("cuda_gpu_kern_sum", name="base")
    assert capture.export("cuda_gpu_kern_sum", tmp_path / "kernels.json", name="base") == []


def test_two_captures_are_compared(trace: Path) -> None:
    capture = flopwatch.open(trace)
    assert flopwatch.compare(capture, capture).to_dict()


def test_files_appear_whole_and_replace_nothing_unasked(trace: Path, tmp_path: Path) -> None:
    capture = flopwatch.open(trace)
    target = tmp_path / "timeline.h5"
    capture.save(target)
    with h5py.File(target) as file:
        assert file["cuda_kernel/start_ns"].shape == (10,)
    assert flopwatch.open(target).categories == capture.categories
    with pytest.raises(FileExistsError):
        capture.save(target)
    capture.save(target, overwrite=True)
    with pytest.raises(FileExistsError):
        flopwatch.convert(trace, target)
    assert flopwatch.convert(trace, target, overwrite=True)["total_events"] == 30
    table = tmp_path / "events.parquet"
    capture.export("events-parquet", table)
    assert polars.read_parquet(table).height >= 30
    with pytest.raises(FileExistsError):
        capture.export("events-parquet", table)
    with pytest.raises(flopwatch.WriteError):
        capture.export("events-parquet", tmp_path / "nowhere" / "events.parquet")
    assert not list(tmp_path.glob(".*"))


def test_what_is_wrong_is_said(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(flopwatch.ReadError, match="cannot be read"):
        flopwatch.open(tmp_path / "missing")
    (tmp_path / "other").write_bytes(b"no capture")
    with pytest.raises(flopwatch.ReadError, match="no format that is read"):
        flopwatch.open(tmp_path / "other")
    capture = flopwatch.open(trace)
    with pytest.raises(flopwatch.RequestError, match="there is no analysis"):
        capture.analyze("nothing")
    with pytest.raises(flopwatch.RequestError, match="has no parameter"):
        capture.analyze("idle", nothing=1)
    with pytest.raises(flopwatch.RequestError, match="there is no category"):
        capture.events("nothing")
    with pytest.raises(flopwatch.RequestError, match="did not record"):
        capture.events("os_runtime")


def test_a_thousand_files_leave_no_memory_behind(trace: Path) -> None:
    def opened(times: int) -> int:
        for _ in range(times):
            # In this process, whose memory is looked at.
            flopwatch.open(trace, trusted=True).events("cuda_kernel")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = opened(200)
    assert opened(1000) - before < 8 * 1024, "KiB"


def test_threads_share_a_capture(trace: Path) -> None:
    capture = flopwatch.open(trace)
    expected = capture.analyze("gpu-time").to_dict()
    found: list[dict[str, object]] = []
    threads = [threading.Thread(target=lambda: found.append(capture.analyze("gpu-time").to_dict())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [expected] * 8


def _count(path: Path, queue: multiprocessing.Queue[int]) -> None:
    queue.put(flopwatch.open(path).categories["cuda_kernel"])


def test_a_fork_reads_too(trace: Path) -> None:
    flopwatch.open(trace)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[int] = context.Queue()
    child = context.Process(target=_count, args=(trace, queue))
    child.start()
    assert queue.get(timeout=60) == 10
    child.join(60)
    assert child.exitcode == 0


WAITS = """
import flopwatch, sys
print("ready", flush=True)
try:
    flopwatch.open(sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_ends_the_wait(tmp_path: Path) -> None:
    # A trace that takes several seconds to read.
    path = tmp_path / "long.json"
    event = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":%d,"dur":1}'
    with path.open("w") as file:
        file.write('{"schemaVersion":1,"traceEvents":[')
        file.write(",".join(event % at for at in range(1_500_000)))
        file.write("]}")
    with subprocess.Popen([sys.executable, "-c", WAITS, path], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        # The pool and the reader are at work by then.
        threading.Event().wait(0.3)
        program.send_signal(2)
        assert program.stdout.readline() == "interrupted\n"
        program.wait(60)
