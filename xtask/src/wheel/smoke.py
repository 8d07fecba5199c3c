"""What an installed package must do: regions, a file, tables, an analysis, errors."""

import json
import pathlib
import sys

import flopwatch

events = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 30.0, "args": {"External id": 7}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 15.0, "dur": 5.0, "args": {"correlation": 3, "External id": 7}},
    {"ph": "X", "cat": "kernel", "name": "matmul", "pid": 0, "tid": 7, "ts": 25.0, "dur": 40.0, "args": {"device": 0, "stream": 7, "correlation": 3, "External id": 7}},
]
pathlib.Path("trace.json").write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}))

profiler = flopwatch.GPUProfiler()
with profiler.profile("step"):
    capture = flopwatch.open("trace.json")
assert profiler.get_summary()["step"].call_count == 1
assert capture.categories["cuda_kernel"] == 1, capture.categories
assert len(capture.events("cuda_kernel")) == 1
kernels = capture.analyze("cuda_gpu_kern_sum")
assert "matmul" in json.dumps(kernels.to_dict())
capture.save("timeline.h5")
assert flopwatch.open("timeline.h5").categories == capture.categories
try:
    flopwatch.open("nothing.json")
except flopwatch.ReadError as error:
    assert "nothing.json" in str(error)
else:
    raise AssertionError("a file that is not there was read")
print(f"Python {sys.version.split()[0]}: flopwatch {flopwatch.__version__}, {len(flopwatch.catalogue())} analyses")
