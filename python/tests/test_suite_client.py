"""A client of the earlier profiling suite on real PyTorch.

It is ``suite_client.py``, in the Python that ``FLOPWATCH_TORCH`` names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("suite_client.py")


def test_a_block_is_its_session(folder: Path, said: Any) -> None:
    total, cuda, cpu, peak, allocated, reserved, path, bottlenecks, recommendations = said["block"]
    assert 0 < cpu <= total
    assert peak > 0
    assert allocated is not None
    # No GPU was there to be measured: figures are none, and lists are empty.
    assert (cuda, reserved, said["kernels"], bottlenecks, recommendations) == (None, None, [], [], [])
    assert path == str(folder / "profiles" / "my_benchmark.json")
    assert said["items"] == said["session"]
    assert said["items"]["total_time_ms"] == total
    assert said["items"]["flame_graph_data"] == said["flame_of_the_block"]
    assert "<html" in (folder / "block.html").read_text()


def test_results_are_attributes_and_items(said: Any) -> None:
    comparison = said["comparison"]
    assert comparison["speedup"] > 0
    assert said["comparison_by_items"] == said["comparison_by_attributes"] == [comparison["speedup"], comparison["memory_diff"]["peak_mb"]]
    assert said["others"] == [comparison] * 4


def test_memory_is_told_by_points(folder: Path, said: Any) -> None:
    points = [[point["time_ms"], point["allocated_mb"]] for point in said["timeline"]]
    assert said["points"] == points != []
    assert said["peak"][0] == max(allocated for _, allocated in points) > 0
    assert json.loads((folder / "memory_profile.json").read_text())["points"] == said["timeline"]


def test_what_is_exported_is_what_was_given(folder: Path, said: Any) -> None:
    flame, other, again = (json.loads((folder / f"{name}.json").read_text()) for name in ("flame", "flame2", "flame3"))
    assert flame == again == said["flame"]
    assert other["name"] == "all"
    assert "<html" in (folder / "flame.html").read_text()


def test_a_timeline_comes_back_from_its_export(folder: Path, said: Any) -> None:
    assert list(said["timeline_items"].values()) == said["timeline_figures"]
    total, cpu, gpu, overlap = said["timeline_figures"]
    assert 0 < cpu <= total
    assert (gpu, overlap) == (None, None)
    assert said["read_back"]["cpu_active_time_us"] == cpu
    assert "<html" in (folder / "timeline.html").read_text()


def test_reports_of_a_trace_are_written(folder: Path, said: Any) -> None:
    idle, compute, communication, recommendations, bottlenecks = said["hta"]
    assert (idle, compute, communication, said["top_kernels"], bottlenecks) == (None, None, None, [], [])
    assert said["hta_items"]["recommendations"] == recommendations
    assert said["hta_paths"] == ["hta_output/hta_report.html", "hta_output/hta_report.json"]
    for at in (folder, folder / "hta_output"):
        assert "<html" in (at / "hta_report.html").read_text()
        assert json.loads((at / "hta_report.json").read_text()) == said["hta_items"]


def test_compiling_is_told(folder: Path, said: Any) -> None:
    speedup, compile_ms, breaks, fusion, before = said["compiled"]
    assert speedup > 0
    assert compile_ms > 0
    assert (breaks, said["graph_breaks"], fusion, before) == (0, [], None, None)
    assert said["modes"]["default"] > 0
    assert "<html" in (folder / "compile_report.html").read_text()
    assert json.loads((folder / "compile_report.json").read_text()) == said["compile_items"]
