"""The suite on real PyTorch, on the CPU: the program beside, ``torch_program.py``, in the Python that ``FLOPWATCH_TORCH`` names."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import flopwatch

PROGRAM = Path(__file__).with_name("torch_program.py")


def test_a_block_has_its_session(folder: Path, said: Any) -> None:
    block = said["block"]
    assert 200 <= block["total_time_ms"] <= said["block_wall_ms"]
    # The block slept for the rest.
    assert 0 < block["cpu_time_ms"] < 150
    assert block["peak_memory_mb"] == 10.0
    assert block["allocated_memory_mb"] == 4.0
    # No GPU was there to be measured.
    assert [block[name] for name in ("cuda_time_ms", "reserved_memory_mb", "kernels")] == [None, None, []]
    assert block["flame_graph_data"]["weight"] == "cpu"
    assert block["flame_graph_data"]["children"][0]["name"] == "a block/of two"
    assert block["trace_path"] == str(folder / "traces" / "a_block_of_two.json")
    assert flopwatch.open(block["trace_path"]).duration_ns == block["total_time_ms"] * 1e6
    assert said["before_its_end"] == ["RequestError", "a block/of two has not ended: its figures are there behind the `with`"]


def test_traces_replace_none_and_nothing_else_is_left(folder: Path) -> None:
    kept = {path.name for path in (folder / "traces").iterdir()}
    assert kept == {"a_block_of_two.json", "slow.json", "slow-2.json", "Linear.json"}
    assert {path.name for path in folder.iterdir()} == {"traces", "said.json", "memory.html", "memory.json", "exported.json"}


def test_a_function_is_called_and_recorded_as_often_as_asked(said: Any) -> None:
    assert said["calls"] == 2 + 6
    assert flopwatch.open(said["slow"]["trace_path"]).categories["step"] == 6
    assert said["slow"]["total_time_ms"] >= 6 * 40
    # What is not given has its default.
    assert flopwatch.open(said["linear"]["trace_path"]).categories["step"] == 20


def test_what_is_switched_off_is_none(said: Any) -> None:
    bare = said["bare"]
    assert [bare[name] for name in ("peak_memory_mb", "allocated_memory_mb", "trace_path", "flame_graph_data")] == [None] * 4
    assert bare["total_time_ms"] > 0
    assert said["no_trace"] == ["RequestError", "the session has no trace to compare: profile it with enable_trace=True"]


def test_two_sessions_are_compared(said: Any) -> None:
    # 40 ms each before, 10 ms after, beside whatever else this machine does.
    assert 1.5 < said["faster"]["speedup"] < 8
    assert said["slower"]["speedup"] == pytest.approx(1 / said["faster"]["speedup"])
    # The peaks of GPUs are compared.
    assert said["faster"]["memory_diff"] == {"peak_mb": None}


def test_a_block_that_raises_has_no_trace_and_hides_nothing(folder: Path, said: Any) -> None:
    assert said["raised"] == ["KeyError", "'in the block'"]
    assert not (folder / "traces" / "raises.json").exists()


def test_one_profile_is_taken_at_a_time(said: Any) -> None:
    # PyTorch crashes where it is to write the trace of the other one.
    assert said["another_within"] == ["RequestError", "the profile has no trace: another one began before its end, and PyTorch takes one at a time"]
    assert said["within_another"] == ["RequestError", "inner cannot be profiled: a profile of PyTorch runs already, and it takes one at a time"]


def test_memory_is_told_over_time(folder: Path, said: Any) -> None:
    peak, points = said["peak"], said["points"]
    assert peak["peak_allocated_mb"] == max(point["allocated_mb"] for point in points) == 10.0
    assert points[-1]["allocated_mb"] == 0.0
    steps = [after["time_ms"] - before["time_ms"] for before, after in pairwise(points)]
    assert steps == pytest.approx([2.0] * len(steps))
    # 20 ms with the buffer.
    with_buffer = [point["time_ms"] for point in points if point["allocated_mb"] == 10.0]
    assert with_buffer[0] <= peak["peak_time_ms"] <= with_buffer[0] + 2.0
    assert with_buffer[-1] - with_buffer[0] >= 18.0
    assert json.loads((folder / "memory.json").read_text()) == {"points": points, **peak}
    assert "<html" in (folder / "memory.html").read_text()
    assert (said["points_without_history"], said["peak_without_history"]) == ([], 10.0)
    assert said["nothing_given_out"] == [[], {"peak_allocated_mb": None, "peak_time_ms": None}]


def test_a_finished_profile_is_read(said: Any) -> None:
    assert said["flame"]["children"][0]["name"] == "aten::linear"
    assert said["timeline"]["cpu_active_time_us"] > 0
    assert said["timeline"]["gpu_active_time_us"] is None
    assert said["running"] == ["RequestError", "the profile has not ended: give it behind its `with`, or after stop()"]
    written = "the profile's trace was written before, which PyTorch does once: give its file to from_chrome_trace"
    assert said["written_before"] == ["RequestError", written]


def test_compiling_a_model_is_told(said: Any) -> None:
    report = said["compiled"]
    assert report["total_graph_breaks"] == len(report["graph_breaks"]) == 1
    assert report["graph_breaks"][0]["reason"] and report["graph_breaks"][0]["suggestion"]
    assert report["compile_time_ms"] > 0
    assert report["speedup"] > 0
    assert report["recommendations"]
    # There are no kernels without a GPU.
    assert [report[name] for name in ("fusion_ratio", "ops_before_fusion", "ops_after_fusion")] == [None] * 3
    # Eagerly and compiled: one that compiles, and four.
    assert said["model_calls"] == 2 * (1 + 4)


def test_modes_are_compared(said: Any) -> None:
    assert list(said["modes"]) == ["default", "max-autotune"]
    assert said["modes_seen"] == [None, "max-autotune"]
    for report in said["modes"].values():
        # The backend sleeps for 200 ms where it compiles; what it makes takes 20 ms longer than the model, of which warming up does not count.
        assert report["compile_time_ms"] >= 200
        assert report["speedup"] < 0.8
        assert report["total_graph_breaks"] == 0
