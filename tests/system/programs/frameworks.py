"""Steps of PyTorch and JAX for ever, in as many processes as the first argument says.

Ten times a second each process prints how many steps it has ended and how long the longest of them took since the last
line, in microseconds. A process without children says too what waiting for one answers. The second argument is the port of
the first process's profiler service. Told to end, a process says its total and ends with the code of the third argument.
"""

import os
import signal
import sys
import time

processes, port = int(sys.argv[1]), int(sys.argv[2])
code = int(sys.argv[3]) if len(sys.argv) > 3 else 0
# Seconds between two steps: all of these pods share the machine.
PAUSE = 0.02
index = 0
for child in range(1, processes):
    if os.fork() == 0:
        index = child
        break

# The rig's NVML shows processes of this name on its GPU.
with open("/proc/self/comm", "w") as name:
    name.write("flopwatch-sampl")

told_to_end = False


def end(_signal, _frame):
    global told_to_end
    told_to_end = True


signal.signal(signal.SIGTERM, end)


def wait_answer():
    """Whether this process has a child that it could wait for."""
    try:
        return str(os.waitpid(-1, os.WNOHANG)).replace(" ", "")
    except ChildProcessError:
        return "ECHILD"


import jax
import jax.numpy as jnp
import torch

torch.set_num_threads(1)
jax.profiler.start_server(port + index)
loss = jax.jit(lambda x: (x @ x).sum())
values = jnp.ones((128, 128))
weights = torch.rand(128, 128)
loss(values).block_until_ready()

steps, longest, told = 0, 0.0, time.monotonic()
while not told_to_end:
    begin = time.monotonic()
    torch.relu(weights @ weights).sum().item()
    loss(values).block_until_ready()
    time.sleep(PAUSE)
    now = time.monotonic()
    steps, longest = steps + 1, max(longest, now - begin)
    if now - told >= 0.1:
        wait = f" wait={wait_answer()}" if processes == 1 else ""
        line = f"pid={os.getpid()} t={time.time_ns()} ranges={steps} longest={int(longest * 1e6)}{wait}"
        print(line, flush=True)
        longest, told = 0.0, now

print(f"total pid={os.getpid()} ranges={steps}", flush=True)
# Threads of the service would hold up an end of the interpreter's own.
os._exit(code)
