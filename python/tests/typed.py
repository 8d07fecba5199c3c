"""What type checkers know of analyses. mypy checks this file and nothing runs it: an error that mypy no longer finds is one too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import assert_type

    import flopwatch
    from flopwatch._catalogue import CompareResult, FlameGraphResult, IdleGap, IdleParameters, IdleResult

    def of_a_capture(capture: flopwatch.Capture, remote: flopwatch.RemoteCapture, words: str, whatever: Any) -> None:
        idle = capture.analyze("idle", limit=3, kernel_wait_ns=1000)
        assert_type(idle, IdleResult)
        assert_type(idle.gaps, list[IdleGap])
        assert_type(idle.gaps[0]["class"], Literal["host_wait", "kernel_wait", "other", "launch_not_recorded"])
        assert_type(idle.to_dict(), dict[str, Any])
        assert_type(remote.analyze("idle").gaps_left_out, int)
        assert_type(capture.analyze("cuda_gpu_kern_sum", name="base").rows[0]["name"], str)
        assert_type(capture.analyze("flame-graph", weight="cpu"), FlameGraphResult)
        given: IdleParameters = {"limit": 3}
        assert_type(capture.analyze("idle", **given), IdleResult)
        capture.analyze("idel")  # type: ignore[call-overload]
        capture.analyze("idle", limits=3)  # type: ignore[call-overload]
        capture.analyze("idle", limit="three")  # type: ignore[call-overload]
        capture.analyze("flame-graph", weight="tpu")  # type: ignore[call-overload]
        remote.analyze("kernels-per-stream", limit=3)  # type: ignore[call-overload]
        print(idle.rows)  # type: ignore[attr-defined]
        print(idle.gaps[0]["klass"])  # type: ignore[typeddict-item]
        capture.analyze("compare")  # type: ignore[call-overload]  # of two captures
        capture.analyze("events-csv")  # type: ignore[call-overload]  # a file for another program
        # A name that is known when the program runs is checked there.
        capture.analyze(words)  # type: ignore[call-overload]
        capture.analyze(whatever, **whatever)

    def of_the_suite(profiler: flopwatch.UnifiedProfiler, memory: flopwatch.MemoryProfiler) -> None:
        with profiler.profile("step") as block:
            pass
        assert_type(block.total_time_ms, float)
        assert_type(block.kernels[0].cuda_time_us, float)
        assert_type(profiler.compare_sessions(block, block.session).memory_diff.peak_mb, float | None)
        assert_type([point.time_ms for point in memory.get_timeline()], list[float])
        flame = flopwatch.FlameGraphGenerator()
        assert_type(flame.from_chrome_trace("trace.json").children[0]["self_ns"], int)
        flame.export(flopwatch.HTAAnalyzer().analyze_trace("trace.json"), "flame.html")  # type: ignore[arg-type]
        print(block.kernel)  # type: ignore[attr-defined]

    def of_captures(before: flopwatch.Capture, after: flopwatch.Capture) -> None:
        assert_type(flopwatch.analyze("compare", [before, after], noise_floor_percent=1), CompareResult)
        assert_type(flopwatch.compare(before, after, per="capture"), CompareResult)
        flopwatch.compare(before, after, per="kernel")  # type: ignore[arg-type]
        flopwatch.analyze("compare", before)  # type: ignore[call-overload]

    async def of_sessions(client: flopwatch.Client, later: flopwatch.AsyncClient) -> None:
        assert_type(client.analyze("trainer", "idle", limit=3), IdleResult)
        assert_type(client.analyze("trainer", "compare", "trainer-1", others=["other"], per="capture"), CompareResult)
        assert_type(await later.analyze("trainer", "idle", streams=2), IdleResult)
        assert_type(await (await later.open("trainer")).analyze("idle"), IdleResult)
        client.analyze("trainer", "idle", other=["other"])  # type: ignore[call-overload]
        print(later.analyze("trainer", "idle").gaps)  # type: ignore[attr-defined]  # nobody awaited it
