/** The summary artifact as its schema (docs/summary.schema.json) has it; what the viewer uses of it. */

export interface SummaryRow {
  readonly name: string;
  readonly style?: string;
  readonly share_of_table: number;
  readonly calls: number;
  readonly total: number;
  readonly avg: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly stddev: number;
}

export interface SummaryTable {
  /** Whether the source recorded such events at all. */
  readonly captured: boolean;
  readonly unit: "ns" | "bytes";
  readonly rows: readonly SummaryRow[];
}

export interface Summary {
  readonly window_ns: number;
  /** From the start of the first event to the end of the last; absent in files of before. */
  readonly events_span_ns?: number;
  readonly total_events: number;
  readonly categories: readonly { readonly category: string; readonly captured: boolean; readonly events: number | null }[];
  readonly gpus: readonly {
    readonly device: number;
    readonly name: string;
    readonly busy_ns: number;
    readonly busy_ratio_of_window: number;
    /** Absent in files of before. */
    readonly busy_ratio_of_events_span?: number;
  }[];
  readonly launches: { readonly matched: number; readonly unmatched: number };
  readonly drops: readonly { readonly reason: string; readonly what: string; readonly count: number }[];
  readonly redactions: number;
}

/** A table and what it is called. */
export interface NamedTable {
  readonly key: string;
  readonly title: string;
  readonly table: SummaryTable;
  /** Categories whose events its rows count. */
  readonly categories: readonly string[];
}

const COPIES = ["cuda_memcpy_h2d", "cuda_memcpy_d2h", "cuda_memcpy_d2d", "cuda_memcpy_p2p", "cuda_memcpy_other"];

const TABLES: readonly (readonly [string, string, readonly string[]])[] = [
  ["kernels", "Kernels", ["cuda_kernel"]],
  ["memcpy_time", "Copies, time", COPIES],
  ["memcpy_size", "Copies, size", COPIES],
  ["memset", "Memsets, time", ["cuda_memset"]],
  ["memset_size", "Memsets, size", ["cuda_memset"]],
  ["cuda_api", "CUDA API", ["cuda_api"]],
  ["nvtx", "NVTX", ["nvtx_range"]],
  ["operators", "Operators", ["cpu_op"]],
  ["annotations", "Annotations", ["annotation", "step"]],
  ["device_ops", "Device operations", ["device_op"]],
  ["os_runtime", "OS runtime", ["os_runtime"]],
];

/** The tables that a summary has. */
export function tablesOf(summary: Summary): NamedTable[] {
  const all = summary as unknown as Readonly<Record<string, SummaryTable | undefined>>;
  return TABLES.flatMap(([key, title, categories]) => {
    const table = all[key];
    return table && Array.isArray(table.rows) ? [{ key, title, table, categories }] : [];
  });
}
