"""What a client of the earlier profiling suite writes, call by call, with this package in that
one's place: ``test_suite_client.py`` looks at ``said.json``.
"""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import torch

import flopwatch as fw

torch.manual_seed(0)
torch.set_num_threads(1)
said: dict[str, Any] = {}
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
x = torch.randn(16, 64)
profiler = fw.UnifiedProfiler(output_dir="./profiles", enable_trace=True, enable_memory=True, enable_flame_graph=True)


def block() -> None:
    with profiler.profile("my_benchmark") as session:
        model(x).sum().backward()
    said["block"] = [session.total_time_ms, session.cuda_time_ms, session.cpu_time_ms, session.peak_memory_mb, session.allocated_memory_mb]
    said["block"] += [session.reserved_memory_mb, session.trace_path, session.bottlenecks, session.recommendations]
    said["kernels"] = [(kernel.name, kernel.cuda_time_us) for kernel in session.kernels[:10]]
    said["flame_of_the_block"] = session.flame_graph_data
    fw.FlameGraphGenerator().export(session.flame_graph_data, "block.html")
    said["items"] = dict(session)
    said["session"] = session.session


def function_and_comparison() -> None:
    a = profiler.profile_function(model.forward, x, name="forward_pass", warmup=5, iterations=20)
    b = profiler.profile_function(model, x)
    c = profiler.compare_sessions(a, b)
    said["comparison"] = c
    said["comparison_by_items"] = [c["speedup"], c["memory_diff"]["peak_mb"]]
    said["comparison_by_attributes"] = [c.speedup, c.memory_diff.peak_mb]
    said["others"] = [dict(pickle.loads(pickle.dumps(c))), dict(copy.deepcopy(c)), c.copy(), {**c}]


def memory() -> None:
    memory = fw.MemoryProfiler(sample_interval_ms=1.0, record_history=True)
    with memory.track("training_step"):
        model(x).sum().backward()
    said["points"] = [(point["time_ms"], point["allocated_mb"]) for point in memory.get_timeline()]
    said["timeline"] = memory.get_timeline()
    peak = memory.get_peak_analysis()
    said["peak"] = [peak["peak_allocated_mb"], peak["peak_time_ms"]]
    memory.export("memory_profile.json")


def flame_graphs() -> None:
    with torch.profiler.profile() as prof:
        model(x)
    generator = fw.FlameGraphGenerator(min_duration_us=10.0, max_depth=50, group_small_kernels=True)
    data = generator.from_profiler(prof)
    # A client runs its program again.
    for _ in range(2):
        generator.export(data, "flame.html", format="html")
        generator.export(data, "flame.json", format="json")
    said["flame"] = data
    generator = fw.FlameGraphGenerator()
    generator.export(generator.from_chrome_trace("trace.json"), "flame2.json", format="json")
    # What was made first is not what was made last.
    generator.export(data, "flame3.json")


def timeline() -> None:
    generator = fw.TimelineGenerator(min_duration_us=1.0, include_python_events=True)
    timeline = generator.from_chrome_trace("trace.json")
    said["timeline_figures"] = [timeline.total_time_us, timeline.cpu_active_time_us, timeline.gpu_active_time_us, timeline.overlap_time_us]
    generator.export_chrome_trace(timeline, "timeline_trace.json")
    generator.generate_html_viewer(timeline, "timeline.html")
    said["read_back"] = generator.from_chrome_trace("timeline_trace.json")
    said["timeline_items"] = timeline


def hta() -> None:
    analyzer = fw.HTAAnalyzer(output_dir="./hta_output")
    report = analyzer.analyze_trace("trace.json")
    said["hta"] = [report.gpu_idle_time_pct, report.compute_time_pct, report.communication_time_pct, report.recommendations, report.bottlenecks]
    said["top_kernels"] = [(kernel["name"], kernel["time_us"]) for kernel in report.top_kernels[:5]]
    analyzer.export_report(report, "hta_report.html", format="html")
    analyzer.export_report(report, "hta_report.json", format="json")
    said["hta_paths"] = [str(analyzer.export_report(report)), str(analyzer.export_report(report, format="json"))]
    said["hta_items"] = report


def compiling() -> None:
    analyzer = fw.TorchCompileAnalyzer(backend="aot_eager", mode="default")
    report = analyzer.analyze(model, x, warmup=1, iterations=3)
    said["compiled"] = [report.speedup, report.compile_time_ms, report.total_graph_breaks, report.fusion_ratio, report.ops_before_fusion]
    said["graph_breaks"] = [(broken.reason, broken.suggestion) for broken in report.graph_breaks]
    said["modes"] = {mode: report.speedup for mode, report in analyzer.compare_modes(model, x, modes=["default"]).items()}
    analyzer.export_report(report, "compile_report.html", format="html")
    analyzer.export_report(report, "compile_report.json")
    said["compile_items"] = report


block()
function_and_comparison()
memory()
with torch.profiler.profile() as prof:
    model(x)
prof.export_chrome_trace("trace.json")
flame_graphs()
timeline()
hta()
compiling()
# Results are JSON as they are.
Path("said.json").write_text(json.dumps(said))
