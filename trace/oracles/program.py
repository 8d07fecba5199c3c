"""The same figures of what the program under test says of a file, out of its commands alone."""

from __future__ import annotations

import csv
import json
import subprocess
from collections import Counter
from pathlib import Path

import reading as r

csv.field_size_limit(1 << 30)
# Losses by which the program has less than the oracle: what is beyond a limit or cut, and times that
# cannot be. A table that is not read is none of them.
CUT = "truncated"
IMPOSSIBLE = (
    "times away from all others",
    "lengths that reach out of the capture",
    "no times",
    "lengths that are no times",
    "ends behind later work of its stream",
)
WHOLE = (
    "-p",
    "min_duration_us=0",
    "-p",
    "merge_numbered=false",
    "-p",
    "max_depth=500",
    "-p",
    "limit=1000000",
)


class Refused(Exception):
    """The program does not read the file; its words."""


class Program:
    """The program, and the timeline that it made of a file."""

    def __init__(self, program: Path, file: Path, folder: Path, seconds: float) -> None:
        self.program, self.seconds, self.folder = program, seconds, folder
        self.timeline = folder / "timeline.h5"
        self.run("convert", str(file), str(self.timeline))

    def run(self, *arguments: str) -> str:
        command = [str(self.program), arguments[0], "--quiet", *arguments[1:]]
        try:
            ended = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=self.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Refused(f"{arguments[0]} took longer than {self.seconds:.0f} s") from error
        if ended.returncode != 0:
            raise Refused(" ".join(ended.stderr.split())[-300:])
        return ended.stdout

    def analysis(self, name: str, *parameters: str) -> dict:
        return json.loads(
            self.run("analyze", name, str(self.timeline), "--format", "json", *parameters)
        )

    def folded(self, weight: str) -> Counter:
        output = self.folder / f"{weight}.folded"
        self.run(
            "analyze",
            "flame-folded",
            str(self.timeline),
            *WHOLE,
            "-p",
            f"weight={weight}",
            "-o",
            str(output),
        )
        found: Counter = Counter()
        for line in output.read_text().splitlines():
            stack, _, time = line.rpartition(" ")
            found[tuple(stack.split(";"))] += int(time)
        return found

    def rows(self) -> list[dict]:
        output = self.folder / "events.csv"
        self.run("export", str(self.timeline), "--to", "csv", "-o", str(output))
        with output.open(newline="") as file:
            return list(csv.DictReader(file))


def losses(program: Program) -> list[str]:
    """What the program says that it left out or changed."""
    summary = program.analysis("summary")
    found = [
        f"{drop['reason']}: {drop['count']} {drop['what']}"
        for drop in summary["drops"]
        if drop["reason"] == CUT or drop["what"].endswith(IMPOSSIBLE)
    ]
    # A secret in a name is another text there.
    secrets = summary["redactions"]
    return found + ([f"{secrets} secrets that were replaced"] if secrets else [])


def all_of(program: Program, wanted: dict) -> dict:
    """Every figure of `wanted`, and counts of categories that it lacks."""
    rows = program.rows()
    found = {**counts(rows), "each event": each_event(rows)}
    found.update(gpus(program))
    found.update(launches(program))
    streams = program.analysis("queue-length", "-p", "limit=1000")["streams"]
    found["queues: works and longest of each stream"] = sorted(
        (row["gpu_ops"], row["max"]) for row in streams
    )
    if any(name.startswith("steps:") for name in wanted):
        found.update(steps(program, rows))
    if any(name.startswith("memory:") for name in wanted):
        pools = program.analysis("memory", "-p", "limit=1", "-p", "points=2")["pools"]
        found["memory: peak of each pool, bytes"] = sorted(pool["peak_bytes"] for pool in pools)
    found["stacks of GPU work"] = program.folded("gpu")
    found["stacks and own times of threads"] = program.folded("cpu")
    return found


def counts(rows: list[dict]) -> dict:
    number: Counter = Counter()
    time: Counter = Counter()
    sizes: Counter = Counter()
    for row in rows:
        number[row["category"]] += 1
        time[row["category"]] += int(row["duration_ns"])
        sizes[row["category"]] += int(row["bytes"] or 0)
    found: dict = {}
    for kind, count in number.items():
        found[f"events of {kind}"] = count
        found[f"time of {kind}, ns"] = time[kind]
        if kind in r.SIZED:
            found[f"bytes of {kind}"] = sizes[kind]
    return found


def each_event(rows: list[dict]) -> Counter:
    first = min((int(row["start_ns"]) for row in rows), default=0)
    calls = [int(row["start_ns"]) - first for row in rows if row["category"] == r.CALL]
    return Counter(
        (
            row["category"],
            row["name"],
            int(row["start_ns"]) - first,
            int(row["duration_ns"]),
            int(row["bytes"]) if row["bytes"] and row["category"] in r.SIZED else None,
            calls[int(row["launch"])] if row["launch"] and row["category"] in r.WORK else None,
        )
        for row in rows
    )


def gpus(program: Program) -> dict:
    time = {key(gpu): gpu for gpu in program.analysis("gpu-time")["gpus"]}
    overlap = {key(gpu): gpu for gpu in program.analysis("overlap")["gpus"]}
    found: dict = {}
    ordered = sorted(
        time.values(), key=lambda gpu: (gpu["start_ns"], gpu["end_ns"], gpu["gpu_ops"])
    )
    for at, gpu in enumerate(ordered):
        parts, beside = gpu["parts"], overlap.get(key(gpu), {})
        for what, value in (
            ("works", gpu["gpu_ops"]),
            ("window, ns", parts["window_ns"]),
            ("busy, ns", gpu["busy_ns"]),
            ("compute, ns", parts["compute_ns"]),
            ("communication, ns", gpu["communication_ns"]),
            ("exposed communication, ns", parts["exposed_communication_ns"]),
            ("exposed memory, ns", parts["exposed_memory_ns"]),
            ("idle, ns", parts["idle_ns"]),
            ("idle pieces", gpu["idle_pieces"]),
            ("communication under compute, ns", beside.get("communication_under_compute_ns", 0)),
            ("memory, ns", gpu["memory_ns"]),
            ("memory under compute, ns", beside.get("memory_under_compute_ns", 0)),
            ("memory under communication, ns", beside.get("memory_under_communication_ns", 0)),
        ):
            found[f"gpu {at}: {what}"] = value
    return found


def key(gpu: dict) -> tuple:
    return tuple(gpu["gpu"].values())


def launches(program: Program) -> dict:
    said = program.analysis("launches", "-p", "limit=1")
    return {
        "launches: works": said["coverage"]["gpu_ops"],
        "launches: joined": said["coverage"]["joined"],
        "launches: calls": said["call"]["count"],
        "launches: time of calls, ns": said["call"]["sum_ns"],
        "launches: delay, ns": said["delay"]["sum_ns"],
        "launches: shorter than their call": said["short_gpu_ops"],
    }


def steps(program: Program, rows: list[dict]) -> dict:
    said = program.analysis("iterations", "-p", "limit=100000")
    name = "steps: start, length, kernels of each"
    if said.get("source") != "step":
        return {name: f"iterations of {said.get('source')}"}
    first = min((int(row["start_ns"]) for row in rows), default=0)
    return {
        name: sorted(
            (row["start_ns"] - first, row["time_ns"], row["kernels"]) for row in said["rows"]
        )
    }
