"""Regions of a program."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import flopwatch
from flopwatch import GPUProfiler

ENTRY = {
    "operation", "start_time", "end_time", "duration_ms", "device", "backend", "gpu_time_ms", "cpu_time_ms",
    "transfer_time_ms", "overhead_ms", "memory_allocated_mb", "memory_peak_mb", "gpu_utilization", "memory_bandwidth_gb_s",
}  # fmt: skip
SUMMARY = {
    "operation", "call_count", "total_time_ms", "avg_time_ms", "min_time_ms", "max_time_ms", "std_dev_ms",
    "total_gpu_time_ms", "total_cpu_time_ms", "avg_memory_mb", "avg_gpu_utilization",
}  # fmt: skip


def test_a_region_is_an_entry_and_counts_in_its_summary() -> None:
    profiler = GPUProfiler()
    before = time.time()
    for _ in range(3):
        with profiler.profile("wait", device="cpu", batch=4):
            time.sleep(0.01)
    first = profiler.get_entries()[0]
    assert (first.operation, first.device, first.backend) == ("wait", "cpu", "cpu")
    assert before - 0.001 <= first.start_time < first.end_time <= time.time() + 0.001
    assert 10 <= first.duration_ms < 1000
    assert first.metadata == {"batch": 4}
    # What was not measured is not 0.
    assert first.gpu_time_ms is None and first.transfer_time_ms is None
    summary = profiler.get_summary()["wait"]
    lengths = [entry.duration_ms for entry in profiler.get_entries()]
    assert summary.call_count == 3
    assert summary.total_time_ms == pytest.approx(sum(lengths))
    assert summary.min_time_ms == min(lengths) and summary.max_time_ms == max(lengths)
    mean = sum(lengths) / 3
    assert summary.std_dev_ms == pytest.approx((sum((x - mean) ** 2 for x in lengths) / 2) ** 0.5)
    assert summary.total_cpu_time_ms is not None and summary.total_cpu_time_ms < summary.total_time_ms


def test_functions_are_regions_those_of_asyncio_too() -> None:
    profiler = GPUProfiler()

    @profiler.profile_function()
    def plain(value: int) -> int:
        return value + 1

    @profiler.profile_function("named", device="cpu")
    async def waits() -> str:
        await asyncio.sleep(0.01)
        return "done"

    async def both() -> list[str]:
        return list(await asyncio.gather(waits(), waits()))

    assert plain(1) == 2
    assert asyncio.run(both()) == ["done", "done"]
    summary = profiler.get_summary()
    assert summary["named"].call_count == 2
    assert summary["named"].min_time_ms >= 10
    assert [name for name in summary if name.endswith("plain")]


@pytest.mark.parametrize("device", ["quantum", "", "cuda:0", None])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_device_that_does_not_exist_is_refused(device: Any, enabled: bool) -> None:
    profiler = GPUProfiler(enabled)
    with pytest.raises(ValueError, match="device is 'gpu' or 'cpu', not "):
        profiler.profile("x", device=device)
    with pytest.raises(ValueError, match="device is 'gpu' or 'cpu', not "):
        profiler.profile_function("x", device=device)
    with pytest.raises(ValueError, match="device_id is the number of a GPU, from 0 on, not -1"):
        GPUProfiler(device_id=-1)
    assert profiler.get_summary() == {}


def test_an_exception_passes_and_the_region_ends() -> None:
    profiler = GPUProfiler()
    with pytest.raises(KeyError), profiler.profile("outer"), profiler.profile("inner"):
        raise KeyError
    assert [entry.operation for entry in profiler.get_entries()] == ["inner", "outer"]
    with profiler.profile("after"):
        pass
    assert profiler.get_summary()["after"].call_count == 1


def test_regions_are_switched_at_run_time() -> None:
    profiler = GPUProfiler(enabled=False)
    with profiler.profile("off"):
        pass
    profiler.enabled = True
    with profiler.profile("on"):
        pass
    assert list(profiler.get_summary()) == ["on"]


def test_a_sample_takes_whole_requests() -> None:
    profiler = GPUProfiler(rate=0.25)
    for _ in range(4000):
        with profiler.profile("request"), profiler.profile("part"):
            pass
    summary = profiler.get_summary()
    assert summary["request"].call_count == summary["part"].call_count
    # Six standard deviations of a binomial distribution.
    assert abs(summary["request"].call_count - 1000) < 165
    profiler.reset()
    profiler.rate = 0.0
    with profiler.profile("request"):
        pass
    assert profiler.get_summary() == {}
    with pytest.raises(ValueError, match="share from 0 to 1"):
        profiler.rate = 2.0


def test_threads_count_together() -> None:
    profiler = GPUProfiler()

    def work() -> None:
        for _ in range(1000):
            with profiler.profile("work"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert profiler.get_summary()["work"].call_count == 4000


def test_a_child_counts_its_own() -> None:
    profiler = GPUProfiler()
    with profiler.profile("parent"):
        pass
    child = os.fork()
    if child == 0:
        with profiler.profile("child"):
            pass
        os._exit(0 if list(profiler.get_summary()) == ["child"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert list(profiler.get_summary()) == ["parent"]


def test_there_is_one_profiler_per_process() -> None:
    assert flopwatch.get_profiler() is flopwatch.get_profiler(enabled=False)
    assert not flopwatch.get_profiler().enabled
    flopwatch.get_profiler(enabled=True)


@pytest.mark.parametrize(("switch", "enabled", "rate"), [("0", False, 1.0), ("1", True, 1.0), ("0.25", True, 0.25), ("x", False, 1.0)])
def test_the_environment_switches_the_process_s_profiler(switch: str, enabled: bool, rate: float) -> None:
    program = "import flopwatch; p = flopwatch.get_profiler(); print(p.enabled, p.rate)"
    environment = {**os.environ, "FLOPWATCH_REGIONS": switch}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == f"{enabled} {rate}\n"
    assert bool(said.stderr) == (switch == "x")


def test_the_file_has_the_published_names_and_the_engine_shows_it(tmp_path: Path) -> None:
    profiler = GPUProfiler()
    for length in (0.001, 0.002):
        with profiler.profile("step", tensor=object()):
            time.sleep(length)
    path = tmp_path / "profile.json"
    profiler.export_json(path)
    profile = json.loads(path.read_text())
    assert set(profile["entries"][0]) >= ENTRY
    assert set(profile["summary"]["step"]) == SUMMARY
    assert [file.name for file in tmp_path.iterdir()] == ["profile.json"]
    program = os.environ["FLOPWATCH_PROGRAM"]
    shown = subprocess.run([program, "analyze", "operations-profile", path], capture_output=True, text=True, check=True)
    assert "step" in shown.stdout


def test_the_tables_name_every_operation() -> None:
    profiler = GPUProfiler()
    for name, length in (("long", 0.004), ("short", 0.001)):
        with profiler.profile(name):
            time.sleep(length)
    out = io.StringIO()
    profiler.print_summary(out)
    assert [line.split()[0] for line in out.getvalue().splitlines()[2:]] == ["long", "short"]
    assert [summary.operation for summary in profiler.get_bottlenecks(1)] == ["long"]
    out = io.StringIO()
    profiler.print_bottlenecks(1, out)
    assert "short" not in out.getvalue()


def test_frameworks_are_not_loaded_for_regions() -> None:
    program = (
        "import sys, flopwatch\n"
        "with flopwatch.GPUProfiler().profile('x'): pass\n"
        "print([name for name in ('torch', 'cupy', 'jax', 'numpy', 'pyarrow') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
