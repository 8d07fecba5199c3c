"""A small PyTorch program: products and activations in a loop, on the GPU, or on the processor where it is told `cpu`.

A line is `t=<Unix ns> steps=<count>`.
"""

import sys
import time

try:
    import torch
except ImportError as error:
    print(f"unavailable: {error}")
    sys.exit(3)
device = "cpu" if sys.argv[1:] == ["cpu"] else "cuda"
size = 64 if device == "cpu" else 2048
if device == "cuda" and not torch.cuda.is_available():
    print("unavailable: PyTorch sees no GPU")
    sys.exit(3)

left = torch.randn(size, size, device=device)
right = torch.randn(size, size, device=device)
steps, reported = 0, 0.0
while True:
    for _ in range(5):
        right = torch.nn.functional.normalize(torch.relu(left @ right))
    if device == "cuda":
        torch.cuda.synchronize()
    steps += 1
    if time.monotonic() - reported >= 0.1:
        print(f"t={time.time_ns()} steps={steps}", flush=True)
        reported = time.monotonic()
