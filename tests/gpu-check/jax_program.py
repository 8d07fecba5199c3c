"""A small JAX program with its profiler service at a port: a product in a loop. A line is `t=<Unix ns> steps=<count>`."""

import sys
import time

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    print(f"unavailable: {error}")
    sys.exit(3)
try:
    device = jax.devices("cpu" if sys.argv[2:] == ["cpu"] else "cuda")[0]
except RuntimeError as error:
    print(f"unavailable: JAX sees no GPU: {error}".splitlines()[0])
    sys.exit(3)

jax.profiler.start_server(int(sys.argv[1]))
step = jax.jit(lambda x: jnp.tanh(x @ x))
x = jax.device_put(jnp.ones((64, 64) if device.platform == "cpu" else (2048, 2048)), device)
steps, reported = 0, 0.0
while True:
    step(x).block_until_ready()
    time.sleep(0.002)
    steps += 1
    if time.monotonic() - reported >= 0.1:
        print(f"t={time.time_ns()} steps={steps}", flush=True)
        reported = time.monotonic()
