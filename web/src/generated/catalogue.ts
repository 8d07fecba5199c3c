// Written by `cargo xtask codegen` from the catalogue of analyses; a test fails when it drifts.

/** Loads or stores of one kind. */
export interface Access {
  /** Times that banks of shared memory were asked twice. */
  readonly bank_conflicts?: number | null;
  /** Sectors that the first cache had, 0 to 1. */
  readonly hit_ratio?: number | null;
  /** The memory: `global`, `local`, `shared`. */
  readonly memory: string;
  /** What was done: `load`, `store`. */
  readonly operation: string;
  /** Requests: one per instruction of a warp. */
  readonly requests: number;
  /** Sectors of 32 bytes that were touched; null for shared memory, which has none. */
  readonly sectors?: number | null;
  /** Sectors per request: 4 where 32 threads touch 4 bytes each, side by side. */
  readonly sectors_per_request?: number | null;
}

/** The findings of a capture, the one that is worth most first. */
export interface Advice {
  /** What was found. Gains overlap where findings have one cause: they are no sum. */
  readonly findings: readonly Finding[];
  /** Findings that were left out behind these. */
  readonly findings_left_out: number;
  /** GPUs that worked. Times of several are means over them. */
  readonly gpus: number;
  /** What was not looked at, because the capture lacks what it takes. */
  readonly not_captured: readonly NotCaptured[];
  /** Every rule, in the order of the catalogue, with what came of it and its thresholds. */
  readonly rules: readonly RuleOutcome[];
  /** Length of that window in ns, up to the end of the last GPU work; 0 where there is none. */
  readonly window_ns: number;
  /** Start of the window that shares are of, in ns since the session's start: the start of the first GPU work. */
  readonly window_start_ns: number;
}

/** A buffer that was alive at the peak. */
export interface AliveBuffer {
  /** Where it begins in memory, in hexadecimal digits. */
  readonly address: string;
  /** Bytes. */
  readonly bytes: number;
  /** When it was given out, in ns. */
  readonly given_ns: number;
  /** How long it was given out, in ns; up to the end of the capture where it was never taken back. */
  readonly lifetime_ns: number;
  /** Where it is. */
  readonly place: Place;
  /** What happened with it in the end. */
  readonly release: Release;
  /** Who asked for it. */
  readonly requester: MemoryRequester;
}

/** What was alive at the peak of those who asked in the same place. */
export interface AliveOfRequester {
  /** Buffers. */
  readonly buffers: number;
  /** Bytes. */
  readonly bytes: number;
  /** Their share of the peak, from 0 to 1. */
  readonly peak_ratio: number;
  /** Who asked; nothing known in it of allocations of which nobody is known. */
  readonly requester: MemoryRequester;
}

/** What a call of the API does with memory. */
export type AllocationCall = "device_allocate" | "device_free" | "pool_allocate" | "pool_free" | "managed_allocate" | "host_allocate" | "host_free" | "map";

/** Calls of one kind. */
export interface AllocationCallRow {
  /** What they cost. */
  readonly cost: PhasedCost;
  /** What they do. */
  readonly kind: AllocationCall;
}

/** One call. */
export interface AllocationCallSeen {
  /** Length in ns. */
  readonly duration_ns: number;
  /** The part of it in which no GPU worked for the process; null where none ever did. */
  readonly gpu_idle_ns?: number | null;
  /** Whether it began in the steady state; null where it is not known when that begins. */
  readonly in_steady_state?: boolean | null;
  /** What it does. */
  readonly kind: AllocationCall;
  /** Its name. */
  readonly name: string;
  /** Where it is. */
  readonly place: Place;
}

/** What allocations cost. */
export interface AllocationsResult {
  /** What the framework's allocator did (`[memory]` of a PyTorch trace), per device. */
  readonly allocators: readonly AllocatorRow[];
  /** All calls that allocate and free. */
  readonly calls: PhasedCost;
  /** The same by what they do, the longest total first. */
  readonly kinds: readonly AllocationCallRow[];
  /** The longest calls. */
  readonly longest: readonly AllocationCallSeen[];
  /** Calls that were left out behind these. */
  readonly longest_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** When the steady state begins in ns: with the second iteration of the program's loop. Null where no iterations are found. */
  readonly steady_from_ns?: number | null;
}

/** Who gives memory out. */
export type Allocator = "framework" | "driver";

/** What a framework's allocator did on a device. */
export interface AllocatorRow {
  /** Bytes that it gave out, all together. */
  readonly allocated_bytes: number;
  /** Times it gave memory out. */
  readonly allocations: number;
  /** Ordinal of the device; null of the host's memory. */
  readonly device?: number | null;
  /** Times it took memory back. */
  readonly frees: number;
  /** Times what it has reserved grew, for which it asks the driver for memory. */
  readonly growths: number;
  /** Most bytes that were given out at a time; null where the source does not say it. */
  readonly peak_allocated_bytes?: number | null;
  /** Most bytes that it had reserved; null where the source does not say it. */
  readonly peak_reserved_bytes?: number | null;
  /** Times what it has reserved shrank, for which it gives memory back to the driver. */
  readonly shrinks: number;
  /** Times it gave memory out in the steady state; null where it is not known when that begins. */
  readonly steady_allocations?: number | null;
}

/** Which part of the work a rule is about. */
export type Area = "capture" | "idle" | "host" | "kernels" | "transfers" | "communication" | "iterations" | "memory" | "compilation";

/** How GPU work was assigned to iterations, in pieces: kernels, copies and memsets. */
export interface AssignedWork {
  /** Launched by another thread of the process during the iteration. */
  readonly by_process: number;
  /** Launched by the loop's thread during the iteration. */
  readonly by_thread: number;
  /** Without a recorded launch: by the time of its start. */
  readonly by_time: number;
  /** Of no iteration. */
  readonly outside: number;
}

/** Time in which so many pieces of work ran at once. */
export interface AtOnce {
  /** How many. The last entry, [`AtOnce::MOST`], also has the time of more. */
  readonly gpu_ops: number;
  /** For how long in ns. */
  readonly time_ns: number;
}

/** Where a batch size is known from. */
export type BatchSizeSource = "given" | "shapes";

/** The result. */
export interface BatchSweepResult {
  /** The best throughput in items per second. */
  readonly best_items_per_second?: number | null;
  /** What may be wrong with the figures. */
  readonly cautions: readonly string[];
  /** Time of an iteration in ns that does not depend on the batch: where the line through the captures (least squares) meets no items. Null without two different sizes. Below 0 where larger batches are slower per item. */
  readonly fixed_ns?: number | null;
  /** Time in ns that each further item costs, by that line. */
  readonly further_item_ns?: number | null;
  /** The smallest batch with at least `knee_percent` of the best throughput; null without two captures of known size and time. */
  readonly knee_batch?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The captures, the smallest batch first; those of unknown size last. */
  readonly rows: readonly BatchSweepRow[];
}

/** A capture. */
export interface BatchSweepRow {
  /** Items of an iteration; null where not known. */
  readonly batch_size?: number | null;
  /** Where it is known from. */
  readonly batch_size_source?: BatchSizeSource | null;
  /** GPU busy time of those iterations; null where no GPU work was recorded. */
  readonly gpu_busy_ratio?: number | null;
  /** The capture, counted from 0 in the order in which they were named. */
  readonly input: number;
  /** Time of an item in ns. */
  readonly item_ns?: number | null;
  /** Items per second. */
  readonly items_per_second?: number | null;
  /** Iterations that count: without the first one and those in which code was compiled. */
  readonly iterations: number;
  /** Efficiency against linear: throughput over that of the smallest batch, of the same ratio of sizes. 1 is as long an iteration with more items. */
  readonly linear_efficiency_ratio?: number | null;
  /** Mean length of these in ns; null without any. */
  readonly mean_iteration_ns?: number | null;
  /** Most memory in bytes that the framework had given out on a device; null where allocations were not recorded. */
  readonly peak_memory_bytes?: number | null;
  /** Roofline prediction in ns: what the floating-point operations of an iteration take at the peak rate. Traffic of memory is not in it. Null where operations or rate are not known. */
  readonly predicted_iteration_ns?: number | null;
  /** `predicted_iteration_ns` of `mean_iteration_ns`: the model FLOP utilisation. */
  readonly predicted_ratio?: number | null;
}

/** How it is known what was given out before the capture. */
export type Before = "totals" | "at_least";

/** What bounds work of an intensity. */
export type Bound = "compute" | "memory";

/** Where it is known from. */
export type BoundBasis = "counters" | "compiler" | "shapes" | "kind" | "none";

/** Why a graph ended. */
export type BreakReason = "data_dependent_branch" | "scalar_read" | "data_dependent_shape" | "output" | "python_call" | "operator" | "unknown";

/** A buffer. */
export interface BufferLife {
  /** Bytes. */
  readonly bytes: number;
  /** When it was given out, in ns. */
  readonly given_ns: number;
  /** How long it was given out, in ns; up to the end of the capture where it was never taken back. */
  readonly lifetime_ns: number;
  /** Where it is. */
  readonly place: Place;
  /** What happened with it in the end. */
  readonly release: Release;
  /** Who asked for it. */
  readonly requester: MemoryRequester;
}

/** The buffers of an allocator. */
export interface BufferPool {
  /** Buffers that began where another one had been and had been taken back: what the allocator did use again. */
  readonly address_reuses?: number | null;
  /** Bytes that were given out, all together. */
  readonly allocated_bytes: number;
  /** Times that memory was given out. */
  readonly allocations: number;
  /** Times that memory was given out per iteration; null where no iterations are found. */
  readonly allocations_per_iteration?: number | null;
  /** Times that memory was given out per second, from the first allocation or release to the last; null where these are one. */
  readonly allocations_per_second?: number | null;
  /** Who gives them out. */
  readonly allocator: Allocator;
  /** Bytes that were given out per iteration. */
  readonly bytes_per_iteration?: number | null;
  /** Bytes that were given out per second in that time. */
  readonly bytes_per_second?: number | null;
  /** Ordinal of the device; null of the host's memory. */
  readonly device?: number | null;
  /** Times what the allocator had grew, for which it asked the driver; null where the source does not say what it had. */
  readonly growths?: number | null;
  /** Buffers that were given out during the capture and not taken back in it; null where the source says no addresses, as the next six. */
  readonly kept?: number | null;
  /** Their bytes. */
  readonly kept_bytes?: number | null;
  /** The largest buffers that were never taken back in the capture. */
  readonly largest_kept: readonly BufferLife[];
  /** Lifetimes by class, of those that were taken back. */
  readonly lifetimes: readonly LifetimeClass[];
  /** The buffers that were given out longest, of those that were taken back. */
  readonly longest: readonly BufferLife[];
  /** Whose memory: `GPU 0`, `host`, `GPU 1 managed`. */
  readonly memory: string;
  /** Releases of another size than was given out. */
  readonly mismatched_releases?: number | null;
  /** Process id; 0 where the source does not say. */
  readonly process: number;
  /** Who asked, by the bytes that they were given. */
  readonly requesters: readonly BufferRequester[];
  /** Those who asked that were left out behind these. */
  readonly requesters_left_out: number;
  /** Allocations for each buffer that is needed: 1 where nothing can be used again. Null without allocations. */
  readonly reuse_ratio?: number | null;
  /** Allocations for which a buffer of that size had been taken back before and was not given out since. */
  readonly reuses: number;
  /** Their bytes: what an allocator that keeps buffers does not ask for. */
  readonly saved_bytes: number;
  /** Sizes by the bytes that were given out of them. */
  readonly sizes: readonly BufferSize[];
  /** Sizes that were left out behind these. */
  readonly sizes_left_out: number;
  /** Their bytes, as far as the source says them. */
  readonly unmatched_bytes?: number | null;
  /** Releases of memory that was not given out during the capture. */
  readonly unmatched_releases?: number | null;
  /** Buffers whose memory was given out again although their release was not recorded. */
  readonly unrecorded_releases?: number | null;
}

/** What one place in the program asked for. */
export interface BufferRequester {
  /** Bytes that were given out, all together. */
  readonly allocated_bytes: number;
  /** Times memory was given out. */
  readonly allocations: number;
  /** Mean lifetime in ns. */
  readonly mean_lifetime_ns: number;
  /** Who asked; nothing known in it of allocations of which nobody is known. */
  readonly requester: MemoryRequester;
}

/** Allocations of one size. */
export interface BufferSize {
  /** Bytes that were given out, all together. */
  readonly allocated_bytes: number;
  /** Times it was given out. */
  readonly allocations: number;
  /** Allocations for each buffer that is needed. */
  readonly reuse_ratio: number;
  /** Of the allocations such that could use a buffer again. */
  readonly reuses: number;
  /** The size in bytes. */
  readonly size_bytes: number;
}

/** The lives of buffers. */
export interface BuffersResult {
  /** Iterations of the program's loop over which allocations are counted; null where none are found. */
  readonly iterations?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The buffers of each allocator, process, device and kind of memory, the most bytes first. */
  readonly pools: readonly BufferPool[];
}

/** A cache or the device's memory. Shares are 0 to 1. */
export interface Cache {
  /** Its busiest part, against its peak. */
  readonly busy_ratio?: number | null;
  /** Sectors that it had, of those that were asked for. */
  readonly hit_ratio?: number | null;
  /** `L1/TEX`, `L2` or `DRAM`. */
  readonly name: string;
}

/** What calls cost. */
export interface CallCost {
  /** Calls. */
  readonly calls: number;
  /** The part of `held_ns` in which no GPU worked for the process; null where no GPU ever did in the capture. */
  readonly gpu_idle_ns?: number | null;
  /** Time in ns in which at least one of them ran: calls inside each other or on several threads of a process count once. */
  readonly held_ns: number;
  /** The longest in ns. */
  readonly longest_ns: number;
  /** Sum of their lengths in ns. */
  readonly total_ns: number;
}

/** What kind of thing an event is. */
export type Category = "cuda_kernel" | "cuda_graph" | "cuda_memcpy_h2d" | "cuda_memcpy_d2h" | "cuda_memcpy_d2d" | "cuda_memcpy_p2p" | "cuda_memcpy_other" | "cuda_memset" | "cuda_migration" | "cuda_sync" | "cuda_api" | "nvtx_range" | "os_runtime" | "cpu_op" | "annotation" | "step" | "python_function" | "cpu_sample" | "overhead" | "device_op" | "gpu_annotation" | "derived" | "other";

/** Events of a category. */
export interface CategoryCount {
  /** Whether it was recorded at all. `false` means "not captured", which is not the same as no events. */
  readonly captured: boolean;
  /** The category that is counted. */
  readonly category: Category;
  /** How many; null where it was not captured. */
  readonly events?: number | null;
}

/** One kernel in both captures. */
export interface Change {
  /** Launches after. */
  readonly after_launches: number;
  /** Mean time in ns of a launch after; null without any. */
  readonly after_mean_ns?: number | null;
  /** Total time in ns after. */
  readonly after_total_ns: number;
  /** Launches before. */
  readonly before_launches: number;
  /** Mean time in ns of a launch before; null without any. */
  readonly before_mean_ns?: number | null;
  /** Total time in ns before. */
  readonly before_total_ns: number;
  /** The part of the difference in ns that comes from more or fewer launches: their change times the mean before, rounded once. */
  readonly count_part_ns: number;
  /** `after_total_ns` less `before_total_ns`. */
  readonly difference_ns: number;
  /** The rest, in ns: launches after times the change of the mean. */
  readonly duration_part_ns: number;
  /** By what the two sides were matched. Kernels whose whole name has no counterpart are matched by their short name. */
  readonly matched_by: MatchedBy;
  /** The kernel's name; its short name where several of a side are one. */
  readonly name: string;
  /** Which captures it is in. */
  readonly presence: Presence;
}

/** The result: a row per kernel, the largest difference of total time first. */
export interface Changes {
  /** The same after. */
  readonly after_total_ns: number;
  /** Total time in ns of all kernels before. */
  readonly before_total_ns: number;
  /** Kernels that differ or not, in the result or not. */
  readonly kernels: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The kernels. */
  readonly rows: readonly Change[];
}

/** Classes of work that ran at once, and no other did. */
export interface ClassMix {
  /** `time_ns` of the GPU's busy time; null where nothing ran. */
  readonly busy_ratio?: number | null;
  /** Whether communication ran. */
  readonly communication: boolean;
  /** Whether computation ran. */
  readonly compute: boolean;
  /** Whether copies or memsets ran. */
  readonly memory: boolean;
  /** For how long in ns. */
  readonly time_ns: number;
}

/** A class of work on one GPU. */
export interface ClassOfGpu {
  /** Time in ns in which at least one of them ran. */
  readonly busy_ns: number;
  /** `busy_ns` of the time in which the GPU ran anything; null where it ran nothing. Classes overlap, so these add up to more than 1. */
  readonly busy_ratio?: number | null;
  /** Which class. */
  readonly class: WorkClass;
  /** Which GPU. */
  readonly gpu: Gpu;
  /** Pieces of work. */
  readonly gpu_ops: number;
  /** Sum of their lengths in ns. */
  readonly sum_ns: number;
}

/** A class of work on all GPUs. */
export interface ClassOfWork {
  /** Which class. */
  readonly class: WorkClass;
  /** Pieces of work. */
  readonly gpu_ops: number;
  /** Those names that take most time, the first the most. */
  readonly names: readonly NamedWork[];
  /** Pieces of work of further names. */
  readonly other_gpu_ops: number;
  /** Further names. */
  readonly other_names: number;
  /** Sum of their lengths in ns. */
  readonly other_sum_ns: number;
  /** Sum of their lengths in ns. */
  readonly sum_ns: number;
  /** `sum_ns` of the sum over all classes; null where nothing ran. */
  readonly sum_ratio?: number | null;
}

/** How the times of ranks are compared. */
export type ClockAlignment = "one_clock" | "by_ends";

/** Code that the launch ran, as far as the report has it as text. */
export interface CodeText {
  /** Bytes of source and PTX that were left out behind the first of each. */
  readonly left_out_bytes: number;
  /** Bytes of machine code, of all kernels of the module. */
  readonly machine_code_bytes: number;
  /** PTX of all kernels of the module; empty where the compiler left none. */
  readonly ptx: string;
  /** Source text; empty where the report holds none. */
  readonly source: string;
}

/** What is done with code. */
export type CodeWork = "load" | "lazy_load" | "link" | "compile" | "unload";

/** Work on code of one name. */
export interface CodeWorkName {
  /** The category of its events. */
  readonly category: Category;
  /** What it cost. */
  readonly cost: PhasedCost;
  /** What is done. */
  readonly kind: CodeWork;
  /** The longest of it. */
  readonly longest: Place;
  /** The name, without the numbers that tell one instance from the next. */
  readonly name: string;
}

/** Work on code of one kind. */
export interface CodeWorkRow {
  /** What it cost. */
  readonly cost: PhasedCost;
  /** What is done. */
  readonly kind: CodeWork;
}

/** One collective. */
export interface CollectiveCall {
  /** Message by length. */
  readonly algorithm_bytes_per_second?: number | null;
  /** The same times the operation's factor. */
  readonly bus_bytes_per_second?: number | null;
  /** Ordinal of the device. */
  readonly device?: number | null;
  /** Length in ns. */
  readonly duration_ns: number;
  /** Name of its process group; empty where the source does not say it. */
  readonly group: string;
  /** The part of its length in which its device also computed. */
  readonly hidden_ns: number;
  /** Its kernel. */
  readonly kernel: string;
  /** The message in bytes. */
  readonly message_bytes?: number | null;
  /** What the ranks do. */
  readonly operation: CollectiveOperation;
  /** Row of the timeline. */
  readonly row: number;
  /** Start in ns. */
  readonly start_ns: number;
}

/** The collectives of a device. */
export interface CollectiveDevice {
  /** Which capture of a merged session, 0 where there is one. */
  readonly capture: number;
  /** Kernels of collectives. */
  readonly collectives: number;
  /** Time in ns in which one ran, counted once. */
  readonly communication_ns: number;
  /** Ordinal of the device. */
  readonly device: number;
  /** The rest. */
  readonly exposed_ns: number;
  /** The part of it in which the device also computed. */
  readonly hidden_ns: number;
  /** `hidden_ns` of `communication_ns`. */
  readonly hidden_ratio?: number | null;
  /** Machine as the profiler numbers it, 0 where it does not. */
  readonly machine: number;
}

/** What ranks do together. */
export type CollectiveOperation = "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "broadcast" | "reduce" | "gather" | "scatter" | "send" | "receive" | "send_receive" | "permute" | "barrier" | "other";

/** A collective that took much longer than its like. */
export interface CollectiveOutlier {
  /** The collective. */
  readonly call: CollectiveCall;
  /** Its length less the median. */
  readonly lost_ns: number;
  /** Median length in ns of its like. */
  readonly median_ns: number;
}

/** Collectives of one operation, group size and power of two of the message's size. */
export interface CollectiveRow {
  /** Algorithm bandwidth: `total_bytes` by `total_ns`. */
  readonly algorithm_bytes_per_second?: number | null;
  /** The largest bus bandwidth of one of them. */
  readonly best_bus_bytes_per_second?: number | null;
  /** Bus bandwidth: the algorithm bandwidth times the operation's factor. Null where the group's size is not known. */
  readonly bus_bytes_per_second?: number | null;
  /** Collectives. */
  readonly collectives: number;
  /** Smallest message of the bin in bytes, a power of two; null where the source does not say sizes. */
  readonly from_bytes?: number | null;
  /** Sum of the parts of their lengths in which their device also computed. */
  readonly hidden_ns: number;
  /** `hidden_ns` of `total_ns`. */
  readonly hidden_ratio?: number | null;
  /** The longest. */
  readonly max_ns: number;
  /** The middle one; of an even number the mean of the two. */
  readonly median_ns: number;
  /** The shortest. */
  readonly min_ns: number;
  /** What the ranks do. */
  readonly operation: CollectiveOperation;
  /** Ranks of the group; null where the source does not say it. */
  readonly ranks?: number | null;
  /** Sum of their messages in bytes; null where the source does not say sizes. */
  readonly total_bytes?: number | null;
  /** Sum of their lengths in ns. */
  readonly total_ns: number;
}

/** The collectives of a capture. Times of kernels hold the wait for other ranks, so that bandwidths are lower bounds; `stragglers` takes the wait away. */
export interface CollectivesResult {
  /** Kernels of collectives. */
  readonly collectives: number;
  /** Time in ns in which a collective ran, per device counted once, summed over devices. */
  readonly communication_ns: number;
  /** The same per device. */
  readonly devices: readonly CollectiveDevice[];
  /** The rest: `communication_ns` less `hidden_ns`. */
  readonly exposed_ns: number;
  /** The part of it in which the device also computed. */
  readonly hidden_ns: number;
  /** `hidden_ns` of `communication_ns`; null without collectives. */
  readonly hidden_ratio?: number | null;
  /** The longest collectives. */
  readonly longest: readonly CollectiveCall[];
  /** Collectives that were left out behind these. */
  readonly longest_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Outliers, those that lost most time first. */
  readonly outliers: readonly CollectiveOutlier[];
  /** Outliers that were left out behind these. */
  readonly outliers_left_out: number;
  /** Per operation, size of the group and power of two of the message's size; the longest total first. */
  readonly rows: readonly CollectiveRow[];
  /** Those of which the source says the message's size. */
  readonly sized_collectives: number;
}

/** How well two captures can be compared. */
export interface Comparability {
  /** What it is made of. */
  readonly factors: readonly ComparabilityFactor[];
  /** The product of the factors, from 0 (not at all) to 1. */
  readonly score_ratio: number;
}

/** A part of the score. */
export interface ComparabilityFactor {
  /** What was found, in a sentence. */
  readonly about: string;
  /** What is compared, such as `gpus`. */
  readonly name: string;
  /** From 0 to 1; 1 lowers nothing. */
  readonly ratio: number;
}

/** One of the captures. */
export interface ComparedCapture {
  /** Length of the capture in ns. */
  readonly duration_ns: number;
  /** The GPUs that did work, by their product names; an ordinal where the source names none. */
  readonly gpus: readonly string[];
  /** Iterations that are compared; 0 where none were found, or none are compared. */
  readonly iterations: number;
  /** Kernels that ran in what is compared. */
  readonly kernels: number;
  /** Kernels of these whose launch was not recorded: they belong to the iteration in which they began. */
  readonly kernels_without_launch: number;
  /** The session's identifier. */
  readonly session_id: string;
  /** Name of the profiler that took it. */
  readonly tool: string;
  /** Its version. */
  readonly tool_version: string;
}

/** The time that the verdict is about. */
export interface ComparedTime {
  /** Mean length of an iteration in ns after; null of other times. */
  readonly after_mean_ns?: number | null;
  /** Its length in ns after; null where there is none. */
  readonly after_ns?: number | null;
  /** Mean length of an iteration in ns before; null of other times. A few long iterations move it and not the median. */
  readonly before_mean_ns?: number | null;
  /** Its length in ns before; null where there is none. */
  readonly before_ns?: number | null;
  /** High end of the same in percent. */
  readonly change_high_percent?: number | null;
  /** Low end of the change in percent, with the confidence of the parameters (percentile bootstrap); null without enough iterations. */
  readonly change_low_percent?: number | null;
  /** `after_ns` over `before_ns`, less 1, in percent. */
  readonly change_percent?: number | null;
  /** Which it is. */
  readonly kind: ComparedTimeKind;
  /** Change in percent below which a change is not told from noise: the parameter, or half the width of the interval where that is more. */
  readonly noise_floor_percent: number;
  /** Two-sided p-value of the Mann–Whitney test of the lengths of iterations; null with fewer than four a side. */
  readonly p_value?: number | null;
  /** Change in percent from which on there is a regression or an improvement. */
  readonly threshold_percent: number;
}

/** Which time is compared. */
export type ComparedTimeKind = "iteration" | "gpu_span" | "nothing";

/** What a time is of. */
export type ComparedUnit = "iteration" | "capture";

/** The result. Differences are after less before: above 0 is slower, or more. */
export interface Comparison {
  /** The second capture. */
  readonly after: ComparedCapture;
  /** The captures. */
  readonly before: ComparedCapture;
  /** Whether the captures can be compared at all. */
  readonly comparability: Comparability;
  /** Copies and memsets by direction. */
  readonly copies: readonly CopyDifference[];
  /** How the GPUs spent the time: exclusive parts that add up to their window. */
  readonly gpu_time: readonly GpuTimeDifference[];
  /** Kernels, the largest difference first. */
  readonly kernels: readonly TimeDifference[];
  /** Kernels behind those. */
  readonly kernels_left_out: number;
  /** Peak of memory. */
  readonly memory_diff: MemoryDifference;
  /** What cannot be compared, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** NVTX ranges, annotations and operators by name, the largest difference first. Their times are inclusive: a range holds those inside it. */
  readonly ranges: readonly TimeDifference[];
  /** Ranges behind those. */
  readonly ranges_left_out: number;
  /** Time before divided by time after, of `time`: above 1 is faster. Null where no time can be compared. */
  readonly speedup?: number | null;
  /** The time that the verdict is about. */
  readonly time: ComparedTime;
  /** What the times below are per. */
  readonly unit: ComparedUnit;
  /** Whether the change is a regression, an improvement, none, or cannot be told. */
  readonly verdict: ComparisonVerdict;
  /** Why, in a sentence for people. */
  readonly verdict_reason: string;
}

/** What a change means. */
export type ComparisonVerdict = "regression_likely" | "improvement_likely" | "neutral" | "inconclusive";

/** Code as torch.compile counts it: the function's frame and how often it was compiled before, e.g. 0/1. */
export type CompileId = string;

/** A phase of the compiler, all its events together. */
export interface CompilePhase {
  /** How often it ran. */
  readonly calls: number;
  /** The longest of its events. */
  readonly longest: Place;
  /** Its name, e.g. `compile_fx_inner`. */
  readonly name: string;
  /** Time in ns in which it ran and no phase inside it. These add up to the whole compile time. */
  readonly own_ns: number;
  /** Time in ns in which it ran, phases inside it counted in: the union per thread, summed over threads. */
  readonly total_ns: number;
}

/** What torch.compile did and gained. */
export interface CompileReport {
  /** Time that was spent compiling in ms; null where nothing was compiled in the capture. */
  readonly compile_time_ms?: number | null;
  /** `ops_before_fusion` over `ops_after_fusion`: above 1 is fused. Null without an eager capture beside it. */
  readonly fusion_ratio?: number | null;
  /** The places where the program leaves its compiled graph. */
  readonly graph_breaks: readonly CompileReportBreak[];
  /** Mean kernels per iteration of the compiled capture; null without iterations or kernels. */
  readonly ops_after_fusion?: number | null;
  /** Mean kernels per iteration of the eager capture; null without one. */
  readonly ops_before_fusion?: number | null;
  /** What to do. */
  readonly recommendations: readonly string[];
  /** Mean iteration of the eager capture over that of the compiled one: above 1 is faster. Null without an eager capture beside it. */
  readonly speedup?: number | null;
  /** How many there are; null where no compiled code ran. */
  readonly total_graph_breaks?: number | null;
}

/** A graph break. */
export interface CompileReportBreak {
  /** Why, with what was seen and where, as far as the capture says. */
  readonly reason: string;
  /** What to do. */
  readonly suggestion: string;
}

/** A capture beside others. */
export interface CompileSide {
  /** Compile time in ns. */
  readonly compile_ns: number;
  /** Sum of the lengths in ns of GPU work launched by compiled code, its backward pass and what stands between its graphs counted in. */
  readonly compiled_gpu_ns?: number | null;
  /** Coverage: `compiled_gpu_ns` of `gpu_ns`. */
  readonly coverage_ratio?: number | null;
  /** Sum of the lengths of GPU work in ns; null where none was recorded. */
  readonly gpu_ns?: number | null;
  /** Different graph breaks. */
  readonly graph_breaks: number;
  /** `graph_gpu_ns` of `gpu_ns`. */
  readonly graph_coverage_ratio?: number | null;
  /** The same of what graphs launched themselves. */
  readonly graph_gpu_ns?: number | null;
  /** Launches of CUDA graphs, by which `reduce-overhead` is known. */
  readonly graph_launches: number;
  /** Whether it holds compiled code. A capture that does not is taken for the eager program. */
  readonly is_compiled: boolean;
  /** Iterations that count: without the first one and those in which code was compiled. */
  readonly iterations: number;
  /** Iterations after which this capture's compile time is paid back by what each saves against the eager capture; null where it saves nothing. */
  readonly iterations_to_pay_back?: number | null;
  /** Mean kernels launched in such an iteration; null without iterations or kernels. */
  readonly kernels_per_iteration?: number | null;
  /** What it is called. */
  readonly label: string;
  /** Their mean length in ns; null without any. */
  readonly mean_iteration_ns?: number | null;
  /** Code compiled again. */
  readonly recompiles: number;
  /** Mean iteration of the first eager capture over this one's: above 1 is faster. Null without one of them. */
  readonly speedup?: number | null;
  /** Kernels of Triton. */
  readonly triton_kernels: number;
  /** Time of Triton's kernels (`triton_*`) of the time of all kernels. */
  readonly triton_ratio?: number | null;
  /** Kernels of GPU work whose launch was not recorded, so that no code is known to have launched them. */
  readonly unmatched: number;
}

/** Compile time of a thread. */
export interface CompileThread {
  /** Time in ns in which it compiled. */
  readonly compile_ns: number;
  /** The longest of them. */
  readonly longest: Place;
  /** Pieces of time in which it did. */
  readonly pieces: number;
  /** Process id. */
  readonly process: number;
  /** Thread id; null where the source does not say. */
  readonly thread?: number | null;
}

/** Compiled code: its runs, without those of other code inside them where it says so. */
export interface CompiledRegion {
  /** Which code; null where the version of PyTorch does not say. */
  readonly code?: CompileId | null;
  /** Compilation within, in ns. */
  readonly compile_ns: number;
  /** Sum of their lengths in ns. */
  readonly gpu_ns?: number | null;
  /** GPU operations that it launched itself, without those of runs inside; null where no GPU work was recorded. */
  readonly gpu_operations?: number | null;
  /** `gpu_operations` by `runs`. */
  readonly gpu_operations_per_run?: number | null;
  /** Runs inside a run of other code, which go on behind a graph break. */
  readonly inner_runs: number;
  /** The longest run. */
  readonly longest: Place;
  /** Runs. */
  readonly runs: number;
  /** Time in ns of its runs, with runs inside them and compilation. */
  readonly total_ns: number;
}

/** How sure it is that the cause is what the finding says. */
export type Confidence = "low" | "medium" | "high";

/** Copies of one kind on a GPU. */
export interface CopiesOverTime {
  /** Time in ns in which at least one of them ran. */
  readonly busy_ns: number;
  /** Bytes that they moved or set, those whose size the source says. */
  readonly bytes: number;
  /** Bytes in each part, of copies of known size; those of a copy are spread evenly over the time that it ran. */
  readonly bytes_by_bin: readonly number[];
  /** `bytes` by the time in which one of known size ran, in bytes per second; null where these took no time. */
  readonly bytes_per_second?: number | null;
  /** Which kind. */
  readonly category: Category;
  /** Copies. */
  readonly copies: number;
  /** Which GPU. */
  readonly gpu: Gpu;
  /** Copies whose size it does not say. */
  readonly unknown_sizes: number;
}

/** Copies of one direction, or memsets. Times and bytes are per iteration or capture, as the result's `unit` says. */
export interface CopyDifference {
  /** Bytes after; null where a copy does not say them. */
  readonly after_bytes?: number | null;
  /** How many after, in all that is compared. */
  readonly after_calls: number;
  /** Time in ns after. */
  readonly after_ns: number;
  /** Bytes before; null where a copy does not say them. */
  readonly before_bytes?: number | null;
  /** How many before, in all that is compared. */
  readonly before_calls: number;
  /** Time in ns before. */
  readonly before_ns: number;
  /** Its category, such as `cuda_memcpy_h2d`. */
  readonly category: string;
  /** `after_bytes` less `before_bytes`; null where one of them is. */
  readonly difference_bytes?: number | null;
  /** `after_ns` less `before_ns`. */
  readonly difference_ns: number;
}

/** The result. `cpu_only + overlap + gpu_only + neither = total`, exactly. */
export interface CpuGpuTime {
  /** Time in ns in which any thread was inside an operator, a CUDA call or (where asked for) a Python function. */
  readonly cpu_active_ns: number;
  /** What counted as activity of the CPU. */
  readonly cpu_categories: readonly Category[];
  /** Time in ns in which the CPU alone was active. */
  readonly cpu_only_ns: number;
  /** End in ns of the last event that counts, or what was asked for. */
  readonly end_ns: number;
  /** Time in ns in which any GPU ran a kernel, copy or memset. */
  readonly gpu_active_ns: number;
  /** Time in ns in which a GPU alone was active. */
  readonly gpu_only_ns: number;
  /** Time in ns in which neither was. */
  readonly neither_ns: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Time in ns in which both were active. */
  readonly overlap_ns: number;
  /** `overlap_ns` of `gpu_active_ns`; null where no GPU was active. */
  readonly overlap_ratio?: number | null;
  /** Start in ns since the session's start: of the first event that counts, or what was asked for. */
  readonly start_ns: number;
  /** Length in ns from the first start to the last end of what counts. */
  readonly total_ns: number;
}

/** The result. */
export interface CriticalPathResult {
  /** What may be wrong with them. */
  readonly cautions: readonly string[];
  /** Operators and API calls in the window. */
  readonly cpu_events: number;
  /** End of the path in ns. */
  readonly end_ns: number;
  /** Length in ns of the longest chain of GPU work alone: a lower bound of the window's time however fast the processor is. */
  readonly gpu_chain_ns: number;
  /** Kernels, copies and memsets in the window. */
  readonly gpu_events: number;
  /** Number of the iteration; null of the whole capture. */
  readonly iteration?: number | null;
  /** Name of the iteration's range or step. */
  readonly iteration_name: string;
  /** Shorter segments that the list leaves out. */
  readonly left_out: number;
  /** What the path runs through, the longest in all first; at most 50. */
  readonly names: readonly PathName[];
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The parts of the path. */
  readonly parts: readonly PathShare[];
  /** Sum of the segments in ns. */
  readonly path_ns: number;
  /** Process whose path it is. */
  readonly process: number;
  /** Segments of the path by time. */
  readonly rows: readonly PathSegment[];
  /** Begin of the path in ns since the session's start. */
  readonly start_ns: number;
  /** Time in ns between begin and end that no segment has: waiting that no record explains. */
  readonly unexplained_ns: number;
  /** Those of them whose launch was not recorded. */
  readonly unlaunched: number;
  /** What bounds the window; null without a path. */
  readonly verdict?: PathVerdict | null;
  /** The verdict's share of the path. */
  readonly verdict_ratio: number;
}

/** Whose formulas a figure is made by. */
export type DefinedBy = "report" | "flopwatch";

/** Where the steps are done. */
export type Device = "gpu" | "cpu";

/** A page of events. */
export interface EventPage {
  /** The events in the order of their starts, equal ones in the order of categories. */
  readonly events: readonly EventRecord[];
  /** Events that were asked for, on this page or not. */
  readonly matching_events: number;
  /** Give it as `after` for the next page; null on the last. */
  readonly next?: number | null;
  /** The session's identifier. */
  readonly session_id: string;
  /** Length of the window in ns. */
  readonly total_duration_ns: number;
  /** Events of the capture. */
  readonly total_events: number;
}

/** An event: what every event has, and the columns of its category beside these. */
export interface EventRecord {
  /** Its category, such as `cuda_kernel`. */
  readonly category: string;
  /** Length in ns. */
  readonly duration_ns: number;
  /** Its name. */
  readonly name: string;
  /** Start in ns from the session's start. */
  readonly start_ns: number;
  /** CUDA stream; 0 on the CPU. */
  readonly stream: number;
}

/** A value of an event. */
export type EventValue = number | string;

/** A figure that a finding rests on. */
export interface Evidence {
  /** Where it is in the timeline. */
  readonly place?: Place | null;
  /** How the value is shown. */
  readonly unit: PageUnit;
  /** Its value. */
  readonly value: PageCell;
  /** What it is. */
  readonly what: string;
}

/** The parts of a window. They add up to it exactly: `compute + exposed communication + exposed memory + idle = window`. Time that is shared counts for computation first, then for communication, as in TraceLens (`gpu_event_analyser.py`). */
export interface ExclusiveTime {
  /** Time in ns in which a kernel computed. */
  readonly compute_ns: number;
  /** Time in ns in which communication ran and nothing computed. */
  readonly exposed_communication_ns: number;
  /** Time in ns in which a copy or memset ran and nothing computed or communicated. */
  readonly exposed_memory_ns: number;
  /** Time in ns in which nothing ran. */
  readonly idle_ns: number;
  /** Length of the window in ns. */
  readonly window_ns: number;
}

/** Figures of a launch; null is what was not measured. Shares are 0 to 1. */
export interface Figures {
  /** Warps that it held on average, of its most. */
  readonly achieved_occupancy?: number | null;
  /** Traffic of the device's memory. */
  readonly bandwidth_bytes_per_second?: number | null;
  /** That against its peak. */
  readonly bandwidth_share?: number | null;
  /** Busiest part of the multiprocessors against its peak. */
  readonly compute_share?: number | null;
  /** How long it took, alone on the GPU, in ns. */
  readonly duration_ns?: number | null;
  /** Single precision, as the roofline counts: an addition or multiplication is one, a fused one two. */
  readonly flop_per_second?: number | null;
  /** That against its peak. */
  readonly flop_share?: number | null;
  /** Sectors that L1/TEX had, of those that were asked for. */
  readonly l1_hit_rate?: number | null;
  /** The same of L2. */
  readonly l2_hit_rate?: number | null;
  /** Bytes that global loads asked for, of those that were moved for them. */
  readonly load_efficiency?: number | null;
  /** Likewise of global stores. */
  readonly store_efficiency?: number | null;
  /** Warps that a multiprocessor can hold, of its most, by the launch's registers, shared memory and block size. */
  readonly theoretical_occupancy?: number | null;
}

/** What is slow, why, and what to do. */
export interface Finding {
  /** What to do, the likeliest remedy first. */
  readonly actions: readonly string[];
  /** Which part of the work it is about. */
  readonly area: Area;
  /** How sure it is. */
  readonly confidence: Confidence;
  /** The figures that it rests on, some with a place in the timeline. */
  readonly evidence: readonly Evidence[];
  /** What mending it is worth; null where nothing honest can be said. */
  readonly gain?: Gain | null;
  /** The rule that found it. */
  readonly rule: string;
  /** What was found, with its figures. */
  readonly sentence: string;
  /** How much it matters: by the gain where one is estimated. */
  readonly severity: Severity;
  /** What it is, in a few words. */
  readonly title: string;
}

/** The first launch of a kernel beside its later ones. */
export interface FirstLaunch {
  /** Length in ns of the call that launched it first. */
  readonly first_call_ns: number;
  /** The kernel. */
  readonly kernel: string;
  /** Launches. */
  readonly launches: number;
  /** Median of the others in ns; between two middle ones, their mean. */
  readonly median_ns: number;
  /** Where the first call is. */
  readonly place: Place;
}

/** The result. Its `name`, `value`, `delta` and `children` are what d3-flame-graph draws as a difference. */
export interface FlameDifference {
  /** Time in ns of the second capture. */
  readonly after_ns: number;
  /** Time in ns of the first capture. */
  readonly before_ns: number;
  /** The outermost frames, the longest first. */
  readonly children: readonly FlameDifferenceFrame[];
  /** `after_ns` without `before_ns`. */
  readonly delta: number;
  /** Frames in the result, without the outermost. */
  readonly frames: number;
  /** Frames of stacks that were summed: no time is lost by it. */
  readonly frames_summed: number;
  /** `all`. */
  readonly name: string;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Frames whose time in a stack is less than this, in ns, in both captures were summed. */
  readonly summed_below_ns: number;
  /** Time in ns of both captures together. With `weight` `samples` all figures of time count samples. */
  readonly value: number;
  /** Which time it is. */
  readonly weight: FlameWeight;
}

/** A frame: equal stacks of both captures are merged. */
export interface FlameDifferenceFrame {
  /** Time in ns of the second capture. */
  readonly after_ns: number;
  /** Time in ns of the first capture. */
  readonly before_ns: number;
  /** The frames inside it, the longest first. */
  readonly children?: readonly FlameDifferenceFrame[];
  /** `after_ns` without `before_ns`. */
  readonly delta: number;
  /** What it is. */
  readonly kind: FrameKind;
  /** Its name. */
  readonly name: string;
  /** The change in ns without that of the frames inside it. */
  readonly self_delta: number;
  /** Time in ns of both captures together, with that of the frames inside it. */
  readonly value: number;
}

/** A frame: equal stacks are merged. */
export interface FlameFrame {
  /** The frames inside it, the longest first. */
  readonly children?: readonly FlameFrame[];
  /** GPU operations in it; of the CPU's time how often it ran; of samples how many there are. */
  readonly count: number;
  /** What it is. */
  readonly kind: FrameKind;
  /** Its name. */
  readonly name: string;
  /** Its time in ns without that of the frames inside it. */
  readonly self_ns: number;
  /** Its time in ns, with that of the frames inside it. */
  readonly value: number;
}

/** The result. Its `name`, `value` and `children` are what d3-flame-graph draws. */
export interface FlameGraph {
  /** The outermost frames, the longest first. */
  readonly children: readonly FlameFrame[];
  /** Frames in the result, without the outermost. */
  readonly frames: number;
  /** Frames of stacks that were summed: no time is lost by it. */
  readonly frames_summed: number;
  /** GPU operations; 0 of the CPU's time. */
  readonly gpu_ops: number;
  /** GPU operations whose launch was not captured: they are in the frame `(launch not captured)`. */
  readonly gpu_ops_without_launch: number;
  /** `all`. */
  readonly name: string;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** NVTX ranges of start/end style: they do not nest, and are no frames. */
  readonly start_end_ranges: number;
  /** Frames whose time in a stack is less than this, in ns, were summed. */
  readonly summed_below_ns: number;
  /** All time in ns: of GPUs the lengths of all GPU operations, added up; of the CPU the time of each thread inside any frame, added up. With `weight` `samples` all figures of time count samples: here how many there are. */
  readonly value: number;
  /** Which time it is. */
  readonly weight: FlameWeight;
  /** Their time in ns. */
  readonly without_launch_ns: number;
}

/** Which time a flame graph is made of. */
export type FlameWeight = "gpu" | "cpu" | "samples";

/** Where the floating-point operations come from. */
export type FlopsSource = "given" | "counters" | "hlo" | "operators";

/** A metric that a rule points at. */
export interface FocusMetric {
  /** What should become of it, or what it was compared with. */
  readonly info: string;
  /** Its name. */
  readonly name: string;
  /** Its value, where the profiler says it. */
  readonly value?: number | null;
}

/** What a frame is. */
export type FrameKind = "all" | "group" | "step" | "range" | "annotation" | "python" | "operator" | "call" | "function" | "kernel" | "graph" | "copy" | "device_op" | "rest";

/** What mending something is worth. */
export interface Gain {
  /** What must hold for it. */
  readonly assumption: string;
  /** Wall time in ns within the window; with several GPUs the mean over them. */
  readonly gain_ns: number;
  /** Its share of the window, from 0 to 1. */
  readonly window_share_ratio: number;
}

/** Gaps of about one length. */
export interface GapBucket {
  /** Shortest in ns. */
  readonly from_ns: number;
  /** How many gaps. */
  readonly gaps: number;
  /** Their length in ns. */
  readonly idle_ns: number;
  /** The length in ns that is no longer among them; null of the last bucket. */
  readonly to_ns?: number | null;
}

/** An operator or range. */
export interface GapHolder {
  /** Its category. */
  readonly category: Category;
  /** Its name. */
  readonly name: string;
}

/** What a thread did in a part of a gap. */
export interface GapPart {
  /** What the thread did. */
  readonly activity: HostActivity;
  /** The call, where it was one. */
  readonly name?: string | null;
  /** For how long in ns. */
  readonly time_ns: number;
}

/** A function that Dynamo gave up in the capture: it runs uncompiled from then on, and functions that it calls are compiled by themselves. A graph break in a loop or a `with` does that. */
export interface GivenUp {
  /** The number that its code would have had. */
  readonly code: CompileId;
  /** Time in ns that the attempt took. */
  readonly compile_ns: number;
  /** The longest piece of it. */
  readonly place?: Place | null;
}

/** A GPU of a timeline. Ordinals are unique within a machine only, and a merged session holds captures of several machines. */
export interface Gpu {
  /** Which capture of a merged session, 0 where there is one. */
  readonly capture: number;
  /** Ordinal of the device. */
  readonly device: number;
  /** Machine as the profiler numbers it, 0 where it does not. */
  readonly machine: number;
}

/** How long a GPU was busy. Captures that were merged, and machines, may have one of the same ordinal each. */
export interface GpuBusy {
  /** Length in ns of the union of its kernels, whole graphs, copies and memsets. */
  readonly busy_ns: number;
  /** `busy_ns` as a share of [`super::Summary::events_span_ns`], 0 to 1. */
  readonly busy_ratio_of_events_span: number;
  /** `busy_ns` as a share of the window, 0 to 1. */
  readonly busy_ratio_of_window: number;
  /** Ordinal of the device. */
  readonly device: number;
  /** Its product name; empty where the source does not tell it. */
  readonly name: string;
}

/** A stream of a GPU. */
export interface GpuStream {
  /** CUDA context; null where the source does not say. */
  readonly context?: number | null;
  /** The GPU. */
  readonly gpu: Gpu;
  /** Process that launched its work. */
  readonly process: number;
  /** The timeline's row. */
  readonly row: number;
  /** CUDA stream; null where the source does not say. */
  readonly stream?: number | null;
}

/** A part of the GPUs' time, of all devices together, per iteration or capture. */
export interface GpuTimeDifference {
  /** Time in ns after. */
  readonly after_ns: number;
  /** Time in ns before. */
  readonly before_ns: number;
  /** `after_ns` less `before_ns`. */
  readonly difference_ns: number;
  /** `compute`, `exposed_communication`, `exposed_memory` or `idle`, which add up to `window`. */
  readonly part: string;
}

/** The result. */
export interface GpuTimes {
  /** The parts of all GPUs together: sums over `gpus`, so that the window is as many times as long as there are GPUs. */
  readonly all: ExclusiveTime;
  /** The GPUs. */
  readonly gpus: readonly TimeOfGpu[];
  /** Idle pieces below this many ns are `micro_idle_ns`. */
  readonly micro_idle_below_ns: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
}

/** Where one compiled graph ends and another begins. */
export interface GraphBreak {
  /** Time in ns between the graphs over these runs, without compilation. */
  readonly between_ns: number;
  /** The code whose graph ended, as it was compiled first in the capture. */
  readonly broken?: CompileId | null;
  /** Whether the function was given up: it runs uncompiled, and its graphs are those of functions that it calls. Only Python stacks tell. */
  readonly is_given_up: boolean;
  /** Where it goes on, e.g. `train.py(10): forward`; of a function that was given up that function. Null without Python stacks. */
  readonly location?: string | null;
  /** The first of them: from the end of the graph to the start of the next. */
  readonly place: Place;
  /** What ended the graph. */
  readonly reason: BreakReason;
  /** The code that goes on. */
  readonly resumed?: CompileId | null;
  /** How often the program went through it in the capture. */
  readonly runs: number;
  /** What ran between the graphs, e.g. `aten::item`; empty where nothing was recorded. */
  readonly seen: string;
  /** What to do. */
  readonly suggestion: string;
}

/** A kernel. */
export interface HTAKernel {
  /** Its name. */
  readonly name: string;
  /** Total time of its launches in µs. */
  readonly time_us: number;
}

/** What the GPUs did with their time. The window of each GPU is from its first work to its last; the shares are of all windows together. */
export interface HTAReport {
  /** What is slow. */
  readonly bottlenecks: readonly string[];
  /** Share in percent in which a GPU communicated, hidden behind computation or not: the three shares are no parts of a whole. Null where GPUs were not captured. */
  readonly communication_time_pct?: number | null;
  /** Share in percent in which a GPU computed; null where GPUs were not captured. */
  readonly compute_time_pct?: number | null;
  /** Share in percent in which a GPU did nothing; null where GPUs were not captured. */
  readonly gpu_idle_time_pct?: number | null;
  /** What to do. */
  readonly recommendations: readonly string[];
  /** The ten kernels that take longest. */
  readonly top_kernels: readonly HTAKernel[];
}

/** What bounds an operation on its device's roofline. */
export type HloBound = "compute" | "memory";

/** A value in memory. */
export interface HloBuffer {
  /** Number of its allocation. */
  readonly allocation: number;
  /** First step at which it is there. */
  readonly begin_step: number;
  /** Its size. */
  readonly bytes: number;
  /** First step at which it is not; null of a value that is there to the end. */
  readonly end_step?: number | null;
  /** Operation of the framework; may be empty. */
  readonly framework_op: string;
  /** The instruction whose value it is, with its part in braces where it is a tuple's; empty where the program names none. */
  readonly instruction: string;
  /** What it is for. */
  readonly kind: HloBufferUse;
  /** Where it begins in the allocation. */
  readonly offset_bytes: number;
  /** Opcode of the instruction. */
  readonly opcode: string;
  /** Shape of the value. */
  readonly shape: string;
  /** Line of source, `file:line`; null where it is not known. */
  readonly source?: string | null;
}

/** What an allocation is for. */
export type HloBufferUse = "parameter" | "output" | "constant" | "temporary";

/** A computation: a function of instructions. */
export interface HloComputation {
  /** The instruction that calls it, the first where there are several; null of the computation that runs. */
  readonly called_by?: string | null;
  /** The computation of that instruction. */
  readonly caller?: string | null;
  /** How many calls lie between it and the computation that runs; null where none leads to it. */
  readonly depth?: number | null;
  /** Its instructions. */
  readonly instructions: number;
  /** What calls it. */
  readonly kind: HloGraphComputationKind;
  /** Its name. */
  readonly name: string;
}

/** The result. */
export interface HloCostResult {
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The programs, those that took longest first. */
  readonly rows: readonly HloProgramCost[];
}

/** A value that an instruction takes, or a computation that it calls. */
export interface HloEdge {
  /** Where it comes from: a place in `nodes`. */
  readonly from: number;
  /** What it is. */
  readonly kind: HloEdgeKind;
  /** Where it goes: a place in `nodes`. */
  readonly to: number;
}

/** What an edge is. */
export type HloEdgeKind = "operand" | "called";

/** Where a figure comes from. */
export type HloFigureSource = "profiler" | "program";

/** A fusion: instructions that become one kernel. */
export interface HloFusion {
  /** Bytes that it reads and writes in one run. */
  readonly bytes: number;
  /** Floating-point operations of one run. */
  readonly flops: number;
  /** Operation of the framework; may be empty. */
  readonly framework_op: string;
  /** Their opcodes with how often each occurs, the most frequent first: `multiply 3, add 2`. */
  readonly holds: string;
  /** Instructions inside it, without parameters and constants. */
  readonly instructions: number;
  /** How it is compiled: `kLoop`, `kInput`, `kOutput`, `kCustom`. */
  readonly kind: string;
  /** Its name. */
  readonly name: string;
  /** Bytes that its instructions would read and write one by one, without those. */
  readonly saved_bytes: number;
  /** Shape of its value. */
  readonly shape: string;
  /** Line of source, `file:line`; null where it is not known. */
  readonly source?: string | null;
}

/** The result. */
export interface HloGraph {
  /** Its computations, the one that runs first, then by their instructions. */
  readonly computations: readonly HloComputation[];
  /** Computations behind the list's limit. */
  readonly computations_left_out: number;
  /** Which instruction's value another takes. */
  readonly edges: readonly HloEdge[];
  /** Fusions, those that save most memory traffic first. */
  readonly fusions: readonly HloFusion[];
  /** Fusions behind the list's limit. */
  readonly fusions_left_out: number;
  /** Its instructions. */
  readonly instructions: number;
  /** Whether it is the program after optimisation. */
  readonly is_optimised: boolean;
  /** Instructions of the graph, operands before those that use them. */
  readonly nodes: readonly HloNode[];
  /** Instructions behind the list's limit. */
  readonly nodes_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Opcodes before and after optimisation. */
  readonly opcodes: readonly HloOpcodeCount[];
  /** The program; empty where there is none. */
  readonly program: string;
  /** Its number, in decimal digits. */
  readonly program_id: string;
  /** The programs to choose from. */
  readonly programs: readonly HloProgramEntry[];
}

/** What calls a computation. */
export type HloGraphComputationKind = "entry" | "fusion" | "loop" | "call" | "applied" | "unused";

/** A kernel of an operation. */
export interface HloKernel {
  /** Time in ns of one. */
  readonly average_ns?: number | null;
  /** Operation of the framework; may be empty. */
  readonly framework_op: string;
  /** The kernel's name. */
  readonly kernel: string;
  /** Its launches. */
  readonly launches: number;
  /** The operation that it belongs to. */
  readonly operation: string;
  /** The operation's program; may be empty. */
  readonly program: string;
  /** Line of source, `file:line`; null where it is not known. */
  readonly source?: string | null;
  /** Time in ns of all of them. */
  readonly total_ns: number;
}

/** The result. */
export interface HloMemory {
  /** Bytes of all allocations, with the gaps between values. */
  readonly allocated_bytes: number;
  /** The values at the peak, the largest first. */
  readonly at_peak: readonly HloBuffer[];
  /** Values at the peak behind the list's limit. */
  readonly at_peak_left_out: number;
  /** All values, the largest first. */
  readonly buffers: readonly HloBuffer[];
  /** Values behind the list's limit. */
  readonly buffers_left_out: number;
  /** What may be wrong with them. */
  readonly cautions: readonly string[];
  /** Bytes of constants. */
  readonly constants_bytes: number;
  /** Bytes of values that are there from begin to end. */
  readonly fixed_bytes: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Bytes of results that are in no parameter's memory. */
  readonly outputs_bytes: number;
  /** Bytes of parameters. */
  readonly parameters_bytes: number;
  /** Most bytes of values at once. */
  readonly peak_bytes: number;
  /** Instruction of that step. */
  readonly peak_instruction?: string | null;
  /** Step behind which the peak is, counted from 0; null where the values are the same throughout. */
  readonly peak_step?: number | null;
  /** The program; empty where there is none. */
  readonly program: string;
  /** Its number, in decimal digits. */
  readonly program_id: string;
  /** The programs to choose from. */
  readonly programs: readonly HloProgramEntry[];
  /** Bytes in use behind each step, in the order of the program: values begin and end at them. */
  readonly steps: readonly HloMemoryStep[];
  /** Steps behind the list's limit of 100,000. */
  readonly steps_left_out: number;
  /** Bytes of the allocations of temporaries. */
  readonly temporaries_bytes: number;
}

/** A step of the program at which a value begins or ends. */
export interface HloMemoryStep {
  /** Bytes in use behind it. */
  readonly bytes: number;
  /** The instruction whose value it is. */
  readonly instruction: string;
}

/** An instruction of the graph. */
export interface HloNode {
  /** Bytes that it reads and writes in one run. */
  readonly bytes: number;
  /** Its computation. */
  readonly computation: string;
  /** Steps from the instruction that was asked for; null of a whole program. */
  readonly distance?: number | null;
  /** Floating-point operations of one run, with all that it calls. */
  readonly flops: number;
  /** Operation of the framework; may be empty. */
  readonly framework_op: string;
  /** Whether its computation gives its value. */
  readonly is_root: boolean;
  /** Its name, unique in the program. */
  readonly name: string;
  /** Its opcode. */
  readonly opcode: string;
  /** Shape of its value. */
  readonly shape: string;
  /** Line of source, `file:line`; null where it is not known. */
  readonly source?: string | null;
}

/** How often an opcode occurs. */
export interface HloOpcodeCount {
  /** Instructions after optimisation, inside fusions included; null where no capture holds that program. */
  readonly after?: number | null;
  /** Instructions before optimisation; null where no capture holds that program. */
  readonly before?: number | null;
  /** Those of them that are inside fusions. */
  readonly in_fusions?: number | null;
  /** The opcode. */
  readonly opcode: string;
}

/** An operation of a compiled program. */
export interface HloOperation {
  /** `total_ns` of one occurrence. */
  readonly average_ns?: number | null;
  /** What bounds it; null where the device's peaks are not known. */
  readonly bound?: HloBound | null;
  /** Bytes that one occurrence reads and writes, from whatever memory; null where they are not known. */
  readonly bytes?: number | null;
  /** Bytes per second. */
  readonly bytes_per_second?: number | null;
  /** Where `bytes` come from. */
  readonly bytes_source?: HloFigureSource | null;
  /** Kind of operation, e.g. `loop fusion`; may be empty. */
  readonly category: string;
  /** Its events: kernels, copies, or operations of the device. */
  readonly events: number;
  /** Floating-point operations of one occurrence; null where they are not known. */
  readonly flops?: number | null;
  /** Floating-point operations per second. */
  readonly flops_per_second?: number | null;
  /** Where `flops` come from. */
  readonly flops_source?: HloFigureSource | null;
  /** Operation of the framework, e.g. `jit(f)/dot_general`; may be empty. */
  readonly framework_op: string;
  /** Arithmetic intensity: `flops` per byte. */
  readonly intensity?: number | null;
  /** Whether it runs beside the others, so that its time is theirs too. */
  readonly is_asynchronous: boolean;
  /** How often it ran. An operation of several kernels ran as often as the rarest of those that take a tenth of its time or more. */
  readonly occurrences: number;
  /** Opcode of its instruction; null where the capture does not hold the program. */
  readonly opcode?: string | null;
  /** Its name in the program. */
  readonly operation: string;
  /** Its longest event in the timeline. */
  readonly place?: Place | null;
  /** Its program; may be empty. */
  readonly program: string;
  /** Number of the program, in decimal digits: it may be larger than a double holds. */
  readonly program_id: string;
  /** Time in ns without that of operations inside it. */
  readonly self_ns: number;
  /** `self_ns` of that of all operations; null of an asynchronous one. */
  readonly self_ratio?: number | null;
  /** Shape of its value; null where the capture does not hold the program. */
  readonly shape?: string | null;
  /** Line of source, `file:line`; null where it is not known. */
  readonly source?: string | null;
  /** Time in ns of all of them. */
  readonly total_ns: number;
}

/** The result. */
export interface HloOperations {
  /** Kernels, copies and memsets of the operations, the longest first; empty of a device without kernels. */
  readonly kernels: readonly HloKernel[];
  /** Kernels behind the list's limit. */
  readonly kernels_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Operations in all. */
  readonly operations: number;
  /** Operations behind the list's limit. */
  readonly operations_left_out: number;
  /** Pieces of such work. */
  readonly other_events: number;
  /** Time in ns of GPU work that belongs to no operation: copies to and from the host, and what the runtime adds. */
  readonly other_ns: number;
  /** The operations, those that take longest by themselves first. */
  readonly rows: readonly HloOperation[];
  /** Time in ns of all operations by themselves, asynchronous ones apart. */
  readonly self_ns: number;
}

/** Work and time of a program. */
export interface HloProgramCost {
  /** Bytes that its instructions read and write in one run, from whatever memory. */
  readonly bytes: number;
  /** Bytes per second of that time. */
  readonly bytes_per_second?: number | null;
  /** `bytes` as `compiled.cost_analysis()` counts them: loops once, 8 bytes for each pointer of a tuple, all of what a gather in a fusion takes from, and 1 byte less for each function of a library. It adds in floats of 32 bits, and so differs from this by the part that they round. */
  readonly cost_analysis_bytes: number;
  /** `flops` as `compiled.cost_analysis()` counts them: loops once, and operations on integers with the others. */
  readonly cost_analysis_flops: number;
  /** `transcendentals` as `compiled.cost_analysis()` counts them. */
  readonly cost_analysis_transcendentals: number;
  /** Floating-point operations of one run; loops count as often as they run, where the compiler knows that. */
  readonly flops: number;
  /** Floating-point operations per second of that time. */
  readonly flops_per_second?: number | null;
  /** Operations on integers and truth values of one run. */
  readonly integer_operations: number;
  /** `flops` per byte. */
  readonly intensity?: number | null;
  /** Whether it is one after optimisation. */
  readonly is_optimised: boolean;
  /** Its name. */
  readonly program: string;
  /** Its number, in decimal digits. */
  readonly program_id: string;
  /** How often it ran: as often as that of its operations outside of loops that ran most often; null where none was seen. */
  readonly runs?: number | null;
  /** Time in ns of its operations by themselves, of all runs and devices; null where none was seen. */
  readonly self_ns?: number | null;
  /** Transcendental functions of one run, one per element. */
  readonly transcendentals: number;
  /** Instructions whose operations are not known, such as library functions. */
  readonly unknown_instructions: number;
  /** Loops whose number of runs is not known; each counts once. */
  readonly unknown_loops: number;
}

/** A program to choose. */
export interface HloProgramEntry {
  /** Its computations, those inside fusions included. */
  readonly computations: number;
  /** Its instructions. */
  readonly instructions: number;
  /** Whether it is one after optimisation, whose instructions are in the order in which they run. */
  readonly is_optimised: boolean;
  /** Its name. */
  readonly program: string;
  /** Its number, in decimal digits: it may be larger than a double holds. */
  readonly program_id: string;
}

/** What a thread does. */
export type HostActivity = "synchronize" | "allocate" | "load_module" | "copy" | "launch" | "other_call" | "profiler" | "os_call" | "nothing_recorded" | "launch_latency";

/** What waiting for GPUs costs the host. */
export interface HostSyncResult {
  /** All calls in which the host waits. */
  readonly cost: CallCost;
  /** Time in ns from the end of each such call to the next work of its process's GPUs where these have nothing left to do, counted once: the queue that the wait drained. It is an upper bound of what the wait costs the GPU; null where no GPU ever worked. */
  readonly gpu_idle_after_ns?: number | null;
  /** The innermost ranges, operators, annotations and functions that hold the calls, per category the longest total first. A call may be held by one of each category. */
  readonly holders: readonly SyncHolder[];
  /** Holders that were left out behind these. */
  readonly holders_left_out: number;
  /** The same calls by why the host waits, the longest total first. */
  readonly kinds: readonly SyncKindRow[];
  /** The longest calls. */
  readonly longest: readonly SyncCall[];
  /** Calls that were left out behind these. */
  readonly longest_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The rules of `nsys analyze` that are about synchronisation, with their own conditions. */
  readonly rules: readonly SyncRule[];
}

/** What launching threads did while a GPU waited for the host. */
export interface IdleCause {
  /** What a launching thread did meanwhile. */
  readonly activity: HostActivity;
  /** `idle_ns` of the idle time of host wait. */
  readonly host_wait_ratio?: number | null;
  /** For how long in ns. */
  readonly idle_ns: number;
}

/** Why a gap is there, as HolisticTraceAnalysis tells it, from the work that ends it. */
export type IdleClass = "host_wait" | "kernel_wait" | "other" | "launch_not_recorded";

/** A gap of a GPU. */
export interface IdleGap {
  /** The work that ends it. */
  readonly after: string;
  /** The timeline's row of the work that ends it. */
  readonly after_row: number;
  /** The work before it. */
  readonly before: string;
  /** The timeline's row of that call. */
  readonly call_row?: number | null;
  /** When the call that launched that work began, in ns; null where it was not recorded. */
  readonly call_start_ns?: number | null;
  /** Why it is there. */
  readonly class: IdleClass;
  /** The innermost operator and range of the launching thread in the middle of the gap. */
  readonly during: readonly GapHolder[];
  /** End in ns. */
  readonly end_ns: number;
  /** Which GPU. */
  readonly gpu: Gpu;
  /** Length in ns. */
  readonly idle_ns: number;
  /** The innermost operator and range that made the call. */
  readonly launched_in: readonly GapHolder[];
  /** Start in ns since the session's start. */
  readonly start_ns: number;
  /** What the launching thread did in the gap, longest first; these add up to it. Empty where the call was not recorded. */
  readonly thread: readonly GapPart[];
}

/** Gaps of a class. */
export interface IdleOfClass {
  /** What the GPU waited for in these gaps. */
  readonly class: IdleClass;
  /** How many gaps. */
  readonly gaps: number;
  /** Their length in ns. */
  readonly idle_ns: number;
  /** `idle_ns` of all idle time; null where there is none. */
  readonly idle_ratio?: number | null;
}

/** Idle time of a GPU, from the first start to the last end of its work. */
export interface IdleOfGpu {
  /** The classes, every one of them. */
  readonly classes: readonly IdleOfClass[];
  /** Last end in ns. */
  readonly end_ns: number;
  /** The GPU that was idle. */
  readonly gpu: Gpu;
  /** What the launching threads did during the gaps of host wait; these add up to the time of that class. */
  readonly host_wait_causes: readonly IdleCause[];
  /** Idle time in ns: the sum of `classes`. */
  readonly idle_ns: number;
  /** `idle_ns` of the time from start to end; null where that is no time. */
  readonly idle_ratio?: number | null;
  /** First start in ns since the session's start. */
  readonly start_ns: number;
}

/** Idle time of a stream, from the first start to the last end of its work. */
export interface IdleOfStream {
  /** The classes, every one of them. */
  readonly classes: readonly IdleOfClass[];
  /** Last end in ns. */
  readonly end_ns: number;
  /** Idle time in ns: the sum of `classes`. */
  readonly idle_ns: number;
  /** `idle_ns` of the time from start to end; null where that is no time. */
  readonly idle_ratio?: number | null;
  /** First start in ns since the session's start. */
  readonly start_ns: number;
  /** The stream that was idle. */
  readonly stream: GpuStream;
}

/** The result. */
export interface IdleTime {
  /** How much of the work has its call, which the classes are made of. */
  readonly coverage: LaunchCoverage;
  /** The largest gaps of GPUs. */
  readonly gaps: readonly IdleGap[];
  /** Gaps that were left out. */
  readonly gaps_left_out: number;
  /** The GPUs: gaps in which none of a GPU's streams ran anything. */
  readonly gpus: readonly IdleOfGpu[];
  /** Gaps of all GPUs by length. */
  readonly histogram: readonly GapBucket[];
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The streams, each alone: while one is idle others may run. The one with most gaps first. */
  readonly streams: readonly IdleOfStream[];
  /** Streams that were left out. */
  readonly streams_left_out: number;
}

/** An instruction at an address. */
export interface Instruction {
  /** Times that a warp executed it. */
  readonly executed?: number | null;
  /** Where it was inlined: the innermost source line first, then that of each call; empty where nothing was. */
  readonly inlined: readonly string[];
  /** Bytes behind the kernel's first instruction; behind the first with figures where the report holds no machine code of it. */
  readonly offset_bytes: number;
  /** The line of the module's PTX that it was made of, counted from 1. */
  readonly ptx_line?: number | null;
  /** Share of the launch's samples, 0 to 1. */
  readonly sample_ratio?: number | null;
  /** Samples of warps that were at it. */
  readonly samples?: number | null;
  /** The source line that it comes from, as `file:line`; null where the machine code has no table of lines. */
  readonly source?: string | null;
  /** The state that most of them were in. */
  readonly stall?: string | null;
  /** Its text (SASS) as NVIDIA's disassembler writes it; null where it was not disassembled. */
  readonly text?: string | null;
  /** Threads that executed it, in all. */
  readonly threads?: number | null;
}

/** Instructions by opcode. */
export interface InstructionMix {
  /** Opcodes, the most executed first. */
  readonly opcodes: readonly Opcode[];
}

/** The kernels, copies and memsets of an iteration, the longest in all first. */
export interface IterationDetail {
  /** What ran. */
  readonly kernels: readonly IterationKernel[];
  /** Names behind the list's limit. */
  readonly left_out: number;
  /** Its number. */
  readonly number: number;
  /** Its length as a share of the median of its loop. */
  readonly of_median_ratio: number;
  /** The timeline's row of its loop. */
  readonly row: number;
}

/** GPU work of one name in an iteration. */
export interface IterationKernel {
  /** What it is for. */
  readonly class: WorkClass;
  /** End in ns of the last. */
  readonly end_ns: number;
  /** How often it ran. */
  readonly instances: number;
  /** Longest in ns. */
  readonly max_ns: number;
  /** Its name. */
  readonly name: string;
  /** Start in ns of the first. */
  readonly start_ns: number;
  /** Sum of the lengths in ns. */
  readonly total_ns: number;
}

/** One iteration. */
export interface IterationRow {
  /** Copies and memsets. */
  readonly copies: number;
  /** Devices that worked for it. */
  readonly devices: number;
  /** End in ns. */
  readonly end_ns: number;
  /** End of its last GPU work in ns. */
  readonly gpu_end_ns?: number | null;
  /** Time in ns from the end of the loop's GPU work of earlier iterations to the start of its own; 0 where they overlap, null of the first. */
  readonly gpu_gap_before_ns?: number | null;
  /** Start of its first GPU work in ns; null without any. */
  readonly gpu_start_ns?: number | null;
  /** Whole CUDA graphs: how many kernels ran in them was not recorded. */
  readonly graphs: number;
  /** Kernels that ran for it. */
  readonly kernels: number;
  /** Name of its range or step; empty of a period of kernels. */
  readonly name: string;
  /** The step's number, or how many iterations of its loop are before it. */
  readonly number: number;
  /** Whether it took much longer than the others: more than the median by 10 percent and by four median deviations. */
  readonly outlier: boolean;
  /** What its GPU time went to: per device from its first to its last work, summed over devices. */
  readonly parts: ExclusiveTime;
  /** From its start to the loop's next one in ns; null of the last. */
  readonly period_ns?: number | null;
  /** Process of the loop. */
  readonly process: number;
  /** The timeline's row: the thread of the loop, or of a period of kernels the stream. */
  readonly row: number;
  /** Start in ns since the session's start. */
  readonly start_ns: number;
  /** Length in ns. */
  readonly time_ns: number;
  /** Whether it is warm-up. */
  readonly warm_up: boolean;
}

/** What iterations were found from. */
export type IterationSource = "step" | "device_step" | "range" | "range_to_next" | "kernel_period";

/** Figures of lengths in ns. */
export interface IterationStatistics {
  /** Standard deviation of a sample (divided by one less than their number); 0 of one. */
  readonly deviation_ns: number;
  /** Longest. */
  readonly max_ns: number;
  /** Mean. */
  readonly mean_ns: number;
  /** Median; between two middle ones, their mean. */
  readonly median_ns: number;
  /** Shortest. */
  readonly min_ns: number;
  /** The shortest that 95 of 100 do not exceed (nearest rank). */
  readonly p95_ns: number;
}

/** The result. */
export interface IterationsResult {
  /** How GPU work was assigned. */
  readonly assigned: AssignedWork;
  /** Where devices waited for each other inside of iterations; empty of one device. */
  readonly bubbles: readonly PipelineBubbles[];
  /** What may be wrong with them. */
  readonly cautions: readonly string[];
  /** How sure it is that these are iterations, from 0 to 1. */
  readonly confidence_ratio: number;
  /** The iteration that was asked for, in each loop that has it. */
  readonly details: readonly IterationDetail[];
  /** From the first start to the last end of an iteration's GPU work, summed over its devices. Without warm-up. */
  readonly gpu_span?: IterationStatistics | null;
  /** Iterations of all loops. */
  readonly iterations: number;
  /** Iterations behind the list's limit. */
  readonly left_out: number;
  /** Loops that iterate side by side: threads, or of a period of kernels devices. */
  readonly loops: number;
  /** What repeats: the range's name, numbers as `#`; empty of a period of kernels. */
  readonly name: string;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** What the GPU time of all iterations without warm-up went to. The parts add up to the window. */
  readonly parts: ExclusiveTime;
  /** The iterations, loop by loop. */
  readonly rows: readonly IterationRow[];
  /** What the iterations were found from; null where there are none. */
  readonly source?: IterationSource | null;
  /** Length of an iteration: on the host, of a period of kernels on the GPU. Without warm-up; null without others. */
  readonly time?: IterationStatistics | null;
  /** Those at the beginning of each loop that took more than 1.5 times the median: no statistics hold them. */
  readonly warm_up_iterations: number;
}

/** How much was joined. */
export interface JoinCoverage {
  /** Launches that were profiled. */
  readonly profiled_launches: number;
  /** Those of them whose kernel is in the timeline. */
  readonly profiled_launches_joined: number;
  /** That of the whole time, 0 to 1; null without kernels. */
  readonly time_ratio?: number | null;
  /** Time of those whose kernel was profiled, in ns. */
  readonly timeline_joined_ns: number;
  /** Launches of kernels in the timeline. */
  readonly timeline_launches: number;
  /** Those of them whose kernel was profiled. */
  readonly timeline_launches_joined: number;
  /** Time of all kernels in the timeline, in ns. */
  readonly timeline_total_ns: number;
}

/** By what a kernel was found in both. */
export type JoinedBy = "name" | "short_name";

/** A kernel that is in both. */
export interface JoinedKernel {
  /** Threads per block in x, y and z. */
  readonly block: readonly number[];
  /** Busiest part of the multiprocessors of the first profiled launch, 0 to 1. */
  readonly compute_ratio?: number | null;
  /** Thread blocks in x, y and z. */
  readonly grid: readonly number[];
  /** By what it was joined; grid and block are equal in any case. */
  readonly joined_by: JoinedBy;
  /** What bounds the first profiled launch. */
  readonly limiter?: Limiter | null;
  /** Busiest part of caches and memory of the first profiled launch, 0 to 1. */
  readonly memory_ratio?: number | null;
  /** Its name, as the profiler has it. */
  readonly name: string;
  /** Warps of the first profiled launch, of the most that a multiprocessor holds, 0 to 1. */
  readonly occupancy_ratio?: number | null;
  /** Launches that were profiled. */
  readonly profiled_launches: number;
  /** Mean time in ns of a profiled launch, alone on the GPU. */
  readonly profiled_mean_ns?: number | null;
  /** Mean time in the timeline, of that alone. */
  readonly slowdown_ratio?: number | null;
  /** Launches in the timeline. */
  readonly timeline_launches: number;
  /** Mean time in ns of a launch in the timeline. */
  readonly timeline_mean_ns: number;
  /** Their time in ns. */
  readonly timeline_total_ns: number;
}

/** The result. A kernel here is a name with a grid and a block. */
export interface JoinedKernels {
  /** How much was joined. */
  readonly coverage: JoinCoverage;
  /** Kernels that are in both, those that took longest in the timeline first. */
  readonly kernels: readonly JoinedKernel[];
  /** Kernels in both that are not in the result. */
  readonly kernels_left_out: number;
  /** Profiled launches beside the launch of the timeline that has the same kernel and order. */
  readonly launches: readonly JoinedLaunch[];
  /** Such launches that are not in the result. */
  readonly launches_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
}

/** A profiled launch and the launch of the timeline with the same kernel and order. */
export interface JoinedLaunch {
  /** Which of the two captures is the timeline, counted from 0. */
  readonly input: number;
  /** The launch's number in the report. */
  readonly launch: number;
  /** The kernel's name, as the profiler has it. */
  readonly name: string;
  /** Which launch of this kernel it is, counted from 0, in both. */
  readonly order: number;
  /** How long it took when it was profiled, in ns. */
  readonly profiled_ns?: number | null;
  /** Its row of the timeline. */
  readonly row: number;
  /** When it started in the timeline, in ns since the session's start. */
  readonly start_ns: number;
  /** How long it took in the timeline, in ns. */
  readonly timeline_ns: number;
}

/** How much of the GPU work has the call that launched it. */
export interface LaunchCoverage {
  /** Those that began before their call did, by clocks that disagree. */
  readonly before_call: number;
  /** Kernels, copies and memsets. */
  readonly gpu_ops: number;
  /** Those whose call was recorded: figures of launches are of these alone. */
  readonly joined: number;
  /** `joined` of `gpu_ops`; null without work. */
  readonly joined_ratio?: number | null;
}

/** The result. What is null or an empty list was not measured. */
export interface LaunchDetails {
  /** Loads and stores. */
  readonly accesses: readonly Access[];
  /** The architecture of its machine code, e.g. `sm_86`; null where the report holds none. */
  readonly architecture?: string | null;
  /** Threads per block in x, y and z. */
  readonly block: readonly number[];
  /** Caches and the device's memory. */
  readonly caches: readonly Cache[];
  /** Code that it ran; null where the report holds none. */
  readonly code?: CodeText | null;
  /** The device, as the report names it. */
  readonly device?: string | null;
  /** What most ask for, in one unit each. */
  readonly figures?: Figures | null;
  /** Thread blocks in x, y and z. */
  readonly grid: readonly number[];
  /** Instructions by address, those with most samples; in the order of addresses. */
  readonly instructions: readonly Instruction[];
  /** Instructions that are not in the result. */
  readonly instructions_left_out: number;
  /** Its number in the report; null where the report holds no such launch. */
  readonly launch?: number | null;
  /** How much has a source line; null where the machine code has no table of lines. */
  readonly line_coverage?: LineCoverage | null;
  /** Bytes between them. */
  readonly links: readonly Link[];
  /** Instructions by opcode, the most executed first. */
  readonly mix: InstructionMix;
  /** The kernel's name. */
  readonly name: string;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** How many warps it could keep on a multiprocessor, and what limits them. */
  readonly occupancy: Occupancy;
  /** Annotated ranges that were open on the launching thread. */
  readonly ranges: readonly OpenRange[];
  /** What NVIDIA's rules say, in NVIDIA's words. */
  readonly rules: readonly RuleResult[];
  /** Sections of the report that were collected. */
  readonly sections: readonly string[];
  /** Source lines, those with most samples first; empty where the machine code has no table of lines. */
  readonly source_lines: readonly SourceLine[];
  /** Source lines that are not in the result. */
  readonly source_lines_left_out: number;
  /** How close it came to what the device can do. */
  readonly speed_of_light: SpeedOfLight;
  /** States of warps between two instructions, the longest first. */
  readonly stalls: readonly StallReason[];
}

/** The result. */
export interface LaunchFigures {
  /** Lengths of the calls. One that launched several GPU operations counts once. */
  readonly call: Spread;
  /** How much of the work has its call. */
  readonly coverage: LaunchCoverage;
  /** From the end of a call to the start of its first work; 0 where the work began before. */
  readonly delay: Spread;
  /** Lengths of the work that they launched. */
  readonly gpu: Spread;
  /** Calls whose first work began later than the threshold behind them. */
  readonly late_gpu_ops: number;
  /** GPU operations with the longest delay, longest first. */
  readonly latest_gpu_ops: readonly LaunchRow[];
  /** The figures per kernel, copy and memset, the most often launched first. */
  readonly names: readonly LaunchesOfName[];
  /** Names that were left out. */
  readonly names_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Calls whose first work ran shorter than they did: launching it cost more than it did. */
  readonly short_gpu_ops: number;
  /** Calls longer than the threshold. */
  readonly slow_calls: number;
  /** The longest calls, longest first. */
  readonly slowest_calls: readonly LaunchRow[];
}

/** How a launch moved from a capture to the next. */
export interface LaunchMove {
  /** Place in `points` where it was. */
  readonly from: number;
  /** Intensity after, over before. */
  readonly intensity_ratio: number;
  /** Place in `points` where it is. */
  readonly to: number;
  /** Work per second after, over before. */
  readonly work_ratio: number;
}

/** A sequence of GPU operations that an operator or range launched. */
export interface LaunchPattern {
  /** Its category. */
  readonly category: Category;
  /** How often it launched exactly this sequence. */
  readonly count: number;
  /** End of the first occurrence in ns. */
  readonly first_end_ns: number;
  /** The timeline's row of the first occurrence. */
  readonly first_row: number;
  /** Start of the first occurrence in ns since the session's start. */
  readonly first_start_ns: number;
  /** Sum of the lengths of all GPU operations of all occurrences in ns. */
  readonly gpu_ns: number;
  /** Their names in the order in which they began, the first [`LaunchPattern::MOST_NAMES`] of them. */
  readonly gpu_ops: readonly string[];
  /** Sum of the lengths of the operators or ranges in ns. */
  readonly host_ns: number;
  /** GPU operations of the sequence. */
  readonly length: number;
  /** Name of the operator or range, without what tells one call from the next (`op_id = 9`). */
  readonly name: string;
}

/** A launch below one roof of work and one of memory. */
export interface LaunchPoint {
  /** Most work per second at its intensity. */
  readonly attainable_per_second: number;
  /** What bounds it. */
  readonly bound: Bound;
  /** Whose formula the bytes are counted by. */
  readonly bytes_defined_by: DefinedBy;
  /** Bytes per second. */
  readonly bytes_per_second: number;
  /** Which capture, counted from 0. */
  readonly input: number;
  /** Work per byte. */
  readonly intensity: number;
  /** The launch's number in its report. */
  readonly launch: number;
  /** The memory whose traffic and roof are taken. */
  readonly memory: MemoryLevel;
  /** The kernel's name. */
  readonly name: string;
  /** Most bytes per second, at the clocks of this launch. */
  readonly peak_bytes_per_second: number;
  /** Most work per second, at the clocks of this launch. */
  readonly peak_work_per_second: number;
  /** The part of it that was reached, 0 to 1. */
  readonly reached_ratio: number;
  /** The kind of work. */
  readonly work: WorkKind;
  /** Whose formula the work is counted by. */
  readonly work_defined_by: DefinedBy;
  /** Work per second. */
  readonly work_per_second: number;
}

/** A call and its first work. */
export interface LaunchRow {
  /** Name of the function that was called. */
  readonly call_name: string;
  /** Length of the call in ns. */
  readonly call_ns: number;
  /** Start of the call in ns since the session's start. */
  readonly call_start_ns: number;
  /** From the end of the call to the start of the work in ns. */
  readonly delay_ns: number;
  /** Name of the kernel, copy or set that it launched. */
  readonly work_name: string;
  /** Length of the work in ns. */
  readonly work_ns: number;
  /** The timeline's row of the work. */
  readonly work_row: number;
  /** Start of the work in ns. */
  readonly work_start_ns: number;
}

/** Coverage of the join of GPU work to launches. */
export interface Launches {
  /** Kernels, whole graphs, copies and memsets whose call is in the capture. */
  readonly matched: number;
  /** Those whose call is not. */
  readonly unmatched: number;
}

/** Launches of one name. */
export interface LaunchesOfName {
  /** Lengths of the calls, those counted of which this was the first work. */
  readonly call: Spread;
  /** Its category. */
  readonly category: Category;
  /** Delays behind those calls. */
  readonly delay: Spread;
  /** Lengths on the GPU. */
  readonly gpu: Spread;
  /** The kernel's, copy's or memset's. */
  readonly name: string;
  /** Those calls whose first work ran shorter than they did. */
  readonly short_gpu_ops: number;
}

/** Lifetimes of a class. */
export interface LifetimeClass {
  /** Buffers. */
  readonly buffers: number;
  /** Their bytes. */
  readonly bytes: number;
  /** From so many ns on. */
  readonly from_ns: number;
  /** Up to, and without, so many; null of the last class. */
  readonly to_ns?: number | null;
}

/** What bounds a launch. */
export type Limiter = "grid_too_small" | "latency" | "compute" | "memory" | "balanced" | "saturated";

/** How much of a launch has a source line. */
export interface LineCoverage {
  /** Instructions with figures or text. */
  readonly instructions: number;
  /** Those with a source line. */
  readonly instructions_with_line: number;
  /** Samples of the launch. */
  readonly samples: number;
  /** Those at instructions with a source line. */
  readonly samples_with_line: number;
}

/** Bytes from one place to another. */
export interface Link {
  /** Bytes that went this way; null where the report does not say. */
  readonly bytes?: number | null;
  /** How many in a second. */
  readonly bytes_per_second?: number | null;
  /** Where they come from. */
  readonly from: string;
  /** That against its peak, 0 to 1. */
  readonly peak_ratio?: number | null;
  /** Where they go. */
  readonly to: string;
}

/** One entry of the list. */
export interface Loss {
  /** How many of these were lost. */
  readonly count: number;
  /** What became of them, of a closed set. */
  readonly reason: LossReason;
  /** What, e.g. a table's name or `NVTX marks`. */
  readonly what: string;
}

/** Why something of the source is missing or changed. */
export type LossReason = "dropped" | "truncated" | "skipped" | "unsupported" | "idle" | "inferred";

/** By what the two sides were matched. */
export type MatchedBy = "name" | "short_name" | "nothing";

/** A kernel that multiplies matrices. */
export interface MatrixKernelRow {
  /** Type of number; null where the name does not say. */
  readonly element_type?: string | null;
  /** Launches. */
  readonly launches: number;
  /** The longest launch; null of profiled launches, which have no time. */
  readonly longest?: Place | null;
  /** Its name. */
  readonly name: string;
  /** Share of the tensor pipe's peak in percent, the mean of its launches, from counters; null without. */
  readonly tensor_pipe_percent?: number | null;
  /** Sum of their lengths in ns. */
  readonly total_ns: number;
  /** What it multiplies with. */
  readonly unit: MatrixUnit;
}

/** Calls of an operator with the same shapes. */
export interface MatrixProductRow {
  /** The largest of 128, 64, 32, 16, 8, 4, 2 and 1 of which m, n and k are multiples. */
  readonly alignment: number;
  /** Products in a call. */
  readonly batch: number;
  /** Calls that launched kernels. */
  readonly calls: number;
  /** The part of it of kernels that are known not to. */
  readonly cuda_core_ns: number;
  /** Type of number; null where it was not recorded. */
  readonly element_type?: string | null;
  /** Whether tensor cores could do it: a type that they know on this GPU, and no product with a vector; null where type or GPU are not known. */
  readonly eligible?: boolean | null;
  /** Time in ns of these kernels. */
  readonly gpu_ns: number;
  /** What is summed over. */
  readonly k: number;
  /** The call with the longest GPU time. */
  readonly longest: Place;
  /** Rows of the result. */
  readonly m: number;
  /** Columns of the result. */
  readonly n: number;
  /** The operator. */
  readonly operator: string;
  /** The part of it of kernels that are known to use tensor cores. */
  readonly tensor_core_ns: number;
}

/** What a kernel multiplies matrices with. */
export type MatrixUnit = "tensor_core" | "cuda_core" | "unknown";

/** What the figures of a table measure. */
export type Measure = "ns" | "bytes";

/** Peak of memory in use. */
export interface MemoryDifference {
  /** The highest peak of a GPU after less that before, in megabytes (10^6 bytes); null where a side recorded none. */
  readonly peak_mb?: number | null;
  /** Per GPU. */
  readonly rows: readonly PeakMemory[];
}

/** A memory that work gets its data from. */
export type MemoryLevel = "dram" | "l2" | "l1";

/** What an allocator gave out. */
export interface MemoryPool {
  /** The largest buffers that were alive at the peak. */
  readonly alive: readonly AliveBuffer[];
  /** What was alive at the peak by who had asked for it, the most bytes first. */
  readonly alive_by_requester: readonly AliveOfRequester[];
  /** Those who asked that were left out behind these. */
  readonly alive_by_requester_left_out: number;
  /** Bytes of the buffers that were given out during the capture and alive at the peak; null where the source says no addresses. */
  readonly alive_bytes?: number | null;
  /** Buffers that were left out behind these. */
  readonly alive_left_out: number;
  /** Times that memory was given out. */
  readonly allocations: number;
  /** Who gives it out. */
  readonly allocator: Allocator;
  /** How that is known. */
  readonly before: Before;
  /** Bytes that were given out before the capture. */
  readonly before_bytes: number;
  /** Ordinal of the device; null of the host's memory. */
  readonly device?: number | null;
  /** Bytes given out when the capture ended. */
  readonly end_bytes: number;
  /** What the peak holds besides: given out before the capture. Null where the source says no addresses. */
  readonly from_before_bytes?: number | null;
  /** Changes whose total does not follow from the one before: something between them was not recorded. */
  readonly gaps: number;
  /** Whose memory: `GPU 0`, `host`, `GPU 1 managed`. */
  readonly memory: string;
  /** The most that it had and had not given out. */
  readonly most_unused_bytes?: number | null;
  /** What was given out in each part of the capture. */
  readonly over_time: readonly PoolPoint[];
  /** Most bytes that were given out at a time. */
  readonly peak_bytes: number;
  /** When that was first reached, in ns; 0 where it was before the capture. */
  readonly peak_ns: number;
  /** The same as a share of the device's memory, from 0 to 1; null where the source does not say how much that is. */
  readonly peak_ratio?: number | null;
  /** Most bytes that the allocator had, given out or not; null where the source does not say it. */
  readonly peak_reserved_bytes?: number | null;
  /** When that was first reached, in ns. */
  readonly peak_reserved_ns?: number | null;
  /** Process id; 0 where the source does not say. */
  readonly process: number;
  /** Times that memory was taken back. */
  readonly releases: number;
  /** What it had and had not given out at the peak: reserved less allocated. Null where the source does not say it. */
  readonly unused_at_peak_bytes?: number | null;
}

/** The difference of two profiles of memory: after less before. */
export interface MemoryProfileChangesResult {
  /** Bytes in all, after. */
  readonly after_bytes: number;
  /** Bytes in all, before. */
  readonly before_bytes: number;
  /** Their difference. */
  readonly change_bytes: number;
  /** By device and kind, the largest change first. */
  readonly devices: readonly MemoryProfileDeviceChange[];
  /** By function, the largest flat change first; those without a change, flat or cumulative, are not there. */
  readonly functions: readonly MemoryProfileFunctionChange[];
  /** Functions that were left out behind these. */
  readonly functions_left_out: number;
  /** Which values of the profiles these are, e.g. `space`. */
  readonly measured: string;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** By stack, the largest change first; those without are not there. */
  readonly stacks: readonly MemoryProfileStackChange[];
  /** Stacks that were left out behind these. */
  readonly stacks_left_out: number;
}

/** Memory of a device and kind. */
export interface MemoryProfileDevice {
  /** Buffers; null where the profile does not count them. */
  readonly buffers?: number | null;
  /** Bytes. */
  readonly bytes: number;
  /** The device, as the profile calls it: `cuda:0`; null where it does not say, as of programs. */
  readonly device?: string | null;
  /** What it is: `buffer`, or `executable` for a compiled program; null where the profile does not say. */
  readonly kind?: string | null;
}

/** The change of a device and kind. */
export interface MemoryProfileDeviceChange {
  /** Bytes after. */
  readonly after_bytes: number;
  /** Bytes before. */
  readonly before_bytes: number;
  /** Their difference. */
  readonly change_bytes: number;
  /** The device, as the profile calls it. */
  readonly device?: string | null;
  /** What it is: `buffer`, `executable`. */
  readonly kind?: string | null;
}

/** A frame of a stack. */
export interface MemoryProfileFrame {
  /** Its source file; empty where the profile does not say. */
  readonly file: string;
  /** The function. */
  readonly function: string;
  /** The line; 0 where the profile does not say. */
  readonly line: number;
}

/** Memory of a function. */
export interface MemoryProfileFunction {
  /** Bytes of stacks of which any frame is of it. */
  readonly cumulative_bytes: number;
  /** The source file of one that is called so; empty where the profile does not say. */
  readonly file: string;
  /** Bytes of stacks whose innermost frame is of it. */
  readonly flat_bytes: number;
  /** Its name. */
  readonly function: string;
}

/** The change of a function. */
export interface MemoryProfileFunctionChange {
  /** Change of the bytes of stacks of which any frame is of it. */
  readonly cumulative_bytes: number;
  /** The source file of one that is called so; empty where the profile does not say. */
  readonly file: string;
  /** Change of the bytes of stacks whose innermost frame is of it. */
  readonly flat_bytes: number;
  /** Its name. */
  readonly function: string;
}

/** A profile of memory. */
export interface MemoryProfileResult {
  /** By device and kind, the most bytes first. */
  readonly devices: readonly MemoryProfileDevice[];
  /** By function, the most flat bytes first. */
  readonly functions: readonly MemoryProfileFunction[];
  /** Functions that were left out behind these. */
  readonly functions_left_out: number;
  /** Which values of the profile these are: `space`; of Go's heap `inuse_space`. */
  readonly measured: string;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** By stack, the most bytes first. */
  readonly stacks: readonly MemoryProfileStack[];
  /** Stacks that were left out behind these. */
  readonly stacks_left_out: number;
  /** Buffers in all; null where the profile does not count them. */
  readonly total_buffers?: number | null;
  /** Bytes in all. */
  readonly total_bytes: number;
}

/** Memory of a stack. */
export interface MemoryProfileStack {
  /** Buffers; null where the profile does not count them. */
  readonly buffers?: number | null;
  /** Bytes. */
  readonly bytes: number;
  /** The device, as the profile calls it. */
  readonly device?: string | null;
  /** Its frames, the innermost first. */
  readonly frames: readonly MemoryProfileFrame[];
  /** What it is: `buffer`, `executable`. */
  readonly kind?: string | null;
  /** The innermost frame that is of no installed package and not of Python's library; null where all are. */
  readonly own_frame?: MemoryProfileFrame | null;
}

/** The change of a stack. */
export interface MemoryProfileStackChange {
  /** Bytes after. */
  readonly after_bytes: number;
  /** Bytes before. */
  readonly before_bytes: number;
  /** Change of the number of buffers; null where neither profile counts them. */
  readonly change_buffers?: number | null;
  /** Their difference. */
  readonly change_bytes: number;
  /** The device, as the profile calls it. */
  readonly device?: string | null;
  /** Its frames, the innermost first. */
  readonly frames: readonly MemoryProfileFrame[];
  /** What it is: `buffer`, `executable`. */
  readonly kind?: string | null;
  /** The innermost frame that is of no installed package and not of Python's library; null where all are. */
  readonly own_frame?: MemoryProfileFrame | null;
}

/** Who asked, by name. A part that is not known is null. */
export interface MemoryRequester {
  /** The call of the CUDA API. */
  readonly call?: string | null;
  /** The innermost function of Python that is not built in. */
  readonly function?: string | null;
  /** The innermost operator that does more than to get memory. */
  readonly operator?: string | null;
  /** The innermost NVTX range or annotation. */
  readonly range?: string | null;
}

/** Memory over time. */
export interface MemoryResult {
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** How these figures are to be read, in sentences. */
  readonly notes: readonly string[];
  /** What allocators gave out, a row per allocator, process, device and kind of memory; the highest peak first. */
  readonly pools: readonly MemoryPool[];
  /** What was sampled of memory, a row per series. */
  readonly series: readonly MemorySeries[];
}

/** A sample. */
export interface MemorySample {
  /** When, in ns. */
  readonly t_ns: number;
  /** The value then, in the unit of its series. */
  readonly value: number;
}

/** What was sampled of memory. */
export interface MemorySeries {
  /** Of which device. */
  readonly device: string;
  /** The last. */
  readonly last: number;
  /** The highest. */
  readonly max: number;
  /** When that was first reached, in ns. */
  readonly max_ns: number;
  /** What: `memory_used`. */
  readonly metric: string;
  /** The lowest. */
  readonly min: number;
  /** The highest in each part of the capture, with its start in ns; parts without a sample have what held before. */
  readonly over_time: readonly MemorySample[];
  /** Samples. */
  readonly samples: number;
  /** Who sampled it: `nvml`, `xplane`. */
  readonly source: string;
  /** Unit of the figures. */
  readonly unit: string;
}

/** One iteration. */
export interface MfuIteration {
  /** Devices that worked for it. */
  readonly devices: number;
  /** End in ns. */
  readonly end_ns: number;
  /** Its floating-point operations; null where none are known. */
  readonly flops?: number | null;
  /** Operations per second and device. */
  readonly flops_per_second?: number | null;
  /** Its model FLOP utilisation. */
  readonly mfu_ratio?: number | null;
  /** Its number. */
  readonly number: number;
  /** The timeline's row. */
  readonly row: number;
  /** Start in ns since the session's start. */
  readonly start_ns: number;
  /** Length in ns. */
  readonly time_ns: number;
}

/** Calls of one operation with the same shapes. */
export interface MfuOperation {
  /** How often it was called. */
  readonly calls: number;
  /** Type of number: `bf16`, `fp16`, `fp32` and so on; null where it is not known. */
  readonly element_type?: string | null;
  /** End in ns of that call. */
  readonly end_ns?: number | null;
  /** Operations of all calls. */
  readonly flops: number;
  /** Operations per second of that time. */
  readonly flops_per_second?: number | null;
  /** Time in ns in which the GPU worked for the calls. */
  readonly gpu_time_ns: number;
  /** The operator, operation or kernel. */
  readonly name: string;
  /** Share of the device's peak rate; null where that is not known. */
  readonly peak_ratio?: number | null;
  /** The timeline's row of that call. */
  readonly row?: number | null;
  /** Shapes of its inputs as JSON; empty where none were recorded. */
  readonly shapes: string;
  /** Start in ns of the call that took most GPU time; null of profiled launches, which have no time. */
  readonly start_ns?: number | null;
}

/** The result. */
export interface MfuResult {
  /** The iterations, loop by loop. */
  readonly by_iteration: readonly MfuIteration[];
  /** Calls that were left out because no kernel is known that they launched: they ran on the processor, or the launch was not recorded. */
  readonly calls_without_kernels: number;
  /** Calls of matrix products and attention whose shapes were not recorded or do not fit. */
  readonly calls_without_shapes: number;
  /** What may be wrong with them. */
  readonly cautions: readonly string[];
  /** `known_kernel_time_ns` of `kernel_time_ns`: where it is low, operations that were not given are too few. Null without kernels. */
  readonly coverage_ratio?: number | null;
  /** Time in ns of the region, times the devices that worked in it. Of profiled launches it is their own time. */
  readonly device_time_ns: number;
  /** Floating-point operations of the region: of all iterations, else of the whole capture. */
  readonly flops?: number | null;
  /** Operations per second and device. */
  readonly flops_per_second?: number | null;
  /** Where the operations come from; null where none are known. */
  readonly flops_source?: FlopsSource | null;
  /** Name of the iterations' range or step. */
  readonly iteration_name: string;
  /** What the iterations were found from; null where the region is the whole capture. */
  readonly iteration_source?: IterationSource | null;
  /** Iterations that used a device; 0 where the region is the whole capture. */
  readonly iterations: number;
  /** Iterations behind the list's limit. */
  readonly iterations_left_out: number;
  /** Time in ns of all kernels, of iterations and others. */
  readonly kernel_time_ns: number;
  /** Calls of operators whose operations are known. */
  readonly known_calls: number;
  /** Time in ns of those kernels whose operations are known one by one. */
  readonly known_kernel_time_ns: number;
  /** Operations behind the list's limit. */
  readonly left_out: number;
  /** The same of the median iteration. */
  readonly median_mfu_ratio?: number | null;
  /** Model FLOP utilisation: the time that the operations take at the peak rates, of `device_time_ns`. Null where operations or peak are not known. */
  readonly mfu_ratio?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Where the peak rate comes from; null where it is not known. */
  readonly peak_source?: PeakSource | null;
  /** Operations by name and shapes, those that took most GPU time first. */
  readonly rows: readonly MfuOperation[];
}

/** Loading and compiling of a capture. */
export interface ModuleLoadingResult {
  /** All of it. Phases of a compiler nest, so that the sum of their lengths says less than `held_ns`. */
  readonly all: PhasedCost;
  /** By what is done, the longest time first. */
  readonly kinds: readonly CodeWorkRow[];
  /** By name, the longest time first. */
  readonly names: readonly CodeWorkName[];
  /** Names that were left out behind these. */
  readonly names_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** When the steady state begins in ns: with the second iteration of the program's loop. Null where no iterations are found. */
  readonly steady_from_ns?: number | null;
}

/** Work of one name. */
export interface NamedWork {
  /** Its category. */
  readonly category: Category;
  /** `sum_ns` of its class; null where the class took no time. */
  readonly class_ratio?: number | null;
  /** Sample standard deviation in ns; null of a single one. */
  readonly deviation_ns?: number | null;
  /** How often it ran. */
  readonly gpu_ops: number;
  /** Longest in ns. */
  readonly max_ns: number;
  /** Mean length in ns. */
  readonly mean_ns: number;
  /** Median length in ns; between two middle ones, their mean. */
  readonly median_ns: number;
  /** Shortest in ns. */
  readonly min_ns: number;
  /** Its name. */
  readonly name: string;
  /** Sum of its lengths in ns. */
  readonly sum_ns: number;
}

/** A part of a result that has no figures because the capture does not hold what they are made of. */
export interface NotCaptured {
  /** Why, and what to do so that the next capture has it. */
  readonly reason: string;
  /** What has no figures, e.g. `launch delays`. */
  readonly what: string;
}

/** Calls in the order of their starts. */
export interface NsysApiTrace {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysApiTraceRow[];
}

/** A call. */
export interface NsysApiTraceRow {
  /** Correlation id, which the work that it launched has too; null for none. */
  readonly correlation?: number | null;
  /** Length in ns. */
  readonly duration_ns: number;
  /** The function. */
  readonly name: string;
  /** Process. */
  readonly process: number;
  /** What it returned, 0 for success; null where the source does not say it. */
  readonly result?: number | null;
  /** The timeline's row. */
  readonly row: number;
  /** Start in ns. */
  readonly start_ns: number;
  /** Thread; null where the source does not say it. */
  readonly thread?: number | null;
  /** Name of the thread; null where the source does not say it. */
  readonly thread_name?: string | null;
}

/** GPU work in the order of its starts. */
export interface NsysGpuTrace {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysGpuTraceRow[];
}

/** A kernel, copy or memset. */
export interface NsysGpuTraceRow {
  /** Bytes copied or set; null of a kernel. */
  readonly bytes?: number | null;
  /** `bytes` by the length, in bytes per second; null of a kernel and of work that took no time. */
  readonly bytes_per_second?: number | null;
  /** CUDA context; null where the source does not say it. */
  readonly context?: number | null;
  /** Correlation id, which the call that launched the work has too; null for none. */
  readonly correlation?: number | null;
  /** Kind of memory that is copied to. */
  readonly destination_memory?: string | null;
  /** Name and ordinal of the GPU, as in `NVIDIA H100 (0)`; null where the source does not say the ordinal. */
  readonly device?: string | null;
  /** Length in ns. */
  readonly duration_ns: number;
  /** What only kernels have. */
  readonly kernel?: NsysKernelShape | null;
  /** Name of the kernel or operation. */
  readonly name: string;
  /** The timeline's row. */
  readonly row: number;
  /** Kind of memory that is copied from, or set. */
  readonly source_memory?: string | null;
  /** Start in ns. */
  readonly start_ns: number;
  /** CUDA stream; null where the source does not say it. */
  readonly stream?: number | null;
}

/** Shape of a launch. */
export interface NsysKernelShape {
  /** Threads per block in x, y and z. */
  readonly block: readonly number[];
  /** Thread blocks in x, y and z. */
  readonly grid: readonly number[];
  /** Registers per thread. */
  readonly registers: number;
  /** Dynamic shared memory per block in bytes. */
  readonly shared_dynamic_bytes: number;
  /** Static shared memory per block in bytes. */
  readonly shared_static_bytes: number;
}

/** A summary of launches, the longest mean from the start of the call to the end of the kernel first. */
export interface NsysLaunchTimes {
  /** Kernels in the capture. */
  readonly kernels: number;
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysLaunchTimesRow[];
  /** Kernels whose launch was not recorded, which are in no row. */
  readonly without_launch: number;
}

/** The launches of a kernel on a device by a function and a thread. */
export interface NsysLaunchTimesRow {
  /** Length of the call. */
  readonly api: NsysSpread;
  /** The function that was called. */
  readonly api_name: string;
  /** Kernels. */
  readonly count: number;
  /** Device that ran the kernels; null where the source does not say it. */
  readonly device?: number | null;
  /** The kernel. */
  readonly kernel: NsysSpread;
  /** The kernel. */
  readonly kernel_name: string;
  /** Process that launched. */
  readonly process: number;
  /** From the end of the call to the start of the kernel, of those that were queued; null without any. */
  readonly queue?: NsysSpread | null;
  /** Kernels that waited in the queue: they began after the call had ended. */
  readonly queued: number;
  /** Thread that launched; null where the source does not say it. */
  readonly thread?: number | null;
  /** From the start of the call to its end or the kernel's, whichever is later. */
  readonly total: NsysSpread;
}

/** Launches in the order of the calls. */
export interface NsysLaunches {
  /** Kernels in the capture. */
  readonly kernels: number;
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysLaunchesRow[];
  /** Kernels whose launch was not recorded, which are in no row. */
  readonly without_launch: number;
}

/** A launch and the run of its kernel. */
export interface NsysLaunchesRow {
  /** Length of the call in ns. */
  readonly api_duration_ns: number;
  /** The function that was called. */
  readonly api_name: string;
  /** Start of the call in ns. */
  readonly api_start_ns: number;
  /** Threads per block in x, y and z. */
  readonly block: readonly number[];
  /** Device that ran the kernel; null where the source does not say it. */
  readonly device?: number | null;
  /** Thread blocks in x, y and z. */
  readonly grid: readonly number[];
  /** Length of the kernel in ns. */
  readonly kernel_duration_ns: number;
  /** The kernel. */
  readonly kernel_name: string;
  /** Start of the kernel in ns. */
  readonly kernel_start_ns: number;
  /** Process that launched. */
  readonly process: number;
  /** Length in ns from the end of the call to the start of the kernel; null where the kernel began before the call had ended. */
  readonly queue_duration_ns?: number | null;
  /** The timeline's row of the kernel. */
  readonly row: number;
  /** Thread that launched; null where the source does not say it. */
  readonly thread?: number | null;
  /** From the start of the call to its end or the kernel's, whichever is later, in ns. */
  readonly total_duration_ns: number;
}

/** Projections in the order of their starts, the longest first where they start together. */
export interface NsysProjectionTrace {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysProjectionTraceRow[];
}

/** The projection of a range, or of all work that was launched outside of ranges. */
export interface NsysProjectionTraceRow {
  /** Ranges with work directly inside. */
  readonly children: number;
  /** Length in ns of the range. */
  readonly duration_ns?: number | null;
  /** Calls that launched work; nsys's `NumGPUOps`. A launch of a CUDA graph is one. */
  readonly launches: number;
  /** Ranges around it. */
  readonly level?: number | null;
  /** Its domain and text; null of what was launched outside of ranges. */
  readonly name?: string | null;
  /** Pieces of work that they launched. */
  readonly operations: number;
  /** The number of the range around it; null of an outermost one. */
  readonly parent_id?: number | null;
  /** Process; null where several launched outside of ranges. */
  readonly process?: number | null;
  /** Length in ns to the end of the last work. */
  readonly projected_duration_ns: number;
  /** Start in ns of the first work. */
  readonly projected_start_ns: number;
  /** Its number: 1 for the first range of the capture. */
  readonly range_id?: number | null;
  /** The numbers of the ranges around it, the outermost first, and its own; at most the 1,000 innermost. */
  readonly stack: readonly number[];
  /** Start in ns of the range. */
  readonly start_ns?: number | null;
  /** `PushPop` or `StartEnd`. */
  readonly style?: string | null;
  /** Thread; null where several launched outside of ranges, or the source does not say it. */
  readonly thread?: number | null;
}

/** Projections by range, the largest total first. */
export interface NsysProjections {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysProjectionsRow[];
}

/** The projections of the ranges of one name. */
export interface NsysProjectionsRow {
  /** Mean number of ranges with work directly inside. */
  readonly avg_children: number;
  /** Mean number of ranges around it. */
  readonly avg_level: number;
  /** Mean length in ns on GPUs. */
  readonly avg_ns: number;
  /** Ranges with work. */
  readonly instances: number;
  /** Calls that launched work; nsys's `Total GPU Ops`. A launch of a CUDA graph is one. */
  readonly launches: number;
  /** The longest in ns. */
  readonly max_ns: number;
  /** The middle one in ns, or the mean of the two middle ones. */
  readonly med_ns: number;
  /** The shortest in ns. */
  readonly min_ns: number;
  /** Its domain and text. */
  readonly name: string;
  /** Pieces of work that they launched. */
  readonly operations: number;
  /** Total length in ns on GPUs. Ranges inside others are not subtracted. */
  readonly projected_ns: number;
  /** Total length in ns of the ranges themselves. */
  readonly range_ns: number;
  /** Sample standard deviation in ns; 0 of a single one. */
  readonly stddev_ns: number;
  /** `PushPop` or `StartEnd`. */
  readonly style: string;
}

/** Push/pop ranges in the order of their starts, the shortest first where they start together. */
export interface NsysPushPopTrace {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysPushPopTraceRow[];
}

/** A range. */
export interface NsysPushPopTraceRow {
  /** Ranges directly inside. */
  readonly children: number;
  /** Total length in ns of the ranges directly inside. */
  readonly children_ns: number;
  /** Length in ns. */
  readonly duration_ns: number;
  /** Ranges around it. */
  readonly level: number;
  /** Its domain and text. */
  readonly name: string;
  /** The number of the range around it; null of an outermost one. */
  readonly parent_id?: number | null;
  /** Process. */
  readonly process: number;
  /** Its number: 1 for the first range of the capture. */
  readonly range_id: number;
  /** The timeline's row. */
  readonly row: number;
  /** The numbers of the ranges around it, the outermost first, and its own; at most the 1,000 innermost. */
  readonly stack: readonly number[];
  /** Start in ns. */
  readonly start_ns: number;
  /** Thread; null where the source does not say it. */
  readonly thread?: number | null;
}

/** Times of kernels by range, in the order of the ranges' names. */
export interface NsysRangeKernels {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysRangeKernelsRow[];
}

/** The kernels of one name that a thread launched in the ranges of one name. A kernel counts in each range around its launch; where two of them have the same name its time counts twice. */
export interface NsysRangeKernelsRow {
  /** Arithmetic mean in ns. */
  readonly avg_ns: number;
  /** Name of the kernel. */
  readonly kernel_name: string;
  /** Kernels. */
  readonly kernels: number;
  /** The longest in ns. */
  readonly max_ns: number;
  /** The middle one in ns, or the mean of the two middle ones. */
  readonly med_ns: number;
  /** The shortest in ns. */
  readonly min_ns: number;
  /** Process; null where the launch was not recorded. */
  readonly process?: number | null;
  /** Domain and text of the ranges; null of kernels that were launched outside of ranges, or whose launch was not recorded. */
  readonly range?: string | null;
  /** Ranges. */
  readonly ranges: number;
  /** Sample standard deviation in ns; 0 of a single one. */
  readonly stddev_ns: number;
  /** `PushPop` or `StartEnd`. */
  readonly style?: string | null;
  /** Thread; null where the launch was not recorded, or the source does not say it. */
  readonly thread?: number | null;
  /** Sum in ns. */
  readonly total_ns: number;
}

/** A summary by size, the largest total first. */
export interface NsysSizes {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysSizesRow[];
}

/** The sizes of one operation. */
export interface NsysSizesRow {
  /** Arithmetic mean in bytes. */
  readonly avg_bytes: number;
  /** Operations. */
  readonly count: number;
  /** The largest in bytes. */
  readonly max_bytes: number;
  /** The middle one in bytes, or the mean of the two middle ones. */
  readonly med_bytes: number;
  /** The smallest in bytes. */
  readonly min_bytes: number;
  /** Name of the operation. */
  readonly operation: string;
  /** Sample standard deviation in bytes; 0 of a single one. */
  readonly stddev_bytes: number;
  /** Sum in bytes. */
  readonly total_bytes: number;
}

/** How times are spread. */
export interface NsysSpread {
  /** Arithmetic mean in ns. */
  readonly avg_ns: number;
  /** The longest in ns. */
  readonly max_ns: number;
  /** The middle one in ns, or the mean of the two middle ones. */
  readonly med_ns: number;
  /** The shortest in ns. */
  readonly min_ns: number;
  /** Sample standard deviation in ns; 0 of a single one. */
  readonly stddev_ns: number;
}

/** A summary by time, the largest total first. */
export interface NsysTimes {
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** What the capture lacks. */
  readonly not_captured: readonly NotCaptured[];
  /** The rows. */
  readonly rows: readonly NsysTimesRow[];
  /** Total time in ns of all rows, those left out too. */
  readonly total_ns: number;
}

/** The times of one group. */
export interface NsysTimesRow {
  /** Arithmetic mean in ns. */
  readonly avg_ns: number;
  /** Threads per block in x, y and z, in a table by shape; otherwise null. */
  readonly block?: readonly number[] | null;
  /** `CUDA_API`, `CUDA_KERNEL` or `MEMORY_OPER` in tables that mix them; otherwise null. */
  readonly category?: string | null;
  /** Thread blocks in x, y and z, in a table by shape; otherwise null. */
  readonly grid?: readonly number[] | null;
  /** Events of the group. */
  readonly instances: number;
  /** The longest in ns. */
  readonly max_ns: number;
  /** The middle one in ns, or the mean of the two middle ones. */
  readonly med_ns: number;
  /** The shortest in ns. */
  readonly min_ns: number;
  /** Name of the kernel, function, operation or range. */
  readonly name: string;
  /** Share of `total_ns`, from 0 to 1: of the time of what is listed, not of the window. */
  readonly share_ratio: number;
  /** Sample standard deviation in ns; 0 of a single one. */
  readonly stddev_ns: number;
  /** `PushPop` or `StartEnd` of NVTX ranges, in tables that tell them apart; otherwise null. */
  readonly style?: string | null;
  /** Sum in ns. */
  readonly total_ns: number;
}

/** How many warps a launch could keep on a multiprocessor. Shares are 0 to 1. */
export interface Occupancy {
  /** Warps that were there on average, of the most that a multiprocessor holds. */
  readonly achieved?: number | null;
  /** How many blocks fit on a multiprocessor by each of its resources, the tightest first. */
  readonly limits: readonly OccupancyLimit[];
  /** Registers of a thread. */
  readonly registers_per_thread?: number | null;
  /** Shared memory of a block in bytes, with what the driver takes. */
  readonly shared_memory_per_block_bytes?: number | null;
  /** Warps that fit, of the most that a multiprocessor holds. */
  readonly theoretical?: number | null;
  /** How many times the grid fills the device. */
  readonly waves?: number | null;
}

/** How many blocks fit by one resource. */
export interface OccupancyLimit {
  /** Blocks per multiprocessor. */
  readonly blocks: number;
  /** Whether it is what limits the launch. */
  readonly limits: boolean;
  /** The resource: `registers`, `shared_mem`, `warps`, `blocks`, `barriers`. */
  readonly resource: string;
}

/** What bounds a kernel. */
export type OffloadBound = "memory" | "compute" | "latency" | "unknown";

/** A kernel that memory bounds. */
export interface OffloadCandidate {
  /** Bytes per second: `bytes_per_launch` over the mean length of the launches that it is known of. What an accelerator's memory needs to keep up. */
  readonly bandwidth_bytes_per_second?: number | null;
  /** That against the peak of the device's memory; null where that is not known. Above 1 values came from caches. */
  readonly bandwidth_ratio?: number | null;
  /** Where that is known from. */
  readonly basis: BoundBasis;
  /** What bounds it. */
  readonly bound: OffloadBound;
  /** Mean bytes that a launch moves: measured traffic of the device's memory, the compiler's count, or inputs (and the result of a product) once. Null where not known. */
  readonly bytes_per_launch?: number | null;
  /** Bytes that were copied from the host to the device since the kernel before, over all launches; null where a copy does not say them. */
  readonly copied_in_bytes?: number | null;
  /** Bytes that were copied from the device to the host before the next kernel, over all launches; null where a copy does not say them. */
  readonly copied_out_bytes?: number | null;
  /** Time in ns of these copies. */
  readonly copy_ns: number;
  /** Mean floating-point operations of a launch; null where not known. */
  readonly flops_per_launch?: number | null;
  /** Operations per byte; null where one of both is not known. */
  readonly intensity_flop_per_byte?: number | null;
  /** Whether that is an estimate. */
  readonly is_estimate: boolean;
  /** Its name. */
  readonly kernel: string;
  /** Launches. */
  readonly launches: number;
  /** Bytes per second that a link would need to bring the working set in and keep up with the launches, where the data does not stay on the accelerator; null where the working set is not known. */
  readonly link_bytes_per_second?: number | null;
  /** The longest launch; null of profiled launches, which have no time. */
  readonly longest?: Place | null;
  /** Mean length in ns. */
  readonly mean_ns: number;
  /** `total_ns` of the time of all kernels. */
  readonly time_ratio?: number | null;
  /** Sum of their lengths in ns. */
  readonly total_ns: number;
  /** The most bytes that a launch works on: buffers that an accelerator would hold on chip. From shapes or the compiler's count; null where not known. */
  readonly working_set_bytes?: number | null;
}

/** The result. */
export interface OffloadCandidatesResult {
  /** The candidates, the longest time first. */
  readonly candidates: readonly OffloadCandidate[];
  /** Candidates that were left out behind these. */
  readonly candidates_left_out: number;
  /** The part of `memory_bound_ns` that is an estimate. */
  readonly estimated_ns: number;
  /** Time in ns of all kernels, without communication. */
  readonly kernel_ns: number;
  /** The part of it that memory bounds, measured or estimated. */
  readonly memory_bound_ns: number;
  /** `memory_bound_ns` of `kernel_ns`; null without kernels. */
  readonly memory_bound_ratio?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The largest working set of a launch of these candidates in bytes: on-chip memory that holds each of them. Null where none is known. */
  readonly on_chip_bytes?: number | null;
  /** Operations per byte at which the device is balanced; null where neither the capture nor a parameter states it. */
  readonly ridge_flop_per_byte?: number | null;
  /** Bytes of these; null where one does not say them. */
  readonly transfer_bytes?: number | null;
  /** Time in ns of copies between host and device. */
  readonly transfer_ns: number;
  /** The part of `kernel_ns` of kernels of which it is not known. */
  readonly unknown_ns: number;
}

/** An opcode. */
export interface Opcode {
  /** Times that a warp executed it. */
  readonly executed: number;
  /** Its name, e.g. `FFMA`. */
  readonly name: string;
}

/** An annotated range (NVTX) that was open at a launch. */
export interface OpenRange {
  /** Its domain; empty for the default one. */
  readonly domain: string;
  /** Its name. */
  readonly name: string;
  /** The thread on whose stack it is; null for a range that no thread owns. */
  readonly thread?: number | null;
}

/** One operation. */
export interface Operation {
  /** Bytes of device memory that were given out to the process while its calls ran, by whichever thread. */
  readonly allocated_bytes?: number | null;
  /** Mean length in ns of a call. */
  readonly avg_ns: number;
  /** How often it was called. */
  readonly calls: number;
  /** Time in ns on the host outside of the CUDA API. `cpu_ns` + `overhead_ns` + `wait_ns` = `total_ns`. */
  readonly cpu_ns?: number | null;
  /** Time in ns of the kernels, memsets and copies within a device that its calls launched: of each call the length of their union, summed. */
  readonly gpu_ns?: number | null;
  /** Kernels, memsets and copies within a device that its calls launched. */
  readonly gpu_pieces?: number | null;
  /** Its longest call: end in ns. */
  readonly longest_end_ns: number;
  /** The timeline's row of that call; null where the operations are of no timeline. */
  readonly longest_row?: number | null;
  /** Its longest call: start in ns. */
  readonly longest_start_ns: number;
  /** Length in ns of its longest call. */
  readonly max_ns: number;
  /** Median length in ns of a call; null of a profile that holds sums alone. */
  readonly median_ns?: number | null;
  /** Length in ns of its shortest call. */
  readonly min_ns: number;
  /** The names as captured with most calls. */
  readonly names: readonly OperationName[];
  /** Distinct names that were left out behind these. */
  readonly names_left_out: number;
  /** Its name. */
  readonly operation: string;
  /** Time in ns inside of the CUDA API that is no waiting: launches, allocations, synchronisation without work to wait for. */
  readonly overhead_ns?: number | null;
  /** Most bytes of device memory that the process had in use while one of its calls ran. */
  readonly peak_bytes?: number | null;
  /** Calls inside of a call of the same operation. Their time is in `total_ns` twice. */
  readonly recursive_calls: number;
  /** Time in ns of those that it launched itself and not an operation inside it: the length of their union. */
  readonly self_gpu_ns?: number | null;
  /** Its own time in ns: its calls without the operations directly inside them. */
  readonly self_ns: number;
  /** Its share of the own time of all operations. */
  readonly self_ratio: number;
  /** Sample standard deviation (n - 1) of the lengths in ns; 0 of one call. */
  readonly std_dev_ns: number;
  /** Sum in ns of the lengths of its calls. */
  readonly total_ns: number;
  /** Time in ns of the copies from, to and between devices that its calls launched, as `gpu_ns`. */
  readonly transfer_ns?: number | null;
  /** Bytes of those copies; null where one does not say them. */
  readonly transferred_bytes?: number | null;
  /** Copies from, to and between devices that its calls launched. */
  readonly transfers?: number | null;
  /** Time in ns inside of synchronising and copying calls of the CUDA API while GPU work of the process ran. */
  readonly wait_ns?: number | null;
}

/** An operation that costs much. */
export interface OperationBottleneck {
  /** Its calls. */
  readonly calls: number;
  /** What it costs in ns: the longer of its own time on the host and the time of the GPU work that it launched itself. */
  readonly cost_ns: number;
  /** Its longest call: end in ns. */
  readonly longest_end_ns: number;
  /** The timeline's row of that call; null where the operations are of no timeline. */
  readonly longest_row?: number | null;
  /** Its longest call: start in ns. */
  readonly longest_start_ns: number;
  /** Its name. */
  readonly operation: string;
  /** What stands out, the gravest first. Empty where nothing does but its cost. */
  readonly reasons: readonly OperationReason[];
  /** Its share of the own time of all operations. */
  readonly self_ratio: number;
}

/** One call. */
export interface OperationCall {
  /** Time in ns on the host outside of the CUDA API. */
  readonly cpu_ns?: number | null;
  /** End in ns. */
  readonly end_ns: number;
  /** Time in ns of the GPU work that it launched, as of the operation. */
  readonly gpu_ns?: number | null;
  /** The name as captured. */
  readonly name: string;
  /** The operation. */
  readonly operation: string;
  /** Time in ns inside of the CUDA API that is no waiting. */
  readonly overhead_ns?: number | null;
  /** The timeline's row; null of a profile. */
  readonly row?: number | null;
  /** Start in ns since the session's start. */
  readonly start_ns: number;
  /** Time in ns of the transfers that it launched. */
  readonly transfer_ns?: number | null;
}

/** How much of the GPU work was launched inside of operations. */
export interface OperationCoverage {
  /** Those that an operation launched. */
  readonly inside: number;
  /** Those that were launched outside of all operations. */
  readonly outside: number;
  /** Kernels, copies and memsets. */
  readonly pieces: number;
  /** Those whose launch is not in the capture. */
  readonly without_launch: number;
}

/** What operations are made of. */
export type OperationKind = "cpu_op" | "nvtx" | "hlo" | "annotation" | "step" | "profile";

/** How many calls of a kind there are. */
export interface OperationKindCalls {
  /** Its calls. */
  readonly calls: number;
  /** What the operations are. */
  readonly kind: OperationKind;
}

/** Device memory at a time. */
export interface OperationMemory {
  /** Bytes in use. */
  readonly allocated_bytes: number;
  /** The most bytes in use up to then; of a profile the peak that its entry says. */
  readonly peak_bytes: number;
  /** When, in ns since the session's start. */
  readonly t_ns: number;
}

/** A name as captured. */
export interface OperationName {
  /** Calls of this name. */
  readonly calls: number;
  /** The whole name, with what normalising leaves out. */
  readonly name: string;
}

/** What stands out of an operation. */
export interface OperationReason {
  /** Which rule it is. */
  readonly rule: OperationRule;
  /** The figures and what they mean. */
  readonly text: string;
}

/** The rules by which an operation stands out. */
export type OperationRule = "cpu_may_be_better" | "waits_for_gpu" | "api_bound" | "host_bound" | "gpu_bound" | "uneven" | "many_short_calls";

/** The operations of a capture. */
export interface Operations {
  /** Mean length in ns of a call; null without any. */
  readonly avg_ns?: number | null;
  /** The operations that cost most. */
  readonly bottlenecks: readonly OperationBottleneck[];
  /** Calls of all operations. */
  readonly calls: number;
  /** Distinct operations, in the result or not. */
  readonly distinct: number;
  /** The first calls. */
  readonly first_calls: readonly OperationCall[];
  /** How much of the GPU work the operations account for; null of operations that are GPU work themselves, and of profiles. */
  readonly gpu_work?: OperationCoverage | null;
  /** What they are made of. */
  readonly kind: OperationKind;
  /** Calls of each kind that the capture holds. */
  readonly kinds: readonly OperationKindCalls[];
  /** Device memory over time; empty where it was not captured. */
  readonly memory: readonly OperationMemory[];
  /** What has no figures. */
  readonly not_captured: readonly NotCaptured[];
  /** The operations, the longest own time first. */
  readonly operations: readonly Operation[];
  /** Operations that were left out behind these. */
  readonly operations_left_out: number;
  /** Time in ns inside any operation: of all own times the sum, so that what is inside several counts once per thread. */
  readonly self_ns: number;
  /** Sum in ns of the lengths of all calls; what is inside several counts in each. */
  readonly total_ns: number;
}

/** A profile. */
export interface OperationsProfile {
  /** The first calls. */
  readonly entries: readonly ProfileEntry[];
  /** Calls that were left out behind these. */
  readonly entries_left_out: number;
  /** Figures of all calls, by the operation's name. */
  readonly summary: Readonly<Record<string, ProfileSummary>>;
}

/** What a function of the operating system is for. */
export type OsCall = "wait" | "lock" | "input_output" | "other";

/** A function of the operating system. */
export interface OsFunctionRow {
  /** Calls. */
  readonly calls: number;
  /** What it is for. */
  readonly kind: OsCall;
  /** The longest in ns. */
  readonly max_ns: number;
  /** Its name. */
  readonly name: string;
  /** Sum of their lengths in ns, over all threads. */
  readonly total_ns: number;
}

/** Whether a rule fired. */
export type Outcome = "fired" | "quiet" | "abstained";

/** What a window cost the program that was profiled, by a counter of its own work. 100 basis points are a percent. */
export interface Overhead {
  /** Upper end of the 95 % interval. */
  readonly high_basis_points?: number | null;
  /** Lower end of the 95 % interval. */
  readonly low_basis_points?: number | null;
  /** The same in a sentence. */
  readonly message: string;
  /** What the verdict rests on, as a word. */
  readonly reason: string;
  /** Who counted and what, such as `Recorder step`; null where nobody did. */
  readonly signal?: string | null;
  /** How much longer a unit of work took in the window; negative where it took less, null where it is not known. */
  readonly slowdown_basis_points?: number | null;
  /** How long the program stood still while the profiler started and stopped. */
  readonly stall_ms?: number | null;
  /** Against the budget of the session: `Within`, `Exceeded`, `Inconclusive` or `Blind`. */
  readonly verdict: string;
}

/** What ran at the same time on one GPU. */
export interface OverlapOfGpu {
  /** For how long how many pieces of work ran at once, of whatever class. */
  readonly at_once: readonly AtOnce[];
  /** Time in ns in which anything ran: the sum of `mixes`. */
  readonly busy_ns: number;
  /** Time in ns in which communication ran. */
  readonly communication_ns: number;
  /** Part of it in ns in which something computed. */
  readonly communication_under_compute_ns: number;
  /** That part of `communication_ns`, as HolisticTraceAnalysis has it; null without communication. */
  readonly communication_under_compute_ratio?: number | null;
  /** End of the window in ns. */
  readonly end_ns: number;
  /** The GPU on which it ran. */
  readonly gpu: Gpu;
  /** Time in ns in which copies or memsets ran. */
  readonly memory_ns: number;
  /** Part of `memory_ns` in which something communicated. */
  readonly memory_under_communication_ns: number;
  /** Part of it in ns in which something computed. */
  readonly memory_under_compute_ns: number;
  /** That part of `memory_ns`; null without copies. */
  readonly memory_under_compute_ratio?: number | null;
  /** Every combination of classes, each with the time in ns in which exactly these ran. */
  readonly mixes: readonly ClassMix[];
  /** Start of the window in ns since the session's start. */
  readonly start_ns: number;
}

/** The result. */
export interface Overlaps {
  /** The GPUs. */
  readonly gpus: readonly OverlapOfGpu[];
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
}

/** Bars: a value per label and series. */
export interface PageBars {
  /** What each bar is, in order. */
  readonly labels: readonly string[];
  /** The series, each with a value per label. */
  readonly series: readonly PageSeries[];
  /** Whether the values of a label add up to a whole; otherwise they stand side by side. */
  readonly stacked: boolean;
  /** Its heading. */
  readonly title: string;
  /** How values are shown. */
  readonly unit: PageUnit;
}

/** A part of a page. */
export type PageBlock = PageText & {
  readonly kind: "text";
} | PageTiles & {
  readonly kind: "tiles";
} | PageTable & {
  readonly kind: "table";
} | PageBars & {
  readonly kind: "bars";
} | PageLines & {
  readonly kind: "lines";
} | PageFlame & {
  readonly kind: "flame";
} | PageRoofline & {
  readonly kind: "roofline";
};

/** A value. */
export type PageCell = null | boolean | number | number | string;

/** A column of a table. */
export interface PageColumn {
  /** What it says; may be empty. */
  readonly about: string;
  /** Digits behind the point of its [`Cell::Number`]s in CSV, and on screen and paper where the unit does not scale them; null is as many as there are in CSV, and as the unit needs elsewhere. A number that lies in the middle between two is rounded before it becomes a cell, as the table defines. */
  readonly decimals?: number | null;
  /** What programs know it by, as the head of its CSV; where it is empty that is the title with the unit. */
  readonly name: string;
  /** Its head, as people read it and as CSV has it. */
  readonly title: string;
  /** How its numbers are shown. */
  readonly unit: PageUnit;
}

/** A page of blocks, in the order in which they are read. */
export interface PageContent {
  /** What it tells, in a sentence. */
  readonly about: string;
  /** What it holds. */
  readonly blocks: readonly PageBlock[];
  /** What it cannot tell of these captures, shown before everything else. */
  readonly not_captured: readonly NotCaptured[];
  /** Its heading. */
  readonly title: string;
}

/** A page, which analysis made it, and the captures that it is about. */
export interface PageDocument {
  /** The analysis that made it. */
  readonly analysis: string;
  /** The captures, in the order in which they were named. */
  readonly inputs: readonly PageHeading[];
  /** The page. */
  readonly page: PageContent;
  /** Every parameter that it was run with. */
  readonly parameters: readonly PageSetting[];
  /** Its version. */
  readonly version: number;
}

/** A flame graph: frames inside frames, each as wide as its value. Its frames are lists of equal length, a frame behind those around it, and beside each other the largest first; the first frame is all. */
export interface PageFlame {
  /** Of a difference, what the first capture has of each value; otherwise empty. */
  readonly before: readonly number[];
  /** How many frames are around each. */
  readonly depth: readonly number[];
  /** When that ended; what ends where it begins is at no place. */
  readonly end_ns: readonly number[];
  /** Kinds of frames, each with a colour. */
  readonly kinds: readonly string[];
  /** Frames that are too small to be here: their frame shows a gap. */
  readonly left_out: number;
  /** The name of each frame. */
  readonly name: readonly number[];
  /** The kind of each name. */
  readonly name_kind: readonly number[];
  /** Names of frames. */
  readonly names: readonly string[];
  /** The value of each without the frames inside it. */
  readonly own: readonly number[];
  /** When each first began, in ns since the session's start; empty where no frame is at a place. */
  readonly start_ns: readonly number[];
  /** Its heading. */
  readonly title: string;
  /** How values are shown. */
  readonly unit: PageUnit;
  /** The value of each, with the frames inside it. Of a difference it is what both captures have together. */
  readonly value: readonly number[];
}

/** What a capture is. */
export interface PageHeading {
  /** What was dropped, truncated, skipped or is unsupported. */
  readonly drops: readonly Loss[];
  /** Events of all categories. */
  readonly events: number;
  /** Product names of its GPUs, each with how many of that name there are. */
  readonly gpus: readonly string[];
  /** Secrets that were replaced in names. */
  readonly redactions: number;
  /** The session's identifier. */
  readonly session: string;
  /** The session's start in ns since the Unix epoch, where the source records it. */
  readonly session_start_utc_ns?: number | null;
  /** Name of the profiler. */
  readonly tool: string;
  /** Its version. */
  readonly tool_version: string;
  /** Length of the capture window in ns. */
  readonly window_ns: number;
}

/** Values over time. */
export interface PageLines {
  /** The series, each with a value per time, which holds up to the next. */
  readonly series: readonly PageSeries[];
  /** Times in ns since the session's start, rising. */
  readonly times_ns: readonly number[];
  /** Its heading. */
  readonly title: string;
  /** How values are shown. */
  readonly unit: PageUnit;
}

/** A roof. */
export interface PageRoof {
  /** Its name. */
  readonly name: string;
  /** What it is at most. */
  readonly value: number;
}

/** A roofline chart. What is not above zero has no place on it and is not drawn. */
export interface PageRoofline {
  /** What it tells; may be empty. */
  readonly about: string;
  /** How points moved, from one place in `points` to another. */
  readonly arrows: readonly PageRooflineArrow[];
  /** Most bytes per second of each memory: slanted roofs. */
  readonly bandwidths: readonly PageRoof[];
  /** What intensity counts, e.g. `FLOP per byte`. */
  readonly intensity: string;
  /** Most performance of each kind of work, in `unit`: flat roofs. */
  readonly peaks: readonly PageRoof[];
  /** What was measured. */
  readonly points: readonly PageRooflinePoint[];
  /** Its heading. */
  readonly title: string;
  /** How performance is shown. */
  readonly unit: PageUnit;
}

/** From a point to another. */
export interface PageRooflineArrow {
  /** Place of the point where it begins. */
  readonly from: number;
  /** Place of the point where it ends. */
  readonly to: number;
}

/** What was measured of one piece of work. */
export interface PageRooflinePoint {
  /** Work per byte. */
  readonly intensity: number;
  /** Its name. */
  readonly name: string;
  /** Work per second. */
  readonly performance: number;
  /** What it has its colour by. */
  readonly series: string;
}

/** A row of a table. */
export interface PageRow {
  /** Its cells. */
  readonly cells: readonly PageCell[];
  /** Where it is in the timeline. */
  readonly place?: Place | null;
}

/** Values that belong together. */
export interface PageSeries {
  /** Its name. */
  readonly name: string;
  /** Its values; null is not known. */
  readonly values: readonly (number | null)[];
}

/** A parameter and its value. */
export interface PageSetting {
  /** Its name. */
  readonly name: string;
  /** Its value: text as it is, anything else as JSON. */
  readonly value: string;
}

/** A table. */
export interface PageTable {
  /** What it tells; may be empty. */
  readonly about: string;
  /** Its columns. */
  readonly columns: readonly PageColumn[];
  /** Rows that were left out behind these. */
  readonly left_out: number;
  /** Its rows, each with as many cells as there are columns. */
  readonly rows: readonly PageRow[];
  /** Its heading; may be empty. */
  readonly title: string;
}

/** A paragraph. */
export interface PageText {
  /** Plain text. */
  readonly text: string;
  /** Its heading; may be empty. */
  readonly title: string;
}

/** A key figure. */
export interface PageTile {
  /** How it is defined; may be empty. */
  readonly about: string;
  /** What it is. */
  readonly label: string;
  /** How the value is shown. */
  readonly unit: PageUnit;
  /** Its value. */
  readonly value: PageCell;
}

/** Key figures. */
export interface PageTiles {
  /** Each of them. */
  readonly tiles: readonly PageTile[];
}

/** How a number is shown. The number itself is exact, in the unit that its name says. */
export type PageUnit = "none" | "ns" | "instant" | "bytes" | "bytes_per_second" | "count" | "flop_per_second" | "instructions_per_second" | "ratio" | "percent";

/** What the path runs through, by name. */
export interface PathName {
  /** Name of the operator, call or kernel; empty of the program's own code. */
  readonly name: string;
  /** Their share of the path. */
  readonly of_path_ratio: number;
  /** What it is on the path. */
  readonly part: PathPart;
  /** Segments of it. */
  readonly segments: number;
  /** Sum of their lengths in ns. */
  readonly time_ns: number;
}

/** What a part of the critical path is. */
export type PathPart = "cpu" | "data_loading" | "launch_overhead" | "compute" | "communication" | "copy" | "kernel_gap" | "sync";

/** A segment of the path. */
export interface PathSegment {
  /** End in ns. */
  readonly end_ns: number;
  /** Name of the operator, call or kernel; empty of the program's own code. */
  readonly name: string;
  /** What it is. */
  readonly part: PathPart;
  /** The timeline's row. */
  readonly row: number;
  /** Begin in ns since the session's start. */
  readonly start_ns: number;
  /** Length in ns. */
  readonly time_ns: number;
}

/** A part of the path. */
export interface PathShare {
  /** Its share of the path. */
  readonly of_path_ratio: number;
  /** What bounds the program during it. */
  readonly part: PathPart;
  /** Its time in ns. */
  readonly time_ns: number;
}

/** What bounds a window: the largest share of its critical path. */
export type PathVerdict = "cpu_bound" | "compute_bound" | "communication_bound" | "copy_bound" | "gap_bound";

/** The result. */
export interface PatternsOfLaunches {
  /** How much of the work has its call; the rest is in no sequence. */
  readonly coverage: LaunchCoverage;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** GPU operations whose call is inside no operator or range that counts. */
  readonly outside: number;
  /** Sequences, the most frequent first. One that each time is all that the operator or range around it launches stands there once, by the name of the outer one. */
  readonly patterns: readonly LaunchPattern[];
  /** Sequences that were left out. */
  readonly patterns_left_out: number;
}

/** Peak of memory of a GPU. */
export interface PeakMemory {
  /** Peak in bytes after; null where none was recorded. */
  readonly after_peak_bytes?: number | null;
  /** Peak in bytes before; null where none was recorded. */
  readonly before_peak_bytes?: number | null;
  /** The GPU, as its series or its allocator calls it. */
  readonly device: string;
}

/** Where the peak rate comes from. */
export type PeakSource = "given" | "device";

/** What calls cost, in all and in the steady state. */
export interface PhasedCost {
  /** In all. */
  readonly cost: CallCost;
  /** Start of the first in ns; null without any. */
  readonly first_ns?: number | null;
  /** End of the last in ns; null without any. */
  readonly last_ns?: number | null;
  /** Of those that begin in the steady state; null where it is not known when that begins. */
  readonly steady?: CallCost | null;
}

/** How long one device waited for others, over all iterations without warm-up. Iterations of the same number are one iteration of all loops; its window reaches from the first start to the last end of their GPU work. */
export interface PipelineBubbles {
  /** Time in ns in which no device worked. */
  readonly all_idle_ns: number;
  /** Time in ns in which it did not and another device did. */
  readonly bubble_ns: number;
  /** `bubble_ns` of `window_ns`. */
  readonly bubble_ratio: number;
  /** Time in ns of them in which the device worked. */
  readonly busy_ns: number;
  /** Which capture of a merged session. */
  readonly capture: number;
  /** Device ordinal. */
  readonly device: number;
  /** Machine as the profiler numbers it. */
  readonly machine: number;
  /** Length in ns of the iterations' windows. */
  readonly window_ns: number;
}

/** A place in the timeline, which the viewer opens. */
export interface Place {
  /** End in ns. */
  readonly end_ns: number;
  /** Which input, counted from 0 in the order in which they were named. */
  readonly input: number;
  /** The timeline's row, where it is one. */
  readonly row?: number | null;
  /** Start in ns since the session's start. */
  readonly start_ns: number;
}

/** What a pool held during each part of a window: the highest level. */
export interface PoolPoint {
  /** The most bytes that were given out during it. */
  readonly allocated_bytes: number;
  /** The most bytes that the allocator had, given out or not; null where the source does not say it. */
  readonly reserved_bytes?: number | null;
  /** Start of the part in ns. */
  readonly t_ns: number;
}

/** The result. */
export interface PrecisionResult {
  /** Highest compute capability of the GPUs, e.g. `9.0`; null where the source does not say. */
  readonly compute_capability?: string | null;
  /** The part of it on CUDA cores. */
  readonly cuda_core_ns: number;
  /** The part of it of products that could use tensor cores and ran on CUDA cores. */
  readonly eligible_unused_ns: number;
  /** Whether such a GPU has tensor cores (from 7.0 on); null where it is not known. */
  readonly has_tensor_cores?: boolean | null;
  /** Time in ns of all kernels. */
  readonly kernel_ns: number;
  /** Kernels that multiply matrices, the longest time first. */
  readonly kernels: readonly MatrixKernelRow[];
  /** Kernels that were left out behind these. */
  readonly kernels_left_out: number;
  /** Time in ns of kernels that multiply matrices. */
  readonly matrix_ns: number;
  /** `matrix_ns` of `kernel_ns`: what faster matrix products can win at most. */
  readonly matrix_ratio?: number | null;
  /** The part of it of products with a dimension that is no multiple of 16. */
  readonly misaligned_ns: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** GPU time in ns of products whose dimensions are known. */
  readonly product_ns: number;
  /** Matrix products by operator, shapes and type, the longest GPU time first. */
  readonly products: readonly MatrixProductRow[];
  /** Products that were left out behind these. */
  readonly products_left_out: number;
  /** Where the use of tensor cores is known from; null without kernels. */
  readonly source?: TensorCoreSource | null;
  /** The part of it on tensor cores. */
  readonly tensor_core_ns: number;
  /** `tensor_core_ns` of `matrix_ns`, a lower bound where `unknown_ns` is not 0; null without kernels that multiply matrices. */
  readonly tensor_core_ratio?: number | null;
  /** The part of it of kernels whose names do not say. */
  readonly unknown_ns: number;
}

/** Which captures something is in. */
export type Presence = "both" | "before" | "after";

/** Processor time that a capture took beside the program's own work. */
export interface ProcessorTime {
  /** Of what imported and transformed the recording; null where it is not known of one of these. */
  readonly processing_ms?: number | null;
  /** Of the profiler's own processes beside the program; null where it has none that are known. */
  readonly profiler_ms?: number | null;
}

/** One call. What the capture does not hold is null. */
export interface ProfileEntry {
  /** `pytorch`, `cupy`, `jax` or `cpu`, told by the operation's name and device; `unknown` of GPU work of another framework. */
  readonly backend: string;
  /** Time on the host outside of the CUDA API, in ms. */
  readonly cpu_time_ms?: number | null;
  /** `gpu` where it launched GPU work, otherwise `cpu`. */
  readonly device: string;
  /** Length in ms. */
  readonly duration_ms: number;
  /** End in seconds, likewise. */
  readonly end_time: number;
  /** Time of the GPU work that it launched, in ms. */
  readonly gpu_time_ms?: number | null;
  /** GPU time of the length, in percent. Above 100 where the GPU works on after the call has ended. */
  readonly gpu_utilization?: number | null;
  /** Device memory that was given out meanwhile, in units of 2^20 bytes. */
  readonly memory_allocated_mb?: number | null;
  /** Bytes copied by the time of the copies, in 10^9 bytes per second; null without copies, or where one does not say its bytes. */
  readonly memory_bandwidth_gb_s?: number | null;
  /** Most device memory in use meanwhile, in units of 2^20 bytes. */
  readonly memory_peak_mb?: number | null;
  /** The operation. */
  readonly operation: string;
  /** Time inside of the CUDA API that is no waiting, in ms. */
  readonly overhead_ms?: number | null;
  /** Start in seconds since the Unix epoch; since the session's start where the capture does not say when it began. */
  readonly start_time: number;
  /** Time of the copies that it launched, in ms. */
  readonly transfer_time_ms?: number | null;
}

/** Figures of one operation. */
export interface ProfileSummary {
  /** GPU time of the total time, in percent. */
  readonly avg_gpu_utilization?: number | null;
  /** Mean of the device memory that was given out in a call, in units of 2^20 bytes. */
  readonly avg_memory_mb?: number | null;
  /** Mean length in ms. */
  readonly avg_time_ms: number;
  /** How often it was called. */
  readonly call_count: number;
  /** Longest length in ms. */
  readonly max_time_ms: number;
  /** Shortest length in ms. */
  readonly min_time_ms: number;
  /** The operation. */
  readonly operation: string;
  /** Sample standard deviation (n - 1) of the lengths in ms; 0 of one call. */
  readonly std_dev_ms: number;
  /** Sum of the CPU times of its calls in ms. */
  readonly total_cpu_time_ms?: number | null;
  /** Sum of the GPU times of its calls in ms. */
  readonly total_gpu_time_ms?: number | null;
  /** Sum of the lengths of its calls in ms. */
  readonly total_time_ms: number;
}

/** Launches of a kernel profiler, which are no events: it replays them one by one. */
export interface ProfiledCount {
  /** Launches, and ranges of launches that were replayed together. */
  readonly launches: number;
  /** Metrics of all of them. */
  readonly metrics: number;
}

/** A launch. */
export interface ProfiledLaunch {
  /** Threads per block in x, y and z. */
  readonly block: readonly number[];
  /** CUDA context; 0 where the report does not say. */
  readonly context: number;
  /** Device ordinal. */
  readonly device: number;
  /** What most ask for, in one unit each. */
  readonly figures: Figures;
  /** Thread blocks in x, y and z. */
  readonly grid: readonly number[];
  /** Its number in the report. */
  readonly id: number;
  /** Each metric by the profiler's own name, as the report has it. */
  readonly metrics: Readonly<Record<string, ProfiledValue>>;
  /** The kernel's name, demangled where the report has it. */
  readonly name: string;
  /** Process id; 0 where the report does not say. */
  readonly process: number;
  /** Annotated ranges that were open on the launching thread. */
  readonly ranges: readonly OpenRange[];
  /** What NVIDIA's rules say of it, in NVIDIA's words. */
  readonly rules: readonly RuleResult[];
  /** CUDA stream; 0 where the report does not say. */
  readonly stream: number;
  /** Unit of each metric that has one. */
  readonly units: Readonly<Record<string, string>>;
}

/** The result. */
export interface ProfiledLaunches {
  /** The launches in the order of the report. */
  readonly launches: readonly ProfiledLaunch[];
  /** Launches that are not in the result. */
  readonly launches_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
}

/** The value of a metric. */
export type ProfiledValue = number | number | string;

/** A kernel. */
export interface ProfilerKernel {
  /** Total time of its launches in µs. */
  readonly cuda_time_us: number;
  /** Its name. */
  readonly name: string;
}

/** Time by kernel. */
export interface ProfilerKernels {
  /** The kernels, the longest total time first; null where kernels were not captured. */
  readonly kernels?: readonly ProfilerKernel[] | null;
}

/** Memory over time: what the framework's allocator gave out of all GPUs together; where there is no such allocator what the driver did, and where there is no GPU what was given out of the host's memory. All figures are null where no allocations were captured. */
export interface ProfilerMemory {
  /** Most MB (of 10^6 bytes) that were given out at a time. */
  readonly peak_allocated_mb?: number | null;
  /** When that was first reached, in ms since the capture's begin. */
  readonly peak_time_ms?: number | null;
  /** The memory over time: at each point the most that was given out up to the next. */
  readonly points?: readonly ProfilerMemoryPoint[] | null;
}

/** A point. */
export interface ProfilerMemoryPoint {
  /** MB (of 10^6 bytes) that were given out. */
  readonly allocated_mb: number;
  /** When, in ms since the capture's begin. */
  readonly time_ms: number;
}

/** When CPU and GPU were active. */
export interface ProfilerTimeline {
  /** Time in µs in which any thread was active; null where the CPU was not captured. */
  readonly cpu_active_time_us?: number | null;
  /** Time in µs in which any GPU was active; null where GPUs were not captured. */
  readonly gpu_active_time_us?: number | null;
  /** Time in µs in which both were; null where either was not captured. */
  readonly overlap_time_us?: number | null;
  /** From the first event to the last, in µs. */
  readonly total_time_us: number;
}

/** The queue of one stream. A work is in it from the start of its call to its own start. */
export interface QueueOfStream {
  /** Part of it in ns in which the queue was empty. */
  readonly empty_ns: number;
  /** Part of it in ns in which the queue was full. */
  readonly full_ns: number;
  /** GPU operations that went through the queue. */
  readonly gpu_ops: number;
  /** Most GPU operations in it. */
  readonly max: number;
  /** Most GPU operations in it in each bin of time. */
  readonly max_by_bin: readonly number[];
  /** Mean number of GPU operations in it over the time from the first launch to the last start; null where that is no time. */
  readonly mean?: number | null;
  /** Mean over its changes, whatever their distance in time: HolisticTraceAnalysis's mean. */
  readonly mean_at_changes: number;
  /** From the first launch to the last start in ns. */
  readonly span_ns: number;
  /** The stream whose queue this is. */
  readonly stream: GpuStream;
}

/** The result. */
export interface Queues {
  /** Starts of the bins of each stream's series in ns since the session's start. */
  readonly bin_starts_ns: readonly number[];
  /** How much of the work has its call; the rest is in no queue. */
  readonly coverage: LaunchCoverage;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The streams, the one with most GPU operations first. */
  readonly streams: readonly QueueOfStream[];
  /** Streams that were left out. */
  readonly streams_left_out: number;
}

/** A GPU of a capture. */
export interface Rank {
  /** Exposed communication over that window. */
  readonly exposed_communication_ratio?: number | null;
  /** The GPU within it, for people. */
  readonly gpu: string;
  /** Idle time over that window. */
  readonly idle_ratio?: number | null;
  /** The capture, counted from 0 in the order in which they were named. */
  readonly input: number;
  /** Iterations that launched work to it. */
  readonly iterations: number;
  /** Kernels that ran. */
  readonly kernels: number;
  /** Longest iteration in ns. */
  readonly max_iteration_ns?: number | null;
  /** Mean length of an iteration in ns; null without any. */
  readonly mean_iteration_ns?: number | null;
  /** Mean time of an iteration in ns that is not exposed communication: what the rank itself takes. */
  readonly mean_own_ns?: number | null;
  /** Shortest iteration in ns. */
  readonly min_iteration_ns?: number | null;
  /** Where its work is in its timeline. */
  readonly place?: Place | null;
  /** The capture's session. */
  readonly session_id: string;
  /** How long after the earliest capture this one began, in ns; null unless every capture says when it began. */
  readonly started_after_ns?: number | null;
  /** What its time went to, from its first work to its last. */
  readonly time: ExclusiveTime;
}

/** An iteration on every rank. */
export interface RankIteration {
  /** Its length in ns on each rank; null on one without iterations. */
  readonly length_ns: readonly (number | null)[];
  /** Its number, as the ranks have it. */
  readonly number: number;
  /** Where it is in the timeline of the slowest rank. */
  readonly place: Place;
  /** The rank with the longest. */
  readonly slowest: number;
  /** The longest less the shortest, in ns. */
  readonly spread_ns: number;
  /** The latest start less the earliest, in ns, by the clocks of the captures; null unless every capture says when it began. */
  readonly start_spread_ns?: number | null;
}

/** A kernel on every rank. */
export interface RankKernel {
  /** What it is for. */
  readonly class: WorkClass;
  /** The longest time over the mean of the ranks; null of no time. */
  readonly imbalance_ratio?: number | null;
  /** Launches on each rank. */
  readonly launches: readonly number[];
  /** Its name. */
  readonly name: string;
  /** The rank with the longest time. */
  readonly slowest: number;
  /** Time in ns on each rank, in their order. */
  readonly total_ns: readonly number[];
}

/** The result. */
export interface RanksResult {
  /** What may be wrong with the iterations, in sentences. */
  readonly cautions: readonly string[];
  /** The kernels with the longest time over all ranks. */
  readonly kernels: readonly RankKernel[];
  /** Kernels behind those. */
  readonly kernels_left_out: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Iterations by their number, of those that every rank with iterations has. */
  readonly pace: readonly RankIteration[];
  /** Iterations behind those. */
  readonly pace_left_out: number;
  /** The ranks, by input and GPU. Other lists name a rank by its place here. */
  readonly ranks: readonly Rank[];
  /** The rank whose iterations are the longest, by the mean; null with fewer than two ranks with iterations. */
  readonly slowest?: SlowestRank | null;
  /** The rank that the others wait for in collectives: the one that waits least, as `stragglers` tells it. Collectives make all iterations equally long, so that their length shows nothing of it. Null where no collective is matched between ranks, and where all wait equally long. */
  readonly straggler?: WaitedRank | null;
}

/** Code that was compiled again. */
export interface Recompile {
  /** What is different from the code compiled just before, as far as the shapes and types of the graph's inputs tell, or of its first operator's where nothing was recorded of the graph: this is inferred. Null where shapes were not recorded or one of both did not run. */
  readonly changed?: string | null;
  /** Which code. */
  readonly code: CompileId;
  /** Time in ns that its compilation took in the capture, backward pass included; null where it was compiled before. */
  readonly compile_ns?: number | null;
  /** The guard that failed. Kineto's captures never say it; `TORCH_LOGS=recompiles` does. */
  readonly guard?: string | null;
  /** Where it was compiled, else where it first ran. */
  readonly place?: Place | null;
  /** Runs in the capture. */
  readonly runs: number;
}

/** What happened with a buffer in the end. */
export type Release = "recorded" | "unrecorded" | "never";

/** The result. */
export interface Rooflines {
  /** Launches of all captures that the name allows. */
  readonly launches: number;
  /** Those of them that are not in the result, as they took less long. */
  readonly launches_left_out: number;
  /** Those of them whose report has not what a roofline is made of. */
  readonly launches_without_roofline: number;
  /** How launches of a capture moved in the next one: those of equal name, grid, block and order. */
  readonly moves: readonly LaunchMove[];
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Each launch with each kind of work that it did and each memory that it moved bytes of. */
  readonly points: readonly LaunchPoint[];
  /** Kinds of work that were measured and of which no launch did any. */
  readonly unused: readonly WorkKind[];
}

/** How much a rule's message matters. */
export type RuleKind = "information" | "optimization" | "warning" | "error";

/** What came of a rule. */
export interface RuleOutcome {
  /** Which part of the work it is about. */
  readonly area: Area;
  /** Whether it fired. */
  readonly outcome: Outcome;
  /** Why it abstained; empty otherwise. */
  readonly reason: string;
  /** The rule. */
  readonly rule: string;
  /** From where on it fires. */
  readonly thresholds: readonly RuleThreshold[];
  /** What it is about. */
  readonly title: string;
}

/** A message of one of the profiler's own rules. */
export interface RuleResult {
  /** How much it matters. */
  readonly kind: RuleKind;
  /** The metrics that it was made from. */
  readonly metrics: readonly FocusMetric[];
  /** The rule as people read it. */
  readonly name: string;
  /** The rule as the profiler knows it, e.g. `SOLBottleneck`. */
  readonly rule: string;
  /** The section of the report that it stands in, e.g. `SpeedOfLight`. */
  readonly section: string;
  /** What following it is estimated to be worth. */
  readonly speedup?: Speedup | null;
  /** The message, in the profiler's words. */
  readonly text: string;
  /** The message's heading; may be empty. */
  readonly title: string;
}

/** A threshold of a rule. */
export interface RuleThreshold {
  /** Where the threshold comes from. */
  readonly source: string;
  /** The unit of the value. */
  readonly unit: PageUnit;
  /** With what, in `unit`. */
  readonly value: number;
  /** What is compared. */
  readonly what: string;
}

/** What is taken for a run. */
export type RunSource = "iterations" | "compiled_regions";

/** A series that was sampled, not derived from events. */
export interface SampledSeries {
  /** Of which device. */
  readonly device: string;
  /** Largest of them. */
  readonly max?: number | null;
  /** Mean of all of them; null without any. */
  readonly mean?: number | null;
  /** Mean of the samples of each part; null where there is none. */
  readonly mean_by_bin: readonly (number | null)[];
  /** What was sampled, as its source calls it. */
  readonly metric: string;
  /** Samples within the time. */
  readonly samples: number;
  /** Who sampled it, e.g. `nvml`. */
  readonly source: string;
  /** Unit of the values. */
  readonly unit: string;
}

/** What an estimated speed-up is of. */
export type Scope = "unknown" | "local" | "global";

/** How much a finding matters. */
export type Severity = "low" | "medium" | "high";

/** The rank that takes longest. */
export interface SlowestRank {
  /** How much longer in ns than the median rank. */
  readonly behind_ns: number;
  /** The same in percent of the median rank. */
  readonly behind_percent: number;
  /** Its mean time in ns. */
  readonly mean_ns: number;
  /** Its place among the ranks. */
  readonly rank: number;
}

/** Where a capture came from. */
export interface Source {
  /** What the profiler was asked to record, in the profiler's own closed set of words (`Cuda`, `NvtxEvents`, ...); empty where the file does not record it. */
  readonly capture_options: readonly string[];
  /** Version of that file's schema, e.g. `3.0.0`. */
  readonly schema_version: string;
  /** Name of the profiler, e.g. `NVIDIA Nsight Systems`. */
  readonly tool: string;
  /** Version of the tool that wrote the file that was read, e.g. `2022.4.2.1`. */
  readonly tool_version: string;
}

/** Figures of the instructions of a source line, summed. */
export interface SourceLine {
  /** Times that a warp executed one of them. */
  readonly executed?: number | null;
  /** The file, as its compiler was given it. */
  readonly file: string;
  /** Instructions that it was made into. */
  readonly instructions: number;
  /** The line, counted from 1. */
  readonly line: number;
  /** Share of the launch's samples, 0 to 1. */
  readonly sample_ratio?: number | null;
  /** Samples of warps that were at one of them. */
  readonly samples?: number | null;
  /** The state that most of them were in. */
  readonly stall?: string | null;
  /** Its text; null where the report does not hold the file (`ncu --import-source yes`). */
  readonly text?: string | null;
  /** Threads that executed one of them, in all. */
  readonly threads?: number | null;
}

/** How close a launch came to what the device can do. Shares are 0 to 1. */
export interface SpeedOfLight {
  /** Parts of the multiprocessors, the busiest first. */
  readonly compute_parts: readonly UnitShare[];
  /** The busiest part of the multiprocessors. */
  readonly compute_share?: number | null;
  /** What bounds it; null where a side was not measured. */
  readonly limiter?: Limiter | null;
  /** Parts of caches and memory, the busiest first. */
  readonly memory_parts: readonly UnitShare[];
  /** The busiest part of caches and memory. */
  readonly memory_share?: number | null;
  /** How many times the grid fills the device. */
  readonly waves?: number | null;
}

/** An estimated speed-up. */
export interface Speedup {
  /** How much, in percent. */
  readonly percent: number;
  /** Of what. */
  readonly scope: Scope;
}

/** Figures of lengths. */
export interface Spread {
  /** How many; with 0 all others are 0. */
  readonly count: number;
  /** Longest in ns. */
  readonly max_ns: number;
  /** Mean in ns. */
  readonly mean_ns: number;
  /** Median in ns; between two middle ones, their mean. */
  readonly median_ns: number;
  /** Shortest in ns. */
  readonly min_ns: number;
  /** Sum in ns. */
  readonly sum_ns: number;
}

/** Why warps waited, or that they did not. */
export interface StallReason {
  /** Cycles between two instructions of a warp that it was in this state, on average. */
  readonly cycles_per_instruction: number;
  /** The profiler's word, e.g. `long_scoreboard`. */
  readonly reason: string;
  /** Share of all cycles between two of its instructions, as NVIDIA's rule has it, 0 to 1. Shares may add up to a little more. */
  readonly share: number;
}

/** Work on code of one kind. */
export interface StartUpKind {
  /** The part of it before the program ran at its pace; null where nothing repeats. */
  readonly before_pace_ns?: number | null;
  /** Events. */
  readonly events: number;
  /** Time in ns in which it was done: the union per process, summed over processes. */
  readonly held_ns: number;
  /** What was done. */
  readonly kind: CodeWork;
  /** The longest event. */
  readonly longest: Place;
}

/** The result. */
export interface StartUpResult {
  /** Break-even: `compile_ns` over `mean_run_ns`. After so many runs the program has run as long as it compiled; above 1,000 compiling is doubtful. Null where nothing was compiled or nothing repeats. */
  readonly break_even_runs?: number | null;
  /** The part of `first_gpu_work_ns` in which code was compiled, linked or loaded. */
  readonly code_before_gpu_work_ns?: number | null;
  /** Time in ns in which any process compiled, linked or loaded code: the union per process, summed over processes. */
  readonly code_ns: number;
  /** Runs that were slower by code: the first, and those in which code was compiled or loaded. */
  readonly cold_runs: number;
  /** The part of it that compiled: TorchDynamo, Inductor, Triton, XLA, NVRTC. */
  readonly compile_ns: number;
  /** Mean length in ns of a run of the second capture, of a program that is not compiled; null without one. */
  readonly eager_run_ns?: number | null;
  /** From the start of the capture to the first GPU work in ns; null without any. */
  readonly first_gpu_work_ns?: number | null;
  /** What the first launches of these took longer than the median of their later ones, in ns: an estimate of lazy loading, also where the source does not record it. Null where no launches were recorded. */
  readonly first_launch_excess_ns?: number | null;
  /** The kernels with the largest excess. */
  readonly first_launches: readonly FirstLaunch[];
  /** By what was done. */
  readonly kinds: readonly StartUpKind[];
  /** Mean length in ns of a run at the program's pace; null without any. */
  readonly mean_run_ns?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Runs after which compiling has saved more than it cost: `compile_ns` over `eager_run_ns` less `mean_run_ns`. Null without a second capture, and where a run saves nothing. */
  readonly paid_back_runs?: number | null;
  /** Kernels that were launched at least three times. */
  readonly relaunched_kernels: number;
  /** What is taken for a run; null where nothing repeats. */
  readonly run_source?: RunSource | null;
  /** Runs at the program's pace. */
  readonly runs: number;
  /** The same of all of `code_ns`. */
  readonly start_up_runs?: number | null;
}

/** One collective on all ranks. */
export interface StragglerCall {
  /** Distance of the first from the last end in ns. */
  readonly end_skew_ns: number;
  /** The rank that came first. */
  readonly first: number;
  /** Name of the process group; empty where the source does not say it. */
  readonly group: string;
  /** Its number among the group's in the first rank's capture, from 0. */
  readonly index: number;
  /** The rank that came last. */
  readonly last: number;
  /** The shortest kernel of all ranks in ns. */
  readonly latency_ns: number;
  /** What the ranks do. */
  readonly operation: CollectiveOperation;
  /** Where the rank that came first waits. */
  readonly place: Place;
  /** Distance of the first from the last start in ns. */
  readonly start_skew_ns: number;
}

/** A rank: a device of a process of a capture. */
export interface StragglerRank {
  /** What was taken from its clock, in ns. */
  readonly clock_offset_ns: number;
  /** Sum of its kernels' lengths in them in ns. */
  readonly collective_ns: number;
  /** Matched collectives that it ran. */
  readonly collectives: number;
  /** Ordinal of the device. */
  readonly device?: number | null;
  /** How often it came first. */
  readonly first: number;
  /** Which input it is of, from 0. */
  readonly input: number;
  /** How often it came last. */
  readonly last: number;
  /** Process id. */
  readonly process: number;
  /** Its number here: inputs, processes and devices in their order. */
  readonly rank: number;
  /** Sum of its waits for the last rank in ns. */
  readonly wait_ns: number;
  /** `wait_ns` of `collective_ns`. */
  readonly wait_ratio?: number | null;
}

/** Collectives of one operation, number of ranks and power of two of the message's size. */
export interface StragglerRow {
  /** Messages by latencies. */
  readonly algorithm_bytes_per_second?: number | null;
  /** The same times the operation's factor, by the group's ranks. */
  readonly bus_bytes_per_second?: number | null;
  /** Ranks that were captured. */
  readonly captured_ranks: number;
  /** Collectives. */
  readonly collectives: number;
  /** Smallest message of the bin in bytes; null where the source does not say sizes. */
  readonly from_bytes?: number | null;
  /** Ranks of the group; null where the source does not say it. */
  readonly group_ranks?: number | null;
  /** Sum of their latencies in ns: of each the shortest kernel of all ranks, which waits least. */
  readonly latency_ns: number;
  /** Longest distance of the first from the last start in ns. */
  readonly max_start_skew_ns: number;
  /** Median latency in ns. */
  readonly median_latency_ns: number;
  /** Median distance of the first from the last start in ns. */
  readonly median_start_skew_ns: number;
  /** What the ranks do. */
  readonly operation: CollectiveOperation;
}

/** Which rank the others wait for. */
export interface StragglersResult {
  /** Matched collectives that do not overlap between ranks, or differ in operation or size, and are left out: they are not the same. */
  readonly apart: number;
  /** How the times of ranks are compared. */
  readonly clocks: ClockAlignment;
  /** Median distance in ns of the first from the last end of a collective: what the alignment leaves, and so how exact waits are. */
  readonly end_skew_median_ns?: number | null;
  /** Collectives that all ranks of their group ran, as far as these were captured. */
  readonly matched: number;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Kernels of operations for which ranks need not wait for each other, e.g. broadcast, send and receive; they are left out. */
  readonly not_synchronising: number;
  /** Each rank, the one that waits least first. */
  readonly ranks: readonly StragglerRank[];
  /** Per operation, ranks and power of two of the message's size; the longest total first. */
  readonly rows: readonly StragglerRow[];
  /** Number of the rank that waits least for the others, and so comes last. Null where no collective is matched, and where all ranks wait equally long. */
  readonly straggler?: number | null;
  /** Collectives that are not in the captures of all ranks of their group. */
  readonly unmatched: number;
  /** Sum of all waits of all ranks in ns: GPU time that was lost. */
  readonly wait_ns: number;
  /** The collectives with the longest waits. */
  readonly worst: readonly StragglerCall[];
  /** Collectives that were left out behind these. */
  readonly worst_left_out: number;
}

/** What a stream ran. */
export interface Stream {
  /** Length in ns of the union of their intervals. */
  readonly busy_ns: number;
  /** CUDA context; 0 where the source does not say. */
  readonly context: number;
  /** Device ordinal. */
  readonly device: number;
  /** Distinct names among them. */
  readonly distinct_kernels: number;
  /** Kernels that it ran. */
  readonly launches: number;
  /** Process id as the profiler saw it. */
  readonly process: number;
  /** CUDA stream; 0 where the source does not say. */
  readonly stream: number;
}

/** The result: a row per stream that ran a kernel, by process, device, context and stream. */
export interface Streams {
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The streams. */
  readonly rows: readonly Stream[];
}

/** What a capture holds, in tables. Times are in ns, sizes in bytes. */
export interface Summary {
  /** Ranges that a framework marked by other means than NVTX, by name. They nest. */
  readonly annotations?: Table;
  /** Every category of this version, captured or not. */
  readonly categories: readonly CategoryCount[];
  /** CUDA API calls by function. */
  readonly cuda_api: Table;
  /** CUDA graphs that were recorded as a whole, by graph. Their kernels are in no table. */
  readonly cuda_graphs?: Table;
  /** Operations of an accelerator that has no streams (TPU), by name. */
  readonly device_ops?: Table;
  /** What was dropped, truncated, skipped or is unsupported. */
  readonly drops: readonly Loss[];
  /** Length in ns from the start of the first event to the end of the last: the part of the window in which the program was seen at work. 0 without events. */
  readonly events_span_ns: number;
  /** Per GPU that had work, how long it was busy. */
  readonly gpus: readonly GpuBusy[];
  /** GPU kernels by name. */
  readonly kernels: Table;
  /** How much of the GPU work has its launching call in the capture. */
  readonly launches: Launches;
  /** Copies and migrations of unified memory by kind, sizes. */
  readonly memcpy_size: Table;
  /** Copies and migrations of unified memory by kind, durations. */
  readonly memcpy_time: Table;
  /** Memsets, durations. */
  readonly memset: Table;
  /** Memsets, sizes. */
  readonly memset_size?: Table;
  /** NVTX ranges by style and name. */
  readonly nvtx: Table;
  /** Operators of a framework on the CPU by name. They nest: a caller's time holds that of what it calls. */
  readonly operators?: Table;
  /** Operating system calls by function. */
  readonly os_runtime: Table;
  /** What the window cost the program that was profiled; null where that was not looked at. */
  readonly overhead?: Overhead | null;
  /** Processor time that the capture took beside the program's own work; null where nobody measured it. */
  readonly processor_time?: ProcessorTime | null;
  /** All launches that a kernel profiler replayed. */
  readonly profiled?: ProfiledCount;
  /** Launches that a kernel profiler (Nsight Compute) replayed, by kernel: durations as it measured them. */
  readonly profiled_kernels?: Table;
  /** Secrets that were replaced in names. */
  readonly redactions: number;
  /** The session's identifier. */
  readonly session_id: string;
  /** The session's start in ns since the Unix epoch, where the source records it. */
  readonly session_start_utc_ns?: number | null;
  /** The profiler and its versions. */
  readonly source: Source;
  /** Events of all categories. */
  readonly total_events: number;
  /** What did the heavy steps of the transform, and why that; null where the caller did not say. */
  readonly transformed_on?: TransformedOn | null;
  /** [`VERSION`]. */
  readonly version: number;
  /** Length of the capture window in ns. */
  readonly window_ns: number;
}

/** One call. */
export interface SyncCall {
  /** Length in ns. */
  readonly duration_ns: number;
  /** The part of it in which no GPU worked for the process; null where none ever did. */
  readonly gpu_idle_ns?: number | null;
  /** The innermost range, operator, annotation or function around it; empty where there is none. */
  readonly held_by: string;
  /** Why the host waits. */
  readonly kind: SyncKind;
  /** Name of the call. */
  readonly name: string;
  /** Process id. */
  readonly process: number;
  /** Row of the timeline. */
  readonly row: number;
  /** Start in ns. */
  readonly start_ns: number;
  /** Thread id. */
  readonly thread?: number | null;
}

/** A range, operator, annotation or function that holds waits. */
export interface SyncHolder {
  /** Its category: `nvtx_range`, `cpu_op`, `annotation` or `python_function`. */
  readonly category: Category;
  /** What the waits cost that it holds with no other of its category between. */
  readonly cost: CallCost;
  /** The longest of these waits. */
  readonly longest: Place;
  /** Its name without the numbers that tell one instance from the next. */
  readonly name: string;
}

/** Why the host waits in a call. */
export type SyncKind = "device" | "stream" | "event" | "copy" | "pageable_copy" | "memset";

/** Calls that wait for one reason. */
export interface SyncKindRow {
  /** What these calls cost. */
  readonly cost: CallCost;
  /** Why the host waits. */
  readonly kind: SyncKind;
}

/** A rule and what it found. */
export interface SyncRule {
  /** Its condition. */
  readonly about: string;
  /** What it found: calls, copies or memsets. */
  readonly count: number;
  /** How many were left out behind these. */
  readonly left_out: number;
  /** The longest of them. */
  readonly rows: readonly SyncRuleRow[];
  /** Its name in `nsys analyze`. */
  readonly rule: string;
  /** Sum of their lengths in ns: of calls on the host, of copies and memsets on the GPU. */
  readonly total_ns: number;
}

/** What a rule found. */
export interface SyncRuleRow {
  /** Name of the call. */
  readonly api_name: string;
  /** Bytes of a copy or memset. */
  readonly bytes?: number | null;
  /** CUDA context. */
  readonly context?: number | null;
  /** Kind of memory that is written. */
  readonly destination_kind?: string | null;
  /** Ordinal of the device. */
  readonly device?: number | null;
  /** Length in ns: of a call on the host, of a copy or memset on the GPU. */
  readonly duration_ns: number;
  /** Process id. */
  readonly process: number;
  /** Row of the timeline. */
  readonly row: number;
  /** Kind of memory that is read. */
  readonly source_kind?: string | null;
  /** Its start in ns. */
  readonly start_ns: number;
  /** CUDA stream. */
  readonly stream?: number | null;
  /** Thread id, of a call. */
  readonly thread?: number | null;
}

/** A table, the largest total first. */
export interface Table {
  /** Whether the source recorded this at all. `false` means "not captured", which is not the same as no rows. */
  readonly captured: boolean;
  /** One row per name. */
  readonly rows: readonly TableRow[];
  /** Unit of the figures. */
  readonly unit: Measure;
  /** Events whose value the source does not say, such as copies of unknown size: they are in no row. */
  readonly unknown?: number;
}

/** Figures of one name. */
export interface TableRow {
  /** Arithmetic mean. */
  readonly avg: number;
  /** Values. */
  readonly calls: number;
  /** The largest. */
  readonly max: number;
  /** The middle one, or the mean of the two middle ones. */
  readonly median: number;
  /** The smallest. */
  readonly min: number;
  /** What the row is about: a kernel, an API function, a range, as the table says. */
  readonly name: string;
  /** `total` as a share of the table's sum, 0 to 1; not of the window. */
  readonly share_of_table: number;
  /** Sample standard deviation (n - 1); 0 for a single one. */
  readonly stddev: number;
  /** How an NVTX range was made, `PushPop` or `StartEnd`; elsewhere absent. */
  readonly style?: string | null;
  /** Sum; the largest number where it would not fit 64 bits. */
  readonly total: number;
}

/** Where it is known from whether a kernel uses tensor cores. */
export type TensorCoreSource = "counters" | "names";

/** What a thread did. */
export interface ThreadRow {
  /** The part of `waiting_ns` in synchronisation with a GPU. */
  readonly gpu_waiting_ns: number;
  /** A text for people. */
  readonly label: string;
  /** The part of `waiting_ns` in functions of the operating system. */
  readonly os_waiting_ns: number;
  /** Process id. */
  readonly process: number;
  /** Thread id. */
  readonly thread: number;
  /** Time on each of its tracks, each counted once; tracks overlap. */
  readonly tracks: readonly ThreadTrack[];
  /** The rest of the window: nothing of it was recorded. */
  readonly unrecorded_ns: number;
  /** Time in ns in which it waited: in functions of the operating system that wait, or in synchronisation with a GPU. */
  readonly waiting_ns: number;
  /** Time in ns in which something of it was recorded and it did not wait. */
  readonly working_ns: number;
  /** `working_ns` of the window. */
  readonly working_ratio?: number | null;
}

/** Time of a thread on a track. */
export interface ThreadTrack {
  /** Length of the union of their times in ns. */
  readonly busy_ns: number;
  /** Events on it. */
  readonly events: number;
  /** Row of the timeline. */
  readonly row: number;
  /** The track: `cuda_api`, `nvtx`, `os_runtime`, `cpu_op`, `annotation`, `python` or `overhead`. */
  readonly track: string;
}

/** Utilisation of a thread over time. */
export interface ThreadUtilisation {
  /** Process id. */
  readonly process: number;
  /** Thread id. */
  readonly thread: number;
  /** The share of each piece of time in which it worked. */
  readonly working_ratio: readonly (number | null)[];
}

/** What the threads of a capture did. */
export interface ThreadsResult {
  /** When each piece of time begins in ns. */
  readonly bin_starts_ns: readonly number[];
  /** Threads that were left out behind these. */
  readonly left_out: number;
  /** Time in ns that threads worked, summed, by the window: how many threads worked on average. */
  readonly mean_working_threads?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** Functions of the operating system over all threads, the longest total first. */
  readonly os_functions: readonly OsFunctionRow[];
  /** The threads, those that worked longest first. Of each, `working_ns`, `waiting_ns` and `unrecorded_ns` add up to the window. */
  readonly rows: readonly ThreadRow[];
  /** Threads of which anything was recorded. */
  readonly threads: number;
  /** Utilisation over time of the threads that worked longest. */
  readonly utilisation: readonly ThreadUtilisation[];
  /** Length in ns from the first event to the end of the last: the window of every thread. */
  readonly window_ns: number;
}

/** A kernel, whole graph, range or operator in both captures. Times are per iteration or capture, as the result's `unit` says, in whole ns. */
export interface TimeDifference {
  /** Calls after, in all that is compared. */
  readonly after_calls: number;
  /** Mean length of a call in ns after; null without any. */
  readonly after_mean_ns?: number | null;
  /** Time in ns after. */
  readonly after_ns: number;
  /** The longest call after. */
  readonly after_place?: Place | null;
  /** Calls before, in all that is compared. */
  readonly before_calls: number;
  /** Mean length of a call in ns before; null without any. */
  readonly before_mean_ns?: number | null;
  /** Time in ns before. */
  readonly before_ns: number;
  /** The longest call before. */
  readonly before_place?: Place | null;
  /** Its category, such as `cuda_kernel` or `nvtx_range`. */
  readonly category: string;
  /** What it is for, of a kernel or a whole graph. */
  readonly class?: WorkClass | null;
  /** The part of the difference in ns that comes from more or fewer calls: their change times the mean length before, rounded once. */
  readonly count_part_ns: number;
  /** `after_ns` less `before_ns`. */
  readonly difference_ns: number;
  /** The rest, in ns: calls after times the change of the mean length. Both parts add up to the difference. */
  readonly duration_part_ns: number;
  /** By what the two sides were matched. */
  readonly matched_by: MatchedBy;
  /** Its name; the short name of a kernel of which a side has several variants. */
  readonly name: string;
  /** Which captures it is in. */
  readonly presence: Presence;
}

/** Where the time of one GPU went. `compute + exposed communication + exposed memory + idle = window`, exactly. */
export interface TimeOfGpu {
  /** Time in ns in which anything ran. */
  readonly busy_ns: number;
  /** `busy_ns` of the window. */
  readonly busy_ratio: number;
  /** Time in ns in which communication ran, hidden or not. */
  readonly communication_ns: number;
  /** End of the window in ns. */
  readonly end_ns: number;
  /** The GPU whose time this is. */
  readonly gpu: Gpu;
  /** Kernels, copies and memsets that ran in the window. */
  readonly gpu_ops: number;
  /** Pieces of idle time. */
  readonly idle_pieces: number;
  /** The longest idle piece in ns. */
  readonly longest_idle_ns: number;
  /** Time in ns in which copies or memsets ran, hidden or not. */
  readonly memory_ns: number;
  /** Part of the idle time in ns that is in pieces below the threshold. */
  readonly micro_idle_ns: number;
  /** How many such pieces there are. */
  readonly micro_idle_pieces: number;
  /** Time in ns in which something ran and nothing computed: HolisticTraceAnalysis's non-compute time. */
  readonly non_compute_ns: number;
  /** The window, divided: each ns is in one part. */
  readonly parts: ExclusiveTime;
  /** Start of the window in ns since the session's start. */
  readonly start_ns: number;
}

/** The result. The lists are of the first capture that holds compiled code; the others are compared with it. */
export interface TorchCompileResult {
  /** Runs after which compiling took as long as what was compiled ran: compile time over mean run time. Null without such runs or compilation. */
  readonly break_even_runs?: number | null;
  /** Their time in ns. */
  readonly cache_lookup_ns: number;
  /** Searches for code whose guards hold. */
  readonly cache_lookups: number;
  /** The captures side by side. */
  readonly captures: readonly CompileSide[];
  /** Compile time in ns: the union of the phases of each thread, which nest, summed over threads. */
  readonly compile_ns: number;
  /** Functions that Dynamo began to compile and gave up, and that run uncompiled; PyTorch 2.6 and later says it. */
  readonly given_up: readonly GivenUp[];
  /** Such functions that were left out behind these. */
  readonly given_up_left_out: number;
  /** Graph breaks: places where the program leaves one graph and goes on in another. */
  readonly graph_breaks: readonly GraphBreak[];
  /** Graph breaks that were left out behind these. */
  readonly graph_breaks_left_out: number;
  /** Graphs that the backend was asked to compile (`compile_fx_inner`). */
  readonly graphs: number;
  /** Graphs of those that it generated code for (`fx_codegen_and_compile`); the others came from Inductor's cache. */
  readonly graphs_generated: number;
  /** The capture that the lists are of, by its place among `captures`; null where none holds compiled code. */
  readonly input?: number | null;
  /** Their mean time in ns; null without any. */
  readonly mean_cache_lookup_ns?: number | null;
  /** Their mean length in ns; null without any. */
  readonly mean_run_ns?: number | null;
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** The phases, the longest own time first. */
  readonly phases: readonly CompilePhase[];
  /** Phases that were left out behind these. */
  readonly phases_left_out: number;
  /** Code that was compiled again. */
  readonly recompiles: readonly Recompile[];
  /** Such code that was left out behind these. */
  readonly recompiles_left_out: number;
  /** Compiled code by how long it ran. */
  readonly regions: readonly CompiledRegion[];
  /** Such code that was left out behind these. */
  readonly regions_left_out: number;
  /** Traces that Dynamo began again, as it does at the first graph break of a function (`compile_attempt_1` and later). */
  readonly restarts: number;
  /** The same by thread. */
  readonly threads: readonly CompileThread[];
  /** Outermost runs in which nothing was compiled. */
  readonly warm_runs: number;
}

/** What did the heavy steps of the transform. The rest of the artifacts is the same on every device. */
export interface TransformedOn {
  /** Which device. */
  readonly device: Device;
  /** Why that one, in a sentence. */
  readonly reason: string;
}

/** The result. */
export interface TypesOfWork {
  /** Each class over all GPUs, with its names. */
  readonly classes: readonly ClassOfWork[];
  /** Each class of each GPU. */
  readonly gpus: readonly ClassOfGpu[];
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
}

/** How busy a part of the device was. */
export interface UnitShare {
  /** The profiler's metric. */
  readonly metric: string;
  /** Share of its peak, 0 to 1. */
  readonly share: number;
}

/** Busy time of a GPU in each part. */
export interface UtilizationOfGpu {
  /** Time in ns in which anything ran. */
  readonly busy_ns: readonly number[];
  /** Time in ns in which something computed. */
  readonly compute_ns: readonly number[];
  /** Time in ns in which communication ran and nothing computed. */
  readonly exposed_communication_ns: readonly number[];
  /** Time in ns in which copies or memsets ran and nothing else did. */
  readonly exposed_memory_ns: readonly number[];
  /** The GPU whose time this is. */
  readonly gpu: Gpu;
}

/** The result. */
export interface UtilizationOverTime {
  /** Starts of the parts in ns since the session's start. Each goes up to the next, the last up to `end_ns`. */
  readonly bin_starts_ns: readonly number[];
  /** Copies and memsets of each GPU by kind. */
  readonly copies: readonly CopiesOverTime[];
  /** End of the last part in ns. */
  readonly end_ns: number;
  /** The GPUs that have events. */
  readonly gpus: readonly UtilizationOfGpu[];
  /** What has no figures, and why. */
  readonly not_captured: readonly NotCaptured[];
  /** What was sampled. */
  readonly series: readonly SampledSeries[];
  /** Series that were left out. */
  readonly series_left_out: number;
}

/** The rank that the others wait for. */
export interface WaitedRank {
  /** The same of the rank that waits longest. */
  readonly longest_wait_ns: number;
  /** Its place among the ranks. */
  readonly rank: number;
  /** Sum of its waits for the last rank in ns. */
  readonly wait_ns: number;
}

/** What a piece of GPU work is for. */
export type WorkClass = "compute" | "communication" | "memory";

/** A kind of work. */
export type WorkKind = "fp64" | "fp32" | "fp16" | "tensor" | "integer" | "instructions";

/** The type of each analysis's result. */
export interface Results {
  readonly "summary": Summary;
  readonly "advice": Advice;
  readonly "kernels-per-stream": Streams;
  readonly "kernel-changes": Changes;
  readonly "collectives": CollectivesResult;
  readonly "compare": Comparison;
  readonly "ranks": RanksResult;
  readonly "batch-sweep": BatchSweepResult;
  readonly "gpu-time": GpuTimes;
  readonly "overlap": Overlaps;
  readonly "kernel-types": TypesOfWork;
  readonly "profiled-kernels": ProfiledLaunches;
  readonly "profiled-kernel": LaunchDetails;
  readonly "roofline": Rooflines;
  readonly "profiled-in-timeline": JoinedKernels;
  readonly "cpu-gpu": CpuGpuTime;
  readonly "events": EventPage;
  readonly "cuda_gpu_kern_sum": NsysTimes;
  readonly "cuda_gpu_kern_gb_sum": NsysTimes;
  readonly "cuda_gpu_mem_time_sum": NsysTimes;
  readonly "cuda_gpu_mem_size_sum": NsysSizes;
  readonly "cuda_gpu_sum": NsysTimes;
  readonly "cuda_api_sum": NsysTimes;
  readonly "cuda_api_gpu_sum": NsysTimes;
  readonly "cuda_kern_exec_sum": NsysLaunchTimes;
  readonly "cuda_kern_exec_trace": NsysLaunches;
  readonly "cuda_gpu_trace": NsysGpuTrace;
  readonly "cuda_api_trace": NsysApiTrace;
  readonly "nvtx_sum": NsysTimes;
  readonly "nvtx_pushpop_sum": NsysTimes;
  readonly "nvtx_pushpop_trace": NsysPushPopTrace;
  readonly "nvtx_kern_sum": NsysRangeKernels;
  readonly "nvtx_gpu_proj_sum": NsysProjections;
  readonly "nvtx_gpu_proj_trace": NsysProjectionTrace;
  readonly "osrt_sum": NsysTimes;
  readonly "iterations": IterationsResult;
  readonly "stragglers": StragglersResult;
  readonly "host-sync": HostSyncResult;
  readonly "operations": Operations;
  readonly "operations-profile": OperationsProfile;
  readonly "hlo-operations": HloOperations;
  readonly "hlo-cost": HloCostResult;
  readonly "hlo-graph": HloGraph;
  readonly "hlo-memory": HloMemory;
  readonly "profiler-timeline": ProfilerTimeline;
  readonly "profiler-kernels": ProfilerKernels;
  readonly "profiler-hta": HTAReport;
  readonly "torch-compile": TorchCompileResult;
  readonly "profiler-compile": CompileReport;
  readonly "critical-path": CriticalPathResult;
  readonly "mfu": MfuResult;
  readonly "precision": PrecisionResult;
  readonly "offload-candidates": OffloadCandidatesResult;
  readonly "idle": IdleTime;
  readonly "launches": LaunchFigures;
  readonly "launch-patterns": PatternsOfLaunches;
  readonly "queue-length": Queues;
  readonly "utilization": UtilizationOverTime;
  readonly "module-loading": ModuleLoadingResult;
  readonly "start-up": StartUpResult;
  readonly "allocations": AllocationsResult;
  readonly "threads": ThreadsResult;
  readonly "memory": MemoryResult;
  readonly "buffers": BuffersResult;
  readonly "memory-profile": MemoryProfileResult;
  readonly "memory-profile-changes": MemoryProfileChangesResult;
  readonly "profiler-memory": ProfilerMemory;
  readonly "flame-graph": FlameGraph;
  readonly "flame-difference": FlameDifference;
}

/** Every analysis, in published order. */
export const ANALYSES = [
  {
    "name": "summary",
    "about": "Tables per name, GPU busy time, and what is missing.",
    "group": "overview",
    "inputs": "one",
    "file_name": "summary.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "advice",
    "about": "What makes the capture slow, why, what mending it is worth, and what to do.",
    "group": "advice",
    "inputs": "one",
    "file_name": "advice.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most findings, those that are worth most.",
        "format": "uint32",
        "maximum": 100,
        "minimum": 1,
        "type": "integer"
      },
      "places": {
        "default": 5,
        "description": "Most places in the timeline per finding.",
        "format": "uint32",
        "maximum": 100,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "kernels-per-stream",
    "about": "Launches, busy time and distinct kernels of each stream of each GPU.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "kernels-per-stream.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "kernel-changes",
    "about": "Time, launches and mean of each kernel in two captures, before and after, and what comes of launches and of their length.",
    "group": "comparison",
    "inputs": "two",
    "file_name": "kernel-changes.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 1000,
        "description": "Most kernels in the result, those whose total time differs most.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "name_contains": {
        "default": "",
        "description": "Only kernels whose name contains this text.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "collectives",
    "about": "Message sizes, algorithm and bus bandwidth, outliers and hidden time of NCCL's and other collectives.",
    "group": "host",
    "inputs": "one",
    "file_name": "collectives.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most collectives in each list of single ones.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "outlier_percent": {
        "default": 200,
        "description": "A collective is an outlier where it took more than so many percent of the median of its like: same operation, group and message size.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 101,
        "type": "integer"
      }
    }
  },
  {
    "name": "compare",
    "about": "Two captures, before and after a change: comparability, what differs per iteration and per kernel, and a verdict.",
    "group": "comparison",
    "inputs": "two",
    "file_name": "compare.json",
    "page": true,
    "parameters": {
      "by": {
        "default": "auto",
        "description": "How iterations are found.",
        "oneOf": [
          {
            "const": "auto",
            "description": "By steps, else by ranges, else by the sequence of kernels.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the line `Steps` of a device.",
            "type": "string"
          },
          {
            "const": "range",
            "description": "By the NVTX range or annotation that repeats.",
            "type": "string"
          },
          {
            "const": "kernels",
            "description": "By the period of the sequence of kernels.",
            "type": "string"
          }
        ]
      },
      "confidence_percent": {
        "default": 95,
        "description": "Confidence, in percent, of the test of iterations and of the interval of the change.",
        "format": "uint32",
        "maximum": 99,
        "minimum": 50,
        "type": "integer"
      },
      "least_comparability": {
        "default": 0.5,
        "description": "Comparability below which there is no verdict, from 0 to 1.",
        "format": "double",
        "maximum": 1.0,
        "minimum": 0.0,
        "type": "number"
      },
      "limit": {
        "default": 200,
        "description": "Most rows of each list, those that differ most.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "noise_floor_percent": {
        "default": 2.0,
        "description": "Change in percent below which one run a side cannot tell a change from noise, whatever the threshold.",
        "format": "double",
        "maximum": 1000.0,
        "minimum": 0.0,
        "type": "number"
      },
      "per": {
        "default": "auto",
        "description": "What times are compared per.",
        "oneOf": [
          {
            "const": "auto",
            "description": "An iteration where both captures have some of one kind and name, else the whole capture.",
            "type": "string"
          },
          {
            "const": "capture",
            "description": "The whole capture.",
            "type": "string"
          }
        ]
      },
      "range": {
        "default": "",
        "description": "The NVTX range or annotation that is an iteration; empty to find it.",
        "maxLength": 1024,
        "type": "string"
      },
      "skip_iterations": {
        "default": 0,
        "description": "Iterations at the beginning of each capture that are left out, as their warm-up.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 0,
        "type": "integer"
      },
      "threshold_percent": {
        "default": 5.0,
        "description": "Change of the compared time, in percent, from which on it is a regression or an improvement.",
        "format": "double",
        "maximum": 1000.0,
        "minimum": 0.0,
        "type": "number"
      }
    }
  },
  {
    "name": "ranks",
    "about": "The ranks of one job side by side: what each GPU's time went to, its iterations, and which rank is behind.",
    "group": "comparison",
    "inputs": "many",
    "file_name": "ranks.json",
    "page": true,
    "parameters": {
      "by": {
        "default": "auto",
        "description": "How iterations are found.",
        "oneOf": [
          {
            "const": "auto",
            "description": "By steps, else by ranges, else by the sequence of kernels.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the line `Steps` of a device.",
            "type": "string"
          },
          {
            "const": "range",
            "description": "By the NVTX range or annotation that repeats.",
            "type": "string"
          },
          {
            "const": "kernels",
            "description": "By the period of the sequence of kernels.",
            "type": "string"
          }
        ]
      },
      "kernels": {
        "default": 20,
        "description": "Most kernels in the result, those with the longest time over all ranks.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "limit": {
        "default": 200,
        "description": "Most iterations in the result, the earliest.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "range": {
        "default": "",
        "description": "The NVTX range or annotation that is an iteration; empty to find it.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "batch-sweep",
    "about": "Captures of one program with different batch sizes: throughput, time per item, memory, efficiency against linear, and the batch from which on more no longer pays.",
    "group": "comparison",
    "inputs": "many",
    "file_name": "batch-sweep.json",
    "page": true,
    "parameters": {
      "batch_sizes": {
        "default": "",
        "description": "The batch size of each capture in their order, separated by commas, e.g. `8,16,32`; one that is left out is taken from the shapes of operators. Count what one\niteration works on, over all devices.",
        "maxLength": 1024,
        "type": "string"
      },
      "knee_percent": {
        "default": 90.0,
        "description": "From this share in percent of the best throughput on a batch is large enough: the smallest of these is the knee.",
        "format": "double",
        "maximum": 100.0,
        "minimum": 1.0,
        "type": "number"
      },
      "peak_tflops": {
        "default": null,
        "description": "Peak of one device in TFLOP/s for the type of number that the model computes with, without sparsity; it goes before the rates that the captures state.",
        "format": "double",
        "maximum": 1000000000.0,
        "minimum": 1e-6,
        "type": [
          "number",
          "null"
        ]
      }
    }
  },
  {
    "name": "gpu-time",
    "about": "Where the time of each GPU went: computation, communication and copies that nothing hides, idle. The parts add up to the window exactly.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "gpu-time.json",
    "page": true,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only what lies behind this time in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "micro_idle_below_ns": {
        "default": 30000,
        "description": "Idle pieces shorter than this, in ns, are also reported apart: they are the price of one launch after another.",
        "format": "uint64",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "integer"
      },
      "to_ns": {
        "default": null,
        "description": "Only what lies before this time in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "window": {
        "default": "gpu",
        "description": "Which time of each GPU is analysed.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "From the first start to the last end of the GPU's own work, as HolisticTraceAnalysis and TraceLens have it.",
            "type": "string"
          },
          {
            "const": "all_gpus",
            "description": "From the first start to the last end of the work of any GPU, so that a GPU that begins late or ends early is idle meanwhile.",
            "type": "string"
          },
          {
            "const": "capture",
            "description": "The whole capture.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "overlap",
    "about": "How much communication and copying each GPU hides under computation, and which kinds of work run at once.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "overlap.json",
    "page": true,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only what lies behind this time in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only what lies before this time in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "window": {
        "default": "gpu",
        "description": "Which time of each GPU is analysed.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "From the first start to the last end of the GPU's own work, as HolisticTraceAnalysis and TraceLens have it.",
            "type": "string"
          },
          {
            "const": "all_gpus",
            "description": "From the first start to the last end of the work of any GPU, so that a GPU that begins late or ends early is idle meanwhile.",
            "type": "string"
          },
          {
            "const": "capture",
            "description": "The whole capture.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "kernel-types",
    "about": "Computation, communication and memory work of GPUs, and the names that take most of each.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "kernel-types.json",
    "page": true,
    "parameters": {
      "duration_ratio": {
        "default": 1.0,
        "description": "A class's list ends with the name by which it has this share of the class's time, from 0 to 1.",
        "format": "double",
        "maximum": 1.0,
        "minimum": 0.0,
        "type": "number"
      },
      "limit": {
        "default": 10,
        "description": "Most names of each class; the rest is summed up.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "profiled-kernels",
    "about": "Launches that Nsight Compute measured: speed of light, occupancy, caches, and every metric.",
    "group": "kernels",
    "inputs": "one",
    "file_name": "profiled-kernels.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most launches in the result, the first of the report.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "metric_contains": {
        "default": "",
        "description": "Only metrics whose name contains this text.",
        "maxLength": 1024,
        "type": "string"
      },
      "name_contains": {
        "default": "",
        "description": "Only kernels whose name contains this text.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "profiled-kernel",
    "about": "A launch that Nsight Compute measured, from inside: its limiter, occupancy, memory, stalls, instructions, and NVIDIA's rules.",
    "group": "kernels",
    "inputs": "one",
    "file_name": "profiled-kernel.json",
    "page": true,
    "parameters": {
      "launch": {
        "default": null,
        "description": "Number of the launch in its report; null is the one that took longest.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "limit": {
        "default": 200,
        "description": "Most instructions and most source lines in the result, those with most samples.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "roofline",
    "about": "Work per second over work per byte of launches that Nsight Compute measured, below the roofs of their device.",
    "group": "kernels",
    "inputs": "many",
    "file_name": "roofline.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 100,
        "description": "Most launches of each capture, those that took longest.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 1,
        "type": "integer"
      },
      "name_contains": {
        "default": "",
        "description": "Only kernels whose name contains this text.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "profiled-in-timeline",
    "about": "Kernels of a timeline beside what Nsight Compute measured of them, joined by name, grid, block and order.",
    "group": "kernels",
    "inputs": "two",
    "file_name": "profiled-in-timeline.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 200,
        "description": "Most rows of each list, those that took longest in the timeline.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "name_contains": {
        "default": "",
        "description": "Only kernels whose name contains this text.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "cpu-gpu",
    "about": "When the CPU was active, when GPUs were, and when both were.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "cpu-gpu.json",
    "page": true,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only what lies behind this time in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "include_python": {
        "default": true,
        "description": "Whether functions of the Python interpreter count as activity of the CPU.",
        "type": "boolean"
      },
      "min_duration_ns": {
        "default": 0,
        "description": "Events shorter than this, in ns, are left out, on either side.",
        "format": "uint64",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "integer"
      },
      "to_ns": {
        "default": null,
        "description": "Only what lies before this time in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      }
    }
  },
  {
    "name": "events",
    "about": "Events in the order of their starts, in pages, by time and category.",
    "group": "overview",
    "inputs": "one",
    "file_name": "events.json",
    "page": true,
    "parameters": {
      "after": {
        "default": 0,
        "description": "So many of them come before this page: what the page before gave as `next`.",
        "format": "uint64",
        "minimum": 0,
        "type": "integer"
      },
      "category": {
        "default": "",
        "description": "Only events of this category, such as `cuda_kernel`; empty for all.",
        "maxLength": 64,
        "type": "string"
      },
      "from_ns": {
        "default": 0,
        "description": "Only events that end behind this time, in ns from the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": "integer"
      },
      "limit": {
        "default": 10000,
        "description": "Most events on the page.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "to_ns": {
        "default": 0,
        "description": "Only events that start before this time, in ns from the session's start; 0 for no bound.",
        "format": "uint64",
        "minimum": 0,
        "type": "integer"
      }
    }
  },
  {
    "name": "cuda_gpu_kern_sum",
    "about": "Times of GPU kernels by name, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_gpu_kern_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_gpu_kern_gb_sum",
    "about": "Times of GPU kernels by name, grid and block, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_gpu_kern_gb_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_gpu_mem_time_sum",
    "about": "Times of copies and memsets on GPUs by kind, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_gpu_mem_time_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "cuda_gpu_mem_size_sum",
    "about": "Sizes of copies and memsets on GPUs by kind, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_gpu_mem_size_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "cuda_gpu_sum",
    "about": "Times of GPU kernels, copies and memsets together, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_gpu_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_api_sum",
    "about": "Times of calls of the CUDA runtime and driver by function, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_api_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "cuda_api_gpu_sum",
    "about": "Times of CUDA calls, GPU kernels, copies and memsets together, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_api_gpu_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_kern_exec_sum",
    "about": "Times of kernels from launch to end by thread, device, function and kernel, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_kern_exec_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_kern_exec_trace",
    "about": "Call, wait in the queue and run of each kernel in the order of the calls, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_kern_exec_trace.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_gpu_trace",
    "about": "Kernels, copies and memsets in the order of their starts, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_gpu_trace.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the kernel's, as in `step/gemm`: nsys's\n`:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_api_trace",
    "about": "Calls of the CUDA runtime and driver in the order of their starts, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "cuda_api_trace.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "nvtx_sum",
    "about": "Times of NVTX ranges by style and name, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "nvtx_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "nvtx_pushpop_sum",
    "about": "Times of NVTX push/pop ranges by name, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "nvtx_pushpop_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "nvtx_pushpop_trace",
    "about": "NVTX push/pop ranges in the order of their starts with the ranges around and inside them, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "nvtx_pushpop_trace.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "nvtx_kern_sum",
    "about": "Times of kernels by the NVTX ranges that they were launched in, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "nvtx_kern_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      },
      "name": {
        "default": "demangled",
        "description": "How kernels are called: nsys's `:base` and `:mangled`.",
        "oneOf": [
          {
            "const": "demangled",
            "description": "By the whole name: `void gemm<float>(float*)`.",
            "type": "string"
          },
          {
            "const": "base",
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole name where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps its whole name.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "nvtx_gpu_proj_sum",
    "about": "NVTX ranges projected onto GPUs by name, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "nvtx_gpu_proj_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "nvtx_gpu_proj_trace",
    "about": "Each NVTX range projected onto GPUs, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "nvtx_gpu_proj_trace.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "osrt_sum",
    "about": "Times of calls of the operating system by function, as nsys stats has them.",
    "group": "nsys_tables",
    "inputs": "one",
    "file_name": "osrt_sum.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 10000,
        "description": "Most rows in the result, the first ones in the table's order.",
        "format": "uint32",
        "maximum": 10000000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "iterations",
    "about": "Iterations of the training or inference loop: timing, what their GPU time went to, outliers and pipeline bubbles.",
    "group": "steps",
    "inputs": "one",
    "file_name": "iterations.json",
    "page": true,
    "parameters": {
      "by": {
        "default": "auto",
        "description": "How iterations are looked for.",
        "oneOf": [
          {
            "const": "auto",
            "description": "By steps, else by ranges, else by the sequence of kernels.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the line `Steps` of a device.",
            "type": "string"
          },
          {
            "const": "range",
            "description": "By the NVTX range or annotation that repeats.",
            "type": "string"
          },
          {
            "const": "kernels",
            "description": "By the period of the sequence of kernels.",
            "type": "string"
          }
        ]
      },
      "kernel_limit": {
        "default": 20,
        "description": "Most kernels of that list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "limit": {
        "default": 1000,
        "description": "Most iterations in the list, the first ones.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "number": {
        "default": null,
        "description": "Number of an iteration whose kernels are listed.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "range": {
        "default": "",
        "description": "The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to choose one.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "stragglers",
    "about": "Which rank the others wait for in collectives, and latency and bandwidth of collectives without the wait. Ranks are inputs, or devices of one.",
    "group": "host",
    "inputs": "many",
    "file_name": "stragglers.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most collectives in the list of those with the longest waits.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "host-sync",
    "about": "What it costs that the host waits for GPUs: by kind of wait, by the ranges that hold it, and how much of it the GPU was idle.",
    "group": "host",
    "inputs": "one",
    "file_name": "host-sync.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "small_copy_bytes": {
        "default": 64000,
        "description": "Copies from host to device of so many bytes or fewer are left out of the rule `cuda_memcpy_sync`, as Nsight Systems does.",
        "format": "uint32",
        "maximum": 1073741824,
        "minimum": 0,
        "type": "integer"
      }
    }
  },
  {
    "name": "operations",
    "about": "NVTX ranges, annotations, PyTorch operators or HLO operations by name: calls, time, and how it splits into GPU, CPU, transfers and overhead.",
    "group": "operations",
    "inputs": "one",
    "file_name": "operations.json",
    "page": true,
    "parameters": {
      "bottlenecks": {
        "default": 5,
        "description": "Most bottlenecks.",
        "format": "uint32",
        "maximum": 100,
        "minimum": 0,
        "type": "integer"
      },
      "first_calls": {
        "default": 100,
        "description": "Most calls of the operation timeline, the first ones.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 0,
        "type": "integer"
      },
      "kind": {
        "default": "auto",
        "description": "What operations are made of.",
        "oneOf": [
          {
            "const": "auto",
            "description": "The first of the others, in their order, that the capture holds.",
            "type": "string"
          },
          {
            "const": "cpu_op",
            "description": "Operators of PyTorch on the CPU.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "hlo",
            "description": "Operations of a compiled program (HLO) on the device.",
            "type": "string"
          },
          {
            "const": "annotation",
            "description": "Ranges that the program marked by other means than NVTX.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "Steps of the training or inference loop.",
            "type": "string"
          }
        ]
      },
      "names": {
        "default": 5,
        "description": "Most names as captured per operation, those with most calls.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 0,
        "type": "integer"
      },
      "normalise": {
        "default": true,
        "description": "Whether names that differ in numbers, addresses and ids alone are one operation.",
        "type": "boolean"
      },
      "top": {
        "default": 200,
        "description": "Most operations in the result, those that take longest by themselves.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "operations-profile",
    "about": "Operations as entries and summaries of an operation profiler: operation, call_count, total_time_ms and so on.",
    "group": "operations",
    "inputs": "one",
    "file_name": "operations-profile.json",
    "page": true,
    "parameters": {
      "kind": {
        "default": "auto",
        "description": "What operations are made of.",
        "oneOf": [
          {
            "const": "auto",
            "description": "The first of the others, in their order, that the capture holds.",
            "type": "string"
          },
          {
            "const": "cpu_op",
            "description": "Operators of PyTorch on the CPU.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "hlo",
            "description": "Operations of a compiled program (HLO) on the device.",
            "type": "string"
          },
          {
            "const": "annotation",
            "description": "Ranges that the program marked by other means than NVTX.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "Steps of the training or inference loop.",
            "type": "string"
          }
        ]
      },
      "limit": {
        "default": 1000,
        "description": "Most entries, the first ones. Summaries are of all calls.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 0,
        "type": "integer"
      },
      "top": {
        "default": 1000,
        "description": "Most operations in the summary, those that take longest by themselves.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "hlo-operations",
    "about": "Operations of compiled programs (JAX, XLA): time, FLOP and bytes, intensity, what bounds them, and the kernels and lines of source behind them.",
    "group": "operations",
    "inputs": "one",
    "file_name": "hlo-operations.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 200,
        "description": "Most operations, and most kernels, in the result: those that take longest.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "program": {
        "default": "",
        "description": "Only programs whose name contains this text.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "hlo-cost",
    "about": "FLOP, bytes and intensity of each compiled program (JAX, XLA) counted from its instructions, beside cost_analysis and the time that was measured.",
    "group": "operations",
    "inputs": "one",
    "file_name": "hlo-cost.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "hlo-graph",
    "about": "Graph of a compiled program (JAX, XLA): computations, fusions with what they hold, opcodes before and after optimisation, and the instructions around one.",
    "group": "operations",
    "inputs": "many",
    "file_name": "hlo-graph.json",
    "page": true,
    "parameters": {
      "around": {
        "default": "",
        "description": "Name of an instruction: only those that it takes values from and gives values to; empty for the whole program.",
        "maxLength": 1024,
        "type": "string"
      },
      "distance": {
        "default": 2,
        "description": "Steps from that instruction, over operands and users alike.",
        "format": "uint32",
        "maximum": 100,
        "minimum": 0,
        "type": "integer"
      },
      "inside": {
        "default": false,
        "description": "Whether instructions inside fusions, loops and other called computations are nodes too.",
        "type": "boolean"
      },
      "limit": {
        "default": 500,
        "description": "Most nodes, and most rows of each table.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "program": {
        "default": "",
        "description": "Only programs whose name contains this text; of several the one with most instructions.",
        "maxLength": 1024,
        "type": "string"
      },
      "program_id": {
        "default": "",
        "description": "Number of the program in decimal digits, where several have its name; empty for any.",
        "maxLength": 20,
        "type": "string"
      },
      "stage": {
        "default": "auto",
        "description": "Which stage of the program's compilation, where captures hold both.",
        "oneOf": [
          {
            "const": "auto",
            "description": "After optimisation where the captures hold that, else before it.",
            "type": "string"
          },
          {
            "const": "before",
            "description": "Before optimisation.",
            "type": "string"
          },
          {
            "const": "after",
            "description": "After optimisation, as it runs.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "hlo-memory",
    "about": "Memory of a compiled program (JAX, XLA) as its compiler planned it: lifetimes of values, the peak, and what is in it.",
    "group": "operations",
    "inputs": "one",
    "file_name": "hlo-memory.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 200,
        "description": "Most values in each list, the largest.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "memory_space": {
        "default": 0,
        "description": "Memory as the compiler numbers them: 0 is the device's ordinary memory, 5 that of the host on TPUs.",
        "format": "uint32",
        "maximum": 255,
        "minimum": 0,
        "type": "integer"
      },
      "program": {
        "default": "",
        "description": "Only programs whose name contains this text; of several the one that takes most memory.",
        "maxLength": 1024,
        "type": "string"
      },
      "program_id": {
        "default": "",
        "description": "Number of the program in decimal digits, where several have its name; empty for any.",
        "maxLength": 20,
        "type": "string"
      }
    }
  },
  {
    "name": "profiler-timeline",
    "about": "Total, CPU-active, GPU-active and overlapping time in µs, as /api/profiler/timeline has it.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "profiler-timeline.json",
    "page": true,
    "parameters": {
      "include_python_events": {
        "default": true,
        "description": "Whether functions of the Python interpreter count as activity of the CPU.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 1.0,
        "description": "Events shorter than this, in µs, are left out.",
        "format": "double",
        "maximum": 1000000,
        "minimum": 0,
        "type": "number"
      }
    }
  },
  {
    "name": "profiler-kernels",
    "about": "Total time of each kernel in µs, as /api/profiler/kernels has it.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "profiler-kernels.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 1000,
        "description": "Most kernels, those that take longest.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "profiler-hta",
    "about": "Idle, compute and communication time of the GPUs in percent, as /api/profiler/hta has it.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "profiler-hta.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "torch-compile",
    "about": "torch.compile: compile time by phase, graph breaks with reason and remedy, recompiles, coverage; beside an eager capture the speed-up of each mode.",
    "group": "operations",
    "inputs": "many",
    "file_name": "torch-compile.json",
    "page": true,
    "parameters": {
      "labels": {
        "default": "",
        "description": "What to call the captures, in their order and separated by commas, e.g. `eager,default,max-autotune`: captures do not say the mode. Empty to number\nthem from 1.",
        "maxLength": 1024,
        "type": "string"
      },
      "limit": {
        "default": 100,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "profiler-compile",
    "about": "Speed-up, compile time, graph breaks and fusion of torch.compile, as /api/profiler/compile has it.",
    "group": "operations",
    "inputs": "many",
    "file_name": "profiler-compile.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "critical-path",
    "about": "The longest chain of work that waits for work in an iteration: whether CPU, compute, copies or communication bound it.",
    "group": "steps",
    "inputs": "one",
    "file_name": "critical-path.json",
    "page": true,
    "parameters": {
      "by": {
        "default": "auto",
        "description": "How iterations are looked for.",
        "oneOf": [
          {
            "const": "auto",
            "description": "By steps, else by ranges, else by the sequence of kernels.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the line `Steps` of a device.",
            "type": "string"
          },
          {
            "const": "range",
            "description": "By the NVTX range or annotation that repeats.",
            "type": "string"
          },
          {
            "const": "kernels",
            "description": "By the period of the sequence of kernels.",
            "type": "string"
          }
        ]
      },
      "limit": {
        "default": 500,
        "description": "Most segments in the list, the longest ones.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "number": {
        "default": null,
        "description": "Number of the iteration; without one, the iteration of median length, the first of each loop left out.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "range": {
        "default": "",
        "description": "The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to choose one.",
        "maxLength": 1024,
        "type": "string"
      },
      "whole": {
        "default": false,
        "description": "The whole capture instead of an iteration, of the process with the most GPU work.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "mfu",
    "about": "Model FLOP utilisation: the floating-point operations of iterations beside the peak of their devices, and those of each matrix product and attention.",
    "group": "steps",
    "inputs": "one",
    "file_name": "mfu.json",
    "page": true,
    "parameters": {
      "by": {
        "default": "auto",
        "description": "How iterations are looked for.",
        "oneOf": [
          {
            "const": "auto",
            "description": "By steps, else by ranges, else by the sequence of kernels.",
            "type": "string"
          },
          {
            "const": "step",
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the line `Steps` of a device.",
            "type": "string"
          },
          {
            "const": "range",
            "description": "By the NVTX range or annotation that repeats.",
            "type": "string"
          },
          {
            "const": "kernels",
            "description": "By the period of the sequence of kernels.",
            "type": "string"
          }
        ]
      },
      "flops_per_iteration": {
        "default": null,
        "description": "Floating-point operations of one iteration of one loop (of one process, where each process runs a loop) on all of its devices, forward and\nbackward, e.g. `1.2e15`. Without iterations it is those of the whole capture. It goes before all that was recorded.",
        "format": "double",
        "maximum": 1e+24,
        "minimum": 1.0,
        "type": [
          "number",
          "null"
        ]
      },
      "limit": {
        "default": 50,
        "description": "Most iterations, and most operations, in the lists.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "peak_tflops": {
        "default": null,
        "description": "Peak of one device in TFLOP/s for the type of number that the model computes with, from its data sheet and without sparsity, e.g.\n`989` for BF16 on an H100 SXM. It goes before the rates that the capture states.",
        "format": "double",
        "maximum": 1000000000.0,
        "minimum": 1e-6,
        "type": [
          "number",
          "null"
        ]
      },
      "range": {
        "default": "",
        "description": "The NVTX range or annotation that is an iteration, the region of interest; digits may be written as `#`. Empty to choose one.",
        "maxLength": 1024,
        "type": "string"
      },
      "whole": {
        "default": false,
        "description": "The whole capture instead of iterations.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "precision",
    "about": "Tensor cores: the share of matrix products that use them, those that could and do not, their types of number and whether their dimensions fit.",
    "group": "kernels",
    "inputs": "one",
    "file_name": "precision.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 100,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "offload-candidates",
    "about": "Kernels that memory bounds, by their time: bytes, intensity, copies around them, and what an accelerator would need to take them.",
    "group": "kernels",
    "inputs": "many",
    "file_name": "offload-candidates.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most kernels in the list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "ridge_flop_per_byte": {
        "default": null,
        "description": "Operations per byte at which the device's compute and memory are balanced, from its data sheet: peak operations per second over peak bandwidth. It goes before what\nthe capture states, and is needed for matrix products where that states none.",
        "format": "double",
        "maximum": 1000000.0,
        "minimum": 0.001,
        "type": [
          "number",
          "null"
        ]
      }
    }
  },
  {
    "name": "idle",
    "about": "When GPUs and their streams did nothing, whether the host was late, and what the launching threads did meanwhile.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "idle.json",
    "page": true,
    "parameters": {
      "kernel_wait_ns": {
        "default": 30000,
        "description": "Gaps of work that was launched in time are the wait of one kernel for another where they are shorter than this, in ns.",
        "format": "uint64",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "integer"
      },
      "limit": {
        "default": 50,
        "description": "Most gaps in the list of the largest.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "streams": {
        "default": 64,
        "description": "Most streams, those with most gaps.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "launches",
    "about": "How long launching calls take, how long their work runs and waits, which GPU operations are shorter than their launch.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "launches.json",
    "page": true,
    "parameters": {
      "include_memory": {
        "default": true,
        "description": "Whether copies and memsets count beside kernels.",
        "type": "boolean"
      },
      "late_ns": {
        "default": 100000,
        "description": "Work that begins later than this behind the end of its call, in ns, is late.",
        "format": "uint64",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "integer"
      },
      "limit": {
        "default": 50,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "slow_call_ns": {
        "default": 50000,
        "description": "A call longer than this, in ns, is slow.",
        "format": "uint64",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "integer"
      }
    }
  },
  {
    "name": "launch-patterns",
    "about": "Sequences of kernels, copies and memsets that operators or ranges launch again and again: what could be fused or be a CUDA graph.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "launch-patterns.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 20,
        "description": "Most sequences.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 1,
        "type": "integer"
      },
      "min_count": {
        "default": 2,
        "description": "Occurrences that a sequence has at least.",
        "format": "uint64",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "min_length": {
        "default": 3,
        "description": "GPU operations that a sequence has at least.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "under": {
        "default": "",
        "description": "Only operators, annotations, steps and ranges whose name contains this text. Empty: all of them.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "queue-length",
    "about": "How much launched work waits for each stream, when its queue ran dry and when it was full.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "queue-length.json",
    "page": true,
    "parameters": {
      "bins": {
        "default": 200,
        "description": "Points of the series over time.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "capacity": {
        "default": 1024,
        "description": "GPU operations at which a queue is full, so that a launching thread waits. CUDA's queue holds 1024 per stream.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "limit": {
        "default": 32,
        "description": "Most streams, those with most GPU operations.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "utilization",
    "about": "How busy GPUs were over time and what they copied, from their events, beside the series that were sampled.",
    "group": "gpu_time",
    "inputs": "one",
    "file_name": "utilization.json",
    "page": true,
    "parameters": {
      "bins": {
        "default": 200,
        "description": "Parts of the time.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "from_ns": {
        "default": null,
        "description": "Start in ns since the session's start; by default that of the capture.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "series": {
        "default": 64,
        "description": "Most sampled series.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 0,
        "type": "integer"
      },
      "to_ns": {
        "default": null,
        "description": "End in ns; by default that of the capture.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      }
    }
  },
  {
    "name": "module-loading",
    "about": "When code is loaded onto GPUs, linked or compiled: how long that takes, and what of it is left in the steady state.",
    "group": "host",
    "inputs": "one",
    "file_name": "module-loading.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 100,
        "description": "Most names in the result.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "start-up",
    "about": "Compiling and loading of code against the program's pace: what it cost, when, and after how many runs it is paid back.",
    "group": "host",
    "inputs": "many",
    "file_name": "start-up.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 20,
        "description": "Most kernels in the list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "allocations",
    "about": "What it costs to give out and take back memory: time, GPU idle meanwhile, and what is left of it in the steady state.",
    "group": "host",
    "inputs": "one",
    "file_name": "allocations.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most calls in the list of the longest.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "threads",
    "about": "What each thread of the host did: worked, waited, or did nothing that was recorded, and over time.",
    "group": "host",
    "inputs": "one",
    "file_name": "threads.json",
    "page": true,
    "parameters": {
      "bins": {
        "default": 100,
        "description": "Pieces of time in which utilisation is given.",
        "format": "uint32",
        "maximum": 2000,
        "minimum": 1,
        "type": "integer"
      },
      "charted": {
        "default": 8,
        "description": "Threads whose utilisation over time is given.",
        "format": "uint32",
        "maximum": 100,
        "minimum": 0,
        "type": "integer"
      },
      "limit": {
        "default": 200,
        "description": "Most threads in the result, those that worked longest.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "memory",
    "about": "Memory over time: the peak, what was alive then and who had asked for it, and what was reserved and not given out.",
    "group": "memory",
    "inputs": "one",
    "file_name": "memory.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      },
      "points": {
        "default": 400,
        "description": "Parts of the capture of which each has a point in the charts.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "buffers",
    "about": "Lifetimes of buffers, those that are never taken back, how often the same sizes are asked for, and how much could be used again.",
    "group": "memory",
    "inputs": "one",
    "file_name": "buffers.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 20,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "memory-profile",
    "about": "A profile of memory in the format of pprof, e.g. of JAX's save_device_memory_profile: what was given out by device, function and stack.",
    "group": "memory",
    "inputs": "one",
    "file_name": "memory-profile.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "memory-profile-changes",
    "about": "The difference of two profiles of memory, before and after, by device, function and stack, as go tool pprof -base tells it.",
    "group": "comparison",
    "inputs": "two",
    "file_name": "memory-profile-changes.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 50,
        "description": "Most rows of each list.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "profiler-memory",
    "about": "Memory over time and its peak in MB, as /api/profiler/memory has it.",
    "group": "memory",
    "inputs": "one",
    "file_name": "profiler-memory.json",
    "page": true,
    "parameters": {
      "record_history": {
        "default": true,
        "description": "Whether there are points; without them only the peak is told.",
        "type": "boolean"
      },
      "sample_interval_ms": {
        "default": 1.0,
        "description": "Time from one point to the next, in ms. It is longer where there would be more than 100,000 points.",
        "format": "double",
        "maximum": 3600000,
        "minimum": 0.001,
        "type": "number"
      }
    }
  },
  {
    "name": "flame-graph",
    "about": "Time of GPUs or of the CPU, or samples of it, by the stack of ranges, operators and functions.",
    "group": "operations",
    "inputs": "one",
    "file_name": "flame-graph.json",
    "page": true,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only time behind this, in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "group_by": {
        "default": "none",
        "description": "What the outermost frames stand for.",
        "oneOf": [
          {
            "const": "none",
            "description": "Nothing: equal stacks are one, whoever they are of.",
            "type": "string"
          },
          {
            "const": "process",
            "description": "Processes.",
            "type": "string"
          },
          {
            "const": "thread",
            "description": "Threads: of GPU operations those that launched them.",
            "type": "string"
          },
          {
            "const": "device",
            "description": "GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          },
          {
            "const": "stream",
            "description": "Streams of GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          }
        ]
      },
      "group_small_kernels": {
        "default": true,
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame.",
        "type": "boolean"
      },
      "limit": {
        "default": 20000,
        "description": "Most frames; with more the shortest are summed.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "max_depth": {
        "default": 50,
        "description": "Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.",
        "format": "uint32",
        "maximum": 500,
        "minimum": 1,
        "type": "integer"
      },
      "merge_numbered": {
        "default": true,
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations\ninto `(small kernels)`. Samples have no length: of them nothing is summed by it.",
        "format": "double",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "number"
      },
      "stacks": {
        "default": "all",
        "description": "Which frames stacks are made of; those of samples are always the functions that called each\nother.",
        "oneOf": [
          {
            "const": "all",
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA calls, too.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "operators",
            "description": "Steps, annotations and operators.",
            "type": "string"
          },
          {
            "const": "python",
            "description": "Functions of Python.",
            "type": "string"
          }
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only time before this, in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "weight": {
        "default": "gpu",
        "description": "Which time the graph is made of.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of accelerators without streams nest, and count\nonce per row.",
            "type": "string"
          },
          {
            "const": "cpu",
            "description": "The time of each thread in which it was inside any frame.",
            "type": "string"
          },
          {
            "const": "samples",
            "description": "Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is\none sample.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "flame-difference",
    "about": "What a change did to the time of each stack: the flame graphs of two captures in one.",
    "group": "comparison",
    "inputs": "two",
    "file_name": "flame-difference.json",
    "page": true,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only time behind this, in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "group_by": {
        "default": "none",
        "description": "What the outermost frames stand for.",
        "oneOf": [
          {
            "const": "none",
            "description": "Nothing: equal stacks are one, whoever they are of.",
            "type": "string"
          },
          {
            "const": "process",
            "description": "Processes.",
            "type": "string"
          },
          {
            "const": "thread",
            "description": "Threads: of GPU operations those that launched them.",
            "type": "string"
          },
          {
            "const": "device",
            "description": "GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          },
          {
            "const": "stream",
            "description": "Streams of GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          }
        ]
      },
      "group_small_kernels": {
        "default": true,
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame.",
        "type": "boolean"
      },
      "limit": {
        "default": 20000,
        "description": "Most frames; with more the shortest are summed.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "max_depth": {
        "default": 50,
        "description": "Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.",
        "format": "uint32",
        "maximum": 500,
        "minimum": 1,
        "type": "integer"
      },
      "merge_numbered": {
        "default": true,
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations\ninto `(small kernels)`. Samples have no length: of them nothing is summed by it.",
        "format": "double",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "number"
      },
      "stacks": {
        "default": "all",
        "description": "Which frames stacks are made of; those of samples are always the functions that called each\nother.",
        "oneOf": [
          {
            "const": "all",
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA calls, too.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "operators",
            "description": "Steps, annotations and operators.",
            "type": "string"
          },
          {
            "const": "python",
            "description": "Functions of Python.",
            "type": "string"
          }
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only time before this, in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "weight": {
        "default": "gpu",
        "description": "Which time the graph is made of.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of accelerators without streams nest, and count\nonce per row.",
            "type": "string"
          },
          {
            "const": "cpu",
            "description": "The time of each thread in which it was inside any frame.",
            "type": "string"
          },
          {
            "const": "samples",
            "description": "Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is\none sample.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "flame-folded",
    "about": "The flame graph as folded stacks in ns, or in samples, for flamegraph.pl, Perfetto and others.",
    "group": "exports",
    "inputs": "one",
    "file_name": "flame.folded",
    "page": false,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only time behind this, in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "group_by": {
        "default": "none",
        "description": "What the outermost frames stand for.",
        "oneOf": [
          {
            "const": "none",
            "description": "Nothing: equal stacks are one, whoever they are of.",
            "type": "string"
          },
          {
            "const": "process",
            "description": "Processes.",
            "type": "string"
          },
          {
            "const": "thread",
            "description": "Threads: of GPU operations those that launched them.",
            "type": "string"
          },
          {
            "const": "device",
            "description": "GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          },
          {
            "const": "stream",
            "description": "Streams of GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          }
        ]
      },
      "group_small_kernels": {
        "default": true,
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame.",
        "type": "boolean"
      },
      "limit": {
        "default": 20000,
        "description": "Most frames; with more the shortest are summed.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "max_depth": {
        "default": 50,
        "description": "Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.",
        "format": "uint32",
        "maximum": 500,
        "minimum": 1,
        "type": "integer"
      },
      "merge_numbered": {
        "default": true,
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations\ninto `(small kernels)`. Samples have no length: of them nothing is summed by it.",
        "format": "double",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "number"
      },
      "stacks": {
        "default": "all",
        "description": "Which frames stacks are made of; those of samples are always the functions that called each\nother.",
        "oneOf": [
          {
            "const": "all",
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA calls, too.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "operators",
            "description": "Steps, annotations and operators.",
            "type": "string"
          },
          {
            "const": "python",
            "description": "Functions of Python.",
            "type": "string"
          }
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only time before this, in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "weight": {
        "default": "gpu",
        "description": "Which time the graph is made of.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of accelerators without streams nest, and count\nonce per row.",
            "type": "string"
          },
          {
            "const": "cpu",
            "description": "The time of each thread in which it was inside any frame.",
            "type": "string"
          },
          {
            "const": "samples",
            "description": "Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is\none sample.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "flame-pprof",
    "about": "The flame graph as a profile of pprof, for `go tool pprof`, Pyroscope and others.",
    "group": "exports",
    "inputs": "one",
    "file_name": "flame.pb.gz",
    "page": false,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only time behind this, in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "group_by": {
        "default": "none",
        "description": "What the outermost frames stand for.",
        "oneOf": [
          {
            "const": "none",
            "description": "Nothing: equal stacks are one, whoever they are of.",
            "type": "string"
          },
          {
            "const": "process",
            "description": "Processes.",
            "type": "string"
          },
          {
            "const": "thread",
            "description": "Threads: of GPU operations those that launched them.",
            "type": "string"
          },
          {
            "const": "device",
            "description": "GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          },
          {
            "const": "stream",
            "description": "Streams of GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          }
        ]
      },
      "group_small_kernels": {
        "default": true,
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame.",
        "type": "boolean"
      },
      "limit": {
        "default": 20000,
        "description": "Most frames; with more the shortest are summed.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "max_depth": {
        "default": 50,
        "description": "Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.",
        "format": "uint32",
        "maximum": 500,
        "minimum": 1,
        "type": "integer"
      },
      "merge_numbered": {
        "default": true,
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations\ninto `(small kernels)`. Samples have no length: of them nothing is summed by it.",
        "format": "double",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "number"
      },
      "stacks": {
        "default": "all",
        "description": "Which frames stacks are made of; those of samples are always the functions that called each\nother.",
        "oneOf": [
          {
            "const": "all",
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA calls, too.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "operators",
            "description": "Steps, annotations and operators.",
            "type": "string"
          },
          {
            "const": "python",
            "description": "Functions of Python.",
            "type": "string"
          }
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only time before this, in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "weight": {
        "default": "gpu",
        "description": "Which time the graph is made of.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of accelerators without streams nest, and count\nonce per row.",
            "type": "string"
          },
          {
            "const": "cpu",
            "description": "The time of each thread in which it was inside any frame.",
            "type": "string"
          },
          {
            "const": "samples",
            "description": "Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is\none sample.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "flame-speedscope",
    "about": "The flame graph as a profile of https://www.speedscope.app.",
    "group": "exports",
    "inputs": "one",
    "file_name": "flame.speedscope.json",
    "page": false,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only time behind this, in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "group_by": {
        "default": "none",
        "description": "What the outermost frames stand for.",
        "oneOf": [
          {
            "const": "none",
            "description": "Nothing: equal stacks are one, whoever they are of.",
            "type": "string"
          },
          {
            "const": "process",
            "description": "Processes.",
            "type": "string"
          },
          {
            "const": "thread",
            "description": "Threads: of GPU operations those that launched them.",
            "type": "string"
          },
          {
            "const": "device",
            "description": "GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          },
          {
            "const": "stream",
            "description": "Streams of GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          }
        ]
      },
      "group_small_kernels": {
        "default": true,
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame.",
        "type": "boolean"
      },
      "limit": {
        "default": 20000,
        "description": "Most frames; with more the shortest are summed.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "max_depth": {
        "default": 50,
        "description": "Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.",
        "format": "uint32",
        "maximum": 500,
        "minimum": 1,
        "type": "integer"
      },
      "merge_numbered": {
        "default": true,
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations\ninto `(small kernels)`. Samples have no length: of them nothing is summed by it.",
        "format": "double",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "number"
      },
      "stacks": {
        "default": "all",
        "description": "Which frames stacks are made of; those of samples are always the functions that called each\nother.",
        "oneOf": [
          {
            "const": "all",
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA calls, too.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "operators",
            "description": "Steps, annotations and operators.",
            "type": "string"
          },
          {
            "const": "python",
            "description": "Functions of Python.",
            "type": "string"
          }
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only time before this, in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "weight": {
        "default": "gpu",
        "description": "Which time the graph is made of.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of accelerators without streams nest, and count\nonce per row.",
            "type": "string"
          },
          {
            "const": "cpu",
            "description": "The time of each thread in which it was inside any frame.",
            "type": "string"
          },
          {
            "const": "samples",
            "description": "Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is\none sample.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "hlo-dot",
    "about": "The graph of a compiled program (JAX, XLA) as text of Graphviz (DOT), for `dot -Tsvg`.",
    "group": "exports",
    "inputs": "many",
    "file_name": "program.dot",
    "page": false,
    "parameters": {
      "around": {
        "default": "",
        "description": "Name of an instruction: only those that it takes values from and gives values to; empty for the whole program.",
        "maxLength": 1024,
        "type": "string"
      },
      "distance": {
        "default": 2,
        "description": "Steps from that instruction, over operands and users alike.",
        "format": "uint32",
        "maximum": 100,
        "minimum": 0,
        "type": "integer"
      },
      "inside": {
        "default": false,
        "description": "Whether instructions inside fusions, loops and other called computations are nodes too.",
        "type": "boolean"
      },
      "limit": {
        "default": 500,
        "description": "Most nodes, and most rows of each table.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      },
      "program": {
        "default": "",
        "description": "Only programs whose name contains this text; of several the one with most instructions.",
        "maxLength": 1024,
        "type": "string"
      },
      "program_id": {
        "default": "",
        "description": "Number of the program in decimal digits, where several have its name; empty for any.",
        "maxLength": 20,
        "type": "string"
      },
      "stage": {
        "default": "auto",
        "description": "Which stage of the program's compilation, where captures hold both.",
        "oneOf": [
          {
            "const": "auto",
            "description": "After optimisation where the captures hold that, else before it.",
            "type": "string"
          },
          {
            "const": "before",
            "description": "Before optimisation.",
            "type": "string"
          },
          {
            "const": "after",
            "description": "After optimisation, as it runs.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "flame-difference-pprof",
    "about": "What a change did to the time of each stack, as a profile of pprof.",
    "group": "exports",
    "inputs": "two",
    "file_name": "flame-difference.pb.gz",
    "page": false,
    "parameters": {
      "from_ns": {
        "default": null,
        "description": "Only time behind this, in ns since the session's start.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "group_by": {
        "default": "none",
        "description": "What the outermost frames stand for.",
        "oneOf": [
          {
            "const": "none",
            "description": "Nothing: equal stacks are one, whoever they are of.",
            "type": "string"
          },
          {
            "const": "process",
            "description": "Processes.",
            "type": "string"
          },
          {
            "const": "thread",
            "description": "Threads: of GPU operations those that launched them.",
            "type": "string"
          },
          {
            "const": "device",
            "description": "GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          },
          {
            "const": "stream",
            "description": "Streams of GPUs. The time of the CPU is not parted by them.",
            "type": "string"
          }
        ]
      },
      "group_small_kernels": {
        "default": true,
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept has its frame.",
        "type": "boolean"
      },
      "limit": {
        "default": 20000,
        "description": "Most frames; with more the shortest are summed.",
        "format": "uint32",
        "maximum": 1000000,
        "minimum": 1,
        "type": "integer"
      },
      "max_depth": {
        "default": 50,
        "description": "Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.",
        "format": "uint32",
        "maximum": 500,
        "minimum": 1,
        "type": "integer"
      },
      "merge_numbered": {
        "default": true,
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one frame, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed into a frame `(shorter frames)`; GPU operations\ninto `(small kernels)`. Samples have no length: of them nothing is summed by it.",
        "format": "double",
        "maximum": 1000000000,
        "minimum": 0,
        "type": "number"
      },
      "stacks": {
        "default": "all",
        "description": "Which frames stacks are made of; those of samples are always the functions that called each\nother.",
        "oneOf": [
          {
            "const": "all",
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA calls, too.",
            "type": "string"
          },
          {
            "const": "nvtx",
            "description": "NVTX ranges.",
            "type": "string"
          },
          {
            "const": "operators",
            "description": "Steps, annotations and operators.",
            "type": "string"
          },
          {
            "const": "python",
            "description": "Functions of Python.",
            "type": "string"
          }
        ]
      },
      "to_ns": {
        "default": null,
        "description": "Only time before this, in ns.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "weight": {
        "default": "gpu",
        "description": "Which time the graph is made of.",
        "oneOf": [
          {
            "const": "gpu",
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of accelerators without streams nest, and count\nonce per row.",
            "type": "string"
          },
          {
            "const": "cpu",
            "description": "The time of each thread in which it was inside any frame.",
            "type": "string"
          },
          {
            "const": "samples",
            "description": "Samples of the CPU, each by the stack of calls that it was taken in: every ns in a tree is\none sample.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "events-csv",
    "about": "Every event of the timeline, a line each (RFC 4180).",
    "group": "exports",
    "inputs": "one",
    "file_name": "timeline.csv",
    "page": false,
    "parameters": {}
  },
  {
    "name": "events-parquet",
    "about": "Every event of the timeline, in columns.",
    "group": "exports",
    "inputs": "one",
    "file_name": "timeline.parquet",
    "page": false,
    "parameters": {}
  },
  {
    "name": "samples-csv",
    "about": "Every sample of the timeline's series, a line each (RFC 4180).",
    "group": "exports",
    "inputs": "one",
    "file_name": "samples.csv",
    "page": false,
    "parameters": {}
  },
  {
    "name": "samples-parquet",
    "about": "Every sample of the timeline's series, in columns.",
    "group": "exports",
    "inputs": "one",
    "file_name": "samples.parquet",
    "page": false,
    "parameters": {}
  },
  {
    "name": "chrome-trace",
    "about": "The timeline as JSON of chrome://tracing.",
    "group": "exports",
    "inputs": "one",
    "file_name": "timeline.json",
    "page": false,
    "parameters": {}
  },
  {
    "name": "chrome-trace-gz",
    "about": "The timeline as JSON of chrome://tracing, compressed with gzip.",
    "group": "exports",
    "inputs": "one",
    "file_name": "timeline.json.gz",
    "page": false,
    "parameters": {}
  },
  {
    "name": "perfetto-trace",
    "about": "The timeline as protobuf of Perfetto.",
    "group": "exports",
    "inputs": "one",
    "file_name": "timeline.pftrace",
    "page": false,
    "parameters": {}
  },
  {
    "name": "earliest-events",
    "about": "The earliest 100,000 events as JSON.",
    "group": "exports",
    "inputs": "one",
    "file_name": "events.json",
    "page": false,
    "parameters": {}
  },
  {
    "name": "kernel-counters",
    "about": "Counters of launches that a kernel profiler measured, as JSON, where the capture has any.",
    "group": "exports",
    "inputs": "one",
    "file_name": "kernels.json",
    "page": false,
    "parameters": {}
  }
] as const;

/** What analyses are about, in the order of lists. */
export const GROUPS = [
  {
    "name": "overview",
    "title": "Overview"
  },
  {
    "name": "advice",
    "title": "Advice"
  },
  {
    "name": "gpu_time",
    "title": "GPU time"
  },
  {
    "name": "host",
    "title": "Host"
  },
  {
    "name": "memory",
    "title": "Memory"
  },
  {
    "name": "steps",
    "title": "Steps"
  },
  {
    "name": "kernels",
    "title": "Kernels"
  },
  {
    "name": "operations",
    "title": "Operations"
  },
  {
    "name": "comparison",
    "title": "Comparison"
  },
  {
    "name": "nsys_tables",
    "title": "nsys tables"
  },
  {
    "name": "exports",
    "title": "Exports"
  }
] as const;

/** The tables of a summary, in published order. */
export const SUMMARY_TABLES = [
  {
    "field": "kernels",
    "title": "Kernels",
    "categories": [
      "cuda_kernel"
    ]
  },
  {
    "field": "cuda_graphs",
    "title": "Whole CUDA graphs",
    "categories": [
      "cuda_graph"
    ]
  },
  {
    "field": "memcpy_time",
    "title": "Memory copies (time)",
    "categories": [
      "cuda_memcpy_h2d",
      "cuda_memcpy_d2h",
      "cuda_memcpy_d2d",
      "cuda_memcpy_p2p",
      "cuda_memcpy_other",
      "cuda_migration"
    ]
  },
  {
    "field": "memcpy_size",
    "title": "Memory copies (size)",
    "categories": [
      "cuda_memcpy_h2d",
      "cuda_memcpy_d2h",
      "cuda_memcpy_d2d",
      "cuda_memcpy_p2p",
      "cuda_memcpy_other",
      "cuda_migration"
    ]
  },
  {
    "field": "memset",
    "title": "Memory sets (time)",
    "categories": [
      "cuda_memset"
    ]
  },
  {
    "field": "memset_size",
    "title": "Memory sets (size)",
    "categories": [
      "cuda_memset"
    ]
  },
  {
    "field": "cuda_api",
    "title": "CUDA API calls",
    "categories": [
      "cuda_api"
    ]
  },
  {
    "field": "nvtx",
    "title": "NVTX ranges",
    "categories": [
      "nvtx_range"
    ]
  },
  {
    "field": "operators",
    "title": "Operators",
    "categories": [
      "cpu_op"
    ]
  },
  {
    "field": "annotations",
    "title": "Annotations",
    "categories": [
      "annotation"
    ]
  },
  {
    "field": "device_ops",
    "title": "Device operations",
    "categories": [
      "device_op"
    ]
  },
  {
    "field": "os_runtime",
    "title": "OS runtime calls",
    "categories": [
      "os_runtime"
    ]
  },
  {
    "field": "profiled_kernels",
    "title": "Profiled kernels",
    "categories": []
  }
] as const;
