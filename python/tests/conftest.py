"""What the tests share: small captures, made here, and a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fake_cluster import FakeCluster, running

import flopwatch

#: The Python that runs the tests has no PyTorch.
collect_ignore = ["suite_client.py", "torch_program.py"]


def events() -> list[dict[str, object]]:
    """Ten operators of 2 ms, each with a kernel of 1 ms."""
    made: list[dict[str, object]] = []
    for at in range(10):
        begin = 1000 + at * 5000
        made += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::op{at % 2}", "pid": 7, "tid": 7, "ts": begin, "dur": 2000},
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 7,
                "tid": 7,
                "ts": begin + 100,
                "dur": 20,
                "args": {"correlation": at + 1},
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": "gemm",
                "pid": 0,
                "tid": 7,
                "ts": begin + 500,
                "dur": 1000,
                "args": {"device": 0, "stream": 7, "correlation": at + 1},
            },
        ]
    return made


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A Chrome trace as Kineto writes it."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events()}))
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    """A cluster on loopback."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with running(folder) as made:
        yield made


@pytest.fixture(scope="session")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A timeline file with many operators and few kernels, of some chunks."""
    folder = tmp_path_factory.mktemp("timeline")
    made: list[dict[str, object]] = []
    # Deflate gains little from it.
    random = Random(7)
    for at in range(150_000):
        noise = random.randrange(1 << 20)
        made.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{noise % 97}", "pid": 7, "tid": 7, "ts": at * 50 + noise % 17, "dur": noise % 31 + 1})
        if at % 500 == 0:
            args = {"device": 0, "stream": 7, "correlation": at + 1}
            made.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at * 50, "dur": 10, "args": args})
    (folder / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": made}))
    flopwatch.convert(folder / "trace.json", folder / "timeline.h5")
    return folder / "timeline.h5"
