"""Programs of JAX in a network namespace of their own, each with its profiler service.

Usage: program.py FIRST_PORT PROCESSES. Each process multiplies matrices, and appends when each step began and ended (monotonic
seconds) to the file steps.PORT of the working folder. Where JAX_DUMP_IR_TO is set, a profile of the device's memory goes there too.
CALLS is how many functions each step calls within an annotation of their own; none without.
"""

import fcntl
import os
import socket
import struct
import sys
import time


def up(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", name, 1))  # SIOCSIFFLAGS, IFF_UP


def run(port):
    import jax
    import jax.numpy as jnp

    jax.profiler.start_server(port)

    @jax.jit
    def step(x):
        return jnp.tanh(x @ x).sum()

    def call():
        pass

    calls = int(os.environ.get("CALLS", "0"))
    if calls:
        # Tests beside this one hold times to a bound.
        os.nice(10)
    x = jnp.ones((64, 64))
    step(x).block_until_ready()
    if "JAX_DUMP_IR_TO" in os.environ:
        jax.profiler.save_device_memory_profile(os.path.join(os.environ["JAX_DUMP_IR_TO"], "memory.prof"))
    with open(f"steps.{port}", "w", buffering=1) as steps:
        while True:
            begun = time.monotonic()
            step(x).block_until_ready()
            for number in range(calls):
                with jax.profiler.TraceAnnotation("call", n=number):
                    call()
            time.sleep(0.002)
            steps.write(f"{begun:.6f} {time.monotonic():.6f}\n")


up(b"lo")
first, processes = int(sys.argv[1]), int(sys.argv[2])
for port in range(first, first + processes - 1):
    if os.fork() == 0:
        run(port)
run(first + processes - 1)
