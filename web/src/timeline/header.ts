/** What a timeline file says about itself: everything but the events. */

/** A row of the timeline: a stream of a device or a track of a thread, of one process. */
export interface Row {
  readonly capture: number;
  readonly machine: number;
  readonly process: number;
  /** Kind of the row, e.g. `gpu_stream`. */
  readonly track: string;
  readonly device: number | undefined;
  readonly context: number | undefined;
  readonly stream: number | undefined;
  readonly thread: number | undefined;
  /** How many lanes its events take; 1 where the file does not tell. */
  readonly lanes: number;
  readonly label: string;
}

/** A GPU; a figure that is not known is undefined. */
export interface Device {
  readonly id: number;
  readonly name: string;
  readonly computeCapability: string | undefined;
  readonly multiprocessors: number | undefined;
  readonly memoryBytes: number | undefined;
  readonly peakBandwidth: number | undefined;
  readonly figuresFrom: string;
  /** Which part of a GPU it is, where it is a MIG instance; otherwise empty. */
  readonly part: string;
}

/** A category that was captured, with or without events. */
export interface Category {
  readonly name: string;
  readonly count: number;
  /** Names of its columns. */
  readonly columns: readonly string[];
}

/** A sampled series. */
export interface Counter {
  readonly source: string;
  readonly device: string;
  readonly metric: string;
  readonly unit: string;
}

/** Something that is not in the capture: why, what, how many. */
export interface Drop {
  readonly reason: string;
  readonly what: string;
  readonly count: number;
}

/**
 * Whether a drop reads as that of a file that ends before its end; `cutOf` says so for certain. Its
 * list comes with the catalogue, which is large.
 */
export function seemsCut({ reason, what }: Drop): boolean {
  return reason === "truncated" && what.includes("the file ends before");
}

/** Who recorded. */
export interface CaptureSource {
  readonly profiler: string;
  readonly version: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** A file without its events. Times are in ns from the session's start. */
export interface Header {
  readonly sessionId: string;
  /** Where the time axis begins: at the capture window, or below 0 where a prelude is shown before it. */
  readonly beginNs: number;
  readonly durationNs: number;
  readonly totalEvents: number;
  /** Start of the session since the Unix epoch in ns, as decimal digits: a double would round it. */
  readonly startUtcNs: string | undefined;
  readonly source: CaptureSource;
  readonly drops: readonly Drop[];
  readonly redactions: number;
  readonly devices: readonly Device[];
  readonly rows: readonly Row[];
  readonly categories: readonly Category[];
  readonly counters: readonly Counter[];
  /** Which of `PARTS` the file holds. */
  readonly parts: readonly string[];
  /** From the first event's start to the last one's end; the capture's window may be much longer. */
  readonly extent: readonly [number, number];
  /** Length of the file in bytes. */
  readonly fileBytes: number;
}

/** What a file may hold beside its events: groups of it. */
export const PARTS = ["allocations", "counters", "programs", "profiles", "stacks"] as const;

/** The newest layout of files that is read. */
export const SCHEMA_VERSION = 2;

/** Stands for a missing device in `/rows`. */
export const NONE_U32 = 0xffff_ffff;
