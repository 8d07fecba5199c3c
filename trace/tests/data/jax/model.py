"""Programs whose work and memory JAX and XProf state; see the test for how the dumps beside this file were made."""
import jax
import jax.numpy as jnp

jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def loss(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.sum(x * x)


def step(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    return value, jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


def convolve(x, w):
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
    return jax.nn.softmax(y.reshape(y.shape[0], -1))


def loop(x):
    return jax.lax.fori_loop(0, 10, lambda i, v: jnp.sin(v) @ v, x)


f32 = jnp.float32
shape = jax.ShapeDtypeStruct
params = [(shape((256, 256), f32), shape((256,), f32)) for _ in range(3)]
PROGRAMS = {
    "step": (step, (params, shape((128, 256), f32))),
    "convolve": (convolve, (shape((2, 3, 16, 16), f32), shape((8, 3, 3, 3), f32))),
    "loop": (loop, (shape((64, 64), f32),)),
}

if __name__ == "__main__":
    for name, (function, arguments) in PROGRAMS.items():
        compiled = jax.jit(function).lower(*arguments).compile()
        cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
        print(name, int(cost["flops"]), int(cost["transcendentals"]), int(cost["bytes accessed"]),
              memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes)
