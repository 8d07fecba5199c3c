"""What the tests share: small captures, made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

#: The Python that runs the tests has no PyTorch.
collect_ignore = ["torch_program.py"]


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
