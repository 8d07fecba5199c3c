"""What the tests share: small captures, made here, and a cluster."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fake_cluster import FakeCluster, running

import flopwatch

#: The Python that runs the tests has no PyTorch.
collect_ignore = ["suite_client.py", "torch_program.py"]


def events() -> list[dict[str, object]]:
    """Ten operators of 2 ms, each with a kernel of 1 ms."""
    made: list[dict[str, object]] = []
    for at in range(10):
        begin, call = 1000 + at * 5000, {"correlation": at + 1}
        kernel = {"device": 0, "stream": 7, **call}
        made += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::op{at % 2}", "pid": 7, "tid": 7, "ts": begin, "dur": 2000},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": begin + 100, "dur": 20, "args": call},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": begin + 500, "dur": 1000, "args": kernel},
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


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a module's ``PROGRAM`` wrote, in the Python that ``FLOPWATCH_TORCH`` names."""
    folder = tmp_path_factory.mktemp("program")
    line = [os.environ["FLOPWATCH_TORCH"], request.module.PROGRAM]
    environment = {**os.environ, "PYTHONPATH": str(Path(flopwatch.__file__).parents[1])}
    ran = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="module")
def said(folder: Path) -> Any:
    """What it said."""
    return json.loads((folder / "said.json").read_text())
