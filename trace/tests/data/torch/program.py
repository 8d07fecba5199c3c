"""Captures of real PyTorch on the CPU, and what PyTorch itself says of them: `program.py FOLDER`.

eager.json      three training steps, with shapes, stacks and memory
compiling.json  functions that Dynamo breaks, gives up and compiles again, while it compiles them; a training step by AOTAutograd,
                and code that Inductor generates
compiled.json   the same functions once more, with stacks
said.json       what `torch.profiler` and Dynamo say of each
"""

import collections
import json
import os
import sys

import torch
import torch._dynamo.utils
import torch._inductor.config
from torch.profiler import ProfilerActivity, profile, schedule

FOLDER = sys.argv[1]
torch.manual_seed(0)
torch.set_num_threads(1)
torch._dynamo.config.automatic_dynamic_shapes = False
# One compilation per graph: without trials of what the processor can do, and headers compiled ahead.
torch._inductor.config.cpp.simdlen = 1
torch._inductor.config.cpp.vec_isa_ok = False
torch._inductor.config.cpp_cache_precompile_headers = False


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(64, 128)
        self.narrow = torch.nn.Linear(128, 64)

    def forward(self, x):
        return torch.relu(self.narrow(torch.relu(self.wide(x)))).softmax(-1)


def capture(name, program, steps=0, with_stack=True):
    when = schedule(wait=1, warmup=1, active=steps) if steps else None
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        with_stack=with_stack,
        profile_memory=True,
        schedule=when,
        # Without it events have no stacks of their own, as `export_stacks` needs them.
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as profiler:
        for _ in range(steps + 2 if steps else 1):
            program()
            profiler.step()
    profiler.export_chrome_trace(os.path.join(FOLDER, f"{name}.json"))
    return profiler


def ns(us):
    return round(us * 1000)


def operators(profiler):
    """By name: calls, own time and all time in ns."""
    averages = profiler.key_averages()
    return {one.key: [one.count, ns(one.self_cpu_time_total), ns(one.cpu_time_total)] for one in averages}


def is_backward(event):
    while event is not None:
        if event.name.startswith("autograd::engine::evaluate_function"):
            return True
        event = event.cpu_parent
    return False


def stacks(profiler):
    """By stack of Python functions, the outermost first: how many operators ran in it, and their own time in ns.

    Without the backward pass: torch gives its operators the stacks of those forward, where they did not run.
    """
    found = collections.defaultdict(lambda: [0, 0])
    for event in profiler.events():
        is_operator = not (event.is_python_function or event.is_user_annotation or event.name == "[memory]")
        if is_operator and not is_backward(event) and event.stack and event.self_cpu_time_total > 0:
            entry = found[";".join(reversed(event.stack))]
            entry[0] += 1
            entry[1] += ns(event.self_cpu_time_total)
    return found


def memory(profiler):
    """The levels of the allocator, as the profiler's own tree of events has them, not the JSON."""
    changes = []

    def walk(events):
        for event in events:
            if event.typed[0] == torch._C._profiler._EventType.Allocation:
                fields = event.typed[1]
                changes.append((event.start_time_ns, fields.alloc_size, fields.total_allocated))
            walk(event.children)

    walk(profiler.profiler.kineto_results.experimental_event_tree())
    changes.sort(key=lambda change: change[0])
    return {
        "allocations": sum(1 for _, size, _ in changes if size > 0),
        "releases": sum(1 for _, size, _ in changes if size < 0),
        "allocated": sum(size for _, size, _ in changes if size > 0),
        "before": changes[0][2] - changes[0][1],
        "end": changes[-1][2],
        "peak": max(total for _, _, total in changes),
    }


def dynamo():
    counters = torch._dynamo.utils.counters
    metrics = torch._dynamo.utils.get_compilation_metrics()
    return {
        "frames": dict(counters["frames"]),
        "graph_breaks": sum(counters["graph_break"].values()),
        "calls": {name: len(times) for name, times in torch._dynamo.utils.compilation_time_metrics.items()},
        "seconds": {name: sum(times) for name, times in torch._dynamo.utils.compilation_time_metrics.items()},
        "compiled": {one.compile_id: [one.recompile_reason, one.co_name] for one in metrics if one.compile_id},
    }


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batch = torch.randn(16, 64)


def train(model):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


def plus_one(x):
    return x.sin() + 1


def times_two(x):
    return x.cos() * 2


def prints(x):
    y = x.sin()
    print("between two graphs")
    return y.cos()


@torch._dynamo.disable
def opaque(x):
    return x * 3


def calls_what_is_disabled(x):
    y = x.sin()
    return opaque(y).cos()


def inner(x):
    return (x * 2).relu()


def prints_in_a_loop(x):
    for _ in range(3):
        x = inner(x)
        print("in a loop")
    return x


def compiled(function):
    return torch.compile(function, backend="eager")


one, two, broken, disabled, given_up = map(
    compiled, (plus_one, times_two, prints, calls_what_is_disabled, prints_in_a_loop)
)


def functions():
    x = torch.ones(4)
    # Compiled apart: no graph is left between them.
    two(one(x))
    broken(x)
    disabled(x)
    given_up(x)


def again():
    for length in (5, 6):
        one(torch.ones(length))
    one(torch.ones(6, dtype=torch.float64))


trained = torch.compile(net, backend="aot_eager")
generated = torch.compile(lambda x: (x.sin() + 1).relu())


def rest():
    train(trained)
    generated(batch)


eager = capture("eager", lambda: train(net), steps=3)
said = {"eager": {"operators": operators(eager), "stacks": stacks(eager), "memory": memory(eager)}}
# Python's tracer would see each of the compiler's own calls: a hundred times as many events.
compiling = capture("compiling", lambda: (functions(), again(), rest()), with_stack=False)
said["compiling"] = {"operators": operators(compiling), "memory": memory(compiling), "dynamo": dynamo()}
after = capture("compiled", lambda: (functions(), rest()))
said["compiled"] = {"operators": operators(after), "memory": memory(after)}
with open(os.path.join(FOLDER, "said.json"), "w") as file:
    json.dump(said, file)
