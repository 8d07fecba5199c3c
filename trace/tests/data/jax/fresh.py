"""Programs of JAX on a processor, dumped, profiled and measured into a folder: `python fresh.py FOLDER`."""
import glob
import json
import os
import sys
from collections import defaultdict

FOLDER = sys.argv[1]
NAMES = "matmuls|convolution|loop|scan|elementwise|branches|donated|mixed"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_dump_to={FOLDER}/dump --xla_dump_hlo_as_text --xla_dump_hlo_as_proto --xla_dump_hlo_module_re=jit_({NAMES})"
)

import jax
import jax.numpy as jnp


def matmuls(a, b, c):
    return jnp.tanh(a @ b) @ c  # matmuls


def convolution(x, w):
    y = jax.lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2), feature_group_count=2)
    return jax.nn.softmax(y.reshape(y.shape[0], -1))  # convolution


def loop(x):
    return jax.lax.fori_loop(0, 10, lambda i, v: jnp.sin(v) @ v, x)  # loop


def scan(x, ws):
    def layer(h, w):
        h = jax.nn.relu(h @ w)  # scan
        return h, jnp.sum(h)

    return jax.lax.scan(layer, x, ws)


def elementwise(x, y):
    for _ in range(6):
        x = jnp.where(x > y, jnp.exp(-x * x), jnp.sqrt(jnp.abs(y)) + x)  # elementwise
    return x, jnp.max(x, axis=0), jnp.argsort(x[0])


def branches(i, x):
    return jax.lax.switch(i, [lambda v: v * 2, lambda v: v @ v.T, lambda v: jnp.cumsum(v, axis=0)], x)


def donated(state, update):
    return state.at[3:7].set(update), jnp.sum(state)


def mixed(x, k, indices):
    noise = jax.random.normal(jax.random.key(k), x.shape)
    counts = jnp.zeros(32, jnp.int32).at[indices].add(1)
    return jnp.abs(jnp.fft.rfft(x, axis=-1)), x[indices].astype(jnp.bfloat16), x + noise, counts, x[:, ::2] * 1e-7


ones = jnp.ones
PROGRAMS = {
    "matmuls": (jax.jit(matmuls), (ones((128, 256)), ones((256, 512)), ones((512, 64)))),
    "convolution": (jax.jit(convolution), (ones((2, 4, 16, 16)), ones((8, 2, 3, 3)))),
    "loop": (jax.jit(loop), (ones((64, 64)),)),
    "scan": (jax.jit(scan), (ones((16, 64)), ones((5, 64, 64)))),
    "elementwise": (jax.jit(elementwise), (ones((256, 1024)), 2 * ones((256, 1024)))),
    "branches": (jax.jit(branches), (1, ones((32, 32)))),
    "donated": (jax.jit(donated, donate_argnums=0), (ones((64, 128)), ones((4, 128)))),
    "mixed": (jax.jit(mixed), (ones((32, 64)), 7, jnp.arange(5))),
}
RUNS = 3


def run_all():
    for name, (function, arguments) in PROGRAMS.items():
        for _ in range(RUNS):
            # A donated buffer is gone behind the call.
            arrays = [jnp.array(one) for one in arguments] if name == "donated" else arguments
            jax.block_until_ready(function(*arrays))


def compiled(function, arguments):
    """What JAX says of a program that it compiled."""
    program = function.lower(*arguments).compile()
    cost, memory = program.cost_analysis(), program.memory_analysis()
    return {
        "flops": int(cost.get("flops", 0)),
        "transcendentals": int(cost.get("transcendentals", 0)),
        "bytes": int(cost.get("bytes accessed", 0)),
        "parameters": memory.argument_size_in_bytes,
        "aliases": memory.alias_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
    }


def measured(path):
    """What jaxlib's own reader finds in a profile: operations of programs, and functions of Python."""
    operations, functions = defaultdict(list), defaultdict(list)
    for plane in jax.profiler.ProfileData.from_file(path).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    operations[f"{stats['hlo_module']} {stats['hlo_op']}"].append(event.duration_ns)
                elif event.name.startswith("$"):
                    functions[event.name].append(event.duration_ns)
    figures = lambda found: {name: {"events": len(times), "total_ns": sum(times)} for name, times in found.items()}
    return {"operations": figures(operations), "functions": figures(functions)}


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    said = {name: compiled(*program) for name, program in PROGRAMS.items()}
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    with jax.profiler.trace(f"{FOLDER}/profile", profiler_options=options):
        run_all()
    held = [jnp.zeros(1 << 20, jnp.int8), jnp.zeros(3 << 20, jnp.int8)]
    jax.profiler.save_device_memory_profile(f"{FOLDER}/memory.prof")
    profile = glob.glob(f"{FOLDER}/profile/plugins/profile/*/*.xplane.pb")[0]
    os.rename(profile, f"{FOLDER}/profile.xplane.pb")
    with open(f"{FOLDER}/said.json", "w") as file:
        json.dump({"programs": said, "runs": RUNS, **measured(f"{FOLDER}/profile.xplane.pb")}, file, indent=1)
