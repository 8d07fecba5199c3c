"""A loop of small layers of PyTorch, as an inference server runs them, in one thread. The argument is the pause of a
step in seconds.

Ten times a second it prints how many steps it has ended and how long the longest of them took since the last line, in
microseconds.
"""

import os
import sys
import time

import torch

pause = float(sys.argv[1])
torch.set_num_threads(1)
layer = torch.nn.Linear(16, 16)
values = torch.rand(16, 16)

steps, longest, told = 0, 0.0, time.monotonic()
with torch.no_grad():
    while True:
        begin = time.monotonic()
        layer(values)
        if pause:
            time.sleep(pause)
        now = time.monotonic()
        steps, longest = steps + 1, max(longest, now - begin)
        if now - told >= 0.1:
            line = f"pid={os.getpid()} t={time.time_ns()} ranges={steps} longest={int(longest * 1e6)}"
            print(line, flush=True)
            longest, told = 0.0, now
