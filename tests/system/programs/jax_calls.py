"""Calls of Python functions as fast as they go, beside a profiler service of JAX at the port that the argument names.

Ten times a second it prints how many it has ended.
"""

import os
import sys
import time

import jax
import jax.numpy as jnp

jax.profiler.start_server(int(sys.argv[1]))
jnp.ones(2).block_until_ready()


def call():
    pass


calls, told = 0, time.monotonic()
while True:
    for _ in range(10_000):
        call()
    calls += 10_000
    now = time.monotonic()
    if now - told >= 0.1:
        print(f"pid={os.getpid()} t={time.time_ns()} ranges={calls}", flush=True)
        told = now
