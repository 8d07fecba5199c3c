"""The oracles on traces that are counted by hand: the examples of docs/analyses."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tarfile
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import chrome
import compare
import figures
import nsys
import reading as r


def event(category: str, name: str, start: float, end: float, pid=7, tid=7, **arguments) -> dict:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": start,
        "dur": end - start,
        "pid": pid,
        "tid": tid,
        "args": arguments,
    }


def launch(
    name: str, call: tuple, work: tuple, number: int, category: str = "kernel", stream: int = 3
) -> list[dict]:
    return [
        event("cuda_runtime", "cudaLaunchKernel", *call, correlation=number),
        event(
            category,
            name,
            *work,
            pid=0,
            tid=stream,
            device=0,
            context=1,
            stream=stream,
            correlation=number,
        ),
    ]


class ByHand(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def figures(self, events: list, name: str = "trace.json", **document) -> dict:
        path = self.folder / name
        text = json.dumps({"traceEvents": events, **document}).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return figures.all_of(chrome.read(path))

    def test_the_time_of_a_gpu_is_parted_as_docs_analyses_gpu_time_counts_it(self) -> None:
        work = [
            event("kernel", "gemm", 0, 100, 0, 7, device=0, stream=7),
            event("gpu_memcpy", "Memcpy HtoD", 210, 230, 0, 7, device=0, stream=7, bytes=64),
            event("kernel", "gemm", 300, 340, 0, 7, device=0, stream=7),
            event("kernel", "ncclDevKernel_AllReduce", 50, 200, 0, 20, device=0, stream=20),
        ]
        found = self.figures(work, "trace.json.gz")
        for what, microseconds in (
            ("window", 340),
            ("compute", 140),
            ("exposed communication", 100),
            ("exposed memory", 20),
            ("idle", 80),
            ("communication under compute", 50),
            ("busy", 260),
            ("memory", 20),
        ):
            self.assertEqual(found[f"gpu 0: {what}, ns"], microseconds * 1000, what)
        self.assertEqual(found["bytes of cuda_memcpy_h2d"], 64)
        self.assertEqual(found["launches: joined"], 0)
        self.assertEqual(found["stacks of GPU work"][(figures.NO_CALL, "gemm")], 140_000)

    def test_stacks_and_own_times_are_those_that_docs_analyses_flame_graphs_counts(self) -> None:
        events = [
            event("user_annotation", "forward", 10, 90),
            event("cpu_op", "aten::mm", 20, 60),
            *launch("gemm", (30, 40), (45, 95), 1),
            *launch("copy", (70, 80), (100, 110), 2),
        ]
        found = self.figures(events)
        self.assertEqual(
            found["stacks of GPU work"],
            Counter({("forward", "aten::mm", "gemm"): 50_000, ("forward", "copy"): 10_000}),
        )
        own = found["stacks and own times of threads"]
        self.assertEqual(own[("forward",)], 30_000)
        self.assertEqual(own[("forward", "aten::mm")], 30_000)
        self.assertEqual(own[("forward", "aten::mm", "cudaLaunchKernel")], 10_000)
        self.assertEqual(own.total(), 80_000)
        self.assertEqual(found["launches: delay, ns"], 25_000)
        self.assertEqual(found["queues: works and longest of each stream"], [(2, 1)])

    def test_equal_ranges_nest_as_they_stand_and_frames_that_cross_lose_no_time(self) -> None:
        events = [
            event("cpu_op", "b", 0, 10),
            event("cpu_op", "a", 0, 10),
            event("cpu_op", "long", 20, 40),
            event("cpu_op", "cross", 30, 50),
        ]
        own = self.figures(events)["stacks and own times of threads"]
        self.assertEqual(
            own,
            Counter(
                {
                    ("b", "a"): 10_000,
                    ("long",): 10_000,
                    ("long", "cross"): 10_000,
                    ("cross",): 10_000,
                }
            ),
        )

    def test_ranks_that_were_merged_into_one_trace_keep_their_launches(self) -> None:
        events = []
        for rank, late in (("[TP00]", 20), ("[TP01]", 50)):
            call = event("cuda_runtime", "cudaLaunchKernel", 0, 5, f"{rank} 40", 40, correlation=1)
            events += [
                call,
                event(
                    "kernel",
                    rank,
                    late,
                    late + 40,
                    f"{rank} 0",
                    7,
                    device=0,
                    stream=7,
                    correlation=1,
                ),
            ]
        found = self.figures(events)
        self.assertEqual(found["launches: delay, ns"], 15_000 + 45_000)
        self.assertIn("gpu 1: busy, ns", found)

    def test_steps_have_the_kernels_whose_calls_began_in_them(self) -> None:
        events = [
            event("user_annotation", "ProfilerStep#3", 0, 100),
            event("user_annotation", "ProfilerStep#4", 100, 180),
            *launch("late", (90, 99), (150, 160), 1),
            *launch("own", (110, 119), (160, 170), 2),
        ]
        found = self.figures(events)
        self.assertEqual(
            found["steps: start, length, kernels of each"], [(0, 100_000, 1), (100_000, 80_000, 1)]
        )

    def test_the_peak_of_memory_is_the_largest_total_or_what_was_given_out_and_not_taken_back(
        self,
    ) -> None:
        def change(time: int, size: int, **arguments) -> dict:
            return {
                "ph": "i",
                "name": "[memory]",
                "pid": 7,
                "tid": 7,
                "ts": time,
                "args": {"Device Id": 0, "Device Type": 1, "Bytes": size, **arguments},
            }

        sizes = ((10, 30), (20, 20), (30, -30), (40, 70), (50, -20), (60, -40))
        operator = event("cpu_op", "aten::mm", 0, 70)
        totals, level = [], 100
        for time, size in sizes:
            level += size
            totals.append(change(time, size, **{"Total Allocated": level}))
        self.assertEqual(
            self.figures([operator, *totals])["memory: peak of each pool, bytes"], [190]
        )
        # With addresses alone: the 40 bytes that are taken back at 60 were there before.
        addresses = (1, 2, 1, 1, 2, 9)
        placed = [
            change(time, size, Addr=address)
            for (time, size), address in zip(sizes, addresses, strict=True)
        ]
        found = self.figures([operator, *placed])
        self.assertEqual(found["memory: peak of each pool, bytes"], [130])
        # With neither as much as keeps every level above 0: 10 bytes.
        unsaid = [change(time, size) for time, size in (*sizes, (65, -40))]
        self.assertEqual(
            self.figures([operator, *unsaid])["memory: peak of each pool, bytes"], [100]
        )

    def test_begins_and_ends_are_paired_by_their_times_wherever_they_stand(self) -> None:
        begins = [
            {"ph": "B", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": at}
            for at in (0, 100)
        ]
        ends = [
            {"ph": "E", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": at + 60}
            for at in (0, 100)
        ]
        found = self.figures(begins + ends)
        self.assertEqual((found["events of cpu_op"], found["time of cpu_op, ns"]), (2, 120_000))

    def test_times_that_cannot_be_are_left_out(self) -> None:
        found = self.figures(
            [
                event("cpu_op", "a", 1_600_000_000_000_000 + at, 1_600_000_000_000_010 + at)
                for at in range(3)
            ]
            + [event("cpu_op", "a", 0, 10)]
        )
        self.assertEqual(found["events of cpu_op"], 3)

    def test_processes_of_an_archive_stand_on_one_clock(self) -> None:
        for at, base in (("1", 0), ("2", 1_000_000)):
            text = json.dumps(
                {"baseTimeNanoseconds": base, "traceEvents": [event("cpu_op", at, 0, 10)]}
            )
            (self.folder / at).write_text(text)
        with tarfile.open(self.folder / "traces.tar", "w") as archive:
            for at in ("1", "2"):
                archive.add(self.folder / at, at)
        found = figures.all_of(chrome.read(self.folder / "traces.tar"))
        starts = sorted(what[2] for what in found["each event"])
        self.assertEqual(starts, [0, 1_000_000])

    def test_a_file_that_ends_before_its_gzip_does_is_not_read(self) -> None:
        path = self.folder / "cut.json.gz"
        path.write_bytes(gzip.compress(b'{"traceEvents": []}' * 100)[:-9])
        with self.assertRaises(r.Unreadable):
            chrome.read(path)

    def test_an_export_of_nsight_systems_has_its_graphs_migrations_and_ranges(self) -> None:
        path = self.folder / "export.sqlite"
        database = sqlite3.connect(path)
        process, thread = 5 << 24, (5 << 24) | 6
        database.executescript(
            f"""
            CREATE TABLE StringIds (id, value);
            INSERT INTO StringIds VALUES (1, 'cudaGraphLaunch_v10000'), (2, 'gemm');
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 0, {thread}, 1, 1), (30, 40, 0, {thread}, 2, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (25, 35, 0, 1, 7, 1, {process}, 2);
            CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, contextId, streamId, correlationId, globalPid, graphId, graphExecId);
            INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (50, 90, 0, 1, 7, 2, {process}, 3, 4);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (35, 50, 0, 1, 7, 0, {process}, 4096, 11);
            CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid);
            INSERT INTO NVTX_EVENTS VALUES (5, 45, 59, 'decode', {thread}), (1, 100, 60, 'around', {thread});
            """
        )
        database.commit()
        database.close()
        found = figures.all_of(nsys.read(path))
        self.assertEqual(
            (found["gpu 0: works"], found["gpu 0: busy, ns"], found["gpu 0: idle, ns"]), (2, 50, 15)
        )
        self.assertEqual(found["bytes of cuda_migration"], 4096)
        graph = ("decode", "[CUDA graph 3 executable 4]")
        self.assertEqual(found["stacks of GPU work"][graph], 40)
        self.assertEqual((found["launches: works"], found["launches: joined"]), (2, 2))
        self.assertEqual(
            found["stacks and own times of threads"],
            Counter({("decode",): 20, ("decode", "cudaGraphLaunch"): 20}),
        )

    def test_what_differs_is_said_of_numbers_lists_and_multisets(self) -> None:
        wanted = {"a": 1, "b": [1], "c": Counter({"x": 2}), "same": 5}
        said = {"a": 2, "b": [1, 2], "c": Counter({"x": 1, "y": 1}), "same": 5, "more": 3}
        lines = list(compare.differences(wanted, said))
        self.assertEqual(len(lines), 5, lines)
        self.assertEqual(list(compare.differences(wanted, wanted)), [])


if __name__ == "__main__":
    unittest.main()
