"""PyTorch and its own profiler, on the GPU. It does what its standard input says, a line each, and answers each with a line.

`init`: `ready`, `steps N`: `stepped N`, `profile N`: `profiled KERNELS` of so many steps, `begin` and `finish`: a profile
over what is between.
"""

import sys

try:
    import torch
except ImportError as error:
    print(f"unavailable {error}", flush=True)
    sys.exit(3)
if not torch.cuda.is_available():
    print("unavailable PyTorch sees no GPU", flush=True)
    sys.exit(3)

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

left = torch.randn(512, 512, device="cuda")
right = torch.randn(512, 512, device="cuda")


def steps(count):
    value = right
    for _ in range(count):
        value = torch.nn.functional.normalize(torch.relu(left @ value))
    torch.cuda.synchronize()


def kernels(profiler):
    return sum(1 for event in profiler.events() if event.device_type == DeviceType.CUDA)


steps(1)
running = None
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "init":
        print("ready 1", flush=True)
    elif word == "steps":
        steps(int(rest))
        print(f"stepped {rest}", flush=True)
    elif word == "profile":
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            steps(int(rest))
        print(f"profiled {kernels(profiler)}", flush=True)
    elif word == "begin":
        running = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        running.__enter__()
        print("begun 1", flush=True)
    elif word == "finish":
        running.__exit__(None, None, None)
        print(f"profiled {kernels(running)}", flush=True)
    else:
        print("failed what 0", flush=True)
