"""What ``test_pytorch.py`` looks at: the suite on real PyTorch; its results go to ``said.json``."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import flopwatch

torch.manual_seed(0)
torch.set_num_threads(1)
said: dict[str, Any] = {}
model = torch.nn.Linear(8, 8)
batch = torch.randn(4, 8)


def told(error: Exception) -> list[str]:
    return [type(error).__name__, str(error)]


def buffer(megabytes: int) -> torch.Tensor:
    return torch.empty(megabytes * 1_000_000, dtype=torch.uint8)


def blocks() -> None:
    unified = flopwatch.UnifiedProfiler("traces")
    begin = time.perf_counter()
    with unified.profile("a block/of two") as block:
        try:
            _ = block.session
        except flopwatch.RequestError as error:
            said["before_its_end"] = told(error)
        kept, passing = buffer(4), buffer(6)
        time.sleep(0.2)
        del passing
    said["block_wall_ms"] = (time.perf_counter() - begin) * 1e3
    assert block.total_time_ms == block.session.total_time_ms
    said["block"] = dataclasses.asdict(block.session)
    del kept

    calls = []

    def wait(ms: float, *, add: int) -> None:
        calls.append(add)
        time.sleep(ms / 1e3)

    slow = unified.profile_function(wait, 40, add=1, name="slow", warmup=2, iterations=6)
    said["calls"] = len(calls)
    fast = unified.profile_function(wait, 10, add=1, name="slow", warmup=0, iterations=6)
    said["slow"] = dataclasses.asdict(slow)
    said["linear"] = dataclasses.asdict(unified.profile_function(model, batch))
    said["faster"] = dataclasses.asdict(unified.compare_sessions(slow, fast))
    said["slower"] = dataclasses.asdict(unified.compare_sessions(fast, slow))

    try:
        with unified.profile("raises"):
            {}["in the block"]
    except KeyError as error:
        said["raised"] = told(error)
    bare = flopwatch.UnifiedProfiler("nowhere", enable_trace=False, enable_memory=False, enable_flame_graph=False)
    with bare.profile("bare") as block:
        model(batch)
    said["bare"] = dataclasses.asdict(block.session)
    try:
        unified.compare_sessions(block.session, slow)
    except flopwatch.RequestError as error:
        said["no_trace"] = told(error)
    try:
        with bare.profile("outer"), profile(activities=[ProfilerActivity.CPU]):
            model(batch)
    except flopwatch.RequestError as error:
        said["another_within"] = told(error)
    try:
        with profile(activities=[ProfilerActivity.CPU]), bare.profile("inner"):
            model(batch)
    except flopwatch.RequestError as error:
        said["within_another"] = told(error)


def memory() -> None:
    tracked = flopwatch.MemoryProfiler(sample_interval_ms=2.0)
    with tracked.track("buffers"):
        kept = buffer(10)
        time.sleep(0.02)
        del kept
        time.sleep(0.01)
    said["peak"] = dataclasses.asdict(tracked.get_peak_analysis())
    said["points"] = [dataclasses.asdict(point) for point in tracked.get_timeline()]
    tracked.export("memory.html")
    tracked.export("memory.json")
    without = flopwatch.MemoryProfiler(record_history=False)
    with without.track("buffers"):
        buffer(10)
    said["points_without_history"] = without.get_timeline()
    said["peak_without_history"] = without.get_peak_analysis().peak_allocated_mb
    with without.track("nothing"):
        time.sleep(0.001)
    said["nothing_given_out"] = [without.get_timeline(), dataclasses.asdict(without.get_peak_analysis())]


def finished_profiles() -> None:
    flame, timeline = flopwatch.FlameGraphGenerator(min_duration_us=0, weight="cpu"), flopwatch.TimelineGenerator()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model(batch)
        try:
            flame.from_profiler(profiler)
        except flopwatch.RequestError as error:
            said["running"] = told(error)
    said["flame"] = flame.from_profiler(profiler)
    # PyTorch writes a trace once, and both read it.
    said["timeline"] = dataclasses.asdict(timeline.from_profiler(profiler))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model(batch)
    profiler.export_chrome_trace("exported.json")
    try:
        flame.from_profiler(profiler)
    except flopwatch.RequestError as error:
        said["written_before"] = told(error)


class Broken(torch.nn.Module):
    """A model with a graph break."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print(end="")
        return y.cos()


def compiling() -> None:
    calls = []
    broken = Broken()
    broken.register_forward_pre_hook(torch.compiler.disable(lambda *_: calls.append(1)))
    said["compiled"] = dataclasses.asdict(flopwatch.TorchCompileAnalyzer("aot_eager").analyze(Broken(), batch, warmup=0, iterations=4))
    flopwatch.TorchCompileAnalyzer("eager").analyze(broken, (batch,), warmup=0, iterations=4)
    said["model_calls"] = len(calls)

    seen = []

    def backend(graph: torch.fx.GraphModule, _inputs: Any, *, mode: str | None = None) -> Any:
        seen.append(mode)
        time.sleep(0.2)

        def late(*inputs: Any) -> Any:
            time.sleep(0.02)
            return graph.forward(*inputs)

        return late

    analyzer = flopwatch.TorchCompileAnalyzer(backend)
    reports = analyzer.compare_modes(model, {"input": batch}, iterations=4, modes=("default", "max-autotune"))
    said["modes"] = {mode: dataclasses.asdict(report) for mode, report in reports.items()}
    said["modes_seen"] = seen


with torch.no_grad():
    memory()
    blocks()
    finished_profiles()
    compiling()
Path("said.json").write_text(json.dumps(said))
