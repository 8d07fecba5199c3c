"""Regions of a framework on a GPU, by the package beside this: `regions_program.py pytorch|cupy|jax [cpu]`.

Prints one line of JSON: how many calls have a GPU time, and what regions cost. GPU times must agree with the framework's own marks around the same work.
"""

import json
import statistics
import sys
import time

framework, on_cpu = sys.argv[1], sys.argv[2:] == ["cpu"]
CALLS = 20
EMPTY = 2000
#: How far the mean GPU time of a region may be from that between the framework's own marks.
TOLERANCE = 0.1


def unavailable(reason):
    print(f"unavailable: {reason}")
    sys.exit(3)


def pytorch():
    import torch

    if on_cpu:
        left = torch.randn(64, 64)
        return lambda: left @ left, None, lambda: None
    if not torch.cuda.is_available():
        unavailable("PyTorch sees no GPU")
    left = torch.randn(4096, 4096, device="cuda")
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def own(work):
        first.record()
        work()
        second.record()
        torch.cuda.synchronize()
        return first.elapsed_time(second)

    return lambda: left @ left, own, torch.cuda.synchronize


def cupy():
    import cupy as cp

    if on_cpu or not cp.cuda.is_available():
        unavailable("CuPy sees no GPU")
    left = cp.random.standard_normal((4096, 4096), dtype=cp.float32)
    first, second = cp.cuda.Event(), cp.cuda.Event()

    def own(work):
        first.record()
        work()
        second.record()
        second.synchronize()
        return cp.cuda.get_elapsed_time(first, second)

    return lambda: left @ left, own, cp.cuda.Device().synchronize


def jax():
    import jax as framework

    kind = "cpu" if on_cpu else "cuda"
    try:
        device = framework.devices(kind)[0]
    except RuntimeError as error:
        unavailable(f"JAX sees no {kind}: {error}".splitlines()[0])
    left = framework.device_put(framework.numpy.ones((1024, 1024)), device)
    step = framework.jit(lambda x: x @ x)
    # JAX has no marks: there are no GPU times.
    return lambda: step(left).block_until_ready(), None, lambda: None


try:
    work, own, wait = {"pytorch": pytorch, "cupy": cupy, "jax": jax}[framework]()
except ImportError as error:
    unavailable(error)

import flopwatch

profiler = flopwatch.GPUProfiler(memory=True)
work()
wait()
for _ in range(CALLS):
    with profiler.profile("work", device="gpu"):
        work()
entries = profiler.get_entries()
found = {"calls": len(entries), "gpu_times": sum(entry.gpu_time_ms is not None for entry in entries)}
backends = {entry.backend for entry in entries}
if backends != {"cpu" if on_cpu else framework}:
    sys.exit(f"the regions name {backends}, not {framework}")
if own is not None:
    expected = statistics.median(own(lambda: [work() for _ in range(CALLS)]) / CALLS for _ in range(5))
    # The first region may begin while the GPU only wakes.
    measured = statistics.median(entry.gpu_time_ms for entry in entries)
    found |= {"gpu_us": round(measured * 1e3), "own_us": round(expected * 1e3)}
    if abs(measured - expected) > TOLERANCE * expected:
        sys.exit(f"regions say {measured} ms, {framework}'s own marks {expected} ms")

for name, memory, enabled in [("cost_ns", False, True), ("cost_with_memory_ns", True, True), ("cost_off_ns", False, False)]:
    profiler = flopwatch.GPUProfiler(memory=memory, enabled=enabled)
    rounds = []
    for _ in range(5):
        begin = time.perf_counter_ns()
        for _ in range(EMPTY):
            with profiler.profile("empty", device="gpu"):
                pass
        rounds.append((time.perf_counter_ns() - begin) / EMPTY)
        profiler.get_summary()
    found[name] = round(min(rounds))
print(json.dumps(found))
