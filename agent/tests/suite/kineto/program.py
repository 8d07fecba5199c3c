"""A loop of PyTorch that says how even its steps are. Arguments: its processes, and what they do: `plain`, `steps` of an
optimizer, or `busy`, which is quicker."""
import os
import sys
import time


def say(line):
    """In one write: `print` makes two where Python does not buffer, and lines of several processes mix."""
    os.write(1, f"{line}\n".encode())


processes, optimizes = int(sys.argv[1]), sys.argv[2] == "steps"
pause = 0.0002 if sys.argv[2] == "busy" else 0.002
for _ in range(processes - 1):
    # Before PyTorch starts its threads: a library asks in the process alone that started it, and a fork beside threads can hang.
    if os.fork() == 0:
        break

if sys.argv[2] == "busy":
    # Tests beside this one hold times to a bound.
    os.nice(10)

import torch

torch.set_num_threads(1)
matrix = torch.randn(64, 64)
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01) if optimizes else None
say(f"ready {os.getpid()}")
longest = 0.0
before = said = time.perf_counter()
while True:
    with torch.profiler.record_function("a step"):
        loss = layer(matrix).relu().sum()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    time.sleep(pause)
    now = time.perf_counter()
    longest, before = max(longest, now - before), now
    if now - said > 1:
        say(f"longest {longest * 1000:.1f}")
        said, longest = now, 0.0
