// Written by `cargo xtask codegen` from the catalogue of analyses; a test fails when it drifts.

/** The findings of a capture, the one that is worth most first. */
export interface Advice {
  /** What was found. Gains overlap where findings have one cause: they are no sum. */
  readonly findings: readonly Finding[];
  /** Findings that were left out behind these. */
  readonly findings_left_out: number;
  /** GPUs that worked. Times of several are means over them. */
  readonly gpus: number;
  /** Parts of the window that are below the thresholds of rules that found nothing, but half of them or more; the longest first. */
  readonly near_misses: readonly NearMiss[];
  /** Topics that were not looked at, because the capture lacks what it takes. */
  readonly not_captured: readonly NotCaptured[];
  /** Every rule, in the order of the catalogue, with what came of it and its thresholds. */
  readonly rules: readonly RuleOutcome[];
  /** Length of that window in ns, up to the end of the last GPU work; 0 where there is none. */
  readonly window_ns: number;
  /** Start of the window that shares are of, in ns since the session's start: the start of the first GPU work. */
  readonly window_start_ns: number;
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

/** What kind of thing an event is. */
export type Category = "cuda_kernel" | "cuda_graph" | "cuda_memcpy_h2d" | "cuda_memcpy_d2h" | "cuda_memcpy_d2d" | "cuda_memcpy_p2p" | "cuda_memcpy_other" | "cuda_memset" | "cuda_migration" | "cuda_sync" | "cuda_api" | "cudnn_api" | "cublas_api" | "nvtx_range" | "os_runtime" | "cpu_op" | "annotation" | "step" | "python_function" | "cpu_sample" | "cpu_running" | "overhead" | "device_op" | "gpu_annotation" | "derived" | "other";

/** Events of a category. */
export interface CategoryCount {
  /** Whether it was recorded at all. `false` means "not captured", which is not the same as no events. */
  readonly captured: boolean;
  /** The category that is counted. */
  readonly category: Category;
  /** How many; null where it was not captured. */
  readonly events?: number | null;
}

/** How sure it is that the cause is what the finding says. */
export type Confidence = "low" | "medium" | "high";

/** Where the steps are done. */
export type Device = "gpu" | "cpu";

/** A figure that a finding rests on. */
export interface Evidence {
  /** Where it is in the timeline. */
  readonly place?: Place | null;
  /** How the value is shown. */
  readonly unit: PageUnit;
  /** Value of the figure. */
  readonly value: PageCell;
  /** What the figure measures, in a few words. */
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

/** What mending something is worth. */
export interface Gain {
  /** What must hold for it. */
  readonly assumption: string;
  /** Wall time in ns within the window; with several GPUs the mean over them. */
  readonly gain_ns: number;
  /** Its share of the window, from 0 to 1. */
  readonly window_share_ratio: number;
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
  /** Its product name, and of a MIG instance which one it is; empty where the source does not tell it. */
  readonly name: string;
}

/** The result of the analysis `gpu-time`. */
export interface GpuTimes {
  /** The parts of all GPUs together: sums over `gpus`, so that the window is as many times as long as there are GPUs. */
  readonly all: ExclusiveTime;
  /** The GPUs. */
  readonly gpus: readonly TimeOfGpu[];
  /** Idle pieces below this many ns are `micro_idle_ns`. */
  readonly micro_idle_below_ns: number;
  /** Parts of the result that the capture has no data for, each with the reason. */
  readonly not_captured: readonly NotCaptured[];
}

/** The kernels, copies and memsets of an iteration, the longest in all first. */
export interface IterationDetail {
  /** What ran. */
  readonly kernels: readonly IterationKernel[];
  /** Names behind the list's limit. */
  readonly left_out: number;
  /** Number of the iteration. */
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
  /** Name of the kernel. */
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

/** The result of the analysis `iterations`. */
export interface IterationsResult {
  /** How GPU work was assigned. */
  readonly assigned: AssignedWork;
  /** Where devices waited for each other inside of iterations; empty of one device. */
  readonly bubbles: readonly PipelineBubbles[];
  /** Reservations about the figures, as sentences. */
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
  /** Parts of the result that the capture has no data for, each with the reason. */
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

/** Coverage of the join of GPU work to launches. */
export interface Launches {
  /** Kernels, whole graphs, copies and memsets whose call is in the capture. */
  readonly matched: number;
  /** Those whose call is not. */
  readonly unmatched: number;
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

/** What the figures of a table measure. */
export type Measure = "ns" | "bytes";

/** A part of the window that is below the threshold of a rule. */
export interface NearMiss {
  /** The rule that measured it. */
  readonly rule: string;
  /** What was measured and from where on the rule fires, as a sentence. */
  readonly sentence: string;
  /** From which share on the rule fires, in percent. */
  readonly threshold_percent: number;
  /** Length of the part in ns; with several GPUs the mean over them. */
  readonly time_ns: number;
  /** Its share of the window, from 0 to 1. */
  readonly window_share_ratio: number;
}

/** A part of a result that has no figures because the capture does not hold what they are made of. */
export interface NotCaptured {
  /** Why, and what to do so that the next capture has it. */
  readonly reason: string;
  /** What has no figures, e.g. `launch delays`. */
  readonly what: string;
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

/** Bars: a value per label and series. */
export interface PageBars {
  /** What each bar is, in order. */
  readonly labels: readonly string[];
  /** The series, each with a value per label. */
  readonly series: readonly PageSeries[];
  /** Whether the values of a label add up to a whole; otherwise they stand side by side. */
  readonly stacked: boolean;
  /** Heading of the chart. */
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
  /** The blocks of the page, from top to bottom. */
  readonly blocks: readonly PageBlock[];
  /** What it cannot tell of these captures, shown before everything else. */
  readonly not_captured: readonly NotCaptured[];
  /** Heading of the page. */
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
  /** Version of the format of the document. */
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
  /** Heading of the flame graph. */
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
  /** Heading of the chart. */
  readonly title: string;
  /** How values are shown. */
  readonly unit: PageUnit;
}

/** A roof. */
export interface PageRoof {
  /** Name of the roof. */
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
  /** Heading of the roofline. */
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
  /** Name of the kernel. */
  readonly name: string;
  /** Work per second. */
  readonly performance: number;
  /** What it has its colour by. */
  readonly series: string;
}

/** A row of a table. */
export interface PageRow {
  /** Cells of the row. */
  readonly cells: readonly PageCell[];
  /** Where it is in the timeline. */
  readonly place?: Place | null;
}

/** Values that belong together. */
export interface PageSeries {
  /** Name of the series. */
  readonly name: string;
  /** Its values; null is not known. */
  readonly values: readonly (number | null)[];
}

/** A parameter and its value. */
export interface PageSetting {
  /** Name of the setting. */
  readonly name: string;
  /** Its value: text as it is, anything else as JSON. */
  readonly value: string;
}

/** A table. */
export interface PageTable {
  /** What it tells; may be empty. */
  readonly about: string;
  /** Columns of the table. */
  readonly columns: readonly PageColumn[];
  /** Whether it is closed until its reader opens it: what explains a page and is no result of it. */
  readonly folded?: boolean;
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
  /** What the figure on the tile measures. */
  readonly label: string;
  /** How the value is shown. */
  readonly unit: PageUnit;
  /** Value of the tile. */
  readonly value: PageCell;
}

/** Key figures. */
export interface PageTiles {
  /** Each of them. */
  readonly tiles: readonly PageTile[];
}

/** How a number is shown. The number itself is exact, in the unit that its name says. */
export type PageUnit = "none" | "ns" | "instant" | "bytes" | "bytes_per_second" | "count" | "flop_per_second" | "instructions_per_second" | "ratio" | "percent";

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

/** A time and row in a timeline, which the viewer can show. */
export interface Place {
  /** End in ns. */
  readonly end_ns: number;
  /** Index of the input that the timeline is of, counted from 0 in the order of the request. */
  readonly input: number;
  /** The timeline's row, where it is one. */
  readonly row?: number | null;
  /** Start in ns since the session's start. */
  readonly start_ns: number;
}

/** Processor time that a capture took beside the program's own work. */
export interface ProcessorTime {
  /** Of what imported and transformed the recording; null where it is not known of one of these. */
  readonly processing_ms?: number | null;
  /** Of the profiler's own processes beside the program; null where it has none that are known. */
  readonly profiler_ms?: number | null;
}

/** Launches of a kernel profiler, which are no events: it replays them one by one. */
export interface ProfiledCount {
  /** Launches, and ranges of launches that were replayed together. */
  readonly launches: number;
  /** Metrics of all of them. */
  readonly metrics: number;
}

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

/** How much a finding matters. */
export type Severity = "low" | "medium" | "high";

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

/** What did the heavy steps of the transform. The rest of the artifacts is the same on every device. */
export interface TransformedOn {
  /** Which device. */
  readonly device: Device;
  /** Why that one, in a sentence. */
  readonly reason: string;
}

/** The purpose of a piece of GPU work. */
export type WorkClass = "compute" | "communication" | "memory";

/** Every analysis, in published order. */
export const ANALYSES = [
  {
    "name": "summary",
    "title": "Summary",
    "about": "Tables per name, GPU busy time, and what is missing.",
    "group": "capture",
    "subject": {
      "categories": null,
      "parts": [
        "profiles",
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "summary.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "advice",
    "title": "Advice",
    "about": "What makes the capture slow, why, what mending it is worth, and what to do.",
    "group": "advice",
    "subject": {
      "categories": null,
      "parts": [
        "allocations",
        "counters",
        "profiles"
      ],
      "words": ""
    },
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
    "title": "Kernels per stream",
    "about": "Launches, busy time and distinct kernels of each stream of each GPU.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph"
      ],
      "parts": [],
      "words": "kernels or whole CUDA graphs"
    },
    "inputs": "one",
    "file_name": "kernels-per-stream.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "kernel-changes",
    "title": "Changes of kernels",
    "about": "Time, launches and mean of each kernel in two captures, before and after, and what comes of launches and of their length.",
    "group": "comparison",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph"
      ],
      "parts": [],
      "words": "kernels or whole CUDA graphs"
    },
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
    "title": "Collectives",
    "about": "Message sizes, algorithm and bus bandwidth, outliers and hidden time of NCCL's and other collectives.",
    "group": "ranks",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
        "description": "A collective is an outlier where it took more than so many percent of the median of its\nlike: same operation, group and message size.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 101,
        "type": "integer"
      }
    }
  },
  {
    "name": "compare",
    "title": "Before and after",
    "about": "Two captures, before and after a change: comparability, what differs per iteration and per kernel, and a verdict.",
    "group": "comparison",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "step"
      ],
      "parts": [
        "allocations",
        "counters"
      ],
      "words": "allocations of memory, sampled series or other events"
    },
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
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the\nline `Steps` of a device.",
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
        "description": "Change in percent below which one run a side cannot tell a change from noise, whatever the\nthreshold.",
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
    "title": "Ranks",
    "about": "The ranks of one job side by side: what each GPU's time went to, its iterations, and which rank is behind.",
    "group": "ranks",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "cpu_op",
        "nvtx_range",
        "annotation",
        "step",
        "derived"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
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
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the\nline `Steps` of a device.",
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
    "title": "Batch-size sweep",
    "about": "Captures of one program with different batch sizes: throughput, time per item, memory, efficiency against linear, and the batch from which on more no longer pays.",
    "group": "tensor_cores",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "annotation",
        "step",
        "cpu_op",
        "device_op",
        "derived"
      ],
      "parts": [
        "allocations",
        "profiles"
      ],
      "words": "allocations of memory, launches that Nsight Compute measured or other events"
    },
    "inputs": "many",
    "file_name": "batch-sweep.json",
    "page": true,
    "parameters": {
      "batch_sizes": {
        "default": "",
        "description": "The batch size of each capture in their order, separated by commas, e.g. `8,16,32`; one that\nis left out is taken from the shapes of operators. Count what one iteration works on, over\nall devices.",
        "maxLength": 1024,
        "type": "string"
      },
      "knee_percent": {
        "default": 90.0,
        "description": "From this share in percent of the best throughput on a batch is large enough: the smallest\nof these is the knee.",
        "format": "double",
        "maximum": 100.0,
        "minimum": 1.0,
        "type": "number"
      },
      "peak_tflops": {
        "default": null,
        "description": "Peak of one device in TFLOP/s for the type of number that the model computes with, without\nsparsity; it goes before the rates that the captures state.",
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
    "title": "GPU time",
    "about": "Where the time of each GPU went: computation, communication and copies that nothing hides, idle. The parts add up to the window exactly.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset"
      ],
      "parts": [],
      "words": "GPU work"
    },
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
        "description": "Idle pieces shorter than this, in ns, are also reported apart: they are the price of one\nlaunch after another.",
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
            "description": "From the first start to the last end of the GPU's own work, as HolisticTraceAnalysis and\nTraceLens have it.",
            "type": "string"
          },
          {
            "const": "all_gpus",
            "description": "From the first start to the last end of the work of any GPU, so that a GPU that begins late\nor ends early is idle meanwhile.",
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
    "title": "Overlap",
    "about": "How much communication and copying each GPU hides under computation, and which kinds of work run at once.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset"
      ],
      "parts": [],
      "words": "GPU work"
    },
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
            "description": "From the first start to the last end of the GPU's own work, as HolisticTraceAnalysis and\nTraceLens have it.",
            "type": "string"
          },
          {
            "const": "all_gpus",
            "description": "From the first start to the last end of the work of any GPU, so that a GPU that begins late\nor ends early is idle meanwhile.",
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
    "title": "Kernel types",
    "about": "Computation, communication and memory work of GPUs, and the names that take most of each.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset"
      ],
      "parts": [],
      "words": "GPU work"
    },
    "inputs": "one",
    "file_name": "kernel-types.json",
    "page": true,
    "parameters": {
      "duration_ratio": {
        "default": 1.0,
        "description": "A class's list ends with the name by which it has this share of the class's time, from 0\nto 1.",
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
    "title": "Profiled kernels",
    "about": "Launches that Nsight Compute measured: speed of light, occupancy, caches, and every metric.",
    "group": "kernels",
    "subject": {
      "categories": [],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured"
    },
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
    "title": "Profiled kernel",
    "about": "A launch that Nsight Compute measured, from inside: its limiter, occupancy, memory, stalls, instructions, and NVIDIA's rules.",
    "group": "kernels",
    "subject": {
      "categories": [],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured"
    },
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
    "title": "Roofline",
    "about": "Work per second over work per byte of launches that Nsight Compute measured, below the roofs of their device.",
    "group": "kernels",
    "subject": {
      "categories": [],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured"
    },
    "inputs": "many",
    "file_name": "roofline.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 100,
        "description": "Maximum number of launches of each capture; those that took longest are kept.",
        "format": "uint32",
        "maximum": 1000,
        "minimum": 1,
        "type": "integer"
      },
      "name_contains": {
        "default": "",
        "description": "Text that a kernel's name must contain for its launches to be in the result; empty for all\nkernels.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "profiled-in-timeline",
    "title": "Profiled kernels in the timeline",
    "about": "Kernels of a timeline beside what Nsight Compute measured of them, joined by name, grid, block and order.",
    "group": "kernels",
    "subject": {
      "categories": [],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured"
    },
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
    "title": "CPU and GPU",
    "about": "When the CPU was active, when GPUs were, and when both were.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cpu_op",
        "cuda_api",
        "python_function"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
    "title": "Events",
    "about": "Events in the order of their starts, in pages, by time and category.",
    "group": "capture",
    "subject": {
      "categories": null,
      "parts": [
        "allocations",
        "counters",
        "programs",
        "profiles",
        "stacks"
      ],
      "words": ""
    },
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
    "title": "cuda_gpu_kern_sum",
    "about": "Times of GPU kernels by name, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_gpu_kern_gb_sum",
    "title": "cuda_gpu_kern_gb_sum",
    "about": "Times of GPU kernels by name, grid and block, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_gpu_mem_time_sum",
    "title": "cuda_gpu_mem_time_sum",
    "about": "Times of copies and memsets on GPUs by kind, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_migration"
      ],
      "parts": [],
      "words": "copies, memsets or migrations of unified memory"
    },
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
    "title": "cuda_gpu_mem_size_sum",
    "about": "Sizes of copies and memsets on GPUs by kind, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_migration"
      ],
      "parts": [],
      "words": "copies, memsets or migrations of unified memory"
    },
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
    "title": "cuda_gpu_sum",
    "about": "Times of GPU kernels, copies and memsets together, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_migration",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "GPU work, migrations of unified memory or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_api_sum",
    "title": "cuda_api_sum",
    "about": "Times of calls of the CUDA runtime and driver by function, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_api"
      ],
      "parts": [],
      "words": "CUDA API calls"
    },
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
    "title": "cuda_api_gpu_sum",
    "about": "Times of CUDA calls, GPU kernels, copies and memsets together, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_migration",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "GPU work, migrations of unified memory or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_kern_exec_sum",
    "title": "cuda_kern_exec_sum",
    "about": "Times of kernels from launch to end by thread, device, function and kernel, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_kern_exec_trace",
    "title": "cuda_kern_exec_trace",
    "about": "Call, wait in the queue and run of each kernel in the order of the calls, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_gpu_trace",
    "title": "cuda_gpu_trace",
    "about": "Kernels, copies and memsets in the order of their starts, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_migration",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "GPU work, migrations of unified memory or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      },
      "nvtx_name": {
        "default": false,
        "description": "Whether the name of the innermost NVTX range around a kernel's launch stands before the\nkernel's, as in `step/gemm`: nsys's `:nvtx-name`.",
        "type": "boolean"
      }
    }
  },
  {
    "name": "cuda_api_trace",
    "title": "cuda_api_trace",
    "about": "Calls of the CUDA runtime and driver in the order of their starts, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_api"
      ],
      "parts": [],
      "words": "CUDA API calls"
    },
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
    "title": "nvtx_sum",
    "about": "Times of NVTX ranges by style and name, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "nvtx_range"
      ],
      "parts": [],
      "words": "NVTX ranges"
    },
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
    "title": "nvtx_pushpop_sum",
    "about": "Times of NVTX push/pop ranges by name, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "nvtx_range"
      ],
      "parts": [],
      "words": "NVTX ranges"
    },
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
    "title": "nvtx_pushpop_trace",
    "about": "NVTX push/pop ranges in the order of their starts with the ranges around and inside them, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "nvtx_range"
      ],
      "parts": [],
      "words": "NVTX ranges"
    },
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
    "title": "nvtx_kern_sum",
    "about": "Times of kernels by the NVTX ranges that they were launched in, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
            "description": "By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole\nname where the source does not say it.",
            "type": "string"
          },
          {
            "const": "mangled",
            "description": "By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps\nits whole name.",
            "type": "string"
          }
        ]
      }
    }
  },
  {
    "name": "nvtx_gpu_proj_sum",
    "title": "nvtx_gpu_proj_sum",
    "about": "NVTX ranges projected onto GPUs by name, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or NVTX ranges"
    },
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
    "title": "nvtx_gpu_proj_trace",
    "about": "Each NVTX range projected onto GPUs, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or NVTX ranges"
    },
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
    "title": "osrt_sum",
    "about": "Times of calls of the operating system by function, as nsys stats has them.",
    "group": "nsys_tables",
    "subject": {
      "categories": [
        "os_runtime"
      ],
      "parts": [],
      "words": "operating system calls"
    },
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
    "title": "Iterations",
    "about": "Iterations of the training or inference loop: timing, what their GPU time went to, outliers and pipeline bubbles.",
    "group": "steps",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "annotation",
        "step",
        "derived"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
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
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the\nline `Steps` of a device.",
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
        "description": "The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to\nchoose one.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "stragglers",
    "title": "Stragglers",
    "about": "Which rank the others wait for in collectives, and latency and bandwidth of collectives without the wait. Ranks are inputs, or devices of one.",
    "group": "ranks",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation"
      ],
      "parts": [],
      "words": "kernels, whole CUDA graphs or other events"
    },
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
    "title": "Waits of the host for GPUs",
    "about": "What it costs that the host waits for GPUs: by kind of wait, by the ranges that hold it, and how much of it the GPU was idle.",
    "group": "host",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "python_function"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
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
        "description": "Copies from host to device of so many bytes or fewer are left out of the rule\n`cuda_memcpy_sync`, as Nsight Systems does.",
        "format": "uint32",
        "maximum": 1073741824,
        "minimum": 0,
        "type": "integer"
      }
    }
  },
  {
    "name": "operations",
    "title": "Operations",
    "about": "NVTX ranges, annotations, PyTorch operators or HLO operations by name: calls, time, and how it splits into GPU, CPU, transfers and overhead.",
    "group": "operations",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "step",
        "device_op"
      ],
      "parts": [
        "allocations"
      ],
      "words": "allocations of memory, GPU work or other events"
    },
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
    "title": "Profile of operations",
    "about": "Operations as entries and summaries of an operation profiler: operation, call_count, total_time_ms and so on.",
    "group": "operations",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "step",
        "device_op"
      ],
      "parts": [
        "allocations"
      ],
      "words": "allocations of memory, GPU work or other events"
    },
    "inputs": "one",
    "file_name": "operations-profile.json",
    "page": true,
    "parameters": {
      "kind": {
        "default": "auto",
        "description": "The events that count as operations.",
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
        "description": "Maximum number of entries; the earliest calls are kept. Summaries count all calls.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 0,
        "type": "integer"
      },
      "top": {
        "default": 1000,
        "description": "Maximum number of operations in the summary; those with the longest time of their own are\nkept.",
        "format": "uint32",
        "maximum": 100000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "hlo-operations",
    "title": "Operations of compiled programs",
    "about": "Operations of compiled programs (JAX, XLA): time, FLOP and bytes, intensity, what bounds them, and the kernels and lines of source behind them.",
    "group": "programs",
    "subject": {
      "categories": [
        "device_op"
      ],
      "parts": [
        "programs"
      ],
      "words": "compiled programs (JAX, XLA) or device operations"
    },
    "inputs": "one",
    "file_name": "hlo-operations.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 200,
        "description": "Most operations, and most kernels, in the result: those that take longest, or those of most\nwork where no time was measured.",
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
    "title": "Work of compiled programs",
    "about": "FLOP, bytes and intensity of each compiled program (JAX, XLA) counted from its instructions, beside cost_analysis and the time that was measured.",
    "group": "programs",
    "subject": {
      "categories": [
        "device_op"
      ],
      "parts": [
        "programs"
      ],
      "words": "compiled programs (JAX, XLA) or device operations"
    },
    "inputs": "one",
    "file_name": "hlo-cost.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "hlo-graph",
    "title": "Graph of a compiled program",
    "about": "Graph of a compiled program (JAX, XLA): computations, fusions with what they hold, opcodes before and after optimisation, and the instructions around one.",
    "group": "programs",
    "subject": {
      "categories": [],
      "parts": [
        "programs"
      ],
      "words": "compiled programs (JAX, XLA)"
    },
    "inputs": "many",
    "file_name": "hlo-graph.json",
    "page": true,
    "parameters": {
      "around": {
        "default": "",
        "description": "Name of an instruction: only those that it takes values from and gives values to; empty for\nthe whole program.",
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
    "title": "Memory of a compiled program",
    "about": "Memory of a compiled program (JAX, XLA) as its compiler planned it: lifetimes of values, the peak, and what is in it.",
    "group": "programs",
    "subject": {
      "categories": [],
      "parts": [
        "programs"
      ],
      "words": "compiled programs (JAX, XLA)"
    },
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
        "description": "Memory as the compiler numbers them: 0 is the device's ordinary memory, 5 that of the host\non TPUs.",
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
    "title": "Active times for the earlier suite",
    "about": "Total, CPU-active, GPU-active and overlapping time in µs, as /api/profiler/timeline has it.",
    "group": "earlier_suite",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cpu_op",
        "cuda_api",
        "python_function"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
    "title": "Kernels for the earlier suite",
    "about": "Total time of each kernel in µs, as /api/profiler/kernels has it.",
    "group": "earlier_suite",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph"
      ],
      "parts": [],
      "words": "kernels or whole CUDA graphs"
    },
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
    "title": "GPU time for the earlier suite",
    "about": "Idle, compute and communication time of the GPUs in percent, as /api/profiler/hta has it.",
    "group": "earlier_suite",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset"
      ],
      "parts": [],
      "words": "GPU work"
    },
    "inputs": "one",
    "file_name": "profiler-hta.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "torch-compile",
    "title": "torch.compile",
    "about": "torch.compile: compile time by phase, graph breaks with reason and remedy, recompiles, coverage; beside an eager capture the speed-up of each mode.",
    "group": "compilation",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "step",
        "python_function",
        "derived"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
    "inputs": "many",
    "file_name": "torch-compile.json",
    "page": true,
    "parameters": {
      "labels": {
        "default": "",
        "description": "What to call the captures, in their order and separated by commas, e.g.\n`eager,default,max-autotune`: captures do not say the mode. Empty to number them from 1.",
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
    "title": "torch.compile for the earlier suite",
    "about": "Speed-up, compile time, graph breaks and fusion of torch.compile, as /api/profiler/compile has it.",
    "group": "earlier_suite",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "step",
        "python_function",
        "derived"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
    "inputs": "many",
    "file_name": "profiler-compile.json",
    "page": true,
    "parameters": {}
  },
  {
    "name": "critical-path",
    "title": "Critical path",
    "about": "The longest chain of work that waits for work in an iteration: whether CPU, compute, copies or communication bound it.",
    "group": "steps",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_sync",
        "cuda_api",
        "nvtx_range",
        "cpu_op",
        "annotation",
        "step"
      ],
      "parts": [],
      "words": "GPU work, CUDA synchronisation or other events"
    },
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
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the\nline `Steps` of a device.",
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
        "description": "Number of the iteration; without one, the iteration of median length, the first of each loop\nleft out.",
        "format": "uint64",
        "minimum": 0,
        "type": [
          "integer",
          "null"
        ]
      },
      "range": {
        "default": "",
        "description": "The NVTX range or annotation that is an iteration; digits may be written as `#`. Empty to\nchoose one.",
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
    "title": "Model FLOP utilisation",
    "about": "Model FLOP utilisation: the floating-point operations of iterations beside the peak of their devices, and those of each matrix product and attention.",
    "group": "steps",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "annotation",
        "step",
        "cpu_op",
        "device_op"
      ],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured, GPU work or other events"
    },
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
            "description": "By the steps that the profiler marked: `ProfilerStep#N` of PyTorch, step ranges of JAX, the\nline `Steps` of a device.",
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
        "description": "Floating-point operations of one iteration of one loop (of one process, where each process\nruns a loop) on all of its devices, forward and backward, e.g. `1.2e15`. Without iterations\nit is those of the whole capture. It goes before all that was recorded.",
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
        "description": "Peak of one device in TFLOP/s for the type of number that the model computes with, from its\ndata sheet and without sparsity, e.g. `989` for BF16 on an H100 SXM. It goes before the\nrates that the capture states, and before those that are known by the device's name where\nit states none.",
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
        "description": "The NVTX range or annotation that is an iteration, the region of interest; digits may be\nwritten as `#`. Empty to choose one.",
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
    "title": "Precision and tensor cores",
    "about": "Tensor cores: the share of matrix products that use them, those that could and do not, their types of number and whether their dimensions fit.",
    "group": "tensor_cores",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "cpu_op"
      ],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured, GPU work or other events"
    },
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
    "title": "Offload candidates",
    "about": "Kernels that memory bounds, by their time: bytes, intensity, copies around them, and what an accelerator would need to take them.",
    "group": "offload",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "cpu_op",
        "device_op"
      ],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured, GPU work or other events"
    },
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
        "description": "Operations per byte at which the device's compute and memory are balanced, from its data\nsheet: peak operations per second over peak bandwidth. It goes before what the capture\nstates, and is needed for matrix products where that states none.",
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
    "title": "Idle time",
    "about": "When GPUs and their streams did nothing, whether the host was late, and what the launching threads did meanwhile.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "os_runtime",
        "overhead",
        "cpu_op",
        "nvtx_range",
        "annotation",
        "step"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
    "inputs": "one",
    "file_name": "idle.json",
    "page": true,
    "parameters": {
      "kernel_wait_ns": {
        "default": 30000,
        "description": "Gaps of work that was launched in time are the wait of one kernel for another where they are\nshorter than this, in ns.",
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
    "title": "Launches",
    "about": "How long launching calls take, how long their work runs and waits, which GPU operations are shorter than their launch.",
    "group": "launches",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api"
      ],
      "parts": [],
      "words": "GPU work or CUDA API calls"
    },
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
    "title": "Launch patterns",
    "about": "Sequences of kernels, copies and memsets that operators or ranges launch again and again: what could be fused or be a CUDA graph.",
    "group": "launches",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "cpu_op",
        "nvtx_range",
        "annotation",
        "step"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
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
        "description": "Only operators, annotations, steps and ranges whose name contains this text. Empty: all of\nthem.",
        "maxLength": 1024,
        "type": "string"
      }
    }
  },
  {
    "name": "queue-length",
    "title": "Queue length",
    "about": "How much launched work waits for each stream, when its queue ran dry and when it was full.",
    "group": "launches",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api"
      ],
      "parts": [],
      "words": "GPU work or CUDA API calls"
    },
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
        "description": "GPU operations at which a queue is full, so that a launching thread waits. CUDA's queue\nholds 1024 per stream.",
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
    "title": "Utilization",
    "about": "How busy GPUs were over time and what they copied, from their events, beside the series that were sampled.",
    "group": "gpu_time",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset"
      ],
      "parts": [
        "counters"
      ],
      "words": "sampled series or GPU work"
    },
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
    "title": "Loading and compiling of code",
    "about": "When code is loaded onto GPUs, linked or compiled: how long that takes, and what of it is left in the steady state.",
    "group": "host",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "annotation",
        "step",
        "cpu_op",
        "overhead"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
    "inputs": "one",
    "file_name": "module-loading.json",
    "page": true,
    "parameters": {
      "limit": {
        "default": 100,
        "description": "Maximum number of names in the result; those with the longest time are kept.",
        "format": "uint32",
        "maximum": 10000,
        "minimum": 1,
        "type": "integer"
      }
    }
  },
  {
    "name": "start-up",
    "title": "Start-up",
    "about": "Compiling and loading of code against the program's pace: what it cost, when, and after how many runs it is paid back.",
    "group": "compilation",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "annotation",
        "step",
        "cpu_op",
        "overhead",
        "derived"
      ],
      "parts": [],
      "words": "GPU work, CUDA API calls or other events"
    },
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
    "title": "Allocations of memory",
    "about": "What it costs to give out and take back memory: time, GPU idle meanwhile, and what is left of it in the steady state.",
    "group": "host",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "cuda_api",
        "nvtx_range",
        "annotation",
        "step",
        "derived"
      ],
      "parts": [
        "allocations"
      ],
      "words": "allocations of memory, GPU work or other events"
    },
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
    "title": "Threads of the host",
    "about": "What each thread of the host did: worked, waited, or did nothing that was recorded, and over time.",
    "group": "host",
    "subject": {
      "categories": [
        "cuda_api",
        "cudnn_api",
        "cublas_api",
        "nvtx_range",
        "os_runtime",
        "cpu_op",
        "annotation",
        "step",
        "python_function",
        "overhead",
        "cpu_running"
      ],
      "parts": [],
      "words": "CUDA API calls, cuDNN calls or other events"
    },
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
    "title": "Memory",
    "about": "Memory over time: the peak, what was alive then and who had asked for it, and what was reserved and not given out.",
    "group": "memory",
    "subject": {
      "categories": [],
      "parts": [
        "allocations",
        "counters"
      ],
      "words": "allocations of memory or sampled series"
    },
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
    "title": "Buffers",
    "about": "Lifetimes of buffers, those that are never taken back, how often the same sizes are asked for, and how much could be used again.",
    "group": "memory",
    "subject": {
      "categories": [],
      "parts": [
        "allocations"
      ],
      "words": "allocations of memory"
    },
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
    "title": "Memory profile",
    "about": "A profile of memory in the format of pprof, e.g. of JAX's save_device_memory_profile: what was given out by device, function and stack.",
    "group": "memory",
    "subject": {
      "categories": [],
      "parts": [
        "stacks"
      ],
      "words": "a profile of pprof"
    },
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
    "title": "Changes of memory",
    "about": "The difference of two profiles of memory, before and after, by device, function and stack, as go tool pprof -base tells it.",
    "group": "memory",
    "subject": {
      "categories": [],
      "parts": [
        "stacks"
      ],
      "words": "a profile of pprof"
    },
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
    "title": "Memory for the earlier suite",
    "about": "Memory over time and its peak in MB, as /api/profiler/memory has it.",
    "group": "earlier_suite",
    "subject": {
      "categories": [],
      "parts": [
        "allocations"
      ],
      "words": "allocations of memory"
    },
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
        "description": "Time from one point to the next, in ms. It is longer where there would be more than 100,000\npoints.",
        "format": "double",
        "maximum": 3600000,
        "minimum": 0.001,
        "type": "number"
      }
    }
  },
  {
    "name": "flame-graph",
    "title": "Flame graph",
    "about": "Time of GPUs or of the CPU, or samples of it, by the stack of ranges, operators and functions.",
    "group": "stacks",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cuda_api",
        "step",
        "nvtx_range",
        "annotation",
        "python_function",
        "cpu_op",
        "cpu_sample"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept\nhas its frame.",
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
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one\nframe, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed\ninto a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no\nlength: of them nothing is summed by it.",
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
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA\ncalls, too.",
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
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of\naccelerators without streams nest, and count once per row.",
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
    "title": "Difference of flame graphs",
    "about": "What a change did to the time of each stack: the flame graphs of two captures in one.",
    "group": "stacks",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cuda_api",
        "step",
        "nvtx_range",
        "annotation",
        "python_function",
        "cpu_op",
        "cpu_sample"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept\nhas its frame.",
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
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one\nframe, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed\ninto a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no\nlength: of them nothing is summed by it.",
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
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA\ncalls, too.",
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
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of\naccelerators without streams nest, and count once per row.",
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
    "title": "Flame graph as folded stacks",
    "about": "The flame graph as folded stacks in ns, or in samples, for flamegraph.pl, Perfetto and others.",
    "group": "exports",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cuda_api",
        "step",
        "nvtx_range",
        "annotation",
        "python_function",
        "cpu_op",
        "cpu_sample"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept\nhas its frame.",
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
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one\nframe, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed\ninto a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no\nlength: of them nothing is summed by it.",
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
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA\ncalls, too.",
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
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of\naccelerators without streams nest, and count once per row.",
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
    "title": "Flame graph for pprof",
    "about": "The flame graph as a profile of pprof, for `go tool pprof`, Pyroscope and others.",
    "group": "exports",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cuda_api",
        "step",
        "nvtx_range",
        "annotation",
        "python_function",
        "cpu_op",
        "cpu_sample"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept\nhas its frame.",
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
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one\nframe, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed\ninto a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no\nlength: of them nothing is summed by it.",
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
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA\ncalls, too.",
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
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of\naccelerators without streams nest, and count once per row.",
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
    "title": "Flame graph for speedscope",
    "about": "The flame graph as a profile of https://www.speedscope.app.",
    "group": "exports",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cuda_api",
        "step",
        "nvtx_range",
        "annotation",
        "python_function",
        "cpu_op",
        "cpu_sample"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept\nhas its frame.",
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
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one\nframe, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed\ninto a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no\nlength: of them nothing is summed by it.",
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
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA\ncalls, too.",
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
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of\naccelerators without streams nest, and count once per row.",
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
    "title": "Graph of a compiled program for Graphviz",
    "about": "The graph of a compiled program (JAX, XLA) as text of Graphviz (DOT), for `dot -Tsvg`.",
    "group": "exports",
    "subject": {
      "categories": [],
      "parts": [
        "programs"
      ],
      "words": "compiled programs (JAX, XLA)"
    },
    "inputs": "many",
    "file_name": "program.dot",
    "page": false,
    "parameters": {
      "around": {
        "default": "",
        "description": "Name of an instruction: only those that it takes values from and gives values to; empty for\nthe whole program.",
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
    "title": "Difference of flame graphs for pprof",
    "about": "What a change did to the time of each stack, as a profile of pprof.",
    "group": "exports",
    "subject": {
      "categories": [
        "cuda_kernel",
        "cuda_graph",
        "cuda_memcpy_h2d",
        "cuda_memcpy_d2h",
        "cuda_memcpy_d2d",
        "cuda_memcpy_p2p",
        "cuda_memcpy_other",
        "cuda_memset",
        "device_op",
        "cuda_api",
        "step",
        "nvtx_range",
        "annotation",
        "python_function",
        "cpu_op",
        "cpu_sample"
      ],
      "parts": [],
      "words": "GPU work, device operations or other events"
    },
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
        "description": "Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept\nhas its frame.",
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
        "description": "Whether steps, ranges, annotations and operators whose names differ in numbers alone are one\nframe, as `Step *`.",
        "type": "boolean"
      },
      "min_duration_us": {
        "default": 10.0,
        "description": "Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed\ninto a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no\nlength: of them nothing is summed by it.",
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
            "description": "Steps, NVTX ranges, annotations, functions of Python and operators; of the CPU's time CUDA\ncalls, too.",
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
            "description": "The lengths of GPU operations, added up: what runs at once counts for each. Operations of\naccelerators without streams nest, and count once per row.",
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
    "title": "Events as CSV",
    "about": "Every event of the timeline, a line each (RFC 4180).",
    "group": "exports",
    "subject": {
      "categories": null,
      "parts": [
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "timeline.csv",
    "page": false,
    "parameters": {}
  },
  {
    "name": "events-parquet",
    "title": "Events as Parquet",
    "about": "Every event of the timeline, in columns.",
    "group": "exports",
    "subject": {
      "categories": null,
      "parts": [
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "timeline.parquet",
    "page": false,
    "parameters": {}
  },
  {
    "name": "samples-csv",
    "title": "Samples as CSV",
    "about": "Every sample of the timeline's series, a line each (RFC 4180).",
    "group": "exports",
    "subject": {
      "categories": [],
      "parts": [
        "counters"
      ],
      "words": "sampled series"
    },
    "inputs": "one",
    "file_name": "samples.csv",
    "page": false,
    "parameters": {}
  },
  {
    "name": "samples-parquet",
    "title": "Samples as Parquet",
    "about": "Every sample of the timeline's series, in columns.",
    "group": "exports",
    "subject": {
      "categories": [],
      "parts": [
        "counters"
      ],
      "words": "sampled series"
    },
    "inputs": "one",
    "file_name": "samples.parquet",
    "page": false,
    "parameters": {}
  },
  {
    "name": "chrome-trace",
    "title": "Chrome trace",
    "about": "The timeline as JSON of chrome://tracing.",
    "group": "exports",
    "subject": {
      "categories": null,
      "parts": [
        "counters",
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "timeline.json",
    "page": false,
    "parameters": {}
  },
  {
    "name": "chrome-trace-gz",
    "title": "Chrome trace, compressed",
    "about": "The timeline as JSON of chrome://tracing, compressed with gzip.",
    "group": "exports",
    "subject": {
      "categories": null,
      "parts": [
        "counters",
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "timeline.json.gz",
    "page": false,
    "parameters": {}
  },
  {
    "name": "perfetto-trace",
    "title": "Perfetto trace",
    "about": "The timeline as protobuf of Perfetto.",
    "group": "exports",
    "subject": {
      "categories": null,
      "parts": [
        "counters",
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "timeline.pftrace",
    "page": false,
    "parameters": {}
  },
  {
    "name": "earliest-events",
    "title": "Earliest events as JSON",
    "about": "The earliest 100,000 events as JSON.",
    "group": "exports",
    "subject": {
      "categories": null,
      "parts": [
        "stacks"
      ],
      "words": ""
    },
    "inputs": "one",
    "file_name": "events.json",
    "page": false,
    "parameters": {}
  },
  {
    "name": "kernel-counters",
    "title": "Counters of kernels as JSON",
    "about": "Counters of launches that a kernel profiler measured, as JSON, where the capture has any.",
    "group": "exports",
    "subject": {
      "categories": [],
      "parts": [
        "profiles"
      ],
      "words": "launches that Nsight Compute measured"
    },
    "inputs": "one",
    "file_name": "kernels.json",
    "page": false,
    "parameters": {}
  }
] as const;

/** The questions that analyses answer, in the order of lists. */
export const GROUPS = [
  {
    "name": "advice",
    "question": "What is slow, why, what to do?"
  },
  {
    "name": "gpu_time",
    "question": "Where did the GPUs' time go?"
  },
  {
    "name": "launches",
    "question": "How is work launched?"
  },
  {
    "name": "host",
    "question": "What does the host do?"
  },
  {
    "name": "ranks",
    "question": "How do ranks wait for each other?"
  },
  {
    "name": "steps",
    "question": "How long is a step, and what bounds it?"
  },
  {
    "name": "kernels",
    "question": "How well does a kernel use the GPU?"
  },
  {
    "name": "tensor_cores",
    "question": "Are tensor cores used, which batch size pays?"
  },
  {
    "name": "offload",
    "question": "Which kernels could another accelerator take?"
  },
  {
    "name": "memory",
    "question": "Where is the memory?"
  },
  {
    "name": "compilation",
    "question": "What did torch.compile cost and gain?"
  },
  {
    "name": "operations",
    "question": "Which operation takes the time?"
  },
  {
    "name": "stacks",
    "question": "Which stack takes the time?"
  },
  {
    "name": "programs",
    "question": "What do JAX's compiled programs do?"
  },
  {
    "name": "comparison",
    "question": "What did a change do?"
  },
  {
    "name": "capture",
    "question": "What does the capture hold?"
  },
  {
    "name": "nsys_tables",
    "question": "Tables of nsys stats"
  },
  {
    "name": "earlier_suite",
    "question": "For clients of the earlier suite"
  },
  {
    "name": "exports",
    "question": "Files for other programs"
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

/** What a file that ends before its end is said to lack. */
export const CUT = [
  "list of events: the file ends before it does",
  "members behind the events: the file ends before they do"
] as const;
