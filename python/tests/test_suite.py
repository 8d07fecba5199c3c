"""The profiling suite, by the names and fields that users of an earlier one know."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import events

import flopwatch
from flopwatch.__main__ import main

PROGRAM = os.environ["FLOPWATCH_PROGRAM"]
#: Captures of other people, which a clone need not have.
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
KINETO = ["hta/trace_filter-sampled_rank-0.json.gz", "tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz"]

#: Fields of what the suite gives.
FIELDS = {
    flopwatch.ProfileSession: "total_time_ms cuda_time_ms cpu_time_ms peak_memory_mb allocated_memory_mb reserved_memory_mb kernels bottlenecks "
    "recommendations trace_path flame_graph_data",
    flopwatch.HTAReport: "gpu_idle_time_pct compute_time_pct communication_time_pct top_kernels recommendations bottlenecks",
    flopwatch.CompileReport: "speedup compile_time_ms graph_breaks total_graph_breaks fusion_ratio ops_before_fusion ops_after_fusion recommendations",
    flopwatch.suite.TimelineReport: "total_time_us cpu_active_time_us gpu_active_time_us overlap_time_us",
    flopwatch.suite.MemoryPeak: "peak_allocated_mb peak_time_ms",
    flopwatch.suite.MemoryPoint: "time_ms allocated_mb",
    flopwatch.suite.SessionKernel: "name cuda_time_us",
    flopwatch.suite.TopKernel: "name time_us",
    flopwatch.suite.GraphBreak: "reason suggestion",
    flopwatch.suite.SessionComparison: "speedup memory_diff",
    flopwatch.suite.MemoryDiff: "peak_mb",
}

#: What may be given to what, in this order, and what it is without.
PARAMETERS: list[tuple[Any, dict[str, Any]]] = [
    (flopwatch.UnifiedProfiler, {"output_dir": "profiles", "enable_trace": True, "enable_memory": True, "enable_flame_graph": True}),
    (flopwatch.HTAAnalyzer, {"output_dir": "hta_output"}),
    (flopwatch.MemoryProfiler, {"sample_interval_ms": 1.0, "record_history": True}),
    (flopwatch.FlameGraphGenerator, {"min_duration_us": 10.0, "max_depth": 50, "group_small_kernels": True, "weight": "gpu"}),
    (flopwatch.TimelineGenerator, {"min_duration_us": 1.0, "include_python_events": True}),
    (flopwatch.TorchCompileAnalyzer, {"backend": "inductor", "mode": "default"}),
    (flopwatch.TorchCompileAnalyzer("eager").analyze, {"model": ..., "input": ..., "warmup": 3, "iterations": 10}),
    (
        flopwatch.TorchCompileAnalyzer("eager").compare_modes,
        {"model": ..., "input": ..., "warmup": 3, "iterations": 10, "modes": ("default", "reduce-overhead", "max-autotune")},
    ),
]


@pytest.fixture(params=["made", *KINETO])
def capture(request: pytest.FixtureRequest, trace: Path) -> Path:
    """A trace that is made here, and one of each of other people's; where those are not there, the made one again."""
    path = CORPUS / request.param
    return path if path.exists() else trace


def allocation(at_us: int, change: int, allocated: int, reserved: int, device: int = 0) -> dict[str, object]:
    """A change of a GPU's memory, as Kineto writes it."""
    told = {"Device Type": 1, "Device Id": device, "Addr": 4096, "Bytes": change, "Total Allocated": allocated, "Total Reserved": reserved}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": at_us, "args": told}


@pytest.fixture
def with_memory(tmp_path: Path) -> Path:
    """Ten operators of 2 ms with a kernel of 1 ms each, and a buffer of 3 MB beside 1 MB that was given out before."""
    path = tmp_path / "memory.json"
    changes = [allocation(2000, 3_000_000, 4_000_000, 8_000_000), allocation(5000, -3_000_000, 1_000_000, 8_000_000)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*events(), *changes]}))
    return path


def program(*words: str | Path) -> bytes:
    return subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, check=True).stdout


@pytest.mark.parametrize("of", FIELDS, ids=lambda of: of.__name__)
def test_results_have_exactly_the_fields_that_are_known(of: type[Any]) -> None:
    assert [field.name for field in dataclasses.fields(of)] == FIELDS[of].split()


@pytest.mark.parametrize(("of", "known"), PARAMETERS, ids=lambda of: getattr(of, "__name__", ""))
def test_parameters_have_the_names_and_defaults_that_are_known(of: Any, known: dict[str, Any]) -> None:
    given = inspect.signature(of).parameters.values()
    assert {one.name: ... if one.default is one.empty else one.default for one in given} == known


@pytest.mark.parametrize("command", ["flame", "timeline", "hta", "memory", "compile"])
def test_commands_write_what_the_program_writes(
    command: str, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    # Pages of several captures name them: the program by the path that it was given, the engine by the file's name.
    monkeypatch.chdir(capture.parent)
    words = [command, capture.name, *(["--with", capture.name] if command == "compile" else [])]
    page, figures = tmp_path / "report.html", tmp_path / "report.json"
    assert main([*words, "-o", str(page)]) == 0
    assert main([*words, "-o", str(figures), "--json"]) == 0
    assert page.read_bytes() == program(*words, "-q")
    assert figures.read_bytes() == program(*words, "-q", "--json")
    assert main([*words, "--json"]) == 0
    assert capfdbinary.readouterr().out == figures.read_bytes()


def test_parameters_of_commands_are_those_of_the_program(trace: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    words = ["flame", str(trace), "--json", "-p", "weight=cpu", "-p", "max_depth=1", "-p", "group_small_kernels=false"]
    assert main(words) == 0
    written = capfdbinary.readouterr().out
    assert written == program(*words, "-q")
    assert json.loads(written)["weight"] == "cpu"


def test_the_classes_find_and_write_what_the_commands_do(capture: Path, tmp_path: Path) -> None:
    @functools.cache
    def said(command: str, *words: str) -> Any:
        return json.loads(program(command, capture, "-q", "--json", *words))

    flame = flopwatch.FlameGraphGenerator(min_duration_us=500, max_depth=2, group_small_kernels=False)
    words = ("-p", "min_duration_us=500", "-p", "max_depth=2", "-p", "group_small_kernels=false")
    graph = flame.from_chrome_trace(capture)
    assert graph == said("flame", *words) != said("flame", "-p", "max_depth=1")
    timeline = flopwatch.TimelineGenerator(min_duration_us=25, include_python_events=False)
    found = timeline.from_chrome_trace(capture)
    assert dataclasses.asdict(found) == said("timeline", "-p", "min_duration_us=25", "-p", "include_python_events=false")
    hta = flopwatch.HTAAnalyzer(tmp_path / "reports")
    report = hta.analyze_trace(capture)
    assert dataclasses.asdict(report) == report == said("hta")

    written: list[tuple[Any, Any, str, tuple[str, ...]]] = [(flame.export, graph, "flame", words), (hta.export_report, report, "hta", ())]
    for export, of, command, parameters in written:
        page, figures = tmp_path / f"{command}.html", tmp_path / command
        export(of, page)
        export(of, figures, "json")
        assert page.read_bytes() == program(command, capture, "-q", *parameters)
        assert json.loads(figures.read_text()) == said(command, *parameters) == of
        with pytest.raises(FileExistsError):
            export(of, page, overwrite=False)
        page.write_text("before")
        export(of, page)
        assert page.read_bytes() == program(command, capture, "-q", *parameters)
    assert hta.export_report(report) == tmp_path / "reports" / "hta_report.html"
    assert (tmp_path / "reports" / "hta_report.html").read_bytes() == (tmp_path / "hta.html").read_bytes()
    timeline.generate_html_viewer(found, tmp_path / "timeline.html")
    parameters = ("-p", "min_duration_us=25", "-p", "include_python_events=false")
    assert (tmp_path / "timeline.html").read_bytes() == program("timeline", capture, "-q", *parameters)
    timeline.export_chrome_trace(found, tmp_path / "events.json")
    program("analyze", "chrome-trace", capture, "-q", "-o", tmp_path / "program.json")
    assert (tmp_path / "events.json").read_bytes() == (tmp_path / "program.json").read_bytes()


def test_what_is_exported_is_what_was_given(trace: Path, with_memory: Path, tmp_path: Path) -> None:
    hta = flopwatch.HTAAnalyzer()
    first, _ = hta.analyze_trace(trace), hta.analyze_trace(with_memory)
    page = tmp_path / "first.html"
    # Another one reports it as well.
    flopwatch.HTAAnalyzer().export_report(first, page)
    assert page.read_bytes() == program("hta", trace, "-q")


def test_results_are_attributes_and_items_and_do_not_change(trace: Path) -> None:
    report = flopwatch.HTAAnalyzer().analyze_trace(trace)
    kernel = report.top_kernels[0]
    assert (kernel.name, kernel["name"], report["top_kernels"][0].time_us) == ("gemm", "gemm", 10_000.0)
    assert json.loads(json.dumps(report)) == dict(report) == pickle.loads(pickle.dumps(report))
    graph = flopwatch.FlameGraphGenerator().from_chrome_trace(trace)
    assert (graph.name, graph["name"], "frames" in graph) == ("all", "all", True)
    with pytest.raises(AttributeError, match="the flame graph has no field 'frame'; it has "):
        print(graph.frame)
    for change in (lambda: report.update(x=1), lambda: report.pop("bottlenecks"), graph.clear, lambda: graph.setdefault("x", 1)):
        with pytest.raises(TypeError, match="does not change"):
            change()
    with pytest.raises(TypeError, match="does not change"):
        report["bottlenecks"] = []
    with pytest.raises(AttributeError):
        report.bottlenecks = []  # type: ignore[misc]
    # Of the catalogue's analyses too.
    idle = flopwatch.open(trace).analyze("idle")
    assert idle["gaps"] == idle.gaps == dict(idle)["gaps"]
    assert (len(idle), "gaps" in idle, list(idle)) == (len(idle.to_dict()), True, list(idle.to_dict()))


def test_functions_of_python_count_unless_they_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "python.json"
    function = {"ph": "X", "cat": "python_function", "name": "f", "pid": 7, "tid": 7, "ts": 60_000, "dur": 5000, "args": {"Python id": 1}}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*events(), function]}))
    for counted, active_us in ((True, 25_000.0), (False, 20_000.0)):
        timeline = flopwatch.TimelineGenerator(include_python_events=counted)
        assert timeline.from_chrome_trace(path).cpu_active_time_us == active_us


def test_a_session_has_the_figures_of_its_trace(with_memory: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["profile", str(with_memory), "--json"]) == 0
    written = capfd.readouterr().out
    session = json.loads(written)
    assert list(session) == FIELDS[flopwatch.ProfileSession].split()
    # 9 pauses of 3 ms lie between the operators.
    assert (session["total_time_ms"], session["cpu_time_ms"], session["cuda_time_ms"]) == (47.0, 20.0, 10.0)
    assert session["kernels"] == [{"name": "gemm", "cuda_time_us": 10_000.0}]
    assert (session["peak_memory_mb"], session["allocated_memory_mb"], session["reserved_memory_mb"]) == (4.0, 1.0, 8.0)
    advice = flopwatch.open(with_memory).analyze("advice").findings
    assert session["bottlenecks"] == [finding["sentence"] for finding in advice] != []
    assert session["recommendations"] == [action for finding in advice for action in finding["actions"]]
    assert session["trace_path"] == str(with_memory)
    assert session["flame_graph_data"] == json.loads(program("flame", with_memory, "--json", "-q"))
    assert main(["profile", str(with_memory), "--json", "-o", str(tmp_path / "session.json")]) == 0
    assert (tmp_path / "session.json").read_text() == written
    assert main(["profile", str(with_memory), "-o", str(tmp_path / "session.html")]) == 0
    assert (tmp_path / "session.html").read_bytes() == program("diagnose", with_memory, "--format", "html")


def test_what_a_trace_does_not_hold_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event for event in events() if event["cat"] == "cpu_op"]}))
    assert main(["profile", str(path), "--json"]) == 0
    session = json.loads(capfd.readouterr().out)
    measured = {name for name, value in session.items() if value is not None}
    assert measured == {"total_time_ms", "cpu_time_ms", "kernels", "bottlenecks", "recommendations", "trace_path", "flame_graph_data"}
    # Lists are lists.
    assert [session[name] for name in ("kernels", "bottlenecks", "recommendations")] == [[], [], []]
    # Without a GPU it is the CPU's time.
    assert session["flame_graph_data"]["value"] == 20_000_000


def test_memory_of_several_gpus_is_told_where_it_is_known_of_all(with_memory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = json.loads(with_memory.read_text())
    trace["traceEvents"].append(allocation(3000, 2_000_000, 2_000_000, 4_000_000, device=1))
    with_memory.write_text(json.dumps(trace))
    assert main(["profile", str(with_memory), "--json"]) == 0
    session = json.loads(capfd.readouterr().out)
    assert (session["peak_memory_mb"], session["allocated_memory_mb"], session["reserved_memory_mb"]) == (6.0, None, None)


@pytest.mark.parametrize("command", ["profile", "memory", "flame", "timeline", "hta", "compile"])
@pytest.mark.parametrize("form", ["html", "json"])
def test_a_file_appears_whole_or_not_at_all(command: str, form: str, trace: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--json"] if form == "json" else []
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "report"
    assert main([command, str(tmp_path / "missing"), "-o", str(target), *words]) == 1
    assert capfd.readouterr().err.startswith(f"flopwatch: {tmp_path / 'missing'}: cannot be read: ")
    assert list(folder.iterdir()) == []
    target.write_text("before")
    assert main([command, str(trace), "-o", str(target), *words]) == 1
    assert capfd.readouterr().err == f"flopwatch: {target}: is there already; --force replaces it\n"
    assert target.read_text() == "before"
    assert main([command, str(trace), "-o", str(target), "--force", *words]) == 0
    assert target.read_text() != "before"
    assert main([command, str(trace), "-o", str(folder / "no" / "report"), *words]) == 1
    said = capfd.readouterr()
    assert said.err.startswith(f"flopwatch: {folder / 'no' / 'report'}: ")
    assert said.out == ""
    assert list(folder.iterdir()) == [target]


@pytest.mark.parametrize("words", [[], ["flame"], ["nothing", "x"], ["flame", "x", "-p", "y"], ["hta", "x", "-p", "a=1", "-p", "a=2"]])
def test_wrong_usage_exits_with_2(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: python -m flopwatch" in capfd.readouterr().err


def test_the_module_is_a_command_of_its_own(trace: Path) -> None:
    command = [sys.executable, "-m", "flopwatch"]
    ran = subprocess.run([*command, "flame", trace, "-p", "nothing=1"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith('flopwatch: flame-graph has no parameter "nothing"; it has ')
    told = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert [name for name in ("profile", "memory", "flame", "timeline", "hta", "compile") if f"\n    {name} " not in told] == []
    # A reader that has enough is no fault to tell of.
    with subprocess.Popen([*command, "flame", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout
        assert program.stderr
        program.stdout.close()
        assert (program.stderr.read(), program.wait(60)) == (b"", 1)


def test_without_pytorch_it_is_said_who_needs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"^UnifiedProfiler needs PyTorch"):
        flopwatch.UnifiedProfiler(tmp_path / "out").profile("x")
    with pytest.raises(ImportError, match=r"^MemoryProfiler needs PyTorch"), flopwatch.MemoryProfiler().track("x"):
        pass
    with pytest.raises(ImportError, match=r"^TorchCompileAnalyzer needs PyTorch"):
        flopwatch.TorchCompileAnalyzer().analyze(print, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_traces_temporary_folder_is_not_named_as_the_program_names_its_own(trace: Path) -> None:
    class Profile:
        """What PyTorch gives."""

        profiler = SimpleNamespace(kineto_results=SimpleNamespace(trace_start_ns=lambda: 1))
        folder = ""

        def export_chrome_trace(self, path: str) -> None:
            self.folder = Path(path).parent.name
            shutil.copy(trace, path)

    profile = Profile()
    flopwatch.TimelineGenerator().from_profiler(profile)
    assert profile.folder
    assert not profile.folder.startswith("flopwatch-")


def test_wrong_calls_are_told(trace: Path, tmp_path: Path) -> None:
    flame = flopwatch.FlameGraphGenerator()
    for nothing in ({}, flopwatch.HTAAnalyzer().analyze_trace(trace), pickle.loads(pickle.dumps(flame.from_chrome_trace(trace)))):
        with pytest.raises(TypeError, match="a result of flame-graph that this process made is wanted, not this "):
            flame.export(nothing, tmp_path / "flame.html")  # type: ignore[arg-type]
    with pytest.raises(flopwatch.RequestError, match="there is nothing to report yet"):
        flopwatch.MemoryProfiler().export(tmp_path / "memory.html")
    with pytest.raises(TypeError, match=r"a finished torch.profiler.profile is wanted, not dict"):
        flame.from_profiler({})
    graph = flame.from_chrome_trace(trace)
    for format in (None, "chrome-trace"):
        with pytest.raises(ValueError, match="format is one of html, json"):
            flame.export(graph, tmp_path / "flame.svg", format)
    with pytest.raises(flopwatch.RequestError, match="max_depth"):
        flopwatch.FlameGraphGenerator(max_depth=0).from_chrome_trace(trace)
    with pytest.raises(flopwatch.RequestError, match="there is nothing to report yet"):
        flopwatch.MemoryProfiler().get_timeline()
    with pytest.raises(ValueError, match="at least 1 iteration"):
        flopwatch.UnifiedProfiler().profile_function(print, iterations=0)
    with pytest.raises(ValueError, match="at least 1 iteration"):
        flopwatch.TorchCompileAnalyzer().analyze(print, 1, iterations=0)
    assert list(tmp_path.iterdir()) == [trace]
