// Written by `cargo xtask codegen` from the catalogue of analyses; a test fails when it drifts.

/** What kind of thing an event is. The order is that of the published lists. */
export type Category = "cuda_kernel" | "cuda_memcpy_h2d" | "cuda_memcpy_d2h" | "cuda_memcpy_d2d" | "cuda_memcpy_p2p" | "cuda_memcpy_other" | "cuda_memset" | "cuda_sync" | "cuda_api" | "nvtx_range" | "os_runtime" | "cpu_op" | "annotation" | "step" | "python_function" | "overhead" | "device_op" | "gpu_annotation" | "derived" | "other";

/** Events of a category. */
export interface CategoryCount {
  /** Whether it was recorded at all. `false` means "not captured", which is not the same as no events. */
  readonly captured: boolean;
  /** Which. */
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
  /** `after_total_ns` less `before_total_ns`. */
  readonly difference_ns: number;
  /** The kernel's name. */
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
  /** Whether both captures recorded kernels. `false` means that one did not, which is not the same as no kernels. */
  readonly captured: boolean;
  /** Kernels that differ or not, in the result or not. */
  readonly kernels: number;
  /** The kernels. */
  readonly rows: readonly Change[];
}

/** Where the steps are done. */
export type Device = "gpu" | "cpu";

/** How long a GPU was busy. */
export interface GpuBusy {
  /** Length in ns of the union of its kernels, copies and memsets. */
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

/** Coverage of the join of GPU work to launches. */
export interface Launches {
  /** Kernels, copies and memsets whose call is in the capture. */
  readonly matched: number;
  /** Those whose call is not. */
  readonly unmatched: number;
}

/** One entry of the list. */
export interface Loss {
  /** How many. */
  readonly count: number;
  /** What became of them, of a closed set. */
  readonly reason: LossReason;
  /** What, e.g. a table's name or `NVTX marks`. */
  readonly what: string;
}

/** Why something of the source is missing or changed. */
export type LossReason = "dropped" | "truncated" | "skipped" | "unsupported";

/** What the figures of a table measure. */
export type Measure = "ns" | "bytes";

/** Which captures a kernel is in. */
export type Presence = "both" | "before" | "after";

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
  /** Whether kernels were recorded at all. `false` means "not captured", which is not the same as no kernels. */
  readonly captured: boolean;
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
  /** Copies by kind, sizes. */
  readonly memcpy_size: Table;
  /** Copies by kind, durations. */
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
}

/** Figures of one name. */
export interface TableRow {
  /** Arithmetic mean. */
  readonly avg: number;
  /** How many. */
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

/** What did the heavy steps of the transform. The rest of the artifacts is the same on every device. */
export interface TransformedOn {
  /** Which device. */
  readonly device: Device;
  /** Why that one, in a sentence. */
  readonly reason: string;
}

/** The type of each analysis's result. */
export interface Results {
  readonly "summary": Summary;
  readonly "kernels-per-stream": Streams;
  readonly "kernel-changes": Changes;
}

/** Every analysis, in published order. */
export const ANALYSES = [
  {
    "name": "summary",
    "about": "Tables per name, GPU busy time, and what is missing.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "kernels-per-stream",
    "about": "Launches, busy time and distinct kernels of each stream of each GPU.",
    "inputs": "one",
    "parameters": {},
    "columns": [
      {
        "name": "process",
        "cells": "integer",
        "about": "Process id as the profiler saw it."
      },
      {
        "name": "device",
        "cells": "integer",
        "about": "Device ordinal."
      },
      {
        "name": "context",
        "cells": "integer",
        "about": "CUDA context; 0 where the source does not say."
      },
      {
        "name": "stream",
        "cells": "integer",
        "about": "CUDA stream; 0 where the source does not say."
      },
      {
        "name": "launches",
        "cells": "integer",
        "about": "Kernels that it ran."
      },
      {
        "name": "busy_ns",
        "cells": "integer",
        "about": "Length in ns of the union of their intervals."
      },
      {
        "name": "distinct_kernels",
        "cells": "integer",
        "about": "Distinct names among them."
      }
    ]
  },
  {
    "name": "kernel-changes",
    "about": "Time, launches and mean of each kernel in two captures, before and after, and the difference.",
    "inputs": "two",
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
    },
    "columns": [
      {
        "name": "name",
        "cells": "text",
        "about": "The kernel's name."
      },
      {
        "name": "presence",
        "cells": "text",
        "about": "Which captures it is in."
      },
      {
        "name": "before_total_ns",
        "cells": "integer",
        "about": "Total time in ns before."
      },
      {
        "name": "after_total_ns",
        "cells": "integer",
        "about": "Total time in ns after."
      },
      {
        "name": "difference_ns",
        "cells": "integer",
        "about": "`after_total_ns` less `before_total_ns`."
      },
      {
        "name": "before_launches",
        "cells": "integer",
        "about": "Launches before."
      },
      {
        "name": "after_launches",
        "cells": "integer",
        "about": "Launches after."
      },
      {
        "name": "after_mean_ns",
        "cells": "number",
        "about": "Mean time in ns of a launch after; null without any."
      },
      {
        "name": "before_mean_ns",
        "cells": "number",
        "about": "Mean time in ns of a launch before; null without any."
      }
    ]
  },
  {
    "name": "events-csv",
    "about": "Every event of the timeline, a line each (RFC 4180).",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "events-parquet",
    "about": "Every event of the timeline, in columns.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "samples-csv",
    "about": "Every sample of the timeline's series, a line each (RFC 4180).",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "samples-parquet",
    "about": "Every sample of the timeline's series, in columns.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "chrome-trace",
    "about": "The timeline as JSON of chrome://tracing.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "chrome-trace-gz",
    "about": "The timeline as JSON of chrome://tracing, compressed with gzip.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "perfetto-trace",
    "about": "The timeline as protobuf of Perfetto.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "earliest-events",
    "about": "The earliest 100,000 events as JSON.",
    "inputs": "one",
    "parameters": {},
    "columns": null
  },
  {
    "name": "kernel-counters",
    "about": "Counters of launches that a kernel profiler measured, as JSON, where the capture has any.",
    "inputs": "one",
    "parameters": {},
    "columns": null
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
    "field": "memcpy_time",
    "title": "Memory copies (time)",
    "categories": [
      "cuda_memcpy_h2d",
      "cuda_memcpy_d2h",
      "cuda_memcpy_d2d",
      "cuda_memcpy_p2p",
      "cuda_memcpy_other"
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
      "cuda_memcpy_other"
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
