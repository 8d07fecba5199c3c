"""The examples of docs/python.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_examples_run(trace: Path, tmp_path: Path) -> None:
    package, _, _ = DOCUMENT.read_text().partition("## Results over HTTP")
    examples = re.findall(r"```python\n(.*?)```", package, re.DOTALL)
    assert len(examples) == 2
    shutil.copy(trace, tmp_path / "other.json")
    for example in examples:
        if "import flopwatch" not in example:
            example = "import flopwatch\n" + example  # noqa: PLW2901
        ran = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "timeline.h5").exists()
    assert (tmp_path / "trace.perfetto").exists()
    assert (tmp_path / "operations.json").exists()
