"""A small PyTorch program: products and activations on the GPU in a loop. A line is `t=<Unix ns> steps=<count>`."""

import sys
import time

try:
    import torch
except ImportError as error:
    print(f"unavailable: {error}")
    sys.exit(3)
if not torch.cuda.is_available():
    print("unavailable: PyTorch sees no GPU")
    sys.exit(3)

left = torch.randn(2048, 2048, device="cuda")
right = torch.randn(2048, 2048, device="cuda")
steps, reported = 0, 0.0
while True:
    for _ in range(5):
        right = torch.nn.functional.normalize(torch.relu(left @ right))
    torch.cuda.synchronize()
    steps += 1
    if time.monotonic() - reported >= 0.1:
        print(f"t={time.time_ns()} steps={steps}", flush=True)
        reported = time.monotonic()
