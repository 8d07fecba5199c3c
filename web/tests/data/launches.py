"""Writes a trace as PyTorch makes it, of 20 steps: functions that call operators, which launch kernels.

`python launches.py > launches.json`, then `flopwatch convert launches.json launches.h5`.
"""

import json
import sys

PROCESS = 4711
GEMM = "void lib::gemm<float, 128>(float const*, float const*, float*, int)"
ADD = "void lib::add<float, lib::Broadcast<float> >(float*, float const*, int)"

events = [{"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": "python"}}]


def event(category, name, start, duration, args, process=PROCESS, thread=PROCESS):
    events.append({"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": duration, "args": args})


def kernel(name, start, duration, correlation, operator):
    args = {"device": 0, "context": 1, "stream": 7, "correlation": correlation, "External id": operator}
    args |= {"grid": [64, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0, "queued": 0}
    event("kernel", name, start, duration, args, process=0, thread=7)


def call(start, correlation, operator):
    event("cuda_runtime", "cudaLaunchKernel", start, 6, {"correlation": correlation, "External id": operator, "cbid": 211})


now = gpu = 1000.0
correlation, operator, function = 100, 1, 1
for step in range(20):
    begin = now
    at = begin + 5
    for layer in range(5):
        start = at + 4
        call(start + 12, correlation, operator + 1)
        gpu = max(gpu, start + 58)
        kernel(GEMM, gpu, 60 + layer * 5, correlation, operator + 1)
        gpu += 62 + layer * 5
        event("cpu_op", "aten::addmm", start + 8, 14, {"External id": operator + 1})
        call(start + 26, correlation + 1, operator + 2)
        gpu = max(gpu, start + 52)
        kernel(ADD, gpu, 12, correlation + 1, operator + 2)
        gpu += 14
        event("cpu_op", "aten::add", start + 24, 10, {"External id": operator + 2})
        event("cpu_op", "aten::linear", start, 38, {"External id": operator})
        parent = {"Python id": function + 1, "Python parent id": function}
        event("python_function", f"model.py({10 + layer}): forward", at, 46, parent)
        correlation, operator, function = correlation + 2, operator + 3, function + 1
        at += 50
    event("python_function", "train.py(7): step", begin + 2, at - begin, {"Python id": 1000 + step, "Python parent id": None})
    event("user_annotation", f"ProfilerStep#{step}", begin, at + 10 - begin, {})
    now = at + 610
    gpu = max(gpu, now)

for sample in range(30):
    args = {"Total Reserved": 1 << 30, "Total Allocated": (sample % 7 << 26) + 1, "Bytes": 1 << 20, "Addr": 1000 + sample}
    args |= {"Device Id": 0, "Device Type": 1}
    events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PROCESS, "tid": PROCESS, "ts": 1000 + sample * 400, "args": args})

device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42_000_000_000, "computeMajor": 8, "computeMinor": 0, "numSms": 108}
json.dump({"schemaVersion": 1, "deviceProperties": [device], "displayTimeUnit": "ms", "traceEvents": events}, sys.stdout)
