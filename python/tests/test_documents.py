"""The examples of docs/python.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from fake_cluster import TLS, running

import flopwatch

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_examples_run(trace: Path, tmp_path: Path) -> None:
    package, _, _ = DOCUMENT.read_text().partition("## Sessions of a cluster")
    examples = re.findall(r"```python\n(.*?)```", package, re.DOTALL)
    assert len(examples) == 4
    shutil.copy(trace, tmp_path / "other.json")
    for example in examples:
        if "import flopwatch" not in example:
            example = "import flopwatch\n" + example  # noqa: PLW2901
        python = os.environ["FLOPWATCH_TORCH"] if "torch." in example else sys.executable
        environment = {**os.environ, "PYTHONPATH": str(Path(flopwatch.__file__).parents[1])}
        ran = subprocess.run([python, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "timeline.h5").exists()
    assert (tmp_path / "trace.perfetto").exists()
    assert (tmp_path / "operations.json").exists()
    assert "<html" in (tmp_path / "memory.html").read_text()
    assert "<html" in (tmp_path / "flame.html").read_text()
    assert sorted(path.name for path in (tmp_path / "profiles").iterdir()) == ["forward.json", "linear.json", "relu.json"]


def test_the_examples_of_a_cluster_run(trace: Path, tmp_path: Path) -> None:
    _, _, section = DOCUMENT.read_text().partition("## Sessions of a cluster")
    section, _, _ = section.partition("## Results over HTTP")
    examples = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(examples) == 2
    flopwatch.convert(trace, tmp_path / "timeline.h5")
    with running(tmp_path) as cluster:
        cluster.result = {"timeline.h5": (tmp_path / "timeline.h5").read_bytes()}
        cluster.files["gpu-time"] = b"{}"
        # The authority of the gateway's certificate is one of the system's.
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(flopwatch.__file__).parents[1]),
            "KUBECONFIG": str(cluster.kubeconfig({"token": "of-ada"})),
            "FLOPWATCH_GATEWAY": cluster.gateway,
            "SSL_CERT_FILE": str(TLS / "ca.crt"),
        }
        said = [
            subprocess.run([sys.executable, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False) for example in examples
        ]
    assert [ran.returncode for ran in said] == [0, 0], said
    assert said[0].stdout.startswith("{}\n10 kernels")
    assert said[1].stdout == "10\n"
    assert (tmp_path / "profiles" / "timeline.h5").exists()
