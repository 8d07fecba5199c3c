# Written by `cargo xtask codegen` from the catalogue of analyses and the table of profilers; a test fails when it drifts.
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, overload

from typing_extensions import NotRequired, Unpack

from .capture import Capture, Result

# A profiler, by its word in requests.
Profiler: TypeAlias = Literal["auto", "nsys", "ncu", "kineto", "jax", "metrics", "recorder", "cuda"]

class Access(TypedDict):
    """Loads or stores of one kind."""

    bank_conflicts: int | None
    """Times that banks of shared memory were asked twice."""
    hit_ratio: float | None
    """Sectors that the first cache had, 0 to 1."""
    memory: str
    """The memory: `global`, `local`, `shared`."""
    operation: str
    """What was done: `load`, `store`."""
    requests: int
    """Requests: one per instruction of a warp."""
    sectors: int | None
    """Sectors of 32 bytes that were touched; null for shared memory, which has none."""
    sectors_per_request: float | None
    """Sectors per request: 4 where 32 threads touch 4 bytes each, side by side."""

class AliveBuffer(TypedDict):
    """A buffer that was alive at the peak."""

    address: str
    """Where it begins in memory, in hexadecimal digits."""
    bytes: int
    """Bytes."""
    given_ns: int
    """When it was given out, in ns."""
    lifetime_ns: int
    """How long it was given out, in ns; up to the end of the capture where it was never taken back."""
    place: Place
    """Where it is."""
    release: Release
    """What happened with it in the end."""
    requester: MemoryRequester
    """Who asked for it."""

class AliveOfRequester(TypedDict):
    """What was alive at the peak of those who asked in the same place."""

    buffers: int
    """Buffers."""
    bytes: int
    """Bytes."""
    peak_ratio: float
    """Their share of the peak, from 0 to 1."""
    requester: MemoryRequester
    """Who asked; nothing known in it of allocations of which nobody is known."""

# What a call of the API does with memory.
AllocationCall: TypeAlias = Literal["device_allocate", "device_free", "pool_allocate", "pool_free", "managed_allocate", "host_allocate", "host_free", "map"]

class AllocationCallRow(TypedDict):
    """Calls of one kind."""

    cost: PhasedCost
    """What they cost."""
    kind: AllocationCall
    """What they do."""

class AllocationCallSeen(TypedDict):
    """One call."""

    duration_ns: int
    """Length in ns."""
    gpu_idle_ns: int | None
    """The part of it in which no GPU worked for the process; null where none ever did."""
    in_steady_state: bool | None
    """Whether it began in the steady state; null where it is not known when that begins."""
    kind: AllocationCall
    """What it does."""
    name: str
    """Name of the call."""
    place: Place
    """Where it is."""

# Who gives memory out.
Allocator: TypeAlias = Literal["framework", "driver"]

class AllocatorRow(TypedDict):
    """What a framework's allocator did on a device."""

    allocated_bytes: int
    """Bytes that it gave out, all together."""
    allocations: int
    """Times it gave memory out."""
    device: int | None
    """Ordinal of the device; null of the host's memory."""
    frees: int
    """Times it took memory back."""
    growths: int
    """Times what it has reserved grew, for which it asks the driver for memory."""
    peak_allocated_bytes: int | None
    """Most bytes that were given out at a time; null where the source does not say it."""
    peak_reserved_bytes: int | None
    """Most bytes that it had reserved; null where the source does not say it."""
    shrinks: int
    """Times what it has reserved shrank, for which it gives memory back to the driver."""
    steady_allocations: int | None
    """Times it gave memory out in the steady state; null where it is not known when that begins."""

# Which part of the work a rule is about.
Area: TypeAlias = Literal["capture", "idle", "host", "kernels", "transfers", "communication", "iterations", "memory", "compilation"]

class AssignedWork(TypedDict):
    """How GPU work was assigned to iterations, in pieces: kernels, copies and memsets."""

    by_process: int
    """Launched by another thread of the process during the iteration."""
    by_thread: int
    """Launched by the loop's thread during the iteration."""
    by_time: int
    """Without a recorded launch: by the time of its start."""
    outside: int
    """Of no iteration."""

class AtOnce(TypedDict):
    """Time in which a number of GPU operations ran at once."""

    gpu_ops: int
    """Number of GPU operations that run at once; the last entry, of 8, also has the time of more."""
    time_ns: int
    """Time in ns during which that many GPU operations ran at once."""

# Where a batch size is known from.
BatchSizeSource: TypeAlias = Literal["given", "shapes"]

class BatchSweepRow(TypedDict):
    """A capture."""

    batch_size: int | None
    """Items of an iteration; null where not known."""
    batch_size_source: BatchSizeSource | None
    """Where it is known from."""
    gpu_busy_ratio: float | None
    """GPU busy time of those iterations; null where no GPU work was recorded."""
    input: int
    """The capture, counted from 0 in the order in which they were named."""
    item_ns: float | None
    """Time of an item in ns."""
    items_per_second: float | None
    """Items per second."""
    iterations: int
    """Iterations that count: without the first one and those in which code was compiled."""
    linear_efficiency_ratio: float | None
    """Efficiency against linear: throughput over that of the smallest batch, of the same ratio of sizes. 1 is as long an iteration with more items."""
    mean_iteration_ns: int | None
    """Mean length of these in ns; null without any."""
    peak_memory_bytes: int | None
    """Most memory in bytes that the framework had given out on a device; null where allocations were not recorded."""
    predicted_iteration_ns: int | None
    """Roofline prediction in ns: what the floating-point operations of an iteration take at the peak rate. Traffic of memory is not in it. Null where
    operations or rate are not known.
    """
    predicted_ratio: float | None
    """`predicted_iteration_ns` of `mean_iteration_ns`: the model FLOP utilisation."""

# How it is known what was given out before the capture.
Before: TypeAlias = Literal["totals", "at_least"]

# What bounds work of an intensity.
Bound: TypeAlias = Literal["compute", "memory"]

# Where it is known from.
BoundBasis: TypeAlias = Literal["counters", "compiler", "shapes", "kind", "none"]

# Why a graph ended.
BreakReason: TypeAlias = Literal["data_dependent_branch", "scalar_read", "data_dependent_shape", "output", "python_call", "operator", "unknown"]

class BufferLife(TypedDict):
    """A buffer."""

    bytes: int
    """Bytes."""
    given_ns: int
    """When it was given out, in ns."""
    lifetime_ns: int
    """How long it was given out, in ns; up to the end of the capture where it was never taken back."""
    place: Place
    """Where it is."""
    release: Release
    """What happened with it in the end."""
    requester: MemoryRequester
    """Who asked for it."""

class BufferPool(TypedDict):
    """The buffers of an allocator."""

    address_reuses: int | None
    """Buffers that began where another one had been and had been taken back: what the allocator did use again."""
    allocated_bytes: int
    """Bytes that were given out, all together."""
    allocations: int
    """Times that memory was given out."""
    allocations_per_iteration: float | None
    """Times that memory was given out per iteration; null where no iterations are found."""
    allocations_per_second: float | None
    """Times that memory was given out per second, from the first allocation or release to the last; null where these are one."""
    allocator: Allocator
    """Who gives them out."""
    bytes_per_iteration: float | None
    """Bytes that were given out per iteration."""
    bytes_per_second: float | None
    """Bytes that were given out per second in that time."""
    device: int | None
    """Ordinal of the device; null of the host's memory."""
    growths: int | None
    """Times what the allocator had grew, for which it asked the driver; null where the source does not say what it had."""
    kept: int | None
    """Buffers that were given out during the capture and not taken back in it; null where the source says no addresses, as the next six."""
    kept_bytes: int | None
    """Bytes of the buffers that are kept."""
    largest_kept: list[BufferLife]
    """The largest buffers that were never taken back in the capture."""
    lifetimes: list[LifetimeClass]
    """Lifetimes by class, of those that were taken back."""
    longest: list[BufferLife]
    """The buffers that were given out longest, of those that were taken back."""
    memory: str
    """Whose memory: `GPU 0`, `host`, `GPU 1 managed`."""
    mismatched_releases: int | None
    """Releases of another size than was given out."""
    process: int
    """Process id; 0 where the source does not say."""
    requesters: list[BufferRequester]
    """Who asked, by the bytes that they were given."""
    requesters_left_out: int
    """Those who asked that were left out behind these."""
    reuse_ratio: float | None
    """Allocations for each buffer that is needed: 1 where nothing can be used again. Null without allocations."""
    reuses: int
    """Allocations for which a buffer of that size had been taken back before and was not given out since."""
    saved_bytes: int
    """Their bytes: what an allocator that keeps buffers does not ask for."""
    sizes: list[BufferSize]
    """Sizes by the bytes that were given out of them."""
    sizes_left_out: int
    """Sizes that were left out behind these."""
    unmatched_bytes: int | None
    """Their bytes, as far as the source says them."""
    unmatched_releases: int | None
    """Releases of memory that was not given out during the capture."""
    unrecorded_releases: int | None
    """Buffers whose memory was given out again although their release was not recorded."""

class BufferRequester(TypedDict):
    """What one place in the program asked for."""

    allocated_bytes: int
    """Bytes that were given out, all together."""
    allocations: int
    """Times memory was given out."""
    mean_lifetime_ns: float
    """Mean lifetime in ns."""
    requester: MemoryRequester
    """Who asked; nothing known in it of allocations of which nobody is known."""

class BufferSize(TypedDict):
    """Allocations of one size."""

    allocated_bytes: int
    """Bytes that were given out, all together."""
    allocations: int
    """Times it was given out."""
    reuse_ratio: float
    """Allocations for each buffer that is needed."""
    reuses: int
    """Of the allocations such that could use a buffer again."""
    size_bytes: int
    """The size in bytes."""

class Cache(TypedDict):
    """A cache or the device's memory. Shares are 0 to 1."""

    busy_ratio: float | None
    """Its busiest part, against its peak."""
    hit_ratio: float | None
    """Sectors that it had, of those that were asked for."""
    name: str
    """`L1/TEX`, `L2` or `DRAM`."""

class CallCost(TypedDict):
    """What calls cost."""

    calls: int
    """Calls."""
    gpu_idle_ns: int | None
    """The part of `held_ns` in which no GPU worked for the process; null where no GPU ever did in the capture."""
    held_ns: int
    """Time in ns in which at least one of them ran: calls inside each other or on several threads of a process count once."""
    longest_ns: int
    """The longest in ns."""
    total_ns: int
    """Sum of their lengths in ns."""

# What kind of thing an event is.
Category: TypeAlias = Literal[
    "cuda_kernel",
    "cuda_graph",
    "cuda_memcpy_h2d",
    "cuda_memcpy_d2h",
    "cuda_memcpy_d2d",
    "cuda_memcpy_p2p",
    "cuda_memcpy_other",
    "cuda_memset",
    "cuda_migration",
    "cuda_sync",
    "cuda_api",
    "cudnn_api",
    "cublas_api",
    "nvtx_range",
    "os_runtime",
    "cpu_op",
    "annotation",
    "step",
    "python_function",
    "cpu_sample",
    "cpu_running",
    "overhead",
    "device_op",
    "gpu_annotation",
    "derived",
    "other",
]

class CategoryCount(TypedDict):
    """Events of a category."""

    captured: bool
    """Whether it was recorded at all. `false` means "not captured", which is not the same as no events."""
    category: Category
    """The category that is counted."""
    events: int | None
    """How many; null where it was not captured."""

class Change(TypedDict):
    """One kernel in both captures."""

    after_launches: int
    """Launches after."""
    after_mean_ns: float | None
    """Mean time in ns of a launch after; null without any."""
    after_total_ns: int
    """Total time in ns after."""
    before_launches: int
    """Launches before."""
    before_mean_ns: float | None
    """Mean time in ns of a launch before; null without any."""
    before_total_ns: int
    """Total time in ns before."""
    count_part_ns: int
    """The part of the difference in ns that comes from more or fewer launches: their change times the mean before, rounded once."""
    difference_ns: int
    """`after_total_ns` less `before_total_ns`."""
    duration_part_ns: int
    """The rest, in ns: launches after times the change of the mean."""
    matched_by: MatchedBy
    """By what the two sides were matched. Kernels whose whole name has no counterpart are matched by their short name."""
    name: str
    """The kernel's name; its short name where several of a side are one."""
    presence: Presence
    """Which captures it is in."""

class ClassMix(TypedDict):
    """Classes of work that ran at once, and no other did."""

    busy_ratio: float | None
    """`time_ns` of the GPU's busy time; null where nothing ran."""
    communication: bool
    """Whether communication ran."""
    compute: bool
    """Whether computation ran."""
    memory: bool
    """Whether copies or memsets ran."""
    time_ns: int
    """Time in ns during which that many GPU operations ran at once."""

# A class of work on one GPU.
ClassOfGpu = TypedDict(
    "ClassOfGpu",
    {
        # Time in ns in which at least one of them ran.
        "busy_ns": int,
        # `busy_ns` of the time in which the GPU ran anything; null where it ran nothing. Classes overlap, so these add up to more than 1.
        "busy_ratio": float | None,
        # Which class.
        "class": WorkClass,
        # Which GPU.
        "gpu": Gpu,
        # Pieces of work.
        "gpu_ops": int,
        # Sum of their lengths in ns.
        "sum_ns": int,
    },
)

# A class of work on all GPUs.
ClassOfWork = TypedDict(
    "ClassOfWork",
    {
        # Which class.
        "class": WorkClass,
        # Pieces of work.
        "gpu_ops": int,
        # Those names that take most time, the first the most.
        "names": list[NamedWork],
        # Pieces of work of further names.
        "other_gpu_ops": int,
        # Further names.
        "other_names": int,
        # Sum of their lengths in ns.
        "other_sum_ns": int,
        # Sum of their lengths in ns.
        "sum_ns": int,
        # `sum_ns` of the sum over all classes; null where nothing ran.
        "sum_ratio": float | None,
    },
)

# How the times of ranks are compared.
ClockAlignment: TypeAlias = Literal["one_clock", "by_ends"]

class CodeText(TypedDict):
    """Code that the launch ran, as far as the report has it as text."""

    left_out_bytes: int
    """Bytes of source and PTX that were left out behind the first of each."""
    machine_code_bytes: int
    """Bytes of machine code, of all kernels of the module."""
    ptx: str
    """PTX of all kernels of the module; empty where the compiler left none."""
    source: str
    """Source text; empty where the report holds none."""

# An activity on code for GPUs: loading, linking, compiling or unloading.
CodeWork: TypeAlias = Literal["load", "lazy_load", "link", "compile", "unload"]

class CodeWorkName(TypedDict):
    """The cost of all events of one name and activity."""

    category: Category
    """The category of the events."""
    cost: PhasedCost
    """Time and number of the events, in all and in the steady state."""
    kind: CodeWork
    """The activity."""
    longest: Place
    """Where in the timeline the longest of the events is."""
    name: str
    """The events' name, without numbers and addresses that differ from call to call."""

class CodeWorkRow(TypedDict):
    """The cost of one activity."""

    cost: PhasedCost
    """Time and number of the events, in all and in the steady state."""
    kind: CodeWork
    """The activity."""

class CollectiveCall(TypedDict):
    """One collective."""

    algorithm_bytes_per_second: float | None
    """Message by length."""
    bus_bytes_per_second: float | None
    """The same times the operation's factor."""
    device: int | None
    """Ordinal of the device."""
    duration_ns: int
    """Length in ns."""
    group: str
    """Name of its process group; empty where the source does not say it."""
    hidden_ns: int
    """The part of its length in which its device also computed."""
    kernel: str
    """Kernel of the call."""
    message_bytes: int | None
    """The message in bytes."""
    operation: CollectiveOperation
    """What the ranks do."""
    row: int
    """Row of the timeline."""
    start_ns: int
    """Start in ns."""

class CollectiveDevice(TypedDict):
    """The collectives of a device."""

    capture: int
    """Which capture of a merged session, 0 where there is one."""
    collectives: int
    """Kernels of collectives."""
    communication_ns: int
    """Time in ns in which one ran, counted once."""
    device: int
    """Ordinal of the device."""
    exposed_ns: int
    """The rest."""
    hidden_ns: int
    """The part of it in which the device also computed."""
    hidden_ratio: float | None
    """`hidden_ns` of `communication_ns`."""
    machine: int
    """Machine as the profiler numbers it, 0 where it does not."""

# What ranks do together.
CollectiveOperation: TypeAlias = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "send",
    "receive",
    "send_receive",
    "permute",
    "barrier",
    "other",
]

class CollectiveOutlier(TypedDict):
    """A collective that took much longer than its like."""

    call: CollectiveCall
    """The collective."""
    lost_ns: int
    """Its length less the median."""
    median_ns: float
    """Median length in ns of its like."""

class CollectiveRow(TypedDict):
    """Collectives of one operation, group size and power of two of the message's size."""

    algorithm_bytes_per_second: float | None
    """Algorithm bandwidth: `total_bytes` by `total_ns`."""
    best_bus_bytes_per_second: float | None
    """The largest bus bandwidth of one of them."""
    bus_bytes_per_second: float | None
    """Bus bandwidth: the algorithm bandwidth times the operation's factor. Null where the group's size is not known."""
    collectives: int
    """Collectives."""
    from_bytes: int | None
    """Smallest message of the bin in bytes, a power of two; null where the source does not say sizes."""
    hidden_ns: int
    """Sum of the parts of their lengths in which their device also computed."""
    hidden_ratio: float | None
    """`hidden_ns` of `total_ns`."""
    max_ns: int
    """The longest."""
    median_ns: float
    """The middle one; of an even number the mean of the two."""
    min_ns: int
    """The shortest."""
    operation: CollectiveOperation
    """What the ranks do."""
    ranks: int | None
    """Ranks of the group; null where the source does not say it."""
    total_bytes: int | None
    """Sum of their messages in bytes; null where the source does not say sizes."""
    total_ns: int
    """Sum of their lengths in ns."""

class Comparability(TypedDict):
    """How well two captures can be compared."""

    factors: list[ComparabilityFactor]
    """What it is made of."""
    score_ratio: float
    """The product of the factors, from 0 (not at all) to 1."""

class ComparabilityFactor(TypedDict):
    """A part of the score."""

    about: str
    """What was found, in a sentence."""
    name: str
    """What is compared, such as `gpus`."""
    ratio: float
    """From 0 to 1; 1 lowers nothing."""

class ComparedCapture(TypedDict):
    """One of the captures."""

    duration_ns: int
    """Length of the capture in ns."""
    gpus: list[str]
    """The GPUs that did work, by their product names; an ordinal where the source names none."""
    iterations: int
    """Iterations that are compared; 0 where none were found, or none are compared."""
    kernels: int
    """Kernels that ran in what is compared."""
    kernels_without_launch: int
    """Kernels of these whose launch was not recorded: they belong to the iteration in which they began."""
    session_id: str
    """The session's identifier."""
    tool: str
    """Name of the profiler that took it."""
    tool_version: str
    """Version of the compared capture."""

# What times are compared per.
ComparedPer: TypeAlias = Literal["auto", "capture"]

class ComparedTime(TypedDict):
    """The compared time of both captures, and the statistics of its change."""

    after_mean_ns: float | None
    """Mean length of an iteration of the second capture in ns; null where `kind` is not `iteration`."""
    after_ns: float | None
    """The compared time of the second capture in ns; null where `kind` is `nothing`."""
    before_mean_ns: float | None
    """Mean length of an iteration of the first capture in ns; null where `kind` is not `iteration`. A few long iterations change the mean and not the median.
    """
    before_ns: float | None
    """The compared time of the first capture in ns; null where `kind` is `nothing`."""
    change_high_percent: float | None
    """Upper bound of the confidence interval of the change in percent; null without enough iterations."""
    change_low_percent: float | None
    """Lower bound of the confidence interval of the change in percent, by a percentile bootstrap with the confidence of the parameters; null without enough
    iterations.
    """
    change_percent: float | None
    """Change in percent: 100 × (`after_ns` / `before_ns` − 1). Positive where the second capture is slower."""
    kind: ComparedTimeKind
    """Which time is compared."""
    noise_floor_percent: float
    """Smallest change in percent that is distinguished from noise: the parameter, or half the width of the confidence interval where that is more."""
    p_value: float | None
    """Two-sided p-value of the Mann–Whitney test of the lengths of iterations; null where a capture has fewer than four."""
    threshold_percent: float
    """Change in percent from which on the verdict is a regression or an improvement."""

# The time by which two captures are compared.
ComparedTimeKind: TypeAlias = Literal["iteration", "gpu_span", "nothing"]

# What a time is of.
ComparedUnit: TypeAlias = Literal["iteration", "capture"]

# The verdict on a change of the compared time.
ComparisonVerdict: TypeAlias = Literal["regression_likely", "improvement_likely", "neutral", "inconclusive"]

# Code as torch.compile counts it: the function's frame and how often it was compiled before, e.g. 0/1.
CompileId: TypeAlias = str

class CompilePhase(TypedDict):
    """A phase of the compiler, all its events together."""

    calls: int
    """How often it ran."""
    longest: Place
    """The longest of its events."""
    name: str
    """Its name, e.g. `compile_fx_inner`."""
    own_ns: int
    """Time in ns in which it ran and no phase inside it. These add up to the whole compile time."""
    total_ns: int
    """Time in ns in which it ran, phases inside it counted in: the union per thread, summed over threads."""

class CompileReportBreak(TypedDict):
    """A graph break and how to avoid it."""

    reason: str
    """Why the graph ended, what ran there and on which line, as far as the capture holds it."""
    suggestion: str
    """What the user can do, in sentences; empty where nothing is to be done."""

class CompileSide(TypedDict):
    """A capture beside others."""

    compile_ns: int
    """Compile time in ns."""
    compiled_gpu_ns: int | None
    """Sum of the lengths in ns of GPU work launched by compiled code, its backward pass and what stands between its graphs counted in."""
    coverage_ratio: float | None
    """Coverage: `compiled_gpu_ns` of `gpu_ns`."""
    gpu_ns: int | None
    """Sum of the lengths of GPU work in ns; null where none was recorded."""
    graph_breaks: int
    """Different graph breaks."""
    graph_coverage_ratio: float | None
    """`graph_gpu_ns` of `gpu_ns`."""
    graph_gpu_ns: int | None
    """The same of what graphs launched themselves."""
    graph_launches: int
    """Launches of CUDA graphs, by which `reduce-overhead` is known."""
    is_compiled: bool
    """Whether it holds compiled code. A capture that does not is taken for the eager program."""
    iterations: int
    """Iterations that count: without the first one and those in which code was compiled."""
    iterations_to_pay_back: float | None
    """Iterations after which this capture's compile time is paid back by what each saves against the eager capture; null where it saves nothing."""
    kernels_per_iteration: float | None
    """Mean kernels launched in such an iteration; null without iterations or kernels."""
    label: str
    """What it is called."""
    mean_iteration_ns: int | None
    """Their mean length in ns; null without any."""
    recompiles: int
    """Code compiled again."""
    speedup: float | None
    """Mean iteration of the first eager capture over this one's: above 1 is faster. Null without one of them."""
    triton_kernels: int
    """Kernels of Triton."""
    triton_ratio: float | None
    """Time of Triton's kernels (`triton_*`) of the time of all kernels."""
    unmatched: int
    """Kernels of GPU work whose launch was not recorded, so that no code is known to have launched them."""

class CompileThread(TypedDict):
    """Compile time of a thread."""

    compile_ns: int
    """Time in ns in which it compiled."""
    longest: Place
    """The longest of them."""
    pieces: int
    """Pieces of time in which it did."""
    process: int
    """Process id."""
    thread: int | None
    """Thread id; null where the source does not say."""

class CompiledRegion(TypedDict):
    """Compiled code: its runs, without those of other code inside them where it says so."""

    code: CompileId | None
    """Which code; null where the version of PyTorch does not say."""
    compile_ns: int
    """Compilation within, in ns."""
    gpu_ns: int | None
    """Sum of their lengths in ns."""
    gpu_operations: int | None
    """GPU operations that it launched itself, without those of runs inside; null where no GPU work was recorded."""
    gpu_operations_per_run: float | None
    """`gpu_operations` by `runs`."""
    inner_runs: int
    """Runs inside a run of other code, which go on behind a graph break."""
    longest: Place
    """The longest run."""
    runs: int
    """Runs."""
    total_ns: int
    """Time in ns of its runs, with runs inside them and compilation."""

# How sure it is that the cause is what the finding says.
Confidence: TypeAlias = Literal["low", "medium", "high"]

class CopiesOverTime(TypedDict):
    """Copies of one kind on a GPU."""

    busy_ns: int
    """Time in ns in which at least one of them ran."""
    bytes: int
    """Bytes that they moved or set, those whose size the source says."""
    bytes_by_bin: list[int]
    """Bytes in each part, of copies of known size; those of a copy are spread evenly over the time that it ran."""
    bytes_per_second: float | None
    """`bytes` by the time in which one of known size ran, in bytes per second; null where these took no time."""
    category: Category
    """Which kind."""
    copies: int
    """Copies."""
    gpu: Gpu
    """Which GPU."""
    unknown_sizes: int
    """Copies whose size it does not say."""

class CopyDifference(TypedDict):
    """Copies of one direction, or memsets. Times and bytes are per iteration or capture, as the result's `unit` says."""

    after_bytes: int | None
    """Bytes after; null where a copy does not say them."""
    after_calls: int
    """How many after, in all that is compared."""
    after_ns: int
    """Time in ns after."""
    before_bytes: int | None
    """Bytes before; null where a copy does not say them."""
    before_calls: int
    """How many before, in all that is compared."""
    before_ns: int
    """Time in ns before."""
    category: str
    """Its category, such as `cuda_memcpy_h2d`."""
    difference_bytes: int | None
    """`after_bytes` less `before_bytes`; null where one of them is."""
    difference_ns: int
    """`after_ns` less `before_ns`."""

# Whose formulas a figure is made by.
DefinedBy: TypeAlias = Literal["report", "flopwatch"]

# Where the steps are done.
Device: TypeAlias = Literal["gpu", "cpu"]

# An event: what every event has, and the columns of its category beside these.
EventRecord: TypeAlias = dict[str, str | int | EventValue]

# A value of an event.
EventValue: TypeAlias = int | str

class Evidence(TypedDict):
    """A figure that a finding rests on."""

    place: Place | None
    """Where it is in the timeline."""
    unit: PageUnit
    """How the value is shown."""
    value: PageCell
    """Value of the figure."""
    what: str
    """What the figure measures, in a few words."""

class ExclusiveTime(TypedDict):
    """The parts of a window. They add up to it exactly: `compute + exposed communication + exposed memory + idle = window`. Time that is shared counts for
    computation first, then for communication, as in TraceLens (`gpu_event_analyser.py`).
    """

    compute_ns: int
    """Time in ns in which a kernel computed."""
    exposed_communication_ns: int
    """Time in ns in which communication ran and nothing computed."""
    exposed_memory_ns: int
    """Time in ns in which a copy or memset ran and nothing computed or communicated."""
    idle_ns: int
    """Time in ns in which nothing ran."""
    window_ns: int
    """Length of the window in ns."""

class Figures(TypedDict):
    """Figures of a launch; null is what was not measured. Shares are 0 to 1."""

    achieved_occupancy: float | None
    """Warps that it held on average, of its most."""
    bandwidth_bytes_per_second: float | None
    """Traffic of the device's memory."""
    bandwidth_share: float | None
    """That against its peak."""
    compute_share: float | None
    """Busiest part of the multiprocessors against its peak."""
    duration_ns: float | None
    """How long it took, alone on the GPU, in ns."""
    flop_per_second: float | None
    """Single precision, as the roofline counts: an addition or multiplication is one, a fused one two."""
    flop_share: float | None
    """That against its peak."""
    l1_hit_rate: float | None
    """Sectors that L1/TEX had, of those that were asked for."""
    l2_hit_rate: float | None
    """The same of L2."""
    load_efficiency: float | None
    """Bytes that global loads asked for, of those that were moved for them."""
    store_efficiency: float | None
    """Likewise of global stores."""
    theoretical_occupancy: float | None
    """Warps that a multiprocessor can hold, of its most, by the launch's registers, shared memory and block size."""

class Finding(TypedDict):
    """What is slow, why, and what to do."""

    actions: list[str]
    """What to do, the likeliest remedy first."""
    area: Area
    """Which part of the work it is about."""
    confidence: Confidence
    """How sure it is."""
    evidence: list[Evidence]
    """The figures that it rests on, some with a place in the timeline."""
    gain: Gain | None
    """What mending it is worth; null where nothing honest can be said."""
    rule: str
    """The rule that found it."""
    sentence: str
    """What was found, with its figures."""
    severity: Severity
    """How much it matters: by the gain where one is estimated."""
    title: str
    """What it is, in a few words."""

class FirstLaunch(TypedDict):
    """The first launch of a kernel beside its later ones."""

    first_call_ns: int
    """Length in ns of the call that launched it first."""
    kernel: str
    """The kernel."""
    launches: int
    """Launches."""
    median_ns: float
    """Median of the others in ns; between two middle ones, their mean."""
    place: Place
    """Where the first call is."""

class FlameDifferenceFrame(TypedDict):
    """A frame: equal stacks of both captures are merged."""

    after_ns: int
    """Time in ns of the second capture."""
    before_ns: int
    """Time in ns of the first capture."""
    children: NotRequired[list[FlameDifferenceFrame]]
    """The frames inside it, the longest first."""
    delta: int
    """`after_ns` without `before_ns`."""
    kind: FrameKind
    """The kind of the frame."""
    name: str
    """Name of the frame."""
    self_delta: int
    """The change in ns without that of the frames inside it."""
    value: int
    """Time in ns of both captures together, with that of the frames inside it."""

class FlameFrame(TypedDict):
    """A frame: equal stacks are merged."""

    children: NotRequired[list[FlameFrame]]
    """The frames inside it, the longest first."""
    count: int
    """GPU operations in it; of the CPU's time how often it ran; of samples how many there are."""
    kind: FrameKind
    """The kind of the frame."""
    name: str
    """Name of the frame."""
    self_ns: int
    """Its time in ns without that of the frames inside it."""
    value: int
    """Its time in ns, with that of the frames inside it."""

# What the outermost frames stand for.
FlameGrouping: TypeAlias = Literal["none", "process", "thread", "device", "stream"]

# Which frames stacks are made of.
FlameStacks: TypeAlias = Literal["all", "nvtx", "operators", "python"]

# Which time a flame graph is made of.
FlameWeight: TypeAlias = Literal["gpu", "cpu", "samples"]

# Where the floating-point operations come from.
FlopsSource: TypeAlias = Literal["given", "counters", "hlo", "operators"]

class FocusMetric(TypedDict):
    """A metric that a rule points at."""

    info: str
    """What should become of it, or what it was compared with."""
    name: str
    """Name of the metric."""
    value: float | None
    """Its value, where the profiler says it."""

# What a frame is.
FrameKind: TypeAlias = Literal[
    "all",
    "group",
    "step",
    "range",
    "annotation",
    "python",
    "operator",
    "call",
    "function",
    "kernel",
    "graph",
    "copy",
    "device_op",
    "rest",
]

class Gain(TypedDict):
    """What mending something is worth."""

    assumption: str
    """What must hold for it."""
    gain_ns: int
    """Wall time in ns within the window; with several GPUs the mean over them."""
    window_share_ratio: float
    """Its share of the window, from 0 to 1."""

class GapBucket(TypedDict):
    """Gaps of about one length."""

    from_ns: int
    """Shortest in ns."""
    gaps: int
    """How many gaps."""
    idle_ns: int
    """Length of the gaps, in ns."""
    to_ns: int | None
    """The length in ns that is no longer among them; null of the last bucket."""

class GapHolder(TypedDict):
    """An operator or range."""

    category: Category
    """Category of the call in the gap."""
    name: str
    """Name of the call in the gap."""

class GapPart(TypedDict):
    """What a thread did in a part of a gap."""

    activity: HostActivity
    """What the thread did."""
    name: str | None
    """The call, where it was one."""
    time_ns: int
    """For how long in ns."""

class GivenUp(TypedDict):
    """A function that Dynamo gave up in the capture: it runs uncompiled from then on, and functions that it calls are compiled by themselves. A graph break in
    a loop or a `with` does that.
    """

    code: CompileId
    """The number that its code would have had."""
    compile_ns: int
    """Time in ns that the attempt took."""
    place: Place | None
    """The longest piece of it."""

class Gpu(TypedDict):
    """A GPU of a timeline. Ordinals are unique within a machine only, and a merged session holds captures of several machines."""

    capture: int
    """Which capture of a merged session, 0 where there is one."""
    device: int
    """Ordinal of the device."""
    machine: int
    """Machine as the profiler numbers it, 0 where it does not."""

class GpuBusy(TypedDict):
    """How long a GPU was busy. Captures that were merged, and machines, may have one of the same ordinal each."""

    busy_ns: int
    """Length in ns of the union of its kernels, whole graphs, copies and memsets."""
    busy_ratio_of_events_span: float
    """`busy_ns` as a share of [`super::Summary::events_span_ns`], 0 to 1."""
    busy_ratio_of_window: float
    """`busy_ns` as a share of the window, 0 to 1."""
    device: int
    """Ordinal of the device."""
    name: str
    """Its product name, and of a MIG instance which one it is; empty where the source does not tell it."""

class GpuStream(TypedDict):
    """A stream of a GPU."""

    context: int | None
    """CUDA context; null where the source does not say."""
    gpu: Gpu
    """The GPU."""
    process: int
    """Process that launched its work."""
    row: int
    """The timeline's row."""
    stream: int | None
    """CUDA stream; null where the source does not say."""

class GpuTimeDifference(TypedDict):
    """A part of the GPUs' time, of all devices together, per iteration or capture."""

    after_ns: int
    """Time in ns after."""
    before_ns: int
    """Time in ns before."""
    difference_ns: int
    """`after_ns` less `before_ns`."""
    part: str
    """`compute`, `exposed_communication`, `exposed_memory` or `idle`, which add up to `window`."""

class GraphBreak(TypedDict):
    """A graph break: where one compiled graph ends and the next begins."""

    between_ns: int
    """Sum in ns of the time between the two graphs over all `runs`, without compilation."""
    broken: CompileId | None
    """The code whose graph ended, as it was compiled first in the capture."""
    is_given_up: bool
    """Whether the function was given up: it runs uncompiled, and its graphs are those of functions that it calls. Only Python stacks tell."""
    location: str | None
    """Source line on which the program goes on after the break, e.g. `train.py(10): forward`; of a function that was given up, that function. Null without
    Python stacks.
    """
    place: Place
    """The first of the `runs` in the timeline: from the end of the graph to the start of the next."""
    reason: BreakReason
    """Why the graph ended."""
    resumed: CompileId | None
    """The compiled code that the program goes on with after the break."""
    runs: int
    """How often the program went through the break in the capture."""
    seen: str
    """What ran between the graphs, e.g. `aten::item`; empty where nothing was recorded."""
    suggestion: str
    """What a user can change so that the graph does not end here, as a sentence."""

class HTAKernel(TypedDict):
    """A kernel."""

    name: str
    """Name of the kernel."""
    time_us: float
    """Total time of its launches in µs."""

# What bounds an operation on its device's roofline.
HloBound: TypeAlias = Literal["compute", "memory"]

class HloBuffer(TypedDict):
    """A value in memory."""

    allocation: int
    """Number of its allocation."""
    begin_step: int
    """First step at which it is there."""
    bytes: int
    """Size of the buffer, in bytes."""
    end_step: int | None
    """First step at which it is not; null of a value that is there to the end."""
    framework_op: str
    """Operation of the framework; may be empty."""
    instruction: str
    """The instruction whose value it is, with its part in braces where it is a tuple's; empty where the program names none."""
    kind: HloBufferUse
    """What it is for."""
    offset_bytes: int
    """Where it begins in the allocation."""
    opcode: str
    """Opcode of the instruction."""
    shape: str
    """Shape of the value."""
    source: str | None
    """Line of source, `file:line`; null where it is not known."""

# What an allocation is for.
HloBufferUse: TypeAlias = Literal["parameter", "output", "constant", "temporary"]

class HloComputation(TypedDict):
    """A computation: a function of instructions."""

    called_by: str | None
    """The instruction that calls it, the first where there are several; null of the computation that runs."""
    caller: str | None
    """The computation of that instruction."""
    depth: int | None
    """How many calls lie between it and the computation that runs; null where none leads to it."""
    instructions: int
    """Number of instructions of the computation."""
    kind: HloGraphComputationKind
    """What calls it."""
    name: str
    """Name of the computation."""

# A value that an instruction takes, or a computation that it calls.
HloEdge = TypedDict(
    "HloEdge",
    {
        # Where it comes from: a place in `nodes`.
        "from": int,
        # Whether the edge is an operand or a call.
        "kind": HloEdgeKind,
        # Where it goes: a place in `nodes`.
        "to": int,
    },
)

# The kind of an edge.
HloEdgeKind: TypeAlias = Literal["operand", "called"]

# Where a figure comes from.
HloFigureSource: TypeAlias = Literal["profiler", "program"]

class HloFusion(TypedDict):
    """A fusion: instructions that become one kernel."""

    bytes: int
    """Bytes that it reads and writes in one run."""
    flops: int
    """Floating-point operations of one run."""
    framework_op: str
    """Operation of the framework; may be empty."""
    holds: str
    """Their opcodes with how often each occurs, the most frequent first: `multiply 3, add 2`."""
    instructions: int
    """Instructions inside it, without parameters and constants."""
    kind: str
    """How it is compiled: `kLoop`, `kInput`, `kOutput`, `kCustom`."""
    name: str
    """Name of the fusion."""
    saved_bytes: int
    """Bytes that its instructions would read and write one by one, without those."""
    shape: str
    """Shape of its value."""
    source: str | None
    """Line of source, `file:line`; null where it is not known."""

# What calls a computation.
HloGraphComputationKind: TypeAlias = Literal["entry", "fusion", "loop", "call", "applied", "unused"]

class HloKernel(TypedDict):
    """A kernel of an operation."""

    average_ns: float | None
    """Time in ns of one."""
    framework_op: str
    """Operation of the framework; may be empty."""
    kernel: str
    """The kernel's name."""
    launches: int
    """Number of launches of the kernel."""
    operation: str
    """The operation that it belongs to."""
    program: str
    """The operation's program; may be empty."""
    source: str | None
    """Line of source, `file:line`; null where it is not known."""
    total_ns: int
    """Time in ns of all of them."""

class HloMemoryStep(TypedDict):
    """A step of the program at which a value begins or ends."""

    bytes: int
    """Bytes in use behind it."""
    instruction: str
    """The instruction whose value it is."""

class HloNode(TypedDict):
    """An instruction of the graph."""

    bytes: int
    """Bytes that it reads and writes in one run."""
    computation: str
    """Computation of the instruction."""
    distance: int | None
    """Steps from the instruction that was asked for; null of a whole program."""
    flops: int
    """Floating-point operations of one run, with all that it calls."""
    framework_op: str
    """Operation of the framework; may be empty."""
    is_root: bool
    """Whether its computation gives its value."""
    name: str
    """Its name, unique in the program."""
    opcode: str
    """Opcode of the instruction."""
    shape: str
    """Shape of its value."""
    source: str | None
    """Line of source, `file:line`; null where it is not known."""

class HloOpcodeCount(TypedDict):
    """How often an opcode occurs."""

    after: int | None
    """Instructions after optimisation, inside fusions included; null where no capture holds that program."""
    before: int | None
    """Instructions before optimisation; null where no capture holds that program."""
    in_fusions: int | None
    """Those of them that are inside fusions."""
    opcode: str
    """The opcode."""

class HloOperation(TypedDict):
    """An operation of a compiled program."""

    average_ns: float | None
    """`total_ns` of one occurrence."""
    bound: HloBound | None
    """What bounds it; null where the device's peaks are not known, and of an operation that only begins or awaits work beside others."""
    bytes: int | None
    """Bytes that one occurrence reads and writes, from whatever memory; null where they are not known."""
    bytes_per_second: float | None
    """Bytes per second; null where `flops_per_second` is for that reason."""
    bytes_source: HloFigureSource | None
    """Where `bytes` come from."""
    category: str
    """Kind of operation, e.g. `loop fusion`; may be empty."""
    events: int
    """Its events: kernels, copies, or operations of the device."""
    flops: int | None
    """Floating-point operations of one occurrence; null where they are not known."""
    flops_per_second: float | None
    """Floating-point operations per second; null of an operation that only begins or awaits work beside others (`copy-start`, `copy-done`), whose time is not
    that of the work.
    """
    flops_source: HloFigureSource | None
    """Where `flops` come from."""
    framework_op: str
    """Operation of the framework, e.g. `jit(f)/dot_general`; may be empty."""
    intensity: float | None
    """Arithmetic intensity: `flops` per byte."""
    is_asynchronous: bool
    """Whether it runs beside the others, so that its time is theirs too."""
    occurrences: int
    """How often it ran. An operation of several kernels ran as often as the rarest of those that take a tenth of its time or more."""
    opcode: str | None
    """Opcode of its instruction; null where the capture does not hold the program."""
    operation: str
    """Its name in the program."""
    place: Place | None
    """Its longest event in the timeline."""
    program: str
    """Its program; may be empty."""
    program_id: str
    """Number of the program, in decimal digits: it may be larger than a double holds."""
    self_ns: int
    """Time in ns without that of operations inside it."""
    self_ratio: float | None
    """`self_ns` of that of all operations; null of an asynchronous one."""
    shape: str | None
    """Shape of its value; null where the capture does not hold the program."""
    source: str | None
    """Line of source, `file:line`; null where it is not known."""
    total_ns: int
    """Time in ns of all of them."""

class HloProgramCost(TypedDict):
    """Work and time of a program."""

    bytes: int
    """Bytes that its instructions read and write in one run, from whatever memory."""
    bytes_per_second: float | None
    """Bytes per second of that time."""
    cost_analysis_bytes: int
    """`bytes` as `compiled.cost_analysis()` counts them: loops once, 8 bytes for each pointer of a tuple, all of what a gather in a fusion takes from, and 1
    byte less for each function of a library. It adds in floats of 32 bits, and so differs from this by the part that they round.
    """
    cost_analysis_flops: int
    """`flops` as `compiled.cost_analysis()` counts them: loops once, and operations on integers with the others."""
    cost_analysis_transcendentals: int
    """`transcendentals` as `compiled.cost_analysis()` counts them."""
    flops: int
    """Floating-point operations of one run; loops count as often as they run, where the compiler knows that."""
    flops_per_second: float | None
    """Floating-point operations per second of that time."""
    integer_operations: int
    """Operations on integers and truth values of one run."""
    intensity: float | None
    """`flops` per byte."""
    is_optimised: bool
    """Whether it is one after optimisation."""
    program: str
    """Name of the program."""
    program_id: str
    """Its number, in decimal digits."""
    runs: int | None
    """How often it ran: as often as that of its operations outside of loops that ran most often; null where none was seen."""
    self_ns: int | None
    """Time in ns of its operations by themselves, of all runs and devices; null where none was seen."""
    transcendentals: int
    """Transcendental functions of one run, one per element."""
    unknown_instructions: int
    """Instructions whose operations are not known, such as library functions."""
    unknown_loops: int
    """Loops whose number of runs is not known; each counts once."""

class HloProgramEntry(TypedDict):
    """A program to choose."""

    computations: int
    """Its computations, those inside fusions included."""
    instructions: int
    """Number of instructions of the program."""
    is_optimised: bool
    """Whether it is one after optimisation, whose instructions are in the order in which they run."""
    program: str
    """Name of the program."""
    program_id: str
    """Its number, in decimal digits: it may be larger than a double holds."""

# A stage of a program's compilation.
HloStage: TypeAlias = Literal["auto", "before", "after"]

class HloUnmeasuredOperation(TypedDict):
    """An operation of a compiled program whose time was not measured. Its work is that of one run, counted from the program; that of a loop or a call is the
    work of what it calls.
    """

    bytes: int
    """Bytes that it reads and writes, from whatever memory."""
    category: str
    """Kind of operation, e.g. `loop fusion`."""
    flops: int | None
    """Floating-point operations; null where a function of a library does some that are not known."""
    framework_op: str
    """Operation of the framework, e.g. `jit(f)/dot_general`; may be empty."""
    intensity: float | None
    """Arithmetic intensity: `flops` per byte."""
    opcode: str
    """Opcode of its instruction."""
    operation: str
    """Its name in the program."""
    program: str
    """Its program."""
    program_id: str
    """Number of the program, in decimal digits; `0` of a text, which has none."""
    shape: str
    """Shape of its value."""
    source: str | None
    """Line of source, `file:line`; null where it is not known."""

# What a thread does.
HostActivity: TypeAlias = Literal[
    "synchronize",
    "allocate",
    "load_module",
    "copy",
    "launch",
    "other_call",
    "profiler",
    "os_wait",
    "os_call",
    "nothing_recorded",
    "launch_latency",
]

class IdleCause(TypedDict):
    """What launching threads did while a GPU waited for the host."""

    activity: HostActivity
    """What a launching thread did meanwhile."""
    host_wait_ratio: float | None
    """`idle_ns` of the idle time of host wait."""
    idle_ns: int
    """For how long in ns."""

# Why a gap is there, as HolisticTraceAnalysis tells it, from the work that ends it.
IdleClass: TypeAlias = Literal["host_wait", "kernel_wait", "other", "launch_not_recorded"]

# A gap of a GPU.
IdleGap = TypedDict(
    "IdleGap",
    {
        # The work that ends it.
        "after": str,
        # The timeline's row of the work that ends it.
        "after_row": int,
        # The work before it.
        "before": str,
        # The timeline's row of that call.
        "call_row": int | None,
        # When the call that launched that work began, in ns; null where it was not recorded.
        "call_start_ns": int | None,
        # Why it is there.
        "class": IdleClass,
        # The innermost operator and range of the launching thread in the middle of the gap.
        "during": list[GapHolder],
        # End in ns.
        "end_ns": int,
        # Which GPU.
        "gpu": Gpu,
        # Length in ns.
        "idle_ns": int,
        # The innermost operator and range that made the call.
        "launched_in": list[GapHolder],
        # Start in ns since the session's start.
        "start_ns": int,
        # What the launching thread did in the gap, longest first; these add up to it. Empty where the call was not recorded.
        "thread": list[GapPart],
    },
)

# Gaps of a class.
IdleOfClass = TypedDict(
    "IdleOfClass",
    {
        # What the GPU waited for in these gaps.
        "class": IdleClass,
        # How many gaps.
        "gaps": int,
        # Length of the gaps, in ns.
        "idle_ns": int,
        # `idle_ns` of all idle time; null where there is none.
        "idle_ratio": float | None,
    },
)

class IdleOfGpu(TypedDict):
    """Idle time of a GPU, from the first start to the last end of its work."""

    classes: list[IdleOfClass]
    """The classes, every one of them."""
    end_ns: int
    """Last end in ns."""
    gpu: Gpu
    """The GPU that was idle."""
    host_wait_causes: list[IdleCause]
    """What the launching threads did during the gaps of host wait; these add up to the time of that class."""
    idle_ns: int
    """Idle time in ns: the sum of `classes`."""
    idle_ratio: float | None
    """`idle_ns` of the time from start to end; null where that is no time."""
    start_ns: int
    """First start in ns since the session's start."""

class IdleOfStream(TypedDict):
    """Idle time of a stream, from the first start to the last end of its work."""

    classes: list[IdleOfClass]
    """The classes, every one of them."""
    end_ns: int
    """Last end in ns."""
    idle_ns: int
    """Idle time in ns: the sum of `classes`."""
    idle_ratio: float | None
    """`idle_ns` of the time from start to end; null where that is no time."""
    start_ns: int
    """First start in ns since the session's start."""
    stream: GpuStream
    """The stream that was idle."""

class Instruction(TypedDict):
    """An instruction at an address."""

    executed: int | None
    """Times that a warp executed it."""
    inlined: list[str]
    """Where it was inlined: the innermost source line first, then that of each call; empty where nothing was."""
    offset_bytes: int
    """Bytes behind the kernel's first instruction; behind the first with figures where the report holds no machine code of it."""
    ptx_line: int | None
    """The line of the module's PTX that it was made of, counted from 1."""
    sample_ratio: float | None
    """Share of the launch's samples, 0 to 1."""
    samples: int | None
    """Samples of warps that were at it."""
    source: str | None
    """The source line that it comes from, as `file:line`; null where the machine code has no table of lines."""
    stall: str | None
    """The state that most of them were in."""
    text: str | None
    """Its text (SASS) as NVIDIA's disassembler writes it; null where it was not disassembled."""
    threads: int | None
    """Threads that executed it, in all."""

class InstructionMix(TypedDict):
    """Instructions by opcode."""

    opcodes: list[Opcode]
    """Opcodes, the most executed first."""

# How iterations are looked for.
IterateBy: TypeAlias = Literal["auto", "step", "range", "kernels"]

class IterationDetail(TypedDict):
    """The kernels, copies and memsets of an iteration, the longest in all first."""

    kernels: list[IterationKernel]
    """What ran."""
    left_out: int
    """Names behind the list's limit."""
    number: int
    """Number of the iteration."""
    of_median_ratio: float
    """Its length as a share of the median of its loop."""
    row: int
    """The timeline's row of its loop."""

# GPU work of one name in an iteration.
IterationKernel = TypedDict(
    "IterationKernel",
    {
        # What it is for.
        "class": WorkClass,
        # End in ns of the last.
        "end_ns": int,
        # How often it ran.
        "instances": int,
        # Longest in ns.
        "max_ns": int,
        # Name of the kernel.
        "name": str,
        # Start in ns of the first.
        "start_ns": int,
        # Sum of the lengths in ns.
        "total_ns": int,
    },
)

class IterationRow(TypedDict):
    """One iteration."""

    copies: int
    """Copies and memsets."""
    devices: int
    """Devices that worked for it."""
    end_ns: int
    """End in ns."""
    gpu_end_ns: int | None
    """End of its last GPU work in ns."""
    gpu_gap_before_ns: int | None
    """Time in ns from the end of the loop's GPU work of earlier iterations to the start of its own; 0 where they overlap, null of the first."""
    gpu_start_ns: int | None
    """Start of its first GPU work in ns; null without any."""
    graphs: int
    """Whole CUDA graphs: how many kernels ran in them was not recorded."""
    kernels: int
    """Kernels that ran for it."""
    name: str
    """Name of its range or step; empty of a period of kernels."""
    number: int
    """The step's number, or how many iterations of its loop are before it."""
    outlier: bool
    """Whether it took much longer than the others: more than the median by 10 percent and by four median deviations."""
    parts: ExclusiveTime
    """What its GPU time went to: per device from its first to its last work, summed over devices."""
    period_ns: int | None
    """From its start to the loop's next one in ns; null of the last."""
    process: int
    """Process of the loop."""
    row: int
    """The timeline's row: the thread of the loop, or of a period of kernels the stream."""
    start_ns: int
    """Start in ns since the session's start."""
    time_ns: int
    """Length in ns."""
    warm_up: bool
    """Whether it is warm-up."""

# What iterations were found from.
IterationSource: TypeAlias = Literal["step", "device_step", "range", "range_to_next", "kernel_period"]

class IterationStatistics(TypedDict):
    """Figures of lengths in ns."""

    deviation_ns: float
    """Standard deviation of a sample (divided by one less than their number); 0 of one."""
    max_ns: int
    """Longest."""
    mean_ns: float
    """Mean."""
    median_ns: float
    """Median; between two middle ones, their mean."""
    min_ns: int
    """Shortest."""
    p95_ns: int
    """The shortest that 95 of 100 do not exceed (nearest rank)."""

class JoinCoverage(TypedDict):
    """How much was joined."""

    profiled_launches: int
    """Launches that were profiled."""
    profiled_launches_joined: int
    """Those of them whose kernel is in the timeline."""
    time_ratio: float | None
    """That of the whole time, 0 to 1; null without kernels."""
    timeline_joined_ns: int
    """Time of those whose kernel was profiled, in ns."""
    timeline_launches: int
    """Launches of kernels in the timeline."""
    timeline_launches_joined: int
    """Those of them whose kernel was profiled."""
    timeline_total_ns: int
    """Time of all kernels in the timeline, in ns."""

# By what a kernel was found in both.
JoinedBy: TypeAlias = Literal["name", "short_name"]

class JoinedKernel(TypedDict):
    """A kernel that is in both."""

    block: list[int]
    """Threads per block in x, y and z."""
    compute_ratio: float | None
    """Busiest part of the multiprocessors of the first profiled launch, 0 to 1."""
    grid: list[int]
    """Thread blocks in x, y and z."""
    joined_by: JoinedBy
    """By what it was joined; grid and block are equal in any case."""
    limiter: Limiter | None
    """What bounds the first profiled launch."""
    memory_ratio: float | None
    """Busiest part of caches and memory of the first profiled launch, 0 to 1."""
    name: str
    """Its name, as the profiler has it."""
    occupancy_ratio: float | None
    """Warps of the first profiled launch, of the most that a multiprocessor holds, 0 to 1."""
    profiled_launches: int
    """Launches that were profiled."""
    profiled_mean_ns: float | None
    """Mean time in ns of a profiled launch, alone on the GPU."""
    slowdown_ratio: float | None
    """Mean time in the timeline, of that alone."""
    timeline_launches: int
    """Launches in the timeline."""
    timeline_mean_ns: float
    """Mean time in ns of a launch in the timeline."""
    timeline_total_ns: int
    """Time of the launches in the timeline, in ns."""

class JoinedLaunch(TypedDict):
    """A profiled launch and the launch of the timeline with the same kernel and order."""

    input: int
    """Which of the two captures is the timeline, counted from 0."""
    launch: int
    """The launch's number in the report."""
    name: str
    """The kernel's name, as the profiler has it."""
    order: int
    """Which launch of this kernel it is, counted from 0, in both."""
    profiled_ns: float | None
    """How long it took when it was profiled, in ns."""
    row: int
    """Its row of the timeline."""
    start_ns: int
    """When it started in the timeline, in ns since the session's start."""
    timeline_ns: int
    """How long it took in the timeline, in ns."""

class LaunchCoverage(TypedDict):
    """How much of the GPU work has the call that launched it."""

    before_call: int
    """Those that began before their call did, by clocks that disagree."""
    gpu_ops: int
    """Kernels, copies and memsets."""
    joined: int
    """Those whose call was recorded: figures of launches are of these alone."""
    joined_ratio: float | None
    """`joined` of `gpu_ops`; null without work."""

# The change of one launch's point between two consecutive captures.
LaunchMove = TypedDict(
    "LaunchMove",
    {
        # Index in `points` of the launch in the earlier capture.
        "from": int,
        # Intensity in the later capture, divided by that in the earlier one.
        "intensity_ratio": float,
        # Index in `points` of the launch in the later capture.
        "to": int,
        # Work per second in the later capture, divided by that in the earlier one.
        "work_ratio": float,
    },
)

class LaunchPattern(TypedDict):
    """A sequence of GPU operations that an operator or range launched."""

    category: Category
    """Category of the pattern."""
    count: int
    """How often it launched exactly this sequence."""
    first_end_ns: int
    """End of the first occurrence in ns."""
    first_row: int
    """The timeline's row of the first occurrence."""
    first_start_ns: int
    """Start of the first occurrence in ns since the session's start."""
    gpu_ns: int
    """Sum of the lengths of all GPU operations of all occurrences in ns."""
    gpu_ops: list[str]
    """Their names in the order in which they began, the first [`LaunchPattern::MAX_NAMES`] of them."""
    host_ns: int
    """Sum of the lengths of the operators or ranges in ns."""
    length: int
    """GPU operations of the sequence."""
    name: str
    """Name of the operator or range, without what tells one call from the next (`op_id = 9`)."""

class LaunchPoint(TypedDict):
    """One launch against one peak of work and one peak of memory bandwidth."""

    attainable_per_second: float
    """Operations per second that the device can reach at the launch's intensity: the lower of `peak_work_per_second` and of `intensity` times
    `peak_bytes_per_second`.
    """
    bound: Bound
    """Whether computation or memory bandwidth limits the launch."""
    bytes_defined_by: DefinedBy
    """Source of the formula by which the bytes are counted: the profiler's report or Flopwatch."""
    bytes_per_second: float
    """Bytes per second that the launch moved."""
    input: int
    """Index of the launch's capture among the inputs, counted from 0."""
    intensity: float
    """Arithmetic intensity: operations per byte that the launch moved."""
    launch: int
    """The launch's number in its report."""
    memory: MemoryLevel
    """The memory whose traffic and peak bandwidth are taken."""
    name: str
    """The kernel's name."""
    peak_bytes_per_second: float
    """Peak of bytes per second of the memory, at the clock rates of this launch."""
    peak_work_per_second: float
    """Peak of operations per second of the device, at the clock rates of this launch."""
    reached_ratio: float
    """`work_per_second` as a share of `attainable_per_second`, 0 to 1."""
    work: WorkKind
    """The kind of work that is counted, as FP32 or tensor-core operations."""
    work_defined_by: DefinedBy
    """Source of the formula by which the work is counted: the profiler's report or Flopwatch."""
    work_per_second: float
    """Operations per second that the launch reached."""

class LaunchRow(TypedDict):
    """A call and its first work."""

    call_name: str
    """Name of the function that was called."""
    call_ns: int
    """Length of the call in ns."""
    call_start_ns: int
    """Start of the call in ns since the session's start."""
    delay_ns: int
    """From the end of the call to the start of the work in ns."""
    work_name: str
    """Name of the kernel, copy or set that it launched."""
    work_ns: int
    """Length of the work in ns."""
    work_row: int
    """The timeline's row of the work."""
    work_start_ns: int
    """Start of the work in ns."""

class Launches(TypedDict):
    """Coverage of the join of GPU work to launches."""

    matched: int
    """Kernels, whole graphs, copies and memsets whose call is in the capture."""
    unmatched: int
    """Those whose call is not."""

class LaunchesOfName(TypedDict):
    """Launches of one name."""

    call: Spread
    """Lengths of the calls, those counted of which this was the first work."""
    category: Category
    """Category of the work."""
    delay: Spread
    """Delays behind those calls."""
    gpu: Spread
    """Lengths on the GPU."""
    name: str
    """The kernel's, copy's or memset's."""
    short_gpu_ops: int
    """Those calls whose first work ran shorter than they did."""

class LifetimeClass(TypedDict):
    """Lifetimes of a class."""

    buffers: int
    """Buffers."""
    bytes: int
    """Bytes of the buffers."""
    from_ns: int
    """From so many ns on."""
    to_ns: int | None
    """Up to, and without, so many; null of the last class."""

# What bounds a launch.
Limiter: TypeAlias = Literal["grid_too_small", "latency", "compute", "memory", "balanced", "saturated"]

class LineCoverage(TypedDict):
    """How much of a launch has a source line."""

    instructions: int
    """Instructions with figures or text."""
    instructions_with_line: int
    """Those with a source line."""
    samples: int
    """Samples of the launch."""
    samples_with_line: int
    """Those at instructions with a source line."""

# Bytes from one place to another.
Link = TypedDict(
    "Link",
    {
        # Bytes that went this way; null where the report does not say.
        "bytes": int | None,
        # How many in a second.
        "bytes_per_second": float | None,
        # Where they come from.
        "from": str,
        # That against its peak, 0 to 1.
        "peak_ratio": float | None,
        # Where they go.
        "to": str,
    },
)

class Loss(TypedDict):
    """One entry of the list."""

    count: int
    """How many of these were lost."""
    reason: LossReason
    """What became of them, of a closed set."""
    what: str
    """What, e.g. a table's name or `NVTX marks`."""

# Why something of the source is missing or changed.
LossReason: TypeAlias = Literal["dropped", "truncated", "skipped", "unsupported", "idle", "inferred"]

# By what the two sides were matched.
MatchedBy: TypeAlias = Literal["name", "short_name", "nothing"]

class MatrixKernelRow(TypedDict):
    """A kernel that multiplies matrices."""

    element_type: str | None
    """Type of number; null where the name does not say."""
    launches: int
    """Launches."""
    longest: Place | None
    """The longest launch; null of profiled launches, which have no time."""
    name: str
    """Name of the kernel."""
    tensor_pipe_percent: float | None
    """Share of the tensor pipe's peak in percent, the mean of its launches, from counters; null without."""
    total_ns: int
    """Sum of their lengths in ns."""
    unit: MatrixUnit
    """What it multiplies with."""

class MatrixProductRow(TypedDict):
    """Calls of an operator with the same shapes."""

    alignment: int
    """The largest of 128, 64, 32, 16, 8, 4, 2 and 1 of which m, n and k are multiples."""
    batch: int
    """Products in a call."""
    calls: int
    """Calls that launched kernels."""
    cuda_core_ns: int
    """The part of it of kernels that are known not to."""
    element_type: str | None
    """Type of number; null where it was not recorded."""
    eligible: bool | None
    """Whether tensor cores could do it: a type that they know on this GPU, and no product with a vector; null where type or GPU are not known."""
    gpu_ns: int
    """Time in ns of these kernels."""
    k: int
    """What is summed over."""
    longest: Place
    """The call with the longest GPU time."""
    m: int
    """Rows of the result."""
    n: int
    """Columns of the result."""
    operator: str
    """The operator."""
    tensor_core_ns: int
    """The part of it of kernels that are known to use tensor cores."""

# What a kernel multiplies matrices with.
MatrixUnit: TypeAlias = Literal["tensor_core", "cuda_core", "unknown"]

# What the figures of a table measure.
Measure: TypeAlias = Literal["ns", "bytes"]

class MemoryDifference(TypedDict):
    """Peak of memory in use."""

    peak_mb: float | None
    """The highest peak of a GPU after less that before, in megabytes (10^6 bytes); null where a side recorded none."""
    rows: list[PeakMemory]
    """Per GPU."""

# A memory that work gets its data from.
MemoryLevel: TypeAlias = Literal["dram", "l2", "l1"]

class MemoryPool(TypedDict):
    """What an allocator gave out."""

    alive: list[AliveBuffer]
    """The largest buffers that were alive at the peak."""
    alive_by_requester: list[AliveOfRequester]
    """What was alive at the peak by who had asked for it, the most bytes first."""
    alive_by_requester_left_out: int
    """Those who asked that were left out behind these."""
    alive_bytes: int | None
    """Bytes of the buffers that were given out during the capture and alive at the peak; null where the source says no addresses."""
    alive_left_out: int
    """Buffers that were left out behind these."""
    allocations: int
    """Times that memory was given out."""
    allocator: Allocator
    """Who gives it out."""
    before: Before
    """How that is known."""
    before_bytes: int
    """Bytes that were given out before the capture."""
    device: int | None
    """Ordinal of the device; null of the host's memory."""
    end_bytes: int
    """Bytes given out when the capture ended."""
    from_before_bytes: int | None
    """What the peak holds besides: given out before the capture. Null where the source says no addresses."""
    gaps: int
    """Changes whose total does not follow from the one before: something between them was not recorded."""
    memory: str
    """Whose memory: `GPU 0`, `host`, `GPU 1 managed`."""
    most_unused_bytes: int | None
    """The most that it had and had not given out."""
    over_time: list[PoolPoint]
    """What was given out in each part of the capture."""
    peak_bytes: int
    """Most bytes that were given out at a time."""
    peak_ns: int
    """When that was first reached, in ns; 0 where it was before the capture."""
    peak_ratio: float | None
    """The same as a share of the device's memory, from 0 to 1; null where the source does not say how much that is."""
    peak_reserved_bytes: int | None
    """Most bytes that the allocator had, given out or not; null where the source does not say it."""
    peak_reserved_ns: int | None
    """When that was first reached, in ns."""
    process: int
    """Process id; 0 where the source does not say."""
    releases: int
    """Times that memory was taken back."""
    unused_at_peak_bytes: int | None
    """What it had and had not given out at the peak: reserved less allocated. Null where the source does not say it."""

class MemoryProfileDevice(TypedDict):
    """Memory of a device and kind."""

    buffers: int | None
    """Buffers; null where the profile does not count them."""
    bytes: int
    """Bytes."""
    device: str | None
    """The device, as the profile calls it: `cuda:0`; null where it does not say, as of programs."""
    kind: str | None
    """What it is: `buffer`, or `executable` for a compiled program; null where the profile does not say."""

class MemoryProfileDeviceChange(TypedDict):
    """The change of a device and kind."""

    after_bytes: int
    """Bytes after."""
    before_bytes: int
    """Bytes before."""
    change_bytes: int
    """Their difference."""
    device: str | None
    """The device, as the profile calls it."""
    kind: str | None
    """What it is: `buffer`, `executable`."""

class MemoryProfileFrame(TypedDict):
    """A frame of a stack."""

    file: str
    """Its source file; empty where the profile does not say."""
    function: str
    """The function."""
    line: int
    """The line; 0 where the profile does not say."""

class MemoryProfileFunction(TypedDict):
    """Memory of a function, or its change between two profiles."""

    cumulative_bytes: int
    """Bytes of stacks of which any frame is of it."""
    file: str
    """The source file of one that is called so; empty where the profile does not say."""
    flat_bytes: int
    """Bytes of stacks whose innermost frame is of it."""
    function: str
    """Name of the function."""

class MemoryProfileStack(TypedDict):
    """Memory of a stack."""

    buffers: int | None
    """Buffers; null where the profile does not count them."""
    bytes: int
    """Bytes."""
    device: str | None
    """The device, as the profile calls it."""
    frames: list[MemoryProfileFrame]
    """Its frames, the innermost first."""
    kind: str | None
    """What it is: `buffer`, `executable`."""
    own_frame: MemoryProfileFrame | None
    """The innermost frame that is of no installed package and not of Python's library; null where all are."""

class MemoryProfileStackChange(TypedDict):
    """The change of a stack."""

    after_bytes: int
    """Bytes after."""
    before_bytes: int
    """Bytes before."""
    change_buffers: int | None
    """Change of the number of buffers; null where neither profile counts them."""
    change_bytes: int
    """Their difference."""
    device: str | None
    """The device, as the profile calls it."""
    frames: list[MemoryProfileFrame]
    """Its frames, the innermost first."""
    kind: str | None
    """What it is: `buffer`, `executable`."""
    own_frame: MemoryProfileFrame | None
    """The innermost frame that is of no installed package and not of Python's library; null where all are."""

class MemoryRequester(TypedDict):
    """Who asked, by name. A part that is not known is null."""

    call: str | None
    """The call of the CUDA API."""
    function: str | None
    """The innermost function of Python that is not built in."""
    operator: str | None
    """The innermost operator that does more than to get memory."""
    range: str | None
    """The innermost NVTX range or annotation."""

class MemorySample(TypedDict):
    """A sample."""

    t_ns: int
    """When, in ns."""
    value: float
    """The value then, in the unit of its series."""

class MemorySeries(TypedDict):
    """What was sampled of memory."""

    device: str
    """Of which device."""
    last: float
    """The last."""
    max: float
    """The highest."""
    max_ns: int
    """When that was first reached, in ns."""
    metric: str
    """What: `memory_used`."""
    min: float
    """The lowest."""
    over_time: list[MemorySample]
    """The highest in each part of the capture, with its start in ns; parts without a sample have what held before."""
    samples: int
    """Samples."""
    source: str
    """Who sampled it: `nvml`, `xplane`."""
    unit: str
    """Unit of the figures."""

class MfuIteration(TypedDict):
    """One iteration."""

    devices: int
    """Devices that worked for it."""
    end_ns: int
    """End in ns."""
    flops: int | None
    """Its floating-point operations; null where none are known."""
    flops_per_second: float | None
    """Operations per second and device."""
    mfu_ratio: float | None
    """Its model FLOP utilisation."""
    number: int
    """Number of the iteration."""
    row: int
    """The timeline's row."""
    start_ns: int
    """Start in ns since the session's start."""
    time_ns: int
    """Length in ns."""

class MfuOperation(TypedDict):
    """Calls of one operation with the same shapes."""

    calls: int
    """How often it was called."""
    element_type: str | None
    """Type of number: `bf16`, `fp16`, `fp32` and so on; null where it is not known."""
    end_ns: int | None
    """End in ns of that call."""
    flops: int
    """Operations of all calls."""
    flops_per_second: float | None
    """Operations per second of that time."""
    gpu_time_ns: int
    """Time in ns in which the GPU worked for the calls."""
    name: str
    """The operator, operation or kernel."""
    peak_ratio: float | None
    """Share of the device's peak rate; null where that is not known."""
    row: int | None
    """The timeline's row of that call."""
    shapes: str
    """Shapes of its inputs as JSON; empty where none were recorded."""
    start_ns: int | None
    """Start in ns of the call that took most GPU time; null of profiled launches, which have no time."""

class NamedWork(TypedDict):
    """Work of one name."""

    category: Category
    """Category of the work."""
    class_ratio: float | None
    """`sum_ns` of its class; null where the class took no time."""
    deviation_ns: float | None
    """Sample standard deviation in ns; null of a single one."""
    gpu_ops: int
    """How often it ran."""
    max_ns: int
    """Longest in ns."""
    mean_ns: float
    """Mean length in ns."""
    median_ns: float
    """Median length in ns; between two middle ones, their mean."""
    min_ns: int
    """Shortest in ns."""
    name: str
    """Name of the work."""
    sum_ns: int
    """Sum of its lengths in ns."""

class NearMiss(TypedDict):
    """A part of the window that is below the threshold of a rule."""

    rule: str
    """The rule that measured it."""
    sentence: str
    """What was measured and from where on the rule fires, as a sentence."""
    threshold_percent: int
    """From which share on the rule fires, in percent."""
    time_ns: int
    """Length of the part in ns; with several GPUs the mean over them."""
    window_share_ratio: float
    """Its share of the window, from 0 to 1."""

class NotCaptured(TypedDict):
    """A part of a result that has no figures because the capture does not hold what they are made of."""

    reason: str
    """Why, and what to do so that the next capture has it."""
    what: str
    """What has no figures, e.g. `launch delays`."""

class NsysApiTraceRow(TypedDict):
    """A call."""

    correlation: int | None
    """Correlation id, which the work that it launched has too; null for none."""
    duration_ns: int
    """Length in ns."""
    name: str
    """The function."""
    process: int
    """Process."""
    result: int | None
    """What it returned, 0 for success; null where the source does not say it."""
    row: int
    """The timeline's row."""
    start_ns: int
    """Start in ns."""
    thread: int | None
    """Thread; null where the source does not say it."""
    thread_name: str | None
    """Name of the thread; null where the source does not say it."""

class NsysGpuTraceRow(TypedDict):
    """A kernel, copy or memset."""

    bytes: int | None
    """Bytes copied or set; null of a kernel."""
    bytes_per_second: float | None
    """`bytes` by the length, in bytes per second; null of a kernel and of work that took no time."""
    context: int | None
    """CUDA context; null where the source does not say it."""
    correlation: int | None
    """Correlation id, which the call that launched the work has too; null for none."""
    destination_memory: str | None
    """Kind of memory that is copied to."""
    device: str | None
    """Name and ordinal of the GPU, as in `NVIDIA H100 (0)`; null where the source does not say the ordinal."""
    duration_ns: int
    """Length in ns."""
    kernel: NsysKernelShape | None
    """What only kernels have."""
    name: str
    """Name of the kernel or operation."""
    row: int
    """The timeline's row."""
    source_memory: str | None
    """Kind of memory that is copied from, or set."""
    start_ns: int
    """Start in ns."""
    stream: int | None
    """CUDA stream; null where the source does not say it."""

# How kernels are called.
NsysKernelName: TypeAlias = Literal["demangled", "base", "mangled"]

class NsysKernelShape(TypedDict):
    """Shape of a launch."""

    block: list[int]
    """Threads per block in x, y and z."""
    grid: list[int]
    """Thread blocks in x, y and z."""
    registers: int
    """Registers per thread."""
    shared_dynamic_bytes: int
    """Dynamic shared memory per block in bytes."""
    shared_static_bytes: int
    """Static shared memory per block in bytes."""

class NsysLaunchTimesRow(TypedDict):
    """The launches of a kernel on a device by a function and a thread."""

    api: NsysSpread
    """Length of the call."""
    api_name: str
    """The function that was called."""
    count: int
    """Kernels."""
    device: int | None
    """Device that ran the kernels; null where the source does not say it."""
    kernel: NsysSpread
    """The kernel."""
    kernel_name: str
    """The kernel."""
    process: int
    """Process that launched."""
    queue: NsysSpread | None
    """From the end of the call to the start of the kernel, of those that were queued; null without any."""
    queued: int
    """Kernels that waited in the queue: they began after the call had ended."""
    thread: int | None
    """Thread that launched; null where the source does not say it."""
    total: NsysSpread
    """From the start of the call to its end or the kernel's, whichever is later."""

class NsysLaunchesRow(TypedDict):
    """A launch and the run of its kernel."""

    api_duration_ns: int
    """Length of the call in ns."""
    api_name: str
    """The function that was called."""
    api_start_ns: int
    """Start of the call in ns."""
    block: list[int]
    """Threads per block in x, y and z."""
    device: int | None
    """Device that ran the kernel; null where the source does not say it."""
    grid: list[int]
    """Thread blocks in x, y and z."""
    kernel_duration_ns: int
    """Length of the kernel in ns."""
    kernel_name: str
    """The kernel."""
    kernel_start_ns: int
    """Start of the kernel in ns."""
    process: int
    """Process that launched."""
    queue_duration_ns: int | None
    """Length in ns from the end of the call to the start of the kernel; null where the kernel began before the call had ended."""
    row: int
    """The timeline's row of the kernel."""
    thread: int | None
    """Thread that launched; null where the source does not say it."""
    total_duration_ns: int
    """From the start of the call to its end or the kernel's, whichever is later, in ns."""

class NsysProjectionTraceRow(TypedDict):
    """The projection of a range, or of all work that was launched outside of ranges."""

    children: int
    """Ranges with work directly inside."""
    duration_ns: int | None
    """Length in ns of the range."""
    launches: int
    """Calls that launched work; nsys's `NumGPUOps`. A launch of a CUDA graph is one."""
    level: int | None
    """Ranges around it."""
    name: str | None
    """Its domain and text; null of what was launched outside of ranges."""
    operations: int
    """Pieces of work that they launched."""
    parent_id: int | None
    """The number of the range around it; null of an outermost one."""
    process: int | None
    """Process; null where several launched outside of ranges."""
    projected_duration_ns: int
    """Length in ns to the end of the last work."""
    projected_start_ns: int
    """Start in ns of the first work."""
    range_id: int | None
    """Its number: 1 for the first range of the capture."""
    stack: list[int]
    """The numbers of the ranges around it, the outermost first, and its own; at most the 1,000 innermost."""
    start_ns: int | None
    """Start in ns of the range."""
    style: str | None
    """`PushPop` or `StartEnd`."""
    thread: int | None
    """Thread; null where several launched outside of ranges, or the source does not say it."""

class NsysProjectionsRow(TypedDict):
    """The projections of the ranges of one name."""

    avg_children: float
    """Mean number of ranges with work directly inside."""
    avg_level: float
    """Mean number of ranges around it."""
    avg_ns: float
    """Mean length in ns on GPUs."""
    instances: int
    """Ranges with work."""
    launches: int
    """Calls that launched work; nsys's `Total GPU Ops`. A launch of a CUDA graph is one."""
    max_ns: int
    """The longest in ns."""
    med_ns: float
    """The middle one in ns, or the mean of the two middle ones."""
    min_ns: int
    """The shortest in ns."""
    name: str
    """Its domain and text."""
    operations: int
    """Pieces of work that they launched."""
    projected_ns: int
    """Total length in ns on GPUs. Ranges inside others are not subtracted."""
    range_ns: int
    """Total length in ns of the ranges themselves."""
    stddev_ns: float
    """Sample standard deviation in ns; 0 of a single one."""
    style: str
    """`PushPop` or `StartEnd`."""

class NsysPushPopTraceRow(TypedDict):
    """A range."""

    children: int
    """Ranges directly inside."""
    children_ns: int
    """Total length in ns of the ranges directly inside."""
    duration_ns: int
    """Length in ns."""
    level: int
    """Ranges around it."""
    name: str
    """Its domain and text."""
    parent_id: int | None
    """The number of the range around it; null of an outermost one."""
    process: int
    """Process."""
    range_id: int
    """Its number: 1 for the first range of the capture."""
    row: int
    """The timeline's row."""
    stack: list[int]
    """The numbers of the ranges around it, the outermost first, and its own; at most the 1,000 innermost."""
    start_ns: int
    """Start in ns."""
    thread: int | None
    """Thread; null where the source does not say it."""

class NsysRangeKernelsRow(TypedDict):
    """The kernels of one name that a thread launched in the ranges of one name. A kernel counts in each range around its launch; where two of them have the
    same name its time counts twice.
    """

    avg_ns: float
    """Arithmetic mean in ns."""
    kernel_name: str
    """Name of the kernel."""
    kernels: int
    """Kernels."""
    max_ns: int
    """The longest in ns."""
    med_ns: float
    """The middle one in ns, or the mean of the two middle ones."""
    min_ns: int
    """The shortest in ns."""
    process: int | None
    """Process; null where the launch was not recorded."""
    range: str | None
    """Domain and text of the ranges; null of kernels that were launched outside of ranges, or whose launch was not recorded."""
    ranges: int
    """Ranges."""
    stddev_ns: float
    """Sample standard deviation in ns; 0 of a single one."""
    style: str | None
    """`PushPop` or `StartEnd`."""
    thread: int | None
    """Thread; null where the launch was not recorded, or the source does not say it."""
    total_ns: int
    """Sum in ns."""

class NsysSizesRow(TypedDict):
    """The sizes of one operation."""

    avg_bytes: float
    """Arithmetic mean in bytes."""
    count: int
    """Operations."""
    max_bytes: int
    """The largest in bytes."""
    med_bytes: float
    """The middle one in bytes, or the mean of the two middle ones."""
    min_bytes: int
    """The smallest in bytes."""
    operation: str
    """Name of the operation."""
    stddev_bytes: float
    """Sample standard deviation in bytes; 0 of a single one."""
    total_bytes: int
    """Sum in bytes."""

class NsysSpread(TypedDict):
    """How times are spread."""

    avg_ns: float
    """Arithmetic mean in ns."""
    max_ns: int
    """The longest in ns."""
    med_ns: float
    """The middle one in ns, or the mean of the two middle ones."""
    min_ns: int
    """The shortest in ns."""
    stddev_ns: float
    """Sample standard deviation in ns; 0 of a single one."""

class NsysTimesRow(TypedDict):
    """The times of one group."""

    avg_ns: float
    """Arithmetic mean in ns."""
    block: list[int] | None
    """Threads per block in x, y and z, in a table by shape; otherwise null."""
    category: str | None
    """`CUDA_API`, `CUDA_KERNEL` or `MEMORY_OPER` in tables that mix them; otherwise null."""
    grid: list[int] | None
    """Thread blocks in x, y and z, in a table by shape; otherwise null."""
    instances: int
    """Events of the group."""
    max_ns: int
    """The longest in ns."""
    med_ns: float
    """The middle one in ns, or the mean of the two middle ones."""
    min_ns: int
    """The shortest in ns."""
    name: str
    """Name of the kernel, function, operation or range."""
    share_ratio: float
    """Share of `total_ns`, from 0 to 1: of the time of what is listed, not of the window."""
    stddev_ns: float
    """Sample standard deviation in ns; 0 of a single one."""
    style: str | None
    """`PushPop` or `StartEnd` of NVTX ranges, in tables that tell them apart; otherwise null."""
    total_ns: int
    """Sum in ns."""

class Occupancy(TypedDict):
    """How many warps a launch could keep on a multiprocessor. Shares are 0 to 1."""

    achieved: float | None
    """Warps that were there on average, of the most that a multiprocessor holds."""
    limits: list[OccupancyLimit]
    """How many blocks fit on a multiprocessor by each of its resources, the tightest first."""
    registers_per_thread: int | None
    """Registers of a thread."""
    shared_memory_per_block_bytes: int | None
    """Shared memory of a block in bytes, with what the driver takes."""
    theoretical: float | None
    """Warps that fit, of the most that a multiprocessor holds."""
    waves: float | None
    """How many times the grid fills the device."""

class OccupancyLimit(TypedDict):
    """How many blocks fit by one resource."""

    blocks: int
    """Blocks per multiprocessor."""
    limits: bool
    """Whether it is what limits the launch."""
    resource: str
    """The resource: `registers`, `shared_mem`, `warps`, `blocks`, `barriers`."""

# What bounds a kernel.
OffloadBound: TypeAlias = Literal["memory", "compute", "latency", "unknown"]

class OffloadCandidate(TypedDict):
    """A kernel that memory bounds."""

    bandwidth_bytes_per_second: float | None
    """Bytes per second: `bytes_per_launch` over the mean length of the launches that it is known of. What an accelerator's memory needs to keep up."""
    bandwidth_ratio: float | None
    """That against the peak of the device's memory; null where that is not known. Above 1 values came from caches."""
    basis: BoundBasis
    """Where that is known from."""
    bound: OffloadBound
    """What bounds it."""
    bytes_per_launch: int | None
    """Mean bytes that a launch moves: measured traffic of the device's memory, the compiler's count, or inputs (and the result of a product) once. Null where
    not known.
    """
    copied_in_bytes: int | None
    """Bytes that were copied from the host to the device since the kernel before, over all launches; null where a copy does not say them."""
    copied_out_bytes: int | None
    """Bytes that were copied from the device to the host before the next kernel, over all launches; null where a copy does not say them."""
    copy_ns: int
    """Time in ns of these copies."""
    flops_per_launch: int | None
    """Mean floating-point operations of a launch; null where not known."""
    intensity_flop_per_byte: float | None
    """Operations per byte; null where one of both is not known."""
    is_estimate: bool
    """Whether that is an estimate."""
    kernel: str
    """Name of the kernel."""
    launches: int
    """Launches."""
    link_bytes_per_second: float | None
    """Bytes per second that a link would need to bring the working set in and keep up with the launches, where the data does not stay on the accelerator; null
    where the working set is not known.
    """
    longest: Place | None
    """The longest launch; null of profiled launches, which have no time."""
    mean_ns: int
    """Mean length in ns."""
    time_ratio: float | None
    """`total_ns` of the time of all kernels."""
    total_ns: int
    """Sum of their lengths in ns."""
    working_set_bytes: int | None
    """The most bytes that a launch works on: buffers that an accelerator would hold on chip. From shapes or the compiler's count; null where not known."""

class Opcode(TypedDict):
    """An opcode."""

    executed: int
    """Times that a warp executed it."""
    name: str
    """Its name, e.g. `FFMA`."""

class OpenRange(TypedDict):
    """An annotated range (NVTX) that was open at a launch."""

    domain: str
    """Its domain; empty for the default one."""
    name: str
    """Name of the range."""
    thread: int | None
    """The thread on whose stack it is; null for a range that no thread owns."""

class Operation(TypedDict):
    """One operation."""

    allocated_bytes: int | None
    """Bytes of device memory that were given out to the process while its calls ran, by whichever thread."""
    avg_ns: float
    """Mean length in ns of a call."""
    calls: int
    """How often it was called."""
    cpu_ns: int | None
    """Time in ns on the host outside of the CUDA API. `cpu_ns` + `overhead_ns` + `wait_ns` = `total_ns`."""
    gpu_ns: int | None
    """Time in ns of the kernels, memsets and copies within a device that its calls launched: of each call the length of their union, summed."""
    gpu_pieces: int | None
    """Kernels, memsets and copies within a device that its calls launched."""
    longest_end_ns: int
    """Its longest call: end in ns."""
    longest_row: int | None
    """The timeline's row of that call; null where the operations are of no timeline."""
    longest_start_ns: int
    """Its longest call: start in ns."""
    max_ns: int
    """Length in ns of its longest call."""
    median_ns: float | None
    """Median length in ns of a call; null of a profile that holds sums alone."""
    min_ns: int
    """Length in ns of its shortest call."""
    names: list[OperationName]
    """The names as captured with most calls."""
    names_left_out: int
    """Distinct names that were left out behind these."""
    operation: str
    """Name of the operation."""
    overhead_ns: int | None
    """Time in ns inside of the CUDA API that is no waiting: launches, allocations, synchronisation without work to wait for."""
    peak_bytes: int | None
    """Most bytes of device memory that the process had in use while one of its calls ran."""
    recursive_calls: int
    """Calls inside of a call of the same operation. Their time is in `total_ns` twice."""
    self_gpu_ns: int | None
    """Time in ns of those that it launched itself and not an operation inside it: the length of their union."""
    self_ns: int
    """Its own time in ns: its calls without the operations directly inside them."""
    self_ratio: float
    """Its share of the own time of all operations."""
    std_dev_ns: float
    """Sample standard deviation (n - 1) of the lengths in ns; 0 of one call."""
    total_ns: int
    """Sum in ns of the lengths of its calls."""
    transfer_ns: int | None
    """Time in ns of the copies from, to and between devices that its calls launched, as `gpu_ns`."""
    transferred_bytes: int | None
    """Bytes of those copies; null where one does not say them."""
    transfers: int | None
    """Copies from, to and between devices that its calls launched."""
    wait_ns: int | None
    """Time in ns inside of synchronising and copying calls of the CUDA API while GPU work of the process ran."""

class OperationBottleneck(TypedDict):
    """An operation that costs much."""

    calls: int
    """Number of calls of the operation."""
    cost_ns: int
    """What it costs in ns: the longer of its own time on the host and the time of the GPU work that it launched itself."""
    longest_end_ns: int
    """Its longest call: end in ns."""
    longest_row: int | None
    """The timeline's row of that call; null where the operations are of no timeline."""
    longest_start_ns: int
    """Its longest call: start in ns."""
    operation: str
    """Name of the operation."""
    reasons: list[OperationReason]
    """What stands out, the gravest first. Empty where nothing does but its cost."""
    self_ratio: float
    """Its share of the own time of all operations."""

class OperationCall(TypedDict):
    """One call."""

    cpu_ns: int | None
    """Time in ns on the host outside of the CUDA API."""
    end_ns: int
    """End in ns."""
    gpu_ns: int | None
    """Time in ns of the GPU work that it launched, as of the operation."""
    name: str
    """The name as captured."""
    operation: str
    """The operation."""
    overhead_ns: int | None
    """Time in ns inside of the CUDA API that is no waiting."""
    row: int | None
    """The timeline's row; null of a profile."""
    start_ns: int
    """Start in ns since the session's start."""
    transfer_ns: int | None
    """Time in ns of the transfers that it launched."""

# Which operations a request is about.
OperationChoice: TypeAlias = Literal["auto", "cpu_op", "nvtx", "hlo", "annotation", "step"]

class OperationCoverage(TypedDict):
    """How much of the GPU work was launched inside of operations."""

    inside: int
    """Those that an operation launched."""
    outside: int
    """Those that were launched outside of all operations."""
    pieces: int
    """Kernels, copies and memsets."""
    without_launch: int
    """Those whose launch is not in the capture."""

# What operations are made of.
OperationKind: TypeAlias = Literal["cpu_op", "nvtx", "hlo", "annotation", "step", "profile"]

class OperationKindCalls(TypedDict):
    """How many calls of a kind there are."""

    calls: int
    """Number of calls of the kind."""
    kind: OperationKind
    """What the operations are."""

class OperationMemory(TypedDict):
    """Device memory at a time."""

    allocated_bytes: int
    """Bytes in use."""
    peak_bytes: int
    """The most bytes in use up to then; of a profile the peak that its entry says."""
    t_ns: int
    """When, in ns since the session's start."""

class OperationName(TypedDict):
    """A name as captured."""

    calls: int
    """Calls of this name."""
    name: str
    """The whole name, with what normalising leaves out."""

class OperationReason(TypedDict):
    """What stands out of an operation."""

    rule: OperationRule
    """Which rule it is."""
    text: str
    """The figures and what they mean."""

# The rules by which an operation stands out.
OperationRule: TypeAlias = Literal["cpu_may_be_better", "waits_for_gpu", "api_bound", "host_bound", "gpu_bound", "uneven", "many_short_calls"]

# What a function of the operating system is for.
OsCall: TypeAlias = Literal["wait", "lock", "input_output", "other"]

class OsFunctionRow(TypedDict):
    """A function of the operating system."""

    calls: int
    """Calls."""
    kind: OsCall
    """What it is for."""
    max_ns: int
    """The longest in ns."""
    name: str
    """Name of the function."""
    total_ns: int
    """Sum of their lengths in ns, over all threads."""

# Whether a rule fired.
Outcome: TypeAlias = Literal["fired", "quiet", "abstained"]

class Overhead(TypedDict):
    """What a window cost the program that was profiled, by a counter of its own work. 100 basis points are a percent."""

    high_basis_points: int | None
    """Upper end of the 95 % interval."""
    low_basis_points: int | None
    """Lower end of the 95 % interval."""
    message: str
    """The same in a sentence."""
    reason: str
    """What the verdict rests on, as a word."""
    signal: str | None
    """Who counted and what, such as `Recorder step`; null where nobody did."""
    slowdown_basis_points: int | None
    """How much longer a unit of work took in the window; negative where it took less, null where it is not known."""
    stall_ms: int | None
    """How long the program stood still while the profiler started and stopped."""
    verdict: str
    """Against the budget of the session: `Within`, `Exceeded`, `Inconclusive` or `Blind`."""

class OverlapOfGpu(TypedDict):
    """What ran at the same time on one GPU."""

    at_once: list[AtOnce]
    """For how long how many pieces of work ran at once, of whatever class."""
    busy_ns: int
    """Time in ns in which anything ran: the sum of `mixes`."""
    communication_ns: int
    """Time in ns in which communication ran."""
    communication_under_compute_ns: int
    """Part of it in ns in which something computed."""
    communication_under_compute_ratio: float | None
    """That part of `communication_ns`, as HolisticTraceAnalysis has it; null without communication."""
    end_ns: int
    """End of the window in ns."""
    gpu: Gpu
    """The GPU on which it ran."""
    memory_ns: int
    """Time in ns in which copies or memsets ran."""
    memory_under_communication_ns: int
    """Part of `memory_ns` in which something communicated."""
    memory_under_compute_ns: int
    """Part of it in ns in which something computed."""
    memory_under_compute_ratio: float | None
    """That part of `memory_ns`; null without copies."""
    mixes: list[ClassMix]
    """Every combination of classes, each with the time in ns in which exactly these ran."""
    start_ns: int
    """Start of the window in ns since the session's start."""

# A value.
PageCell: TypeAlias = bool | float | str | None

# How a number is shown. The number itself is exact, in the unit that its name says.
PageUnit: TypeAlias = Literal["none", "ns", "instant", "bytes", "bytes_per_second", "count", "flop_per_second", "instructions_per_second", "ratio", "percent"]

class PathName(TypedDict):
    """What the path runs through, by name."""

    name: str
    """Name of the operator, call or kernel; empty of the program's own code."""
    of_path_ratio: float
    """Their share of the path."""
    part: PathPart
    """What it is on the path."""
    segments: int
    """Segments of it."""
    time_ns: int
    """Sum of their lengths in ns."""

# What a part of the critical path is.
PathPart: TypeAlias = Literal["cpu", "data_loading", "launch_overhead", "compute", "communication", "copy", "kernel_gap", "sync"]

class PathSegment(TypedDict):
    """A segment of the path."""

    end_ns: int
    """End in ns."""
    name: str
    """Name of the operator, call or kernel; empty of the program's own code."""
    part: PathPart
    """The kind of time that the segment is."""
    row: int
    """The timeline's row."""
    start_ns: int
    """Begin in ns since the session's start."""
    time_ns: int
    """Length in ns."""

class PathShare(TypedDict):
    """A part of the path."""

    of_path_ratio: float
    """Its share of the path."""
    part: PathPart
    """What bounds the program during it."""
    time_ns: int
    """Time of the path in this part, in ns."""

# What bounds a window: the largest share of its critical path.
PathVerdict: TypeAlias = Literal["cpu_bound", "compute_bound", "communication_bound", "copy_bound", "gap_bound"]

class PeakMemory(TypedDict):
    """Peak of memory of a GPU."""

    after_peak_bytes: int | None
    """Peak in bytes after; null where none was recorded."""
    before_peak_bytes: int | None
    """Peak in bytes before; null where none was recorded."""
    device: str
    """The GPU, as its series or its allocator calls it."""

# Where the peak rate comes from.
PeakSource: TypeAlias = Literal["given", "device", "data_sheet"]

class PhasedCost(TypedDict):
    """What calls cost, in all and in the steady state."""

    cost: CallCost
    """In all."""
    first_ns: int | None
    """Start of the first in ns; null without any."""
    last_ns: int | None
    """End of the last in ns; null without any."""
    steady: CallCost | None
    """Of those that begin in the steady state; null where it is not known when that begins."""

class PipelineBubbles(TypedDict):
    """How long one device waited for others, over all iterations without warm-up. Iterations of the same number are one iteration of all loops; its window
    reaches from the first start to the last end of their GPU work.
    """

    all_idle_ns: int
    """Time in ns in which no device worked."""
    bubble_ns: int
    """Time in ns in which it did not and another device did."""
    bubble_ratio: float
    """`bubble_ns` of `window_ns`."""
    busy_ns: int
    """Time in ns of them in which the device worked."""
    capture: int
    """Which capture of a merged session."""
    device: int
    """Device ordinal."""
    machine: int
    """Machine as the profiler numbers it."""
    window_ns: int
    """Length in ns of the iterations' windows."""

class Place(TypedDict):
    """A time and row in a timeline, which the viewer can show."""

    end_ns: int
    """End in ns."""
    input: int
    """Index of the input that the timeline is of, counted from 0 in the order of the request."""
    row: int | None
    """The timeline's row, where it is one."""
    start_ns: int
    """Start in ns since the session's start."""

class PoolPoint(TypedDict):
    """What a pool held during each part of a window: the highest level."""

    allocated_bytes: int
    """The most bytes that were given out during it."""
    reserved_bytes: int | None
    """The most bytes that the allocator had, given out or not; null where the source does not say it."""
    t_ns: int
    """Start of the part in ns."""

# Which captures something is in.
Presence: TypeAlias = Literal["both", "before", "after"]

class ProcessorTime(TypedDict):
    """Processor time that a capture took beside the program's own work."""

    processing_ms: int | None
    """Of what imported and transformed the recording; null where it is not known of one of these."""
    profiler_ms: int | None
    """Of the profiler's own processes beside the program; null where it has none that are known."""

class ProfileEntry(TypedDict):
    """One call of an operation. Fields that the capture has no data for are null."""

    backend: str
    """`pytorch`, `cupy`, `jax` or `cpu`, told by the operation's name and device; `unknown` of GPU work of another framework."""
    cpu_time_ms: float | None
    """Time on the host outside of the CUDA API, in ms."""
    device: str
    """`gpu` where it launched GPU work, otherwise `cpu`."""
    duration_ms: float
    """Length of the call in ms."""
    end_time: float
    """End in seconds, on the same scale as `start_time`."""
    gpu_time_ms: float | None
    """Time of the GPU work that it launched, in ms."""
    gpu_utilization: float | None
    """`gpu_time_ms` in percent of `duration_ms`. Above 100 where the GPU works on after the call has ended."""
    memory_allocated_mb: float | None
    """Device memory that was given out meanwhile, in units of 2^20 bytes."""
    memory_bandwidth_gb_s: float | None
    """Bytes copied by the time of the copies, in 10^9 bytes per second; null without copies, or where one does not say its bytes."""
    memory_peak_mb: float | None
    """Most device memory in use meanwhile, in units of 2^20 bytes."""
    operation: str
    """The operation's name."""
    overhead_ms: float | None
    """Time inside of the CUDA API that is no waiting, in ms."""
    start_time: float
    """Start in seconds since the Unix epoch; since the session's start where the capture does not say when it began."""
    transfer_time_ms: float | None
    """Time of the copies that it launched, in ms."""

class ProfileSummary(TypedDict):
    """Statistics of all calls of one operation."""

    avg_gpu_utilization: float | None
    """`total_gpu_time_ms` in percent of `total_time_ms`."""
    avg_memory_mb: float | None
    """Mean of the device memory that was given out in a call, in units of 2^20 bytes."""
    avg_time_ms: float
    """Mean length of a call in ms."""
    call_count: int
    """Number of calls."""
    max_time_ms: float
    """Length of the longest call in ms."""
    min_time_ms: float
    """Length of the shortest call in ms."""
    operation: str
    """The operation's name."""
    std_dev_ms: float
    """Sample standard deviation (n - 1) of the lengths in ms; 0 of one call."""
    total_cpu_time_ms: float | None
    """Sum of the CPU times of its calls in ms."""
    total_gpu_time_ms: float | None
    """Sum of the GPU times of its calls in ms."""
    total_time_ms: float
    """Sum of the lengths of its calls in ms."""

class ProfiledCount(TypedDict):
    """Launches of a kernel profiler, which are no events: it replays them one by one."""

    launches: int
    """Launches, and ranges of launches that were replayed together."""
    metrics: int
    """Metrics of all of them."""

class ProfiledLaunch(TypedDict):
    """A launch."""

    block: list[int]
    """Threads per block in x, y and z."""
    context: int
    """CUDA context; 0 where the report does not say."""
    device: int
    """Device ordinal."""
    figures: Figures
    """What most ask for, in one unit each."""
    grid: list[int]
    """Thread blocks in x, y and z."""
    id: int
    """Its number in the report."""
    metrics: dict[str, ProfiledValue]
    """Each metric by the profiler's own name, as the report has it."""
    name: str
    """The kernel's name, demangled where the report has it."""
    process: int
    """Process id; 0 where the report does not say."""
    ranges: list[OpenRange]
    """Annotated ranges that were open on the launching thread."""
    rules: list[RuleResult]
    """What NVIDIA's rules say of it, in NVIDIA's words."""
    stream: int
    """CUDA stream; 0 where the report does not say."""
    units: dict[str, str]
    """Unit of each metric that has one."""

# The value of a metric.
ProfiledValue: TypeAlias = float | str

class ProfilerKernel(TypedDict):
    """A kernel."""

    cuda_time_us: float
    """Total time of its launches in µs."""
    name: str
    """Name of the kernel."""

class ProfilerMemoryPoint(TypedDict):
    """A point."""

    allocated_mb: float
    """MB (of 10^6 bytes) that were given out."""
    time_ms: float
    """When, in ms since the capture's begin."""

class QueueOfStream(TypedDict):
    """The queue of one stream. A work is in it from the start of its call to its own start."""

    empty_ns: int
    """Part of it in ns in which the queue was empty."""
    full_ns: int
    """Part of it in ns in which the queue was full."""
    gpu_ops: int
    """GPU operations that went through the queue."""
    max: int
    """Most GPU operations in it."""
    max_by_bin: list[int]
    """Most GPU operations in it in each bin of time."""
    mean: float | None
    """Mean number of GPU operations in it over the time from the first launch to the last start; null where that is no time."""
    mean_at_changes: float
    """Mean over its changes, whatever their distance in time: HolisticTraceAnalysis's mean."""
    span_ns: int
    """From the first launch to the last start in ns."""
    stream: GpuStream
    """The stream whose queue this is."""

class Rank(TypedDict):
    """A GPU of a capture."""

    exposed_communication_ratio: float | None
    """Exposed communication over that window."""
    gpu: str
    """The GPU within it, for people."""
    idle_ratio: float | None
    """Idle time over that window."""
    input: int
    """The capture, counted from 0 in the order in which they were named."""
    iterations: int
    """Iterations that launched work to it."""
    kernels: int
    """Kernels that ran."""
    max_iteration_ns: int | None
    """Longest iteration in ns."""
    mean_iteration_ns: float | None
    """Mean length of an iteration in ns; null without any."""
    mean_own_ns: float | None
    """Mean time of an iteration in ns that is not exposed communication: what the rank itself takes."""
    min_iteration_ns: int | None
    """Shortest iteration in ns."""
    place: Place | None
    """Where its work is in its timeline."""
    session_id: str
    """The capture's session."""
    started_after_ns: int | None
    """How long after the earliest capture this one began, in ns; null unless every capture says when it began."""
    time: ExclusiveTime
    """What its time went to, from its first work to its last."""

class RankIteration(TypedDict):
    """An iteration on every rank."""

    length_ns: list[int | None]
    """Its length in ns on each rank; null on one without iterations."""
    number: int
    """Its number, as the ranks have it."""
    place: Place
    """Where it is in the timeline of the slowest rank."""
    slowest: int
    """The rank with the longest."""
    spread_ns: int
    """The longest less the shortest, in ns."""
    start_spread_ns: int | None
    """The latest start less the earliest, in ns, by the clocks of the captures; null unless every capture says when it began."""

# A kernel on every rank.
RankKernel = TypedDict(
    "RankKernel",
    {
        # What it is for.
        "class": WorkClass,
        # The longest time over the mean of the ranks; null of no time.
        "imbalance_ratio": float | None,
        # Launches on each rank.
        "launches": list[int],
        # Name of the kernel.
        "name": str,
        # The rank with the longest time.
        "slowest": int,
        # Time in ns on each rank, in their order.
        "total_ns": list[int],
    },
)

class Recompile(TypedDict):
    """Code that was compiled again."""

    changed: str | None
    """What is different from the code compiled just before, as far as the shapes and types of the graph's inputs tell, or of its first operator's where nothing
    was recorded of the graph: this is inferred. Null where shapes were not recorded or one of both did not run.
    """
    code: CompileId
    """Which code."""
    compile_ns: int | None
    """Time in ns that its compilation took in the capture, backward pass included; null where it was compiled before."""
    guard: str | None
    """The guard that failed. Kineto's captures never say it; `TORCH_LOGS=recompiles` does."""
    place: Place | None
    """Where it was compiled, else where it first ran."""
    runs: int
    """Runs in the capture."""

# What happened with a buffer in the end.
Release: TypeAlias = Literal["recorded", "unrecorded", "never"]

# How much a rule's message matters.
RuleKind: TypeAlias = Literal["information", "optimization", "warning", "error"]

class RuleOutcome(TypedDict):
    """What came of a rule."""

    area: Area
    """Which part of the work it is about."""
    outcome: Outcome
    """Whether it fired."""
    reason: str
    """Why it abstained; empty otherwise."""
    rule: str
    """The rule."""
    thresholds: list[RuleThreshold]
    """From where on it fires."""
    title: str
    """What it is about."""

class RuleResult(TypedDict):
    """A message of one of the profiler's own rules."""

    kind: RuleKind
    """How much it matters."""
    metrics: list[FocusMetric]
    """The metrics that it was made from."""
    name: str
    """The rule as people read it."""
    rule: str
    """The rule as the profiler knows it, e.g. `SOLBottleneck`."""
    section: str
    """The section of the report that it stands in, e.g. `SpeedOfLight`."""
    speedup: Speedup | None
    """What following it is estimated to be worth."""
    text: str
    """The message, in the profiler's words."""
    title: str
    """The message's heading; may be empty."""

class RuleThreshold(TypedDict):
    """A threshold of a rule."""

    source: str
    """Where the threshold comes from."""
    unit: PageUnit
    """The unit of the value."""
    value: int
    """With what, in `unit`."""
    what: str
    """What is compared."""

# What is taken for a run.
RunSource: TypeAlias = Literal["iterations", "compiled_regions"]

class SampledSeries(TypedDict):
    """A series that was sampled, not derived from events."""

    device: str
    """Of which device."""
    max: float | None
    """Largest of them."""
    mean: float | None
    """Mean of all of them; null without any."""
    mean_by_bin: list[float | None]
    """Mean of the samples of each part; null where there is none."""
    metric: str
    """What was sampled, as its source calls it."""
    samples: int
    """Samples within the time."""
    source: str
    """Who sampled it, e.g. `nvml`."""
    unit: str
    """Unit of the values."""

# What an estimated speed-up is of.
Scope: TypeAlias = Literal["unknown", "local", "global"]

# How much a finding matters.
Severity: TypeAlias = Literal["low", "medium", "high"]

class SlowestRank(TypedDict):
    """The rank that takes longest."""

    behind_ns: float
    """How much longer in ns than the median rank."""
    behind_percent: float
    """The same in percent of the median rank."""
    mean_ns: float
    """Its mean time in ns."""
    rank: int
    """Its place among the ranks."""

class Source(TypedDict):
    """Where a capture came from."""

    capture_options: list[str]
    """What the profiler was asked to record, in the profiler's own closed set of words (`Cuda`, `NvtxEvents`, ...); empty where the file does not record it."""
    schema_version: str
    """Version of that file's schema, e.g. `3.0.0`."""
    tool: str
    """Name of the profiler, e.g. `NVIDIA Nsight Systems`."""
    tool_version: str
    """Version of the tool that wrote the file that was read, e.g. `2022.4.2.1`."""

class SourceLine(TypedDict):
    """Figures of the instructions of a source line, summed."""

    executed: int | None
    """Times that a warp executed one of them."""
    file: str
    """The file, as its compiler was given it."""
    instructions: int
    """Instructions that it was made into."""
    line: int
    """The line, counted from 1."""
    sample_ratio: float | None
    """Share of the launch's samples, 0 to 1."""
    samples: int | None
    """Samples of warps that were at one of them."""
    stall: str | None
    """The state that most of them were in."""
    text: str | None
    """Its text; null where the report does not hold the file (`ncu --import-source yes`)."""
    threads: int | None
    """Threads that executed one of them, in all."""

class SpeedOfLight(TypedDict):
    """How close a launch came to what the device can do. Shares are 0 to 1."""

    compute_parts: list[UnitShare]
    """Parts of the multiprocessors, the busiest first."""
    compute_share: float | None
    """The busiest part of the multiprocessors."""
    limiter: Limiter | None
    """What bounds it; null where a side was not measured."""
    memory_parts: list[UnitShare]
    """Parts of caches and memory, the busiest first."""
    memory_share: float | None
    """The busiest part of caches and memory."""
    waves: float | None
    """How many times the grid fills the device."""

class Speedup(TypedDict):
    """An estimated speed-up."""

    percent: float
    """How much, in percent."""
    scope: Scope
    """Of what."""

class Spread(TypedDict):
    """Figures of lengths."""

    count: int
    """How many; with 0 all others are 0."""
    max_ns: int
    """Longest in ns."""
    mean_ns: float
    """Mean in ns."""
    median_ns: float
    """Median in ns; between two middle ones, their mean."""
    min_ns: int
    """Shortest in ns."""
    sum_ns: int
    """Sum in ns."""

class StallReason(TypedDict):
    """Why warps waited, or that they did not."""

    cycles_per_instruction: float
    """Cycles between two instructions of a warp that it was in this state, on average."""
    reason: str
    """The profiler's word, e.g. `long_scoreboard`."""
    share: float
    """Share of all cycles between two of its instructions, as NVIDIA's rule has it, 0 to 1. Shares may add up to a little more."""

class StartUpKind(TypedDict):
    """Work on code of one kind."""

    before_pace_ns: int | None
    """The part of it before the program ran at its pace; null where nothing repeats."""
    events: int
    """Events."""
    held_ns: int
    """Time in ns in which it was done: the union per process, summed over processes."""
    kind: CodeWork
    """What was done."""
    longest: Place
    """The longest event."""

class StragglerCall(TypedDict):
    """One collective on all ranks."""

    end_skew_ns: int
    """Distance of the first from the last end in ns."""
    first: int
    """The rank that came first."""
    group: str
    """Name of the process group; empty where the source does not say it."""
    index: int
    """Its number among the group's in the first rank's capture, from 0."""
    last: int
    """The rank that came last."""
    latency_ns: int
    """The shortest kernel of all ranks in ns."""
    operation: CollectiveOperation
    """What the ranks do."""
    place: Place
    """Where the rank that came first waits."""
    start_skew_ns: int
    """Distance of the first from the last start in ns."""

class StragglerRank(TypedDict):
    """A rank: a device of a process of a capture."""

    clock_offset_ns: int
    """What was taken from its clock, in ns."""
    collective_ns: int
    """Sum of its kernels' lengths in them in ns."""
    collectives: int
    """Matched collectives that it ran."""
    device: int | None
    """Ordinal of the device."""
    first: int
    """How often it came first."""
    input: int
    """Which input it is of, from 0."""
    last: int
    """How often it came last."""
    process: int
    """Process id."""
    rank: int
    """Its number here: inputs, processes and devices in their order."""
    wait_ns: int
    """Sum of its waits for the last rank in ns."""
    wait_ratio: float | None
    """`wait_ns` of `collective_ns`."""

class StragglerRow(TypedDict):
    """Collectives of one operation, number of ranks and power of two of the message's size."""

    algorithm_bytes_per_second: float | None
    """Messages by latencies."""
    bus_bytes_per_second: float | None
    """The same times the operation's factor, by the group's ranks."""
    captured_ranks: int
    """Ranks that were captured."""
    collectives: int
    """Collectives."""
    from_bytes: int | None
    """Smallest message of the bin in bytes; null where the source does not say sizes."""
    group_ranks: int | None
    """Ranks of the group; null where the source does not say it."""
    latency_ns: int
    """Sum of their latencies in ns: of each the shortest kernel of all ranks, which waits least."""
    max_start_skew_ns: int
    """Longest distance of the first from the last start in ns."""
    median_latency_ns: float
    """Median latency in ns."""
    median_start_skew_ns: float
    """Median distance of the first from the last start in ns."""
    operation: CollectiveOperation
    """What the ranks do."""

class Stream(TypedDict):
    """What a stream ran."""

    busy_ns: int
    """Length in ns of the union of their intervals."""
    context: int
    """CUDA context; 0 where the source does not say."""
    device: int
    """Device ordinal."""
    distinct_kernels: int
    """Distinct names among them."""
    launches: int
    """Kernels that it ran."""
    process: int
    """Process id as the profiler saw it."""
    stream: int
    """CUDA stream; 0 where the source does not say."""

class SyncCall(TypedDict):
    """One call."""

    duration_ns: int
    """Length in ns."""
    gpu_idle_ns: int | None
    """The part of it in which no GPU worked for the process; null where none ever did."""
    held_by: str
    """The innermost range, operator, annotation or function around it; empty where there is none."""
    kind: SyncKind
    """Why the host waits."""
    name: str
    """Name of the call."""
    process: int
    """Process id."""
    row: int
    """Row of the timeline."""
    start_ns: int
    """Start in ns."""
    thread: int | None
    """Thread id."""

class SyncHolder(TypedDict):
    """A range, operator, annotation or function that holds waits."""

    category: Category
    """Its category: `nvtx_range`, `cpu_op`, `annotation` or `python_function`."""
    cost: CallCost
    """What the waits cost that it holds with no other of its category between."""
    longest: Place
    """The longest of these waits."""
    name: str
    """Its name without the numbers that tell one instance from the next."""

# Why the host waits in a call.
SyncKind: TypeAlias = Literal["device", "stream", "event", "copy", "pageable_copy", "memset"]

class SyncKindRow(TypedDict):
    """Calls that wait for one reason."""

    cost: CallCost
    """What these calls cost."""
    kind: SyncKind
    """Why the host waits."""

class SyncRule(TypedDict):
    """A rule and what it found."""

    about: str
    """Condition of the rule."""
    count: int
    """What it found: calls, copies or memsets."""
    left_out: int
    """How many were left out behind these."""
    rows: list[SyncRuleRow]
    """The longest of them."""
    rule: str
    """Its name in `nsys analyze`."""
    total_ns: int
    """Sum of their lengths in ns: of calls on the host, of copies and memsets on the GPU."""

class SyncRuleRow(TypedDict):
    """What a rule found."""

    api_name: str
    """Name of the call."""
    bytes: int | None
    """Bytes of a copy or memset."""
    context: int | None
    """CUDA context."""
    destination_kind: str | None
    """Kind of memory that is written."""
    device: int | None
    """Ordinal of the device."""
    duration_ns: int
    """Length in ns: of a call on the host, of a copy or memset on the GPU."""
    process: int
    """Process id."""
    row: int
    """Row of the timeline."""
    source_kind: str | None
    """Kind of memory that is read."""
    start_ns: int
    """Start of the occurrence, in ns."""
    stream: int | None
    """CUDA stream."""
    thread: int | None
    """Thread id, of a call."""

class Table(TypedDict):
    """A table, the largest total first."""

    captured: bool
    """Whether the source recorded this at all. `false` means "not captured", which is not the same as no rows."""
    rows: list[TableRow]
    """One row per name."""
    unit: Measure
    """Unit of the figures."""
    unknown: int
    """Events whose value the source does not say, such as copies of unknown size: they are in no row."""

class TableRow(TypedDict):
    """Figures of one name."""

    avg: float
    """Arithmetic mean."""
    calls: int
    """Values."""
    max: int
    """The largest."""
    median: float
    """The middle one, or the mean of the two middle ones."""
    min: int
    """The smallest."""
    name: str
    """What the row is about: a kernel, an API function, a range, as the table says."""
    share_of_table: float
    """`total` as a share of the table's sum, 0 to 1; not of the window."""
    stddev: float
    """Sample standard deviation (n - 1); 0 for a single one."""
    style: NotRequired[str | None]
    """How an NVTX range was made, `PushPop` or `StartEnd`; elsewhere absent."""
    total: int
    """Sum; the largest number where it would not fit 64 bits."""

# Where it is known from whether a kernel uses tensor cores.
TensorCoreSource: TypeAlias = Literal["counters", "names"]

class ThreadRow(TypedDict):
    """What a thread did."""

    gpu_waiting_ns: int
    """The part of `waiting_ns` in synchronisation with a GPU."""
    label: str
    """A text for people."""
    os_waiting_ns: int
    """The part of `waiting_ns` in functions of the operating system."""
    process: int
    """Process id."""
    thread: int
    """Thread id."""
    tracks: list[ThreadTrack]
    """Time on each of its tracks, each counted once; tracks overlap."""
    unrecorded_ns: int
    """The rest of the window: nothing of it was recorded, but when it ran on a CPU."""
    waiting_ns: int
    """Time in ns in which it waited: in functions of the operating system that wait, or in synchronisation with a GPU."""
    working_ns: int
    """Time in ns in which something of it was recorded and it did not wait."""
    working_ratio: float | None
    """`working_ns` of the window."""

class ThreadTrack(TypedDict):
    """Time of a thread on a track."""

    busy_ns: int
    """Length of the union of their times in ns."""
    events: int
    """Events on it."""
    row: int
    """Row of the timeline."""
    track: str
    """The track: `cuda_api`, `library`, `nvtx`, `os_runtime`, `cpu_op`, `annotation`, `python`, `overhead`, or `cpu_running`: when it ran on a CPU, which is
    neither working nor waiting.
    """

class ThreadUtilisation(TypedDict):
    """Utilisation of a thread over time."""

    process: int
    """Process id."""
    thread: int
    """Thread id."""
    working_ratio: list[float | None]
    """The share of each piece of time in which it worked."""

# A kernel, whole graph, range or operator in both captures. Times are per iteration or capture, as the result's `unit` says, in whole ns.
TimeDifference = TypedDict(
    "TimeDifference",
    {
        # Calls after, in all that is compared.
        "after_calls": int,
        # Mean length of a call in ns after; null without any.
        "after_mean_ns": float | None,
        # Time in ns after.
        "after_ns": int,
        # The longest call after.
        "after_place": Place | None,
        # Calls before, in all that is compared.
        "before_calls": int,
        # Mean length of a call in ns before; null without any.
        "before_mean_ns": float | None,
        # Time in ns before.
        "before_ns": int,
        # The longest call before.
        "before_place": Place | None,
        # Its category, such as `cuda_kernel` or `nvtx_range`.
        "category": str,
        # What it is for, of a kernel or a whole graph.
        "class": WorkClass | None,
        # The part of the difference in ns that comes from more or fewer calls: their change times the mean length before, rounded once.
        "count_part_ns": int,
        # `after_ns` less `before_ns`.
        "difference_ns": int,
        # The rest, in ns: calls after times the change of the mean length. Both parts add up to the difference.
        "duration_part_ns": int,
        # By what the two sides were matched.
        "matched_by": MatchedBy,
        # Its name; the short name of a kernel of which a side has several variants.
        "name": str,
        # Which captures it is in.
        "presence": Presence,
    },
)

class TimeOfGpu(TypedDict):
    """Where the time of one GPU went. `compute + exposed communication + exposed memory + idle = window`, exactly."""

    busy_ns: int
    """Time in ns in which anything ran."""
    busy_ratio: float
    """`busy_ns` of the window."""
    communication_ns: int
    """Time in ns in which communication ran, hidden or not."""
    end_ns: int
    """End of the window in ns."""
    gpu: Gpu
    """The GPU whose time this is."""
    gpu_ops: int
    """Kernels, copies and memsets that ran in the window."""
    idle_pieces: int
    """Pieces of idle time."""
    longest_idle_ns: int
    """The longest idle piece in ns."""
    memory_ns: int
    """Time in ns in which copies or memsets ran, hidden or not."""
    micro_idle_ns: int
    """Part of the idle time in ns that is in pieces below the threshold."""
    micro_idle_pieces: int
    """How many such pieces there are."""
    non_compute_ns: int
    """Time in ns in which something ran and nothing computed: HolisticTraceAnalysis's non-compute time."""
    parts: ExclusiveTime
    """The window, divided: each ns is in one part."""
    start_ns: int
    """Start of the window in ns since the session's start."""

class TransformedOn(TypedDict):
    """What did the heavy steps of the transform. The rest of the artifacts is the same on every device."""

    device: Device
    """Which device."""
    reason: str
    """Why that one, in a sentence."""

class UnitShare(TypedDict):
    """How busy a part of the device was."""

    metric: str
    """The profiler's metric."""
    share: float
    """Share of its peak, 0 to 1."""

class UtilizationOfGpu(TypedDict):
    """Busy time of a GPU in each part."""

    busy_ns: list[int]
    """Time in ns in which anything ran."""
    compute_ns: list[int]
    """Time in ns in which something computed."""
    exposed_communication_ns: list[int]
    """Time in ns in which communication ran and nothing computed."""
    exposed_memory_ns: list[int]
    """Time in ns in which copies or memsets ran and nothing else did."""
    gpu: Gpu
    """The GPU whose time this is."""

class WaitedRank(TypedDict):
    """The rank that the others wait for."""

    longest_wait_ns: int
    """The same of the rank that waits longest."""
    rank: int
    """Its place among the ranks."""
    wait_ns: int
    """Sum of its waits for the last rank in ns."""

# Which time of each GPU is analysed.
Window: TypeAlias = Literal["gpu", "all_gpus", "capture"]

# The purpose of a piece of GPU work.
WorkClass: TypeAlias = Literal["compute", "communication", "memory"]

# A kind of work.
WorkKind: TypeAlias = Literal["fp64", "fp32", "fp16", "tensor", "integer", "instructions"]

class SummaryResult(Result):
    """Tables per name, GPU busy time, and what is missing."""

    annotations: Table
    """Ranges that a framework marked by other means than NVTX, by name. They nest."""
    categories: list[CategoryCount]
    """Every category of this version, captured or not."""
    cuda_api: Table
    """CUDA API calls by function."""
    cuda_graphs: Table
    """CUDA graphs that were recorded as a whole, by graph. Their kernels are in no table."""
    device_ops: Table
    """Operations of an accelerator that has no streams (TPU), by name."""
    drops: list[Loss]
    """What was dropped, truncated, skipped or is unsupported."""
    events_span_ns: int
    """Length in ns from the start of the first event to the end of the last: the part of the window in which the program was seen at work. 0 without events."""
    gpus: list[GpuBusy]
    """Per GPU that had work, how long it was busy."""
    kernels: Table
    """GPU kernels by name."""
    launches: Launches
    """How much of the GPU work has its launching call in the capture."""
    memcpy_size: Table
    """Copies and migrations of unified memory by kind, sizes."""
    memcpy_time: Table
    """Copies and migrations of unified memory by kind, durations."""
    memset: Table
    """Memsets, durations."""
    memset_size: Table
    """Memsets, sizes."""
    nvtx: Table
    """NVTX ranges by style and name."""
    operators: Table
    """Operators of a framework on the CPU by name. They nest: a caller's time holds that of what it calls."""
    os_runtime: Table
    """Operating system calls by function."""
    overhead: Overhead | None
    """What the window cost the program that was profiled; null where that was not looked at."""
    processor_time: ProcessorTime | None
    """Processor time that the capture took beside the program's own work; null where nobody measured it."""
    profiled: ProfiledCount
    """All launches that a kernel profiler replayed."""
    profiled_kernels: Table
    """Launches that a kernel profiler (Nsight Compute) replayed, by kernel: durations as it measured them."""
    redactions: int
    """Secrets that were replaced in names."""
    session_id: str
    """The session's identifier."""
    session_start_utc_ns: int | None
    """The session's start in ns since the Unix epoch, where the source records it."""
    source: Source
    """The profiler and its versions."""
    total_events: int
    """Events of all categories."""
    transformed_on: TransformedOn | None
    """What did the heavy steps of the transform, and why that; null where the caller did not say."""
    version: int
    """[`VERSION`]."""
    window_ns: int
    """Length of the capture window in ns."""

class AdviceParameters(TypedDict, total=False):
    """Parameters of `advice`."""

    limit: int
    """Most findings, those that are worth most. By default `50`."""
    places: int
    """Most places in the timeline per finding. By default `5`."""

class AdviceResult(Result):
    """What makes the capture slow, why, what mending it is worth, and what to do."""

    findings: list[Finding]
    """What was found. Gains overlap where findings have one cause: they are no sum."""
    findings_left_out: int
    """Findings that were left out behind these."""
    gpus: int
    """GPUs that worked. Times of several are means over them."""
    near_misses: list[NearMiss]
    """Parts of the window that are below the thresholds of rules that found nothing, but half of them or more; the longest first."""
    not_captured: list[NotCaptured]
    """Topics that were not looked at, because the capture lacks what it takes."""
    rules: list[RuleOutcome]
    """Every rule, in the order of the catalogue, with what came of it and its thresholds."""
    window_ns: int
    """Length of that window in ns, up to the end of the last GPU work; 0 where there is none."""
    window_start_ns: int
    """Start of the window that shares are of, in ns since the session's start: the start of the first GPU work."""

class KernelsPerStreamResult(Result):
    """Launches, busy time and distinct kernels of each stream of each GPU."""

    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    rows: list[Stream]
    """The streams."""

class KernelChangesParameters(TypedDict, total=False):
    """Parameters of `kernel-changes`."""

    limit: int
    """Most kernels in the result, those whose total time differs most. By default `1000`."""
    name_contains: str
    """Only kernels whose name contains this text. By default `""`."""

class KernelChangesResult(Result):
    """Time, launches and mean of each kernel in two captures, before and after, and what comes of launches and of their length."""

    after_total_ns: int
    """The same after."""
    before_total_ns: int
    """Total time in ns of all kernels before."""
    kernels: int
    """Kernels that differ or not, in the result or not."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    rows: list[Change]
    """The kernels."""

class CollectivesParameters(TypedDict, total=False):
    """Parameters of `collectives`."""

    limit: int
    """Most collectives in each list of single ones. By default `50`."""
    outlier_percent: int
    """A collective is an outlier where it took more than so many percent of the median of its like: same operation, group and message size. By default `200`.
    """

class CollectivesResult(Result):
    """Message sizes, algorithm and bus bandwidth, outliers and hidden time of NCCL's and other collectives."""

    collectives: int
    """Kernels of collectives."""
    communication_ns: int
    """Time in ns in which a collective ran, per device counted once, summed over devices."""
    devices: list[CollectiveDevice]
    """The same per device."""
    exposed_ns: int
    """The rest: `communication_ns` less `hidden_ns`."""
    hidden_ns: int
    """The part of it in which the device also computed."""
    hidden_ratio: float | None
    """`hidden_ns` of `communication_ns`; null without collectives."""
    longest: list[CollectiveCall]
    """The longest collectives."""
    longest_left_out: int
    """Collectives that were left out behind these."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    outliers: list[CollectiveOutlier]
    """Outliers, those that lost most time first."""
    outliers_left_out: int
    """Outliers that were left out behind these."""
    rows: list[CollectiveRow]
    """Per operation, size of the group and power of two of the message's size; the longest total first."""
    sized_collectives: int
    """Those of which the source says the message's size."""

class CompareParameters(TypedDict, total=False):
    """Parameters of `compare`."""

    by: IterateBy
    """How iterations are found. By default `"auto"`."""
    confidence_percent: int
    """Confidence, in percent, of the test of iterations and of the interval of the change. By default `95`."""
    least_comparability: float
    """Comparability below which there is no verdict, from 0 to 1. By default `0.5`."""
    limit: int
    """Most rows of each list, those that differ most. By default `200`."""
    noise_floor_percent: float
    """Change in percent below which one run a side cannot tell a change from noise, whatever the threshold. By default `2.0`."""
    per: ComparedPer
    """What times are compared per. By default `"auto"`."""
    range: str
    """The NVTX range or annotation that is an iteration; empty to find it. By default `""`."""
    skip_iterations: int
    """Iterations at the beginning of each capture that are left out, as their warm-up. By default `0`."""
    threshold_percent: float
    """Change of the compared time, in percent, from which on it is a regression or an improvement. By default `5.0`."""

class CompareResult(Result):
    """Two captures, before and after a change: comparability, what differs per iteration and per kernel, and a verdict."""

    after: ComparedCapture
    """The second capture."""
    before: ComparedCapture
    """The captures."""
    comparability: Comparability
    """Whether the captures can be compared at all."""
    copies: list[CopyDifference]
    """Copies and memsets by direction."""
    gpu_time: list[GpuTimeDifference]
    """How the GPUs spent the time: exclusive parts that add up to their window."""
    iteration_unit: str | None
    """What an iteration is called, by what it was found from: `step`, `block`, `period of kernels` and so on; null where whole captures are compared."""
    kernels: list[TimeDifference]
    """Kernels, the largest difference first."""
    kernels_left_out: int
    """Kernels behind those."""
    memory_diff: MemoryDifference
    """Peak of memory."""
    not_captured: list[NotCaptured]
    """What cannot be compared, and why."""
    ranges: list[TimeDifference]
    """NVTX ranges, annotations and operators by name, the largest difference first. Their times are inclusive: a range holds those inside it."""
    ranges_left_out: int
    """Ranges behind those."""
    speedup: float | None
    """Time before divided by time after, of `time`: above 1 is faster. Null where no time can be compared."""
    time: ComparedTime
    """The time that the verdict is about."""
    unit: ComparedUnit
    """What the times below are per."""
    verdict_reason: str
    """Why, in a sentence for people."""

class RanksParameters(TypedDict, total=False):
    """Parameters of `ranks`."""

    by: IterateBy
    """How iterations are found. By default `"auto"`."""
    kernels: int
    """Most kernels in the result, those with the longest time over all ranks. By default `20`."""
    limit: int
    """Most iterations in the result, the earliest. By default `200`."""
    range: str
    """The NVTX range or annotation that is an iteration; empty to find it. By default `""`."""

class RanksResult(Result):
    """The ranks of one job side by side: what each GPU's time went to, its iterations, and which rank is behind."""

    cautions: list[str]
    """What may be wrong with the iterations, in sentences."""
    kernels: list[RankKernel]
    """The kernels with the longest time over all ranks."""
    kernels_left_out: int
    """Kernels behind those."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    pace: list[RankIteration]
    """Iterations by their number, of those that every rank with iterations has."""
    pace_left_out: int
    """Iterations behind those."""
    ranks: list[Rank]
    """The ranks, by input and GPU. Other lists name a rank by its place here."""
    slowest: SlowestRank | None
    """The rank whose iterations are the longest, by the mean; null with fewer than two ranks with iterations."""
    straggler: WaitedRank | None
    """The rank that the others wait for in collectives: the one that waits least, as `stragglers` tells it. Collectives make all iterations equally long, so
    that their length shows nothing of it. Null where no collective is matched between ranks, and where all wait equally long.
    """

class BatchSweepParameters(TypedDict, total=False):
    """Parameters of `batch-sweep`."""

    batch_sizes: str
    """The batch size of each capture in their order, separated by commas, e.g. `8,16,32`; one that is left out is taken from the shapes of operators. Count
    what one iteration works on, over all devices. By default `""`.
    """
    knee_percent: float
    """From this share in percent of the best throughput on a batch is large enough: the smallest of these is the knee. By default `90.0`."""
    peak_tflops: float | None
    """Peak of one device in TFLOP/s for the type of number that the model computes with, without sparsity; it goes before the rates that the captures state."""

class BatchSweepResult(Result):
    """Captures of one program with different batch sizes: throughput, time per item, memory, efficiency against linear, and the batch from which on more no
    longer pays.
    """

    best_items_per_second: float | None
    """The best throughput in items per second."""
    cautions: list[str]
    """Reservations about the figures, as sentences."""
    fixed_ns: float | None
    """Time of an iteration in ns that does not depend on the batch: where the line through the captures (least squares) meets no items. Null without two
    different sizes. Below 0 where larger batches are slower per item.
    """
    further_item_ns: float | None
    """Time in ns that each further item costs, by that line."""
    knee_batch: int | None
    """The smallest batch with at least `knee_percent` of the best throughput; null without two captures of known size and time."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    rows: list[BatchSweepRow]
    """The captures, the smallest batch first; those of unknown size last."""

class GpuTimeParameters(TypedDict, total=False):
    """Parameters of `gpu-time`."""

    from_ns: int | None
    """Only what lies behind this time in ns since the session's start."""
    micro_idle_below_ns: int
    """Idle pieces shorter than this, in ns, are also reported apart: they are the price of one launch after another. By default `30000`."""
    to_ns: int | None
    """Only what lies before this time in ns."""
    window: Window
    """Which time of each GPU is analysed. By default `"gpu"`."""

class GpuTimeResult(Result):
    """Where the time of each GPU went: computation, communication and copies that nothing hides, idle. The parts add up to the window exactly."""

    all: ExclusiveTime
    """The parts of all GPUs together: sums over `gpus`, so that the window is as many times as long as there are GPUs."""
    gpus: list[TimeOfGpu]
    """The GPUs."""
    micro_idle_below_ns: int
    """Idle pieces below this many ns are `micro_idle_ns`."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""

class OverlapParameters(TypedDict, total=False):
    """Parameters of `overlap`."""

    from_ns: int | None
    """Only what lies behind this time in ns since the session's start."""
    to_ns: int | None
    """Only what lies before this time in ns."""
    window: Window
    """Which time of each GPU is analysed. By default `"gpu"`."""

class OverlapResult(Result):
    """How much communication and copying each GPU hides under computation, and which kinds of work run at once."""

    gpus: list[OverlapOfGpu]
    """The GPUs."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""

class KernelTypesParameters(TypedDict, total=False):
    """Parameters of `kernel-types`."""

    duration_ratio: float
    """A class's list ends with the name by which it has this share of the class's time, from 0 to 1. By default `1.0`."""
    limit: int
    """Most names of each class; the rest is summed up. By default `10`."""

class KernelTypesResult(Result):
    """Computation, communication and memory work of GPUs, and the names that take most of each."""

    classes: list[ClassOfWork]
    """Each class over all GPUs, with its names."""
    gpus: list[ClassOfGpu]
    """Each class of each GPU."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""

class ProfiledKernelsParameters(TypedDict, total=False):
    """Parameters of `profiled-kernels`."""

    limit: int
    """Most launches in the result, the first of the report. By default `10000`."""
    metric_contains: str
    """Only metrics whose name contains this text. By default `""`."""
    name_contains: str
    """Only kernels whose name contains this text. By default `""`."""

class ProfiledKernelsResult(Result):
    """Launches that Nsight Compute measured: speed of light, occupancy, caches, and every metric."""

    launches: list[ProfiledLaunch]
    """The launches in the order of the report."""
    launches_left_out: int
    """Launches that are not in the result."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""

class ProfiledKernelParameters(TypedDict, total=False):
    """Parameters of `profiled-kernel`."""

    launch: int | None
    """Number of the launch in its report; null is the one that took longest."""
    limit: int
    """Most instructions and most source lines in the result, those with most samples. By default `200`."""

class ProfiledKernelResult(Result):
    """A launch that Nsight Compute measured, from inside: its limiter, occupancy, memory, stalls, instructions, and NVIDIA's rules."""

    accesses: list[Access]
    """Loads and stores."""
    architecture: str | None
    """The architecture of its machine code, e.g. `sm_86`; null where the report holds none."""
    block: list[int]
    """Threads per block in x, y and z."""
    caches: list[Cache]
    """Caches and the device's memory."""
    code: CodeText | None
    """Code that it ran; null where the report holds none."""
    device: str | None
    """The device, as the report names it."""
    figures: Figures | None
    """What most ask for, in one unit each."""
    grid: list[int]
    """Thread blocks in x, y and z."""
    instructions: list[Instruction]
    """Instructions by address, those with most samples; in the order of addresses."""
    instructions_left_out: int
    """Instructions that are not in the result."""
    launch: int | None
    """Its number in the report; null where the report holds no such launch."""
    line_coverage: LineCoverage | None
    """How much has a source line; null where the machine code has no table of lines."""
    links: list[Link]
    """Bytes between them."""
    mix: InstructionMix
    """Instructions by opcode, the most executed first."""
    name: str
    """The kernel's name."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    occupancy: Occupancy
    """How many warps it could keep on a multiprocessor, and what limits them."""
    ranges: list[OpenRange]
    """Annotated ranges that were open on the launching thread."""
    rules: list[RuleResult]
    """What NVIDIA's rules say, in NVIDIA's words."""
    sections: list[str]
    """Sections of the report that were collected."""
    source_lines: list[SourceLine]
    """Source lines, those with most samples first; empty where the machine code has no table of lines."""
    source_lines_left_out: int
    """Source lines that are not in the result."""
    speed_of_light: SpeedOfLight
    """How close it came to what the device can do."""
    stalls: list[StallReason]
    """States of warps between two instructions, the longest first."""

class RooflineParameters(TypedDict, total=False):
    """Parameters of `roofline`."""

    limit: int
    """Maximum number of launches of each capture; those that took longest are kept. By default `100`."""
    name_contains: str
    """Text that a kernel's name must contain for its launches to be in the result; empty for all kernels. By default `""`."""

class RooflineResult(Result):
    """Work per second over work per byte of launches that Nsight Compute measured, below the roofs of their device."""

    launches: int
    """Number of launches in all captures whose kernel's name contains `name_contains`."""
    launches_left_out: int
    """Number of these launches that `limit` left out."""
    launches_without_roofline: int
    """Number of these launches whose report lacks the metrics that a roofline needs."""
    moves: list[LaunchMove]
    """Changes of launches from one capture to the next. Launches are the same where name, grid, block and their order among such launches are equal."""
    not_captured: list[NotCaptured]
    """Parts of the result that the captures have no data for, each with the reason."""
    points: list[LaunchPoint]
    """One point for each launch, kind of work that the launch did, and memory that it moved bytes of."""
    unused: list[WorkKind]
    """Kinds of work that the profiler measured and of which no launch did any."""

class ProfiledInTimelineParameters(TypedDict, total=False):
    """Parameters of `profiled-in-timeline`."""

    limit: int
    """Most rows of each list, those that took longest in the timeline. By default `200`."""
    name_contains: str
    """Only kernels whose name contains this text. By default `""`."""

class ProfiledInTimelineResult(Result):
    """Kernels of a timeline beside what Nsight Compute measured of them, joined by name, grid, block and order."""

    coverage: JoinCoverage
    """How much was joined."""
    kernels: list[JoinedKernel]
    """Kernels that are in both, those that took longest in the timeline first."""
    kernels_left_out: int
    """Kernels in both that are not in the result."""
    launches: list[JoinedLaunch]
    """Profiled launches beside the launch of the timeline that has the same kernel and order."""
    launches_left_out: int
    """Such launches that are not in the result."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""

class CpuGpuParameters(TypedDict, total=False):
    """Parameters of `cpu-gpu`."""

    from_ns: int | None
    """Only what lies behind this time in ns since the session's start."""
    include_python: bool
    """Whether functions of the Python interpreter count as activity of the CPU. By default `True`."""
    min_duration_ns: int
    """Events shorter than this, in ns, are left out, on either side. By default `0`."""
    to_ns: int | None
    """Only what lies before this time in ns."""

class CpuGpuResult(Result):
    """When the CPU was active, when GPUs were, and when both were."""

    cpu_active_ns: int
    """Time in ns in which any thread was inside an operator, a CUDA call or (where asked for) a Python function."""
    cpu_categories: list[Category]
    """What counted as activity of the CPU."""
    cpu_only_ns: int
    """Time in ns in which the CPU alone was active."""
    end_ns: int
    """End in ns of the last event that counts, or what was asked for."""
    gpu_active_ns: int
    """Time in ns in which any GPU ran a kernel, copy or memset."""
    gpu_only_ns: int
    """Time in ns in which a GPU alone was active."""
    neither_ns: int
    """Time in ns in which neither was."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    overlap_ns: int
    """Time in ns in which both were active."""
    overlap_ratio: float | None
    """`overlap_ns` of `gpu_active_ns`; null where no GPU was active."""
    start_ns: int
    """Start in ns since the session's start: of the first event that counts, or what was asked for."""
    total_ns: int
    """Length in ns from the first start to the last end of what counts."""

class EventsParameters(TypedDict, total=False):
    """Parameters of `events`."""

    after: int
    """So many of them come before this page: what the page before gave as `next`. By default `0`."""
    category: str
    """Only events of this category, such as `cuda_kernel`; empty for all. By default `""`."""
    from_ns: int
    """Only events that end behind this time, in ns from the session's start. By default `0`."""
    limit: int
    """Most events on the page. By default `10000`."""
    to_ns: int
    """Only events that start before this time, in ns from the session's start; 0 for no bound. By default `0`."""

class EventsResult(Result):
    """Events in the order of their starts, in pages, by time and category."""

    events: list[EventRecord]
    """The events in the order of their starts, equal ones in the order of categories."""
    matching_events: int
    """Events that were asked for, on this page or not."""
    next: int | None
    """Give it as `after` for the next page; null on the last."""
    session_id: str
    """The session's identifier."""
    total_duration_ns: int
    """Length of the window in ns."""
    total_events: int
    """Events of the capture."""

class CudaGpuKernSumParameters(TypedDict, total=False):
    """Parameters of `cuda_gpu_kern_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaGpuKernSumResult(Result):
    """Times of GPU kernels by name, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class CudaGpuKernGbSumParameters(TypedDict, total=False):
    """Parameters of `cuda_gpu_kern_gb_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaGpuKernGbSumResult(Result):
    """Times of GPU kernels by name, grid and block, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class CudaGpuMemTimeSumParameters(TypedDict, total=False):
    """Parameters of `cuda_gpu_mem_time_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class CudaGpuMemTimeSumResult(Result):
    """Times of copies and memsets on GPUs by kind, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class CudaGpuMemSizeSumParameters(TypedDict, total=False):
    """Parameters of `cuda_gpu_mem_size_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class CudaGpuMemSizeSumResult(Result):
    """Sizes of copies and memsets on GPUs by kind, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysSizesRow]
    """The rows."""

class CudaGpuSumParameters(TypedDict, total=False):
    """Parameters of `cuda_gpu_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaGpuSumResult(Result):
    """Times of GPU kernels, copies and memsets together, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class CudaApiSumParameters(TypedDict, total=False):
    """Parameters of `cuda_api_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class CudaApiSumResult(Result):
    """Times of calls of the CUDA runtime and driver by function, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class CudaApiGpuSumParameters(TypedDict, total=False):
    """Parameters of `cuda_api_gpu_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaApiGpuSumResult(Result):
    """Times of CUDA calls, GPU kernels, copies and memsets together, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class CudaKernExecSumParameters(TypedDict, total=False):
    """Parameters of `cuda_kern_exec_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaKernExecSumResult(Result):
    """Times of kernels from launch to end by thread, device, function and kernel, as nsys stats has them."""

    kernels: int
    """Kernels in the capture."""
    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysLaunchTimesRow]
    """The rows."""
    without_launch: int
    """Kernels whose launch was not recorded, which are in no row."""

class CudaKernExecTraceParameters(TypedDict, total=False):
    """Parameters of `cuda_kern_exec_trace`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaKernExecTraceResult(Result):
    """Call, wait in the queue and run of each kernel in the order of the calls, as nsys stats has them."""

    kernels: int
    """Kernels in the capture."""
    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysLaunchesRow]
    """The rows."""
    without_launch: int
    """Kernels whose launch was not recorded, which are in no row."""

class CudaGpuTraceParameters(TypedDict, total=False):
    """Parameters of `cuda_gpu_trace`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""
    nvtx_name: bool
    """Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's `:nvtx-name`. By default
    `False`.
    """

class CudaGpuTraceResult(Result):
    """Kernels, copies and memsets in the order of their starts, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysGpuTraceRow]
    """The rows."""

class CudaApiTraceParameters(TypedDict, total=False):
    """Parameters of `cuda_api_trace`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class CudaApiTraceResult(Result):
    """Calls of the CUDA runtime and driver in the order of their starts, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysApiTraceRow]
    """The rows."""

class NvtxSumParameters(TypedDict, total=False):
    """Parameters of `nvtx_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class NvtxSumResult(Result):
    """Times of NVTX ranges by style and name, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class NvtxPushpopSumParameters(TypedDict, total=False):
    """Parameters of `nvtx_pushpop_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class NvtxPushpopSumResult(Result):
    """Times of NVTX push/pop ranges by name, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class NvtxPushpopTraceParameters(TypedDict, total=False):
    """Parameters of `nvtx_pushpop_trace`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class NvtxPushpopTraceResult(Result):
    """NVTX push/pop ranges in the order of their starts with the ranges around and inside them, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysPushPopTraceRow]
    """The rows."""

class NvtxKernSumParameters(TypedDict, total=False):
    """Parameters of `nvtx_kern_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""
    name: NsysKernelName
    """How kernels are called: nsys's `:base` and `:mangled`. By default `"demangled"`."""

class NvtxKernSumResult(Result):
    """Times of kernels by the NVTX ranges that they were launched in, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysRangeKernelsRow]
    """The rows."""

class NvtxGpuProjSumParameters(TypedDict, total=False):
    """Parameters of `nvtx_gpu_proj_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class NvtxGpuProjSumResult(Result):
    """NVTX ranges projected onto GPUs by name, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysProjectionsRow]
    """The rows."""

class NvtxGpuProjTraceParameters(TypedDict, total=False):
    """Parameters of `nvtx_gpu_proj_trace`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class NvtxGpuProjTraceResult(Result):
    """Each NVTX range projected onto GPUs, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysProjectionTraceRow]
    """The rows."""

class OsrtSumParameters(TypedDict, total=False):
    """Parameters of `osrt_sum`."""

    limit: int
    """Most rows in the result, the first ones in the table's order. By default `10000`."""

class OsrtSumResult(Result):
    """Times of calls of the operating system by function, as nsys stats has them."""

    left_out: int
    """Rows that were left out behind these."""
    not_captured: list[NotCaptured]
    """What the capture lacks."""
    rows: list[NsysTimesRow]
    """The rows."""
    total_ns: int
    """Total time in ns of all rows, those left out too."""

class IterationsParameters(TypedDict, total=False):
    """Parameters of `iterations`."""

    by: IterateBy
    """How iterations are looked for. By default `"auto"`."""
    kernel_limit: int
    """Most kernels of that list. By default `20`."""
    limit: int
    """Most iterations in the list, the first ones. By default `1000`."""
    number: int | None
    """Number of an iteration whose kernels are listed."""
    range: str
    """The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to choose one. By default `""`."""

class IterationsResult(Result):
    """Iterations of the training or inference loop: timing, what their GPU time went to, outliers and pipeline bubbles."""

    assigned: AssignedWork
    """How GPU work was assigned."""
    bubbles: list[PipelineBubbles]
    """Where devices waited for each other inside of iterations; empty of one device."""
    cautions: list[str]
    """Reservations about the figures, as sentences."""
    confidence_ratio: float
    """How sure it is that these are iterations, from 0 to 1."""
    details: list[IterationDetail]
    """The iteration that was asked for, in each loop that has it."""
    gpu_span: IterationStatistics | None
    """From the first start to the last end of an iteration's GPU work, summed over its devices. Without warm-up."""
    iterations: int
    """Iterations of all loops."""
    left_out: int
    """Iterations behind the list's limit."""
    loops: int
    """Loops that iterate side by side: threads, or of a period of kernels devices."""
    name: str
    """What repeats: the range's name, numbers as `#`; empty of a period of kernels."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    parts: ExclusiveTime
    """What the GPU time of all iterations without warm-up went to. The parts add up to the window."""
    rows: list[IterationRow]
    """The iterations, loop by loop."""
    source: IterationSource | None
    """What the iterations were found from; null where there are none."""
    time: IterationStatistics | None
    """Length of an iteration: on the host, of a period of kernels on the GPU. Without warm-up; null without others."""
    warm_up_iterations: int
    """Those at the beginning of each loop that took more than 1.5 times the median: no statistics hold them."""

class StragglersParameters(TypedDict, total=False):
    """Parameters of `stragglers`."""

    limit: int
    """Most collectives in the list of those with the longest waits. By default `50`."""

class StragglersResult(Result):
    """Which rank the others wait for in collectives, and latency and bandwidth of collectives without the wait. Ranks are inputs, or devices of one."""

    apart: int
    """Matched collectives that do not overlap between ranks, or differ in operation or size, and are left out: they are not the same."""
    clocks: ClockAlignment
    """How the times of ranks are compared."""
    end_skew_median_ns: float | None
    """Median distance in ns of the first from the last end of a collective: what the alignment leaves, and so how exact waits are."""
    matched: int
    """Collectives that all ranks of their group ran, as far as these were captured."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    not_synchronising: int
    """Kernels of operations for which ranks need not wait for each other, e.g. broadcast, send and receive; they are left out."""
    ranks: list[StragglerRank]
    """Each rank, the one that waits least first."""
    rows: list[StragglerRow]
    """Per operation, ranks and power of two of the message's size; the longest total first."""
    straggler: int | None
    """Number of the rank that waits least for the others, and so comes last. Null where no collective is matched, and where all ranks wait equally long."""
    unmatched: int
    """Collectives that are not in the captures of all ranks of their group."""
    wait_ns: int
    """Sum of all waits of all ranks in ns: GPU time that was lost."""
    worst: list[StragglerCall]
    """The collectives with the longest waits."""
    worst_left_out: int
    """Collectives that were left out behind these."""

class HostSyncParameters(TypedDict, total=False):
    """Parameters of `host-sync`."""

    limit: int
    """Most rows of each list. By default `50`."""
    small_copy_bytes: int
    """Copies from host to device of so many bytes or fewer are left out of the rule `cuda_memcpy_sync`, as Nsight Systems does. By default `64000`."""

class HostSyncResult(Result):
    """What it costs that the host waits for GPUs: by kind of wait, by the ranges that hold it, and how much of it the GPU was idle."""

    cost: CallCost
    """All calls in which the host waits."""
    gpu_idle_after_ns: int | None
    """Time in ns from the end of each such call to the next work of its process's GPUs where these have nothing left to do, counted once: the queue that the
    wait drained. It is an upper bound of what the wait costs the GPU; null where no GPU ever worked.
    """
    holders: list[SyncHolder]
    """The innermost ranges, operators, annotations and functions that hold the calls, per category the longest total first. A call may be held by one of each
    category.
    """
    holders_left_out: int
    """Holders that were left out behind these."""
    kinds: list[SyncKindRow]
    """The same calls by why the host waits, the longest total first."""
    longest: list[SyncCall]
    """The longest calls."""
    longest_left_out: int
    """Calls that were left out behind these."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    rules: list[SyncRule]
    """The rules of `nsys analyze` that are about synchronisation, with their own conditions."""

class OperationsParameters(TypedDict, total=False):
    """Parameters of `operations`."""

    bottlenecks: int
    """Most bottlenecks. By default `5`."""
    first_calls: int
    """Most calls of the operation timeline, the first ones. By default `100`."""
    kind: OperationChoice
    """What operations are made of. By default `"auto"`."""
    names: int
    """Most names as captured per operation, those with most calls. By default `5`."""
    normalise: bool
    """Whether names that differ in numbers, addresses and ids alone are one operation. By default `True`."""
    top: int
    """Most operations in the result, those that take longest by themselves. By default `200`."""

class OperationsResult(Result):
    """NVTX ranges, annotations, PyTorch operators or HLO operations by name: calls, time, and how it splits into GPU, CPU, transfers and overhead."""

    avg_ns: float | None
    """Mean length in ns of a call; null without any."""
    bottlenecks: list[OperationBottleneck]
    """The operations that cost most."""
    calls: int
    """Calls of all operations."""
    distinct: int
    """Distinct operations, in the result or not."""
    first_calls: list[OperationCall]
    """The first calls."""
    gpu_work: OperationCoverage | None
    """How much of the GPU work the operations account for; null of operations that are GPU work themselves, and of profiles."""
    kind: OperationKind
    """What they are made of."""
    kinds: list[OperationKindCalls]
    """Calls of each kind that the capture holds."""
    memory: list[OperationMemory]
    """Device memory over time; empty where it was not captured."""
    not_captured: list[NotCaptured]
    """What has no figures."""
    operations: list[Operation]
    """The operations, the longest own time first."""
    operations_left_out: int
    """Operations that were left out behind these."""
    self_ns: int
    """Time in ns inside any operation: of all own times the sum, so that what is inside several counts once per thread."""
    total_ns: int
    """Sum in ns of the lengths of all calls; what is inside several counts in each."""

class OperationsProfileParameters(TypedDict, total=False):
    """Parameters of `operations-profile`."""

    kind: OperationChoice
    """The events that count as operations. By default `"auto"`."""
    limit: int
    """Maximum number of entries; the earliest calls are kept. Summaries count all calls. By default `1000`."""
    top: int
    """Maximum number of operations in the summary; those with the longest time of their own are kept. By default `1000`."""

class OperationsProfileResult(Result):
    """Operations as entries and summaries of an operation profiler: operation, call_count, total_time_ms and so on."""

    entries: list[ProfileEntry]
    """The earliest calls, one per entry."""
    entries_left_out: int
    """Number of calls that `limit` left out of `entries`."""
    summary: dict[str, ProfileSummary]
    """Figures of all calls, by the operation's name."""

class HloOperationsParameters(TypedDict, total=False):
    """Parameters of `hlo-operations`."""

    limit: int
    """Most operations, and most kernels, in the result: those that take longest, or those of most work where no time was measured. By default `200`."""
    program: str
    """Only programs whose name contains this text. By default `""`."""

class HloOperationsResult(Result):
    """Operations of compiled programs (JAX, XLA): time, FLOP and bytes, intensity, what bounds them, and the kernels and lines of source behind them."""

    kernels: list[HloKernel]
    """Kernels, copies and memsets of the operations, the longest first; empty of a device without kernels."""
    kernels_left_out: int
    """Kernels behind the list's limit."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    operations: int
    """Operations whose time was measured, in all."""
    operations_left_out: int
    """Operations behind the list's limit."""
    other_events: int
    """Pieces of such work."""
    other_ns: int
    """Time in ns of GPU work that belongs to no operation: copies to and from the host, and what the runtime adds."""
    rows: list[HloOperation]
    """The operations, those that take longest by themselves first."""
    self_ns: int
    """Time in ns of all operations by themselves, asynchronous ones apart."""
    unmeasured: list[HloUnmeasuredOperation]
    """The operations by their counted work, those with most FLOP first, where no operation's time was measured, as of a dump of XLA; empty otherwise. They are
    the instructions of the computation that each program runs, but those without work (parameters, constants, tuples).
    """
    unmeasured_left_out: int
    """Operations behind the limit of that list."""

class HloCostResult(Result):
    """FLOP, bytes and intensity of each compiled program (JAX, XLA) counted from its instructions, beside cost_analysis and the time that was measured."""

    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    rows: list[HloProgramCost]
    """The programs, those that took longest first."""

class HloGraphParameters(TypedDict, total=False):
    """Parameters of `hlo-graph`."""

    around: str
    """Name of an instruction: only those that it takes values from and gives values to; empty for the whole program. By default `""`."""
    distance: int
    """Steps from that instruction, over operands and users alike. By default `2`."""
    inside: bool
    """Whether instructions inside fusions, loops and other called computations are nodes too. By default `False`."""
    limit: int
    """Most nodes, and most rows of each table. By default `500`."""
    program: str
    """Only programs whose name contains this text; of several the one with most instructions. By default `""`."""
    program_id: str
    """Number of the program in decimal digits, where several have its name; empty for any. By default `""`."""
    stage: HloStage
    """Which stage of the program's compilation, where captures hold both. By default `"auto"`."""

class HloGraphResult(Result):
    """Graph of a compiled program (JAX, XLA): computations, fusions with what they hold, opcodes before and after optimisation, and the instructions around
    one.
    """

    computations: list[HloComputation]
    """Its computations, the one that runs first, then by their instructions."""
    computations_left_out: int
    """Computations behind the list's limit."""
    edges: list[HloEdge]
    """Which instruction's value another takes."""
    fusions: list[HloFusion]
    """Fusions, those that save most memory traffic first."""
    fusions_left_out: int
    """Fusions behind the list's limit."""
    instructions: int
    """Number of instructions of the program."""
    is_optimised: bool
    """Whether it is the program after optimisation."""
    nodes: list[HloNode]
    """Instructions of the graph, operands before those that use them."""
    nodes_left_out: int
    """Instructions behind the list's limit."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    opcodes: list[HloOpcodeCount]
    """Opcodes before and after optimisation."""
    program: str
    """The program; empty where there is none."""
    program_id: str
    """Its number, in decimal digits."""
    programs: list[HloProgramEntry]
    """The programs to choose from."""

class HloMemoryParameters(TypedDict, total=False):
    """Parameters of `hlo-memory`."""

    limit: int
    """Most values in each list, the largest. By default `200`."""
    memory_space: int
    """Memory as the compiler numbers them: 0 is the device's ordinary memory, 5 that of the host on TPUs. By default `0`."""
    program: str
    """Only programs whose name contains this text; of several the one that takes most memory. By default `""`."""
    program_id: str
    """Number of the program in decimal digits, where several have its name; empty for any. By default `""`."""

class HloMemoryResult(Result):
    """Memory of a compiled program (JAX, XLA) as its compiler planned it: lifetimes of values, the peak, and what is in it."""

    allocated_bytes: int
    """Bytes of all allocations, with the gaps between values."""
    at_peak: list[HloBuffer]
    """The values at the peak, the largest first."""
    at_peak_left_out: int
    """Values at the peak behind the list's limit."""
    buffers: list[HloBuffer]
    """All values, the largest first."""
    buffers_left_out: int
    """Values behind the list's limit."""
    cautions: list[str]
    """Reservations about the figures, as sentences."""
    constants_bytes: int
    """Bytes of constants."""
    fixed_bytes: int
    """Bytes of values that are there from begin to end."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    outputs_bytes: int
    """Bytes of results that are in no parameter's memory."""
    parameters_bytes: int
    """Bytes of parameters."""
    peak_bytes: int
    """Most bytes of values at once."""
    peak_instruction: str | None
    """Instruction of that step."""
    peak_step: int | None
    """Step behind which the peak is, counted from 0; null where the values are the same throughout."""
    program: str
    """The program; empty where there is none."""
    program_id: str
    """Its number, in decimal digits."""
    programs: list[HloProgramEntry]
    """The programs to choose from."""
    steps: list[HloMemoryStep]
    """Bytes in use behind each step, in the order of the program: values begin and end at them."""
    steps_left_out: int
    """Steps behind the list's limit of 100,000."""
    temporaries_bytes: int
    """Bytes of the allocations of temporaries."""

class ProfilerTimelineParameters(TypedDict, total=False):
    """Parameters of `profiler-timeline`."""

    include_python_events: bool
    """Whether functions of the Python interpreter count as activity of the CPU. By default `True`."""
    min_duration_us: float
    """Events shorter than this, in µs, are left out. By default `1.0`."""

class ProfilerTimelineResult(Result):
    """Total, CPU-active, GPU-active and overlapping time in µs, as /api/profiler/timeline has it."""

    cpu_active_time_us: float | None
    """Time in µs in which any thread was active; null where the CPU was not captured."""
    gpu_active_time_us: float | None
    """Time in µs in which any GPU was active; null where GPUs were not captured."""
    overlap_time_us: float | None
    """Time in µs in which both were; null where either was not captured."""
    total_time_us: float
    """From the first event to the last, in µs."""

class ProfilerKernelsParameters(TypedDict, total=False):
    """Parameters of `profiler-kernels`."""

    limit: int
    """Most kernels, those that take longest. By default `1000`."""

class ProfilerKernelsResult(Result):
    """Total time of each kernel in µs, as /api/profiler/kernels has it."""

    kernels: list[ProfilerKernel] | None
    """The kernels, the longest total time first; null where kernels were not captured."""

class ProfilerHtaResult(Result):
    """Idle, compute and communication time of the GPUs in percent, as /api/profiler/hta has it."""

    bottlenecks: list[str]
    """What is slow."""
    communication_time_pct: float | None
    """Share in percent in which a GPU communicated, hidden behind computation or not: the three shares are no parts of a whole. Null where GPUs were not
    captured.
    """
    compute_time_pct: float | None
    """Share in percent in which a GPU computed; null where GPUs were not captured."""
    gpu_idle_time_pct: float | None
    """Share in percent in which a GPU did nothing; null where GPUs were not captured."""
    recommendations: list[str]
    """What to do."""
    top_kernels: list[HTAKernel]
    """The ten kernels that take longest."""

class TorchCompileParameters(TypedDict, total=False):
    """Parameters of `torch-compile`."""

    labels: str
    """What to call the captures, in their order and separated by commas, e.g. `eager,default,max-autotune`: captures do not say the mode. Empty to number them
    from 1. By default `""`.
    """
    limit: int
    """Most rows of each list. By default `100`."""

class TorchCompileResult(Result):
    """torch.compile: compile time by phase, graph breaks with reason and remedy, recompiles, coverage; beside an eager capture the speed-up of each mode."""

    break_even_runs: float | None
    """Runs after which compiling took as long as what was compiled ran: compile time over mean run time. Null without such runs or compilation."""
    cache_lookup_ns: int
    """Time of the look-ups, in ns."""
    cache_lookups: int
    """Searches for code whose guards hold."""
    captures: list[CompileSide]
    """The captures side by side."""
    compile_ns: int
    """Compile time in ns: the union of the phases of each thread, which nest, summed over threads."""
    given_up: list[GivenUp]
    """Functions that Dynamo began to compile and gave up, and that run uncompiled; PyTorch 2.6 and later says it."""
    given_up_left_out: int
    """Such functions that were left out behind these."""
    graph_breaks: list[GraphBreak]
    """Graph breaks: places where the program leaves one graph and goes on in another."""
    graph_breaks_left_out: int
    """Graph breaks that were left out behind these."""
    graphs: int
    """Graphs that the backend was asked to compile (`compile_fx_inner`)."""
    graphs_generated: int
    """Graphs of those that it generated code for (`fx_codegen_and_compile`); the others came from Inductor's cache."""
    input: int | None
    """The capture that the lists are of, by its place among `captures`; null where none holds compiled code."""
    mean_cache_lookup_ns: int | None
    """Their mean time in ns; null without any."""
    mean_run_ns: int | None
    """Their mean length in ns; null without any."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    phases: list[CompilePhase]
    """The phases, the longest own time first."""
    phases_left_out: int
    """Phases that were left out behind these."""
    recompiles: list[Recompile]
    """Code that was compiled again."""
    recompiles_left_out: int
    """Such code that was left out behind these."""
    regions: list[CompiledRegion]
    """Compiled code by how long it ran."""
    regions_left_out: int
    """Such code that was left out behind these."""
    restarts: int
    """Traces that Dynamo began again, as it does at the first graph break of a function (`compile_attempt_1` and later)."""
    threads: list[CompileThread]
    """The same by thread."""
    warm_runs: int
    """Outermost runs in which nothing was compiled."""

class ProfilerCompileResult(Result):
    """Speed-up, compile time, graph breaks and fusion of torch.compile, as /api/profiler/compile has it."""

    compile_time_ms: float | None
    """Time that was spent compiling in ms; null where nothing was compiled in the capture."""
    fusion_ratio: float | None
    """`ops_before_fusion` over `ops_after_fusion`: above 1 is fused. Null without an eager capture beside it."""
    graph_breaks: list[CompileReportBreak]
    """Graph breaks: where the program leaves its compiled graph."""
    ops_after_fusion: float | None
    """Mean kernels per iteration of the compiled capture; null without iterations or kernels."""
    ops_before_fusion: float | None
    """Mean kernels per iteration of the eager capture; null without one."""
    recommendations: list[str]
    """What the user can do, in sentences; empty where nothing is to be done."""
    speedup: float | None
    """Mean iteration of the eager capture over that of the compiled one: above 1 is faster. Null without an eager capture beside it."""
    total_graph_breaks: int | None
    """Number of graph breaks; null where no compiled code ran."""

class CriticalPathParameters(TypedDict, total=False):
    """Parameters of `critical-path`."""

    by: IterateBy
    """How iterations are looked for. By default `"auto"`."""
    limit: int
    """Most segments in the list, the longest ones. By default `500`."""
    number: int | None
    """Number of the iteration; without one, the iteration of median length, the first of each loop left out."""
    range: str
    """The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to choose one. By default `""`."""
    whole: bool
    """The whole capture instead of an iteration, of the process with the most GPU work. By default `False`."""

class CriticalPathResult(Result):
    """The longest chain of work that waits for work in an iteration: whether CPU, compute, copies or communication bound it."""

    cautions: list[str]
    """Reservations about the figures, as sentences."""
    cpu_events: int
    """Operators and API calls in the window."""
    end_ns: int
    """End of the path in ns."""
    gpu_chain_ns: int
    """Length in ns of the longest chain of GPU work alone: a lower bound of the window's time however fast the processor is."""
    gpu_events: int
    """Kernels, copies and memsets in the window."""
    iteration: int | None
    """Number of the iteration; null of the whole capture."""
    iteration_name: str
    """Name of the iteration's range or step."""
    left_out: int
    """Shorter segments that the list leaves out."""
    names: list[PathName]
    """What the path runs through, the longest in all first; at most 50."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    parts: list[PathShare]
    """The parts of the path."""
    path_ns: int
    """Sum of the segments in ns."""
    process: int
    """Process whose path it is."""
    rows: list[PathSegment]
    """Segments of the path by time."""
    start_ns: int
    """Begin of the path in ns since the session's start."""
    unexplained_ns: int
    """Time in ns between begin and end that no segment has: waiting that no record explains."""
    unlaunched: int
    """Those of them whose launch was not recorded."""
    verdict_ratio: float
    """The verdict's share of the path."""

class MfuParameters(TypedDict, total=False):
    """Parameters of `mfu`."""

    by: IterateBy
    """How iterations are looked for. By default `"auto"`."""
    flops_per_iteration: float | None
    """Floating-point operations of one iteration of one loop (of one process, where each process runs a loop) on all of its devices, forward and backward, e.g.
    `1.2e15`. Without iterations it is those of the whole capture. It goes before all that was recorded.
    """
    limit: int
    """Most iterations, and most operations, in the lists. By default `50`."""
    peak_tflops: float | None
    """Peak of one device in TFLOP/s for the type of number that the model computes with, from its data sheet and without sparsity, e.g. `989` for BF16 on an
    H100 SXM. It goes before the rates that the capture states, and before those that are known by the device's name where it states none.
    """
    range: str
    """The NVTX range or annotation that is an iteration, the region of interest; digits may be written as `#`. Empty to choose one. By default `""`."""
    whole: bool
    """The whole capture instead of iterations. By default `False`."""

class MfuResult(Result):
    """Model FLOP utilisation: the floating-point operations of iterations beside the peak of their devices, and those of each matrix product and attention."""

    by_iteration: list[MfuIteration]
    """The iterations, loop by loop."""
    calls_without_kernels: int
    """Calls that were left out because no kernel is known that they launched: they ran on the processor, or the launch was not recorded."""
    calls_without_shapes: int
    """Calls of matrix products and attention whose shapes were not recorded or do not fit."""
    cautions: list[str]
    """Reservations about the figures, as sentences."""
    coverage_ratio: float | None
    """`known_kernel_time_ns` of `kernel_time_ns`: where it is low, operations that were not given are too few. Null without kernels."""
    device_time_ns: int
    """Time in ns of the region, times the devices that worked in it. Of profiled launches it is their own time."""
    flops: int | None
    """Floating-point operations of the region: of all iterations, else of the whole capture."""
    flops_per_second: float | None
    """Operations per second and device."""
    flops_source: FlopsSource | None
    """Where the operations come from; null where none are known."""
    iteration_name: str
    """Name of the iterations' range or step."""
    iteration_source: IterationSource | None
    """What the iterations were found from; null where the region is the whole capture."""
    iterations: int
    """Iterations that used a device; 0 where the region is the whole capture."""
    iterations_left_out: int
    """Iterations behind the list's limit."""
    kernel_time_ns: int
    """Time in ns of all kernels, of iterations and others."""
    known_calls: int
    """Calls of operators whose operations are known."""
    known_kernel_time_ns: int
    """Time in ns of those kernels whose operations are known one by one."""
    left_out: int
    """Operations behind the list's limit."""
    median_mfu_ratio: float | None
    """The same of the median iteration."""
    mfu_ratio: float | None
    """Model FLOP utilisation: the time that the operations take at the peak rates, of `device_time_ns`. Null where operations or peak are not known."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    peak_source: PeakSource | None
    """Where the peak rate comes from; null where it is not known."""
    rows: list[MfuOperation]
    """Operations by name and shapes, those that took most GPU time first."""

class PrecisionParameters(TypedDict, total=False):
    """Parameters of `precision`."""

    limit: int
    """Most rows of each list. By default `100`."""

class PrecisionResult(Result):
    """Tensor cores: the share of matrix products that use them, those that could and do not, their types of number and whether their dimensions fit."""

    compute_capability: str | None
    """Highest compute capability of the GPUs, e.g. `9.0`; null where the source does not say."""
    cuda_core_ns: int
    """The part of it on CUDA cores."""
    eligible_unused_ns: int
    """The part of it of products that could use tensor cores and ran on CUDA cores."""
    has_tensor_cores: bool | None
    """Whether such a GPU has tensor cores (from 7.0 on); null where it is not known."""
    kernel_ns: int
    """Time in ns of all kernels."""
    kernels: list[MatrixKernelRow]
    """Kernels that multiply matrices, the longest time first."""
    kernels_left_out: int
    """Kernels that were left out behind these."""
    matrix_ns: int
    """Time in ns of kernels that multiply matrices."""
    matrix_ratio: float | None
    """`matrix_ns` of `kernel_ns`: what faster matrix products can win at most."""
    misaligned_ns: int
    """The part of it of products with a dimension that is no multiple of 16."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    product_ns: int
    """GPU time in ns of products whose dimensions are known."""
    products: list[MatrixProductRow]
    """Matrix products by operator, shapes and type, the longest GPU time first."""
    products_left_out: int
    """Products that were left out behind these."""
    source: TensorCoreSource | None
    """Where the use of tensor cores is known from; null without kernels."""
    tensor_core_ns: int
    """The part of it on tensor cores."""
    tensor_core_ratio: float | None
    """`tensor_core_ns` of `matrix_ns`, a lower bound where `unknown_ns` is not 0; null without kernels that multiply matrices."""
    unknown_ns: int
    """The part of it of kernels whose names do not say."""

class OffloadCandidatesParameters(TypedDict, total=False):
    """Parameters of `offload-candidates`."""

    limit: int
    """Most kernels in the list. By default `50`."""
    ridge_flop_per_byte: float | None
    """Operations per byte at which the device's compute and memory are balanced, from its data sheet: peak operations per second over peak bandwidth. It goes
    before what the capture states, and is needed for matrix products where that states none.
    """

class OffloadCandidatesResult(Result):
    """Kernels that memory bounds, by their time: bytes, intensity, copies around them, and what an accelerator would need to take them."""

    candidates: list[OffloadCandidate]
    """The candidates, the longest time first."""
    candidates_left_out: int
    """Candidates that were left out behind these."""
    estimated_ns: int
    """The part of `memory_bound_ns` that is an estimate."""
    kernel_ns: int
    """Time in ns of all kernels, without communication."""
    memory_bound_ns: int
    """The part of it that memory bounds, measured or estimated."""
    memory_bound_ratio: float | None
    """`memory_bound_ns` of `kernel_ns`; null without kernels."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    on_chip_bytes: int | None
    """The largest working set of a launch of these candidates in bytes: on-chip memory that holds each of them. Null where none is known."""
    ridge_flop_per_byte: float | None
    """Operations per byte at which the device is balanced; null where neither the capture nor a parameter states it."""
    transfer_bytes: int | None
    """Bytes of these; null where one does not say them."""
    transfer_ns: int
    """Time in ns of copies between host and device."""
    unknown_ns: int
    """The part of `kernel_ns` of kernels of which it is not known."""

class IdleParameters(TypedDict, total=False):
    """Parameters of `idle`."""

    kernel_wait_ns: int
    """Gaps of work that was launched in time are the wait of one kernel for another where they are shorter than this, in ns. By default `30000`."""
    limit: int
    """Most gaps in the list of the largest. By default `50`."""
    streams: int
    """Most streams, those with most gaps. By default `64`."""

class IdleResult(Result):
    """When GPUs and their streams did nothing, whether the host was late, and what the launching threads did meanwhile."""

    coverage: LaunchCoverage
    """How much of the work has its call, which the classes are made of."""
    gaps: list[IdleGap]
    """The largest gaps of GPUs."""
    gaps_left_out: int
    """Gaps that were left out."""
    gpus: list[IdleOfGpu]
    """The GPUs: gaps in which none of a GPU's streams ran anything."""
    histogram: list[GapBucket]
    """Gaps of all GPUs by length."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    streams: list[IdleOfStream]
    """The streams, each alone: while one is idle others may run. The one with most gaps first."""
    streams_left_out: int
    """Streams that were left out."""

class LaunchesParameters(TypedDict, total=False):
    """Parameters of `launches`."""

    include_memory: bool
    """Whether copies and memsets count beside kernels. By default `True`."""
    late_ns: int
    """Work that begins later than this behind the end of its call, in ns, is late. By default `100000`."""
    limit: int
    """Most rows of each list. By default `50`."""
    slow_call_ns: int
    """A call longer than this, in ns, is slow. By default `50000`."""

class LaunchesResult(Result):
    """How long launching calls take, how long their work runs and waits, which GPU operations are shorter than their launch."""

    call: Spread
    """Lengths of the calls. One that launched several GPU operations counts once."""
    coverage: LaunchCoverage
    """How much of the work has its call."""
    delay: Spread
    """From the end of a call to the start of its first work; 0 where the work began before."""
    gpu: Spread
    """Lengths of the work that they launched."""
    late_gpu_ops: int
    """Calls whose first work began later than the threshold behind them."""
    latest_gpu_ops: list[LaunchRow]
    """GPU operations with the longest delay, longest first."""
    names: list[LaunchesOfName]
    """The figures per kernel, copy and memset, the most often launched first."""
    names_left_out: int
    """Names that were left out."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    short_gpu_ops: int
    """Calls whose first work ran shorter than they did: launching it cost more than it did."""
    slow_calls: int
    """Calls longer than the threshold."""
    slowest_calls: list[LaunchRow]
    """The longest calls, longest first."""

class LaunchPatternsParameters(TypedDict, total=False):
    """Parameters of `launch-patterns`."""

    limit: int
    """Most sequences. By default `20`."""
    min_count: int
    """Occurrences that a sequence has at least. By default `2`."""
    min_length: int
    """GPU operations that a sequence has at least. By default `3`."""
    under: str
    """Only operators, annotations, steps and ranges whose name contains this text. Empty: all of them. By default `""`."""

class LaunchPatternsResult(Result):
    """Sequences of kernels, copies and memsets that operators or ranges launch again and again: what could be fused or be a CUDA graph."""

    coverage: LaunchCoverage
    """How much of the work has its call; the rest is in no sequence."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    outside: int
    """GPU operations whose call is inside no operator or range that counts."""
    patterns: list[LaunchPattern]
    """Sequences, the most frequent first. One that each time is all that the operator or range around it launches stands there once, by the name of the outer
    one.
    """
    patterns_left_out: int
    """Sequences that were left out."""

class QueueLengthParameters(TypedDict, total=False):
    """Parameters of `queue-length`."""

    bins: int
    """Points of the series over time. By default `200`."""
    capacity: int
    """GPU operations at which a queue is full, so that a launching thread waits. CUDA's queue holds 1024 per stream. By default `1024`."""
    limit: int
    """Most streams, those with most GPU operations. By default `32`."""

class QueueLengthResult(Result):
    """How much launched work waits for each stream, when its queue ran dry and when it was full."""

    bin_starts_ns: list[int]
    """Starts of the bins of each stream's series in ns since the session's start."""
    coverage: LaunchCoverage
    """How much of the work has its call; the rest is in no queue."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    streams: list[QueueOfStream]
    """The streams, the one with most GPU operations first."""
    streams_left_out: int
    """Streams that were left out."""

class UtilizationParameters(TypedDict, total=False):
    """Parameters of `utilization`."""

    bins: int
    """Parts of the time. By default `200`."""
    from_ns: int | None
    """Start in ns since the session's start; by default that of the capture."""
    series: int
    """Most sampled series. By default `64`."""
    to_ns: int | None
    """End in ns; by default that of the capture."""

class UtilizationResult(Result):
    """How busy GPUs were over time and what they copied, from their events, beside the series that were sampled."""

    bin_starts_ns: list[int]
    """Starts of the parts in ns since the session's start. Each goes up to the next, the last up to `end_ns`."""
    copies: list[CopiesOverTime]
    """Copies and memsets of each GPU by kind."""
    end_ns: int
    """End of the last part in ns."""
    gpus: list[UtilizationOfGpu]
    """The GPUs that have events."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    series: list[SampledSeries]
    """What was sampled."""
    series_left_out: int
    """Series that were left out."""

class ModuleLoadingParameters(TypedDict, total=False):
    """Parameters of `module-loading`."""

    limit: int
    """Maximum number of names in the result; those with the longest time are kept. By default `100`."""

class ModuleLoadingResult(Result):
    """When code is loaded onto GPUs, linked or compiled: how long that takes, and what of it is left in the steady state."""

    all: PhasedCost
    """Cost of all activities together. Phases of a compiler nest, so that the sum of their lengths means less than `held_ns`, which counts each nanosecond
    once.
    """
    kinds: list[CodeWorkRow]
    """Cost per activity, the longest time first."""
    names: list[CodeWorkName]
    """Cost per name, the longest time first."""
    names_left_out: int
    """Number of names that `limit` left out of `names`."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    steady_from_ns: int | None
    """Start of the steady state in ns since the session's start: the start of the loop's second iteration. Null where no iterations are found."""

class StartUpParameters(TypedDict, total=False):
    """Parameters of `start-up`."""

    limit: int
    """Most kernels in the list. By default `20`."""

class StartUpResult(Result):
    """Compiling and loading of code against the program's pace: what it cost, when, and after how many runs it is paid back."""

    break_even_runs: float | None
    """Break-even: `compile_ns` over `mean_run_ns`. After so many runs the program has run as long as it compiled; above 1,000 compiling is doubtful. Null where
    nothing was compiled or nothing repeats.
    """
    code_before_gpu_work_ns: int | None
    """The part of `first_gpu_work_ns` in which code was compiled, linked or loaded."""
    code_ns: int
    """Time in ns in which any process compiled, linked or loaded code: the union per process, summed over processes."""
    cold_runs: int
    """Runs that were slower by code: the first, and those in which code was compiled or loaded."""
    compile_ns: int
    """The part of it that compiled: TorchDynamo, Inductor, Triton, XLA, NVRTC."""
    eager_run_ns: int | None
    """Mean length in ns of a run of the second capture, of a program that is not compiled; null without one."""
    first_gpu_work_ns: int | None
    """From the start of the capture to the first GPU work in ns; null without any."""
    first_launch_excess_ns: int | None
    """What the first launches of these took longer than the median of their later ones, in ns: an estimate of lazy loading, also where the source does not
    record it. Null where no launches were recorded.
    """
    first_launches: list[FirstLaunch]
    """The kernels with the largest excess."""
    kinds: list[StartUpKind]
    """By what was done."""
    mean_run_ns: int | None
    """Mean length in ns of a run at the program's pace; null without any."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    paid_back_runs: float | None
    """Runs after which compiling has saved more than it cost: `compile_ns` over `eager_run_ns` less `mean_run_ns`. Null without a second capture, and where a
    run saves nothing.
    """
    relaunched_kernels: int
    """Kernels that were launched at least three times."""
    run_source: RunSource | None
    """What is taken for a run; null where nothing repeats."""
    runs: int
    """Runs at the program's pace."""
    start_up_runs: float | None
    """The same of all of `code_ns`."""

class AllocationsParameters(TypedDict, total=False):
    """Parameters of `allocations`."""

    limit: int
    """Most calls in the list of the longest. By default `50`."""

class AllocationsResult(Result):
    """What it costs to give out and take back memory: time, GPU idle meanwhile, and what is left of it in the steady state."""

    allocators: list[AllocatorRow]
    """What the framework's allocator did (`[memory]` of a PyTorch trace), per device."""
    calls: PhasedCost
    """All calls that allocate and free."""
    kinds: list[AllocationCallRow]
    """The same by what they do, the longest total first."""
    longest: list[AllocationCallSeen]
    """The longest calls."""
    longest_left_out: int
    """Calls that were left out behind these."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    steady_from_ns: int | None
    """When the steady state begins in ns: with the second iteration of the program's loop. Null where no iterations are found."""

class ThreadsParameters(TypedDict, total=False):
    """Parameters of `threads`."""

    bins: int
    """Pieces of time in which utilisation is given. By default `100`."""
    charted: int
    """Threads whose utilisation over time is given. By default `8`."""
    limit: int
    """Most threads in the result, those that worked longest. By default `200`."""

class ThreadsResult(Result):
    """What each thread of the host did: worked, waited, or did nothing that was recorded, and over time."""

    bin_starts_ns: list[int]
    """When each piece of time begins in ns."""
    left_out: int
    """Threads that were left out behind these."""
    mean_working_threads: float | None
    """Time in ns that threads worked, summed, by the window: how many threads worked on average."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    os_functions: list[OsFunctionRow]
    """Functions of the operating system over all threads, the longest total first."""
    rows: list[ThreadRow]
    """The threads, those that worked longest first. Of each, `working_ns`, `waiting_ns` and `unrecorded_ns` add up to the window."""
    threads: int
    """Threads of which anything was recorded."""
    utilisation: list[ThreadUtilisation]
    """Utilisation over time of the threads that worked longest."""
    window_ns: int
    """Length in ns from the first event to the end of the last: the window of every thread."""

class MemoryParameters(TypedDict, total=False):
    """Parameters of `memory`."""

    limit: int
    """Most rows of each list. By default `50`."""
    points: int
    """Parts of the capture of which each has a point in the charts. By default `400`."""

class MemoryResult(Result):
    """Memory over time: the peak, what was alive then and who had asked for it, and what was reserved and not given out."""

    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    notes: list[str]
    """How these figures are to be read, in sentences."""
    pools: list[MemoryPool]
    """What allocators gave out, a row per allocator, process, device and kind of memory; the highest peak first."""
    series: list[MemorySeries]
    """What was sampled of memory, a row per series."""

class BuffersParameters(TypedDict, total=False):
    """Parameters of `buffers`."""

    limit: int
    """Most rows of each list. By default `20`."""

class BuffersResult(Result):
    """Lifetimes of buffers, those that are never taken back, how often the same sizes are asked for, and how much could be used again."""

    iterations: int | None
    """Iterations of the program's loop over which allocations are counted; null where none are found."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    pools: list[BufferPool]
    """The buffers of each allocator, process, device and kind of memory, the most bytes first."""

class MemoryProfileParameters(TypedDict, total=False):
    """Parameters of `memory-profile`."""

    limit: int
    """Most rows of each list. By default `50`."""

class MemoryProfileResult(Result):
    """A profile of memory in the format of pprof, e.g. of JAX's save_device_memory_profile: what was given out by device, function and stack."""

    devices: list[MemoryProfileDevice]
    """By device and kind, the most bytes first."""
    functions: list[MemoryProfileFunction]
    """By function, the most flat bytes first."""
    functions_left_out: int
    """Functions that were left out behind these."""
    measured: str
    """Which values of the profile these are: `space`; of Go's heap `inuse_space`."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    stacks: list[MemoryProfileStack]
    """By stack, the most bytes first."""
    stacks_left_out: int
    """Stacks that were left out behind these."""
    total_buffers: int | None
    """Buffers in all; null where the profile does not count them."""
    total_bytes: int
    """Bytes in all."""

class MemoryProfileChangesParameters(TypedDict, total=False):
    """Parameters of `memory-profile-changes`."""

    limit: int
    """Most rows of each list. By default `50`."""

class MemoryProfileChangesResult(Result):
    """The difference of two profiles of memory, before and after, by device, function and stack, as go tool pprof -base tells it."""

    after_bytes: int
    """Bytes in all, after."""
    before_bytes: int
    """Bytes in all, before."""
    change_bytes: int
    """Their difference."""
    devices: list[MemoryProfileDeviceChange]
    """By device and kind, the largest change first."""
    functions: list[MemoryProfileFunction]
    """By function, the largest flat change first; those without a change, flat or cumulative, are not there."""
    functions_left_out: int
    """Functions that were left out behind these."""
    measured: str
    """Which values of the profiles these are, e.g. `space`."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    stacks: list[MemoryProfileStackChange]
    """By stack, the largest change first; those without are not there."""
    stacks_left_out: int
    """Stacks that were left out behind these."""

class ProfilerMemoryParameters(TypedDict, total=False):
    """Parameters of `profiler-memory`."""

    record_history: bool
    """Whether there are points; without them only the peak is told. By default `True`."""
    sample_interval_ms: float
    """Time from one point to the next, in ms. It is longer where there would be more than 100,000 points. By default `1.0`."""

class ProfilerMemoryResult(Result):
    """Memory over time and its peak in MB, as /api/profiler/memory has it."""

    peak_allocated_mb: float | None
    """Most MB (of 10^6 bytes) that were given out at a time."""
    peak_time_ms: float | None
    """When that was first reached, in ms since the capture's begin."""
    points: list[ProfilerMemoryPoint] | None
    """The memory over time: at each point the most that was given out up to the next."""

class FlameGraphParameters(TypedDict, total=False):
    """Parameters of `flame-graph`."""

    from_ns: int | None
    """Only time behind this, in ns since the session's start."""
    group_by: FlameGrouping
    """What the outermost frames stand for. By default `"none"`."""
    group_small_kernels: bool
    """Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame. By default `True`."""
    limit: int
    """Most frames; with more the shortest are summed. By default `20000`."""
    max_depth: int
    """Most frames around each other; what is deeper is summed into a frame `(deeper frames)`. By default `50`."""
    merge_numbered: bool
    """Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`. By default `True`."""
    min_duration_us: float
    """Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations into `(small
    kernels)`. Samples have no length: of them nothing is summed by it. By default `10.0`.
    """
    stacks: FlameStacks
    """Which frames stacks are made of; those of samples are always the functions that called each other. By default `"all"`."""
    to_ns: int | None
    """Only time before this, in ns."""
    weight: FlameWeight
    """Which time the graph is made of. By default `"gpu"`."""

class FlameGraphResult(Result):
    """Time of GPUs or of the CPU, or samples of it, by the stack of ranges, operators and functions."""

    children: list[FlameFrame]
    """The outermost frames, the longest first."""
    frames: int
    """Frames in the result, without the outermost."""
    frames_summed: int
    """Frames of stacks that were summed: no time is lost by it."""
    gpu_ops: int
    """GPU operations; 0 of the CPU's time."""
    gpu_ops_without_launch: int
    """GPU operations whose launch was not captured: they are in the frame `(launch not captured)`."""
    name: str
    """`all`."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    start_end_ranges: int
    """NVTX ranges of start/end style: they do not nest, and are no frames."""
    summed_below_ns: int
    """Frames whose time in a stack is less than this, in ns, were summed."""
    value: int
    """All time in ns: of GPUs the lengths of all GPU operations, added up; of the CPU the time of each thread inside any frame, added up. With `weight`
    `samples` all figures of time count samples: here how many there are.
    """
    weight: FlameWeight
    """Which time it is."""
    without_launch_ns: int
    """Time of the work without a launch, in ns."""

class FlameDifferenceParameters(TypedDict, total=False):
    """Parameters of `flame-difference`."""

    from_ns: int | None
    """Only time behind this, in ns since the session's start."""
    group_by: FlameGrouping
    """What the outermost frames stand for. By default `"none"`."""
    group_small_kernels: bool
    """Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame. By default `True`."""
    limit: int
    """Most frames; with more the shortest are summed. By default `20000`."""
    max_depth: int
    """Most frames around each other; what is deeper is summed into a frame `(deeper frames)`. By default `50`."""
    merge_numbered: bool
    """Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`. By default `True`."""
    min_duration_us: float
    """Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations into `(small
    kernels)`. Samples have no length: of them nothing is summed by it. By default `10.0`.
    """
    stacks: FlameStacks
    """Which frames stacks are made of; those of samples are always the functions that called each other. By default `"all"`."""
    to_ns: int | None
    """Only time before this, in ns."""
    weight: FlameWeight
    """Which time the graph is made of. By default `"gpu"`."""

class FlameDifferenceResult(Result):
    """What a change did to the time of each stack: the flame graphs of two captures in one."""

    after_ns: int
    """Time in ns of the second capture."""
    before_ns: int
    """Time in ns of the first capture."""
    children: list[FlameDifferenceFrame]
    """The outermost frames, the longest first."""
    delta: int
    """`after_ns` without `before_ns`."""
    frames: int
    """Frames in the result, without the outermost."""
    frames_summed: int
    """Frames of stacks that were summed: no time is lost by it."""
    name: str
    """`all`."""
    not_captured: list[NotCaptured]
    """Parts of the result that the capture has no data for, each with the reason."""
    summed_below_ns: int
    """Frames whose time in a stack is less than this, in ns, in both captures were summed."""
    value: int
    """Time in ns of both captures together. With `weight` `samples` all figures of time count samples."""
    weight: FlameWeight
    """Which time it is."""

class AnalyzeCapture(Protocol):
    """`analyze` of a capture."""

    @overload
    def __call__(self, name: Literal["summary"], /) -> SummaryResult: ...
    @overload
    def __call__(self, name: Literal["advice"], /, **parameters: Unpack[AdviceParameters]) -> AdviceResult: ...
    @overload
    def __call__(self, name: Literal["kernels-per-stream"], /) -> KernelsPerStreamResult: ...
    @overload
    def __call__(self, name: Literal["collectives"], /, **parameters: Unpack[CollectivesParameters]) -> CollectivesResult: ...
    @overload
    def __call__(self, name: Literal["ranks"], /, **parameters: Unpack[RanksParameters]) -> RanksResult: ...
    @overload
    def __call__(self, name: Literal["batch-sweep"], /, **parameters: Unpack[BatchSweepParameters]) -> BatchSweepResult: ...
    @overload
    def __call__(self, name: Literal["gpu-time"], /, **parameters: Unpack[GpuTimeParameters]) -> GpuTimeResult: ...
    @overload
    def __call__(self, name: Literal["overlap"], /, **parameters: Unpack[OverlapParameters]) -> OverlapResult: ...
    @overload
    def __call__(self, name: Literal["kernel-types"], /, **parameters: Unpack[KernelTypesParameters]) -> KernelTypesResult: ...
    @overload
    def __call__(self, name: Literal["profiled-kernels"], /, **parameters: Unpack[ProfiledKernelsParameters]) -> ProfiledKernelsResult: ...
    @overload
    def __call__(self, name: Literal["profiled-kernel"], /, **parameters: Unpack[ProfiledKernelParameters]) -> ProfiledKernelResult: ...
    @overload
    def __call__(self, name: Literal["roofline"], /, **parameters: Unpack[RooflineParameters]) -> RooflineResult: ...
    @overload
    def __call__(self, name: Literal["cpu-gpu"], /, **parameters: Unpack[CpuGpuParameters]) -> CpuGpuResult: ...
    @overload
    def __call__(self, name: Literal["events"], /, **parameters: Unpack[EventsParameters]) -> EventsResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_kern_sum"], /, **parameters: Unpack[CudaGpuKernSumParameters]) -> CudaGpuKernSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_kern_gb_sum"], /, **parameters: Unpack[CudaGpuKernGbSumParameters]) -> CudaGpuKernGbSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_mem_time_sum"], /, **parameters: Unpack[CudaGpuMemTimeSumParameters]) -> CudaGpuMemTimeSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_mem_size_sum"], /, **parameters: Unpack[CudaGpuMemSizeSumParameters]) -> CudaGpuMemSizeSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_sum"], /, **parameters: Unpack[CudaGpuSumParameters]) -> CudaGpuSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_api_sum"], /, **parameters: Unpack[CudaApiSumParameters]) -> CudaApiSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_api_gpu_sum"], /, **parameters: Unpack[CudaApiGpuSumParameters]) -> CudaApiGpuSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_kern_exec_sum"], /, **parameters: Unpack[CudaKernExecSumParameters]) -> CudaKernExecSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_kern_exec_trace"], /, **parameters: Unpack[CudaKernExecTraceParameters]) -> CudaKernExecTraceResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_trace"], /, **parameters: Unpack[CudaGpuTraceParameters]) -> CudaGpuTraceResult: ...
    @overload
    def __call__(self, name: Literal["cuda_api_trace"], /, **parameters: Unpack[CudaApiTraceParameters]) -> CudaApiTraceResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_sum"], /, **parameters: Unpack[NvtxSumParameters]) -> NvtxSumResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_pushpop_sum"], /, **parameters: Unpack[NvtxPushpopSumParameters]) -> NvtxPushpopSumResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_pushpop_trace"], /, **parameters: Unpack[NvtxPushpopTraceParameters]) -> NvtxPushpopTraceResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_kern_sum"], /, **parameters: Unpack[NvtxKernSumParameters]) -> NvtxKernSumResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_gpu_proj_sum"], /, **parameters: Unpack[NvtxGpuProjSumParameters]) -> NvtxGpuProjSumResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_gpu_proj_trace"], /, **parameters: Unpack[NvtxGpuProjTraceParameters]) -> NvtxGpuProjTraceResult: ...
    @overload
    def __call__(self, name: Literal["osrt_sum"], /, **parameters: Unpack[OsrtSumParameters]) -> OsrtSumResult: ...
    @overload
    def __call__(self, name: Literal["iterations"], /, **parameters: Unpack[IterationsParameters]) -> IterationsResult: ...
    @overload
    def __call__(self, name: Literal["stragglers"], /, **parameters: Unpack[StragglersParameters]) -> StragglersResult: ...
    @overload
    def __call__(self, name: Literal["host-sync"], /, **parameters: Unpack[HostSyncParameters]) -> HostSyncResult: ...
    @overload
    def __call__(self, name: Literal["operations"], /, **parameters: Unpack[OperationsParameters]) -> OperationsResult: ...
    @overload
    def __call__(self, name: Literal["operations-profile"], /, **parameters: Unpack[OperationsProfileParameters]) -> OperationsProfileResult: ...
    @overload
    def __call__(self, name: Literal["hlo-operations"], /, **parameters: Unpack[HloOperationsParameters]) -> HloOperationsResult: ...
    @overload
    def __call__(self, name: Literal["hlo-cost"], /) -> HloCostResult: ...
    @overload
    def __call__(self, name: Literal["hlo-graph"], /, **parameters: Unpack[HloGraphParameters]) -> HloGraphResult: ...
    @overload
    def __call__(self, name: Literal["hlo-memory"], /, **parameters: Unpack[HloMemoryParameters]) -> HloMemoryResult: ...
    @overload
    def __call__(self, name: Literal["profiler-timeline"], /, **parameters: Unpack[ProfilerTimelineParameters]) -> ProfilerTimelineResult: ...
    @overload
    def __call__(self, name: Literal["profiler-kernels"], /, **parameters: Unpack[ProfilerKernelsParameters]) -> ProfilerKernelsResult: ...
    @overload
    def __call__(self, name: Literal["profiler-hta"], /) -> ProfilerHtaResult: ...
    @overload
    def __call__(self, name: Literal["torch-compile"], /, **parameters: Unpack[TorchCompileParameters]) -> TorchCompileResult: ...
    @overload
    def __call__(self, name: Literal["profiler-compile"], /) -> ProfilerCompileResult: ...
    @overload
    def __call__(self, name: Literal["critical-path"], /, **parameters: Unpack[CriticalPathParameters]) -> CriticalPathResult: ...
    @overload
    def __call__(self, name: Literal["mfu"], /, **parameters: Unpack[MfuParameters]) -> MfuResult: ...
    @overload
    def __call__(self, name: Literal["precision"], /, **parameters: Unpack[PrecisionParameters]) -> PrecisionResult: ...
    @overload
    def __call__(self, name: Literal["offload-candidates"], /, **parameters: Unpack[OffloadCandidatesParameters]) -> OffloadCandidatesResult: ...
    @overload
    def __call__(self, name: Literal["idle"], /, **parameters: Unpack[IdleParameters]) -> IdleResult: ...
    @overload
    def __call__(self, name: Literal["launches"], /, **parameters: Unpack[LaunchesParameters]) -> LaunchesResult: ...
    @overload
    def __call__(self, name: Literal["launch-patterns"], /, **parameters: Unpack[LaunchPatternsParameters]) -> LaunchPatternsResult: ...
    @overload
    def __call__(self, name: Literal["queue-length"], /, **parameters: Unpack[QueueLengthParameters]) -> QueueLengthResult: ...
    @overload
    def __call__(self, name: Literal["utilization"], /, **parameters: Unpack[UtilizationParameters]) -> UtilizationResult: ...
    @overload
    def __call__(self, name: Literal["module-loading"], /, **parameters: Unpack[ModuleLoadingParameters]) -> ModuleLoadingResult: ...
    @overload
    def __call__(self, name: Literal["start-up"], /, **parameters: Unpack[StartUpParameters]) -> StartUpResult: ...
    @overload
    def __call__(self, name: Literal["allocations"], /, **parameters: Unpack[AllocationsParameters]) -> AllocationsResult: ...
    @overload
    def __call__(self, name: Literal["threads"], /, **parameters: Unpack[ThreadsParameters]) -> ThreadsResult: ...
    @overload
    def __call__(self, name: Literal["memory"], /, **parameters: Unpack[MemoryParameters]) -> MemoryResult: ...
    @overload
    def __call__(self, name: Literal["buffers"], /, **parameters: Unpack[BuffersParameters]) -> BuffersResult: ...
    @overload
    def __call__(self, name: Literal["memory-profile"], /, **parameters: Unpack[MemoryProfileParameters]) -> MemoryProfileResult: ...
    @overload
    def __call__(self, name: Literal["profiler-memory"], /, **parameters: Unpack[ProfilerMemoryParameters]) -> ProfilerMemoryResult: ...
    @overload
    def __call__(self, name: Literal["flame-graph"], /, **parameters: Unpack[FlameGraphParameters]) -> FlameGraphResult: ...

class AnalyzeCaptureAwaited(Protocol):
    """The same, awaited."""

    @overload
    def __call__(self, name: Literal["summary"], /) -> Coroutine[Any, Any, SummaryResult]: ...
    @overload
    def __call__(self, name: Literal["advice"], /, **parameters: Unpack[AdviceParameters]) -> Coroutine[Any, Any, AdviceResult]: ...
    @overload
    def __call__(self, name: Literal["kernels-per-stream"], /) -> Coroutine[Any, Any, KernelsPerStreamResult]: ...
    @overload
    def __call__(self, name: Literal["collectives"], /, **parameters: Unpack[CollectivesParameters]) -> Coroutine[Any, Any, CollectivesResult]: ...
    @overload
    def __call__(self, name: Literal["ranks"], /, **parameters: Unpack[RanksParameters]) -> Coroutine[Any, Any, RanksResult]: ...
    @overload
    def __call__(self, name: Literal["batch-sweep"], /, **parameters: Unpack[BatchSweepParameters]) -> Coroutine[Any, Any, BatchSweepResult]: ...
    @overload
    def __call__(self, name: Literal["gpu-time"], /, **parameters: Unpack[GpuTimeParameters]) -> Coroutine[Any, Any, GpuTimeResult]: ...
    @overload
    def __call__(self, name: Literal["overlap"], /, **parameters: Unpack[OverlapParameters]) -> Coroutine[Any, Any, OverlapResult]: ...
    @overload
    def __call__(self, name: Literal["kernel-types"], /, **parameters: Unpack[KernelTypesParameters]) -> Coroutine[Any, Any, KernelTypesResult]: ...
    @overload
    def __call__(self, name: Literal["profiled-kernels"], /, **parameters: Unpack[ProfiledKernelsParameters]) -> Coroutine[Any, Any, ProfiledKernelsResult]: ...
    @overload
    def __call__(self, name: Literal["profiled-kernel"], /, **parameters: Unpack[ProfiledKernelParameters]) -> Coroutine[Any, Any, ProfiledKernelResult]: ...
    @overload
    def __call__(self, name: Literal["roofline"], /, **parameters: Unpack[RooflineParameters]) -> Coroutine[Any, Any, RooflineResult]: ...
    @overload
    def __call__(self, name: Literal["cpu-gpu"], /, **parameters: Unpack[CpuGpuParameters]) -> Coroutine[Any, Any, CpuGpuResult]: ...
    @overload
    def __call__(self, name: Literal["events"], /, **parameters: Unpack[EventsParameters]) -> Coroutine[Any, Any, EventsResult]: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_kern_sum"], /, **parameters: Unpack[CudaGpuKernSumParameters]) -> Coroutine[Any, Any, CudaGpuKernSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_kern_gb_sum"],
        /,
        **parameters: Unpack[CudaGpuKernGbSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuKernGbSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_mem_time_sum"],
        /,
        **parameters: Unpack[CudaGpuMemTimeSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuMemTimeSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_mem_size_sum"],
        /,
        **parameters: Unpack[CudaGpuMemSizeSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuMemSizeSumResult]: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_sum"], /, **parameters: Unpack[CudaGpuSumParameters]) -> Coroutine[Any, Any, CudaGpuSumResult]: ...
    @overload
    def __call__(self, name: Literal["cuda_api_sum"], /, **parameters: Unpack[CudaApiSumParameters]) -> Coroutine[Any, Any, CudaApiSumResult]: ...
    @overload
    def __call__(self, name: Literal["cuda_api_gpu_sum"], /, **parameters: Unpack[CudaApiGpuSumParameters]) -> Coroutine[Any, Any, CudaApiGpuSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_kern_exec_sum"],
        /,
        **parameters: Unpack[CudaKernExecSumParameters],
    ) -> Coroutine[Any, Any, CudaKernExecSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_kern_exec_trace"],
        /,
        **parameters: Unpack[CudaKernExecTraceParameters],
    ) -> Coroutine[Any, Any, CudaKernExecTraceResult]: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_trace"], /, **parameters: Unpack[CudaGpuTraceParameters]) -> Coroutine[Any, Any, CudaGpuTraceResult]: ...
    @overload
    def __call__(self, name: Literal["cuda_api_trace"], /, **parameters: Unpack[CudaApiTraceParameters]) -> Coroutine[Any, Any, CudaApiTraceResult]: ...
    @overload
    def __call__(self, name: Literal["nvtx_sum"], /, **parameters: Unpack[NvtxSumParameters]) -> Coroutine[Any, Any, NvtxSumResult]: ...
    @overload
    def __call__(self, name: Literal["nvtx_pushpop_sum"], /, **parameters: Unpack[NvtxPushpopSumParameters]) -> Coroutine[Any, Any, NvtxPushpopSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["nvtx_pushpop_trace"],
        /,
        **parameters: Unpack[NvtxPushpopTraceParameters],
    ) -> Coroutine[Any, Any, NvtxPushpopTraceResult]: ...
    @overload
    def __call__(self, name: Literal["nvtx_kern_sum"], /, **parameters: Unpack[NvtxKernSumParameters]) -> Coroutine[Any, Any, NvtxKernSumResult]: ...
    @overload
    def __call__(self, name: Literal["nvtx_gpu_proj_sum"], /, **parameters: Unpack[NvtxGpuProjSumParameters]) -> Coroutine[Any, Any, NvtxGpuProjSumResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["nvtx_gpu_proj_trace"],
        /,
        **parameters: Unpack[NvtxGpuProjTraceParameters],
    ) -> Coroutine[Any, Any, NvtxGpuProjTraceResult]: ...
    @overload
    def __call__(self, name: Literal["osrt_sum"], /, **parameters: Unpack[OsrtSumParameters]) -> Coroutine[Any, Any, OsrtSumResult]: ...
    @overload
    def __call__(self, name: Literal["iterations"], /, **parameters: Unpack[IterationsParameters]) -> Coroutine[Any, Any, IterationsResult]: ...
    @overload
    def __call__(self, name: Literal["stragglers"], /, **parameters: Unpack[StragglersParameters]) -> Coroutine[Any, Any, StragglersResult]: ...
    @overload
    def __call__(self, name: Literal["host-sync"], /, **parameters: Unpack[HostSyncParameters]) -> Coroutine[Any, Any, HostSyncResult]: ...
    @overload
    def __call__(self, name: Literal["operations"], /, **parameters: Unpack[OperationsParameters]) -> Coroutine[Any, Any, OperationsResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["operations-profile"],
        /,
        **parameters: Unpack[OperationsProfileParameters],
    ) -> Coroutine[Any, Any, OperationsProfileResult]: ...
    @overload
    def __call__(self, name: Literal["hlo-operations"], /, **parameters: Unpack[HloOperationsParameters]) -> Coroutine[Any, Any, HloOperationsResult]: ...
    @overload
    def __call__(self, name: Literal["hlo-cost"], /) -> Coroutine[Any, Any, HloCostResult]: ...
    @overload
    def __call__(self, name: Literal["hlo-graph"], /, **parameters: Unpack[HloGraphParameters]) -> Coroutine[Any, Any, HloGraphResult]: ...
    @overload
    def __call__(self, name: Literal["hlo-memory"], /, **parameters: Unpack[HloMemoryParameters]) -> Coroutine[Any, Any, HloMemoryResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["profiler-timeline"],
        /,
        **parameters: Unpack[ProfilerTimelineParameters],
    ) -> Coroutine[Any, Any, ProfilerTimelineResult]: ...
    @overload
    def __call__(self, name: Literal["profiler-kernels"], /, **parameters: Unpack[ProfilerKernelsParameters]) -> Coroutine[Any, Any, ProfilerKernelsResult]: ...
    @overload
    def __call__(self, name: Literal["profiler-hta"], /) -> Coroutine[Any, Any, ProfilerHtaResult]: ...
    @overload
    def __call__(self, name: Literal["torch-compile"], /, **parameters: Unpack[TorchCompileParameters]) -> Coroutine[Any, Any, TorchCompileResult]: ...
    @overload
    def __call__(self, name: Literal["profiler-compile"], /) -> Coroutine[Any, Any, ProfilerCompileResult]: ...
    @overload
    def __call__(self, name: Literal["critical-path"], /, **parameters: Unpack[CriticalPathParameters]) -> Coroutine[Any, Any, CriticalPathResult]: ...
    @overload
    def __call__(self, name: Literal["mfu"], /, **parameters: Unpack[MfuParameters]) -> Coroutine[Any, Any, MfuResult]: ...
    @overload
    def __call__(self, name: Literal["precision"], /, **parameters: Unpack[PrecisionParameters]) -> Coroutine[Any, Any, PrecisionResult]: ...
    @overload
    def __call__(
        self,
        name: Literal["offload-candidates"],
        /,
        **parameters: Unpack[OffloadCandidatesParameters],
    ) -> Coroutine[Any, Any, OffloadCandidatesResult]: ...
    @overload
    def __call__(self, name: Literal["idle"], /, **parameters: Unpack[IdleParameters]) -> Coroutine[Any, Any, IdleResult]: ...
    @overload
    def __call__(self, name: Literal["launches"], /, **parameters: Unpack[LaunchesParameters]) -> Coroutine[Any, Any, LaunchesResult]: ...
    @overload
    def __call__(self, name: Literal["launch-patterns"], /, **parameters: Unpack[LaunchPatternsParameters]) -> Coroutine[Any, Any, LaunchPatternsResult]: ...
    @overload
    def __call__(self, name: Literal["queue-length"], /, **parameters: Unpack[QueueLengthParameters]) -> Coroutine[Any, Any, QueueLengthResult]: ...
    @overload
    def __call__(self, name: Literal["utilization"], /, **parameters: Unpack[UtilizationParameters]) -> Coroutine[Any, Any, UtilizationResult]: ...
    @overload
    def __call__(self, name: Literal["module-loading"], /, **parameters: Unpack[ModuleLoadingParameters]) -> Coroutine[Any, Any, ModuleLoadingResult]: ...
    @overload
    def __call__(self, name: Literal["start-up"], /, **parameters: Unpack[StartUpParameters]) -> Coroutine[Any, Any, StartUpResult]: ...
    @overload
    def __call__(self, name: Literal["allocations"], /, **parameters: Unpack[AllocationsParameters]) -> Coroutine[Any, Any, AllocationsResult]: ...
    @overload
    def __call__(self, name: Literal["threads"], /, **parameters: Unpack[ThreadsParameters]) -> Coroutine[Any, Any, ThreadsResult]: ...
    @overload
    def __call__(self, name: Literal["memory"], /, **parameters: Unpack[MemoryParameters]) -> Coroutine[Any, Any, MemoryResult]: ...
    @overload
    def __call__(self, name: Literal["buffers"], /, **parameters: Unpack[BuffersParameters]) -> Coroutine[Any, Any, BuffersResult]: ...
    @overload
    def __call__(self, name: Literal["memory-profile"], /, **parameters: Unpack[MemoryProfileParameters]) -> Coroutine[Any, Any, MemoryProfileResult]: ...
    @overload
    def __call__(self, name: Literal["profiler-memory"], /, **parameters: Unpack[ProfilerMemoryParameters]) -> Coroutine[Any, Any, ProfilerMemoryResult]: ...
    @overload
    def __call__(self, name: Literal["flame-graph"], /, **parameters: Unpack[FlameGraphParameters]) -> Coroutine[Any, Any, FlameGraphResult]: ...

class AnalyzeCaptures(Protocol):
    """`analyze` of one or more captures."""

    @overload
    def __call__(self, name: Literal["summary"], /, captures: Sequence[Capture]) -> SummaryResult: ...
    @overload
    def __call__(self, name: Literal["advice"], /, captures: Sequence[Capture], **parameters: Unpack[AdviceParameters]) -> AdviceResult: ...
    @overload
    def __call__(self, name: Literal["kernels-per-stream"], /, captures: Sequence[Capture]) -> KernelsPerStreamResult: ...
    @overload
    def __call__(
        self,
        name: Literal["kernel-changes"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[KernelChangesParameters],
    ) -> KernelChangesResult: ...
    @overload
    def __call__(self, name: Literal["collectives"], /, captures: Sequence[Capture], **parameters: Unpack[CollectivesParameters]) -> CollectivesResult: ...
    @overload
    def __call__(self, name: Literal["compare"], /, captures: Sequence[Capture], **parameters: Unpack[CompareParameters]) -> CompareResult: ...
    @overload
    def __call__(self, name: Literal["ranks"], /, captures: Sequence[Capture], **parameters: Unpack[RanksParameters]) -> RanksResult: ...
    @overload
    def __call__(self, name: Literal["batch-sweep"], /, captures: Sequence[Capture], **parameters: Unpack[BatchSweepParameters]) -> BatchSweepResult: ...
    @overload
    def __call__(self, name: Literal["gpu-time"], /, captures: Sequence[Capture], **parameters: Unpack[GpuTimeParameters]) -> GpuTimeResult: ...
    @overload
    def __call__(self, name: Literal["overlap"], /, captures: Sequence[Capture], **parameters: Unpack[OverlapParameters]) -> OverlapResult: ...
    @overload
    def __call__(self, name: Literal["kernel-types"], /, captures: Sequence[Capture], **parameters: Unpack[KernelTypesParameters]) -> KernelTypesResult: ...
    @overload
    def __call__(
        self,
        name: Literal["profiled-kernels"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ProfiledKernelsParameters],
    ) -> ProfiledKernelsResult: ...
    @overload
    def __call__(
        self,
        name: Literal["profiled-kernel"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ProfiledKernelParameters],
    ) -> ProfiledKernelResult: ...
    @overload
    def __call__(self, name: Literal["roofline"], /, captures: Sequence[Capture], **parameters: Unpack[RooflineParameters]) -> RooflineResult: ...
    @overload
    def __call__(
        self,
        name: Literal["profiled-in-timeline"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ProfiledInTimelineParameters],
    ) -> ProfiledInTimelineResult: ...
    @overload
    def __call__(self, name: Literal["cpu-gpu"], /, captures: Sequence[Capture], **parameters: Unpack[CpuGpuParameters]) -> CpuGpuResult: ...
    @overload
    def __call__(self, name: Literal["events"], /, captures: Sequence[Capture], **parameters: Unpack[EventsParameters]) -> EventsResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_kern_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaGpuKernSumParameters],
    ) -> CudaGpuKernSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_kern_gb_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaGpuKernGbSumParameters],
    ) -> CudaGpuKernGbSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_mem_time_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaGpuMemTimeSumParameters],
    ) -> CudaGpuMemTimeSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_gpu_mem_size_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaGpuMemSizeSumParameters],
    ) -> CudaGpuMemSizeSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_sum"], /, captures: Sequence[Capture], **parameters: Unpack[CudaGpuSumParameters]) -> CudaGpuSumResult: ...
    @overload
    def __call__(self, name: Literal["cuda_api_sum"], /, captures: Sequence[Capture], **parameters: Unpack[CudaApiSumParameters]) -> CudaApiSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_api_gpu_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaApiGpuSumParameters],
    ) -> CudaApiGpuSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_kern_exec_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaKernExecSumParameters],
    ) -> CudaKernExecSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["cuda_kern_exec_trace"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[CudaKernExecTraceParameters],
    ) -> CudaKernExecTraceResult: ...
    @overload
    def __call__(self, name: Literal["cuda_gpu_trace"], /, captures: Sequence[Capture], **parameters: Unpack[CudaGpuTraceParameters]) -> CudaGpuTraceResult: ...
    @overload
    def __call__(self, name: Literal["cuda_api_trace"], /, captures: Sequence[Capture], **parameters: Unpack[CudaApiTraceParameters]) -> CudaApiTraceResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_sum"], /, captures: Sequence[Capture], **parameters: Unpack[NvtxSumParameters]) -> NvtxSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["nvtx_pushpop_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[NvtxPushpopSumParameters],
    ) -> NvtxPushpopSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["nvtx_pushpop_trace"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[NvtxPushpopTraceParameters],
    ) -> NvtxPushpopTraceResult: ...
    @overload
    def __call__(self, name: Literal["nvtx_kern_sum"], /, captures: Sequence[Capture], **parameters: Unpack[NvtxKernSumParameters]) -> NvtxKernSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["nvtx_gpu_proj_sum"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[NvtxGpuProjSumParameters],
    ) -> NvtxGpuProjSumResult: ...
    @overload
    def __call__(
        self,
        name: Literal["nvtx_gpu_proj_trace"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[NvtxGpuProjTraceParameters],
    ) -> NvtxGpuProjTraceResult: ...
    @overload
    def __call__(self, name: Literal["osrt_sum"], /, captures: Sequence[Capture], **parameters: Unpack[OsrtSumParameters]) -> OsrtSumResult: ...
    @overload
    def __call__(self, name: Literal["iterations"], /, captures: Sequence[Capture], **parameters: Unpack[IterationsParameters]) -> IterationsResult: ...
    @overload
    def __call__(self, name: Literal["stragglers"], /, captures: Sequence[Capture], **parameters: Unpack[StragglersParameters]) -> StragglersResult: ...
    @overload
    def __call__(self, name: Literal["host-sync"], /, captures: Sequence[Capture], **parameters: Unpack[HostSyncParameters]) -> HostSyncResult: ...
    @overload
    def __call__(self, name: Literal["operations"], /, captures: Sequence[Capture], **parameters: Unpack[OperationsParameters]) -> OperationsResult: ...
    @overload
    def __call__(
        self,
        name: Literal["operations-profile"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[OperationsProfileParameters],
    ) -> OperationsProfileResult: ...
    @overload
    def __call__(
        self,
        name: Literal["hlo-operations"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[HloOperationsParameters],
    ) -> HloOperationsResult: ...
    @overload
    def __call__(self, name: Literal["hlo-cost"], /, captures: Sequence[Capture]) -> HloCostResult: ...
    @overload
    def __call__(self, name: Literal["hlo-graph"], /, captures: Sequence[Capture], **parameters: Unpack[HloGraphParameters]) -> HloGraphResult: ...
    @overload
    def __call__(self, name: Literal["hlo-memory"], /, captures: Sequence[Capture], **parameters: Unpack[HloMemoryParameters]) -> HloMemoryResult: ...
    @overload
    def __call__(
        self,
        name: Literal["profiler-timeline"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ProfilerTimelineParameters],
    ) -> ProfilerTimelineResult: ...
    @overload
    def __call__(
        self,
        name: Literal["profiler-kernels"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ProfilerKernelsParameters],
    ) -> ProfilerKernelsResult: ...
    @overload
    def __call__(self, name: Literal["profiler-hta"], /, captures: Sequence[Capture]) -> ProfilerHtaResult: ...
    @overload
    def __call__(self, name: Literal["torch-compile"], /, captures: Sequence[Capture], **parameters: Unpack[TorchCompileParameters]) -> TorchCompileResult: ...
    @overload
    def __call__(self, name: Literal["profiler-compile"], /, captures: Sequence[Capture]) -> ProfilerCompileResult: ...
    @overload
    def __call__(self, name: Literal["critical-path"], /, captures: Sequence[Capture], **parameters: Unpack[CriticalPathParameters]) -> CriticalPathResult: ...
    @overload
    def __call__(self, name: Literal["mfu"], /, captures: Sequence[Capture], **parameters: Unpack[MfuParameters]) -> MfuResult: ...
    @overload
    def __call__(self, name: Literal["precision"], /, captures: Sequence[Capture], **parameters: Unpack[PrecisionParameters]) -> PrecisionResult: ...
    @overload
    def __call__(
        self,
        name: Literal["offload-candidates"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[OffloadCandidatesParameters],
    ) -> OffloadCandidatesResult: ...
    @overload
    def __call__(self, name: Literal["idle"], /, captures: Sequence[Capture], **parameters: Unpack[IdleParameters]) -> IdleResult: ...
    @overload
    def __call__(self, name: Literal["launches"], /, captures: Sequence[Capture], **parameters: Unpack[LaunchesParameters]) -> LaunchesResult: ...
    @overload
    def __call__(
        self,
        name: Literal["launch-patterns"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[LaunchPatternsParameters],
    ) -> LaunchPatternsResult: ...
    @overload
    def __call__(self, name: Literal["queue-length"], /, captures: Sequence[Capture], **parameters: Unpack[QueueLengthParameters]) -> QueueLengthResult: ...
    @overload
    def __call__(self, name: Literal["utilization"], /, captures: Sequence[Capture], **parameters: Unpack[UtilizationParameters]) -> UtilizationResult: ...
    @overload
    def __call__(
        self,
        name: Literal["module-loading"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ModuleLoadingParameters],
    ) -> ModuleLoadingResult: ...
    @overload
    def __call__(self, name: Literal["start-up"], /, captures: Sequence[Capture], **parameters: Unpack[StartUpParameters]) -> StartUpResult: ...
    @overload
    def __call__(self, name: Literal["allocations"], /, captures: Sequence[Capture], **parameters: Unpack[AllocationsParameters]) -> AllocationsResult: ...
    @overload
    def __call__(self, name: Literal["threads"], /, captures: Sequence[Capture], **parameters: Unpack[ThreadsParameters]) -> ThreadsResult: ...
    @overload
    def __call__(self, name: Literal["memory"], /, captures: Sequence[Capture], **parameters: Unpack[MemoryParameters]) -> MemoryResult: ...
    @overload
    def __call__(self, name: Literal["buffers"], /, captures: Sequence[Capture], **parameters: Unpack[BuffersParameters]) -> BuffersResult: ...
    @overload
    def __call__(
        self,
        name: Literal["memory-profile"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[MemoryProfileParameters],
    ) -> MemoryProfileResult: ...
    @overload
    def __call__(
        self,
        name: Literal["memory-profile-changes"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[MemoryProfileChangesParameters],
    ) -> MemoryProfileChangesResult: ...
    @overload
    def __call__(
        self,
        name: Literal["profiler-memory"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[ProfilerMemoryParameters],
    ) -> ProfilerMemoryResult: ...
    @overload
    def __call__(self, name: Literal["flame-graph"], /, captures: Sequence[Capture], **parameters: Unpack[FlameGraphParameters]) -> FlameGraphResult: ...
    @overload
    def __call__(
        self,
        name: Literal["flame-difference"],
        /,
        captures: Sequence[Capture],
        **parameters: Unpack[FlameDifferenceParameters],
    ) -> FlameDifferenceResult: ...

class AnalyzeSession(Protocol):
    """`analyze` of a client, of a session."""

    @overload
    def __call__(self, name: str, analysis: Literal["summary"], /, capture: str | None = None, *, others: Sequence[str] = ()) -> SummaryResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["advice"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[AdviceParameters],
    ) -> AdviceResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["kernels-per-stream"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> KernelsPerStreamResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["kernel-changes"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[KernelChangesParameters],
    ) -> KernelChangesResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["collectives"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CollectivesParameters],
    ) -> CollectivesResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["compare"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CompareParameters],
    ) -> CompareResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["ranks"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[RanksParameters],
    ) -> RanksResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["batch-sweep"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[BatchSweepParameters],
    ) -> BatchSweepResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["gpu-time"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[GpuTimeParameters],
    ) -> GpuTimeResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["overlap"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OverlapParameters],
    ) -> OverlapResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["kernel-types"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[KernelTypesParameters],
    ) -> KernelTypesResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiled-kernels"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfiledKernelsParameters],
    ) -> ProfiledKernelsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiled-kernel"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfiledKernelParameters],
    ) -> ProfiledKernelResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["roofline"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[RooflineParameters],
    ) -> RooflineResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiled-in-timeline"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfiledInTimelineParameters],
    ) -> ProfiledInTimelineResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cpu-gpu"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CpuGpuParameters],
    ) -> CpuGpuResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["events"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[EventsParameters],
    ) -> EventsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_kern_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuKernSumParameters],
    ) -> CudaGpuKernSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_kern_gb_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuKernGbSumParameters],
    ) -> CudaGpuKernGbSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_mem_time_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuMemTimeSumParameters],
    ) -> CudaGpuMemTimeSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_mem_size_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuMemSizeSumParameters],
    ) -> CudaGpuMemSizeSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuSumParameters],
    ) -> CudaGpuSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_api_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaApiSumParameters],
    ) -> CudaApiSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_api_gpu_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaApiGpuSumParameters],
    ) -> CudaApiGpuSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_kern_exec_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaKernExecSumParameters],
    ) -> CudaKernExecSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_kern_exec_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaKernExecTraceParameters],
    ) -> CudaKernExecTraceResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuTraceParameters],
    ) -> CudaGpuTraceResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_api_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaApiTraceParameters],
    ) -> CudaApiTraceResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxSumParameters],
    ) -> NvtxSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_pushpop_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxPushpopSumParameters],
    ) -> NvtxPushpopSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_pushpop_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxPushpopTraceParameters],
    ) -> NvtxPushpopTraceResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_kern_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxKernSumParameters],
    ) -> NvtxKernSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_gpu_proj_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxGpuProjSumParameters],
    ) -> NvtxGpuProjSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_gpu_proj_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxGpuProjTraceParameters],
    ) -> NvtxGpuProjTraceResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["osrt_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OsrtSumParameters],
    ) -> OsrtSumResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["iterations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[IterationsParameters],
    ) -> IterationsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["stragglers"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[StragglersParameters],
    ) -> StragglersResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["host-sync"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HostSyncParameters],
    ) -> HostSyncResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["operations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OperationsParameters],
    ) -> OperationsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["operations-profile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OperationsProfileParameters],
    ) -> OperationsProfileResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-operations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HloOperationsParameters],
    ) -> HloOperationsResult: ...
    @overload
    def __call__(self, name: str, analysis: Literal["hlo-cost"], /, capture: str | None = None, *, others: Sequence[str] = ()) -> HloCostResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-graph"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HloGraphParameters],
    ) -> HloGraphResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-memory"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HloMemoryParameters],
    ) -> HloMemoryResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-timeline"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfilerTimelineParameters],
    ) -> ProfilerTimelineResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-kernels"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfilerKernelsParameters],
    ) -> ProfilerKernelsResult: ...
    @overload
    def __call__(self, name: str, analysis: Literal["profiler-hta"], /, capture: str | None = None, *, others: Sequence[str] = ()) -> ProfilerHtaResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["torch-compile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[TorchCompileParameters],
    ) -> TorchCompileResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-compile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> ProfilerCompileResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["critical-path"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CriticalPathParameters],
    ) -> CriticalPathResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["mfu"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MfuParameters],
    ) -> MfuResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["precision"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[PrecisionParameters],
    ) -> PrecisionResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["offload-candidates"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OffloadCandidatesParameters],
    ) -> OffloadCandidatesResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["idle"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[IdleParameters],
    ) -> IdleResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["launches"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[LaunchesParameters],
    ) -> LaunchesResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["launch-patterns"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[LaunchPatternsParameters],
    ) -> LaunchPatternsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["queue-length"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[QueueLengthParameters],
    ) -> QueueLengthResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["utilization"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[UtilizationParameters],
    ) -> UtilizationResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["module-loading"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ModuleLoadingParameters],
    ) -> ModuleLoadingResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["start-up"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[StartUpParameters],
    ) -> StartUpResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["allocations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[AllocationsParameters],
    ) -> AllocationsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["threads"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ThreadsParameters],
    ) -> ThreadsResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["memory"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MemoryParameters],
    ) -> MemoryResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["buffers"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[BuffersParameters],
    ) -> BuffersResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["memory-profile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MemoryProfileParameters],
    ) -> MemoryProfileResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["memory-profile-changes"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MemoryProfileChangesParameters],
    ) -> MemoryProfileChangesResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-memory"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfilerMemoryParameters],
    ) -> ProfilerMemoryResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["flame-graph"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[FlameGraphParameters],
    ) -> FlameGraphResult: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["flame-difference"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[FlameDifferenceParameters],
    ) -> FlameDifferenceResult: ...

class AnalyzeSessionAwaited(Protocol):
    """The same, awaited."""

    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["summary"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> Coroutine[Any, Any, SummaryResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["advice"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[AdviceParameters],
    ) -> Coroutine[Any, Any, AdviceResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["kernels-per-stream"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> Coroutine[Any, Any, KernelsPerStreamResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["kernel-changes"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[KernelChangesParameters],
    ) -> Coroutine[Any, Any, KernelChangesResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["collectives"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CollectivesParameters],
    ) -> Coroutine[Any, Any, CollectivesResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["compare"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CompareParameters],
    ) -> Coroutine[Any, Any, CompareResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["ranks"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[RanksParameters],
    ) -> Coroutine[Any, Any, RanksResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["batch-sweep"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[BatchSweepParameters],
    ) -> Coroutine[Any, Any, BatchSweepResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["gpu-time"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[GpuTimeParameters],
    ) -> Coroutine[Any, Any, GpuTimeResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["overlap"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OverlapParameters],
    ) -> Coroutine[Any, Any, OverlapResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["kernel-types"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[KernelTypesParameters],
    ) -> Coroutine[Any, Any, KernelTypesResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiled-kernels"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfiledKernelsParameters],
    ) -> Coroutine[Any, Any, ProfiledKernelsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiled-kernel"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfiledKernelParameters],
    ) -> Coroutine[Any, Any, ProfiledKernelResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["roofline"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[RooflineParameters],
    ) -> Coroutine[Any, Any, RooflineResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiled-in-timeline"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfiledInTimelineParameters],
    ) -> Coroutine[Any, Any, ProfiledInTimelineResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cpu-gpu"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CpuGpuParameters],
    ) -> Coroutine[Any, Any, CpuGpuResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["events"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[EventsParameters],
    ) -> Coroutine[Any, Any, EventsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_kern_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuKernSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuKernSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_kern_gb_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuKernGbSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuKernGbSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_mem_time_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuMemTimeSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuMemTimeSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_mem_size_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuMemSizeSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuMemSizeSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuSumParameters],
    ) -> Coroutine[Any, Any, CudaGpuSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_api_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaApiSumParameters],
    ) -> Coroutine[Any, Any, CudaApiSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_api_gpu_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaApiGpuSumParameters],
    ) -> Coroutine[Any, Any, CudaApiGpuSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_kern_exec_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaKernExecSumParameters],
    ) -> Coroutine[Any, Any, CudaKernExecSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_kern_exec_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaKernExecTraceParameters],
    ) -> Coroutine[Any, Any, CudaKernExecTraceResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_gpu_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaGpuTraceParameters],
    ) -> Coroutine[Any, Any, CudaGpuTraceResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["cuda_api_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CudaApiTraceParameters],
    ) -> Coroutine[Any, Any, CudaApiTraceResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxSumParameters],
    ) -> Coroutine[Any, Any, NvtxSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_pushpop_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxPushpopSumParameters],
    ) -> Coroutine[Any, Any, NvtxPushpopSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_pushpop_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxPushpopTraceParameters],
    ) -> Coroutine[Any, Any, NvtxPushpopTraceResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_kern_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxKernSumParameters],
    ) -> Coroutine[Any, Any, NvtxKernSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_gpu_proj_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxGpuProjSumParameters],
    ) -> Coroutine[Any, Any, NvtxGpuProjSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["nvtx_gpu_proj_trace"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[NvtxGpuProjTraceParameters],
    ) -> Coroutine[Any, Any, NvtxGpuProjTraceResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["osrt_sum"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OsrtSumParameters],
    ) -> Coroutine[Any, Any, OsrtSumResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["iterations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[IterationsParameters],
    ) -> Coroutine[Any, Any, IterationsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["stragglers"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[StragglersParameters],
    ) -> Coroutine[Any, Any, StragglersResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["host-sync"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HostSyncParameters],
    ) -> Coroutine[Any, Any, HostSyncResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["operations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OperationsParameters],
    ) -> Coroutine[Any, Any, OperationsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["operations-profile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OperationsProfileParameters],
    ) -> Coroutine[Any, Any, OperationsProfileResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-operations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HloOperationsParameters],
    ) -> Coroutine[Any, Any, HloOperationsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-cost"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> Coroutine[Any, Any, HloCostResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-graph"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HloGraphParameters],
    ) -> Coroutine[Any, Any, HloGraphResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["hlo-memory"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[HloMemoryParameters],
    ) -> Coroutine[Any, Any, HloMemoryResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-timeline"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfilerTimelineParameters],
    ) -> Coroutine[Any, Any, ProfilerTimelineResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-kernels"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfilerKernelsParameters],
    ) -> Coroutine[Any, Any, ProfilerKernelsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-hta"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> Coroutine[Any, Any, ProfilerHtaResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["torch-compile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[TorchCompileParameters],
    ) -> Coroutine[Any, Any, TorchCompileResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-compile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
    ) -> Coroutine[Any, Any, ProfilerCompileResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["critical-path"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[CriticalPathParameters],
    ) -> Coroutine[Any, Any, CriticalPathResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["mfu"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MfuParameters],
    ) -> Coroutine[Any, Any, MfuResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["precision"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[PrecisionParameters],
    ) -> Coroutine[Any, Any, PrecisionResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["offload-candidates"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[OffloadCandidatesParameters],
    ) -> Coroutine[Any, Any, OffloadCandidatesResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["idle"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[IdleParameters],
    ) -> Coroutine[Any, Any, IdleResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["launches"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[LaunchesParameters],
    ) -> Coroutine[Any, Any, LaunchesResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["launch-patterns"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[LaunchPatternsParameters],
    ) -> Coroutine[Any, Any, LaunchPatternsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["queue-length"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[QueueLengthParameters],
    ) -> Coroutine[Any, Any, QueueLengthResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["utilization"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[UtilizationParameters],
    ) -> Coroutine[Any, Any, UtilizationResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["module-loading"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ModuleLoadingParameters],
    ) -> Coroutine[Any, Any, ModuleLoadingResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["start-up"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[StartUpParameters],
    ) -> Coroutine[Any, Any, StartUpResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["allocations"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[AllocationsParameters],
    ) -> Coroutine[Any, Any, AllocationsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["threads"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ThreadsParameters],
    ) -> Coroutine[Any, Any, ThreadsResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["memory"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MemoryParameters],
    ) -> Coroutine[Any, Any, MemoryResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["buffers"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[BuffersParameters],
    ) -> Coroutine[Any, Any, BuffersResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["memory-profile"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MemoryProfileParameters],
    ) -> Coroutine[Any, Any, MemoryProfileResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["memory-profile-changes"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[MemoryProfileChangesParameters],
    ) -> Coroutine[Any, Any, MemoryProfileChangesResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["profiler-memory"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[ProfilerMemoryParameters],
    ) -> Coroutine[Any, Any, ProfilerMemoryResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["flame-graph"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[FlameGraphParameters],
    ) -> Coroutine[Any, Any, FlameGraphResult]: ...
    @overload
    def __call__(
        self,
        name: str,
        analysis: Literal["flame-difference"],
        /,
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Unpack[FlameDifferenceParameters],
    ) -> Coroutine[Any, Any, FlameDifferenceResult]: ...
