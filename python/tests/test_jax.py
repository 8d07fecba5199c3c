"""Regions around real JAX on the CPU, and the engine on what its profiler wrote of the same steps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import flopwatch

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp
import flopwatch

@jax.jit
def step(x):
    return (x @ x).sum()

x = jnp.ones((128, 128))
profiler = flopwatch.GPUProfiler()
with profiler.profile("before any device"):
    pass
step(x).block_until_ready()
with jax.profiler.trace(sys.argv[1]):
    for number in range(3):
        with profiler.profile("step", number=number):
            with profiler.profile("wait"):
                step(x).block_until_ready()
print(json.dumps([[entry.operation, entry.backend, entry.gpu_time_ms, entry.duration_ms] for entry in profiler.get_entries()]))
"""


def test_regions_around_jax_have_host_times_and_its_capture_is_read(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300)
    entries = json.loads(said.stdout.splitlines()[-1])
    assert [name for name, *_ in entries] == ["before any device", *["wait", "step"] * 3]
    # Without a GPU there is nothing to mark, and nothing is made up.
    assert {(backend, gpu) for _, backend, gpu, _ in entries} == {("cpu", None)}
    lengths = {name: length for name, _, _, length in entries}
    assert 0 < lengths["wait"] <= lengths["step"]

    (written,) = tmp_path.rglob("*.xplane.pb")
    capture = flopwatch.open(written)
    assert sum(capture.categories.values()) > 0
    summary = capture.summary()
    assert sum(category["events"] or 0 for category in summary["categories"]) == sum(capture.categories.values())
    calls = capture.events("annotation")
    names = [row[calls.column_names.index("name")] for row in calls.first(len(calls))]
    # JAX 0.10 writes each call as one range within another.
    assert names.count("PjitFunction(step)") in {3, 6}
