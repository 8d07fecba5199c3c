/** What the page asks the worker, and what the worker answers. Everything here can be copied between threads. */

import type { Header } from "../timeline/header";

/** Which file is opened. */
export type Place = { readonly url: string } | { readonly file: File };

/** A row of which a ring that wrapped holds what was from `from` on; what was before that is not known. */
export interface Held {
  readonly row: number;
  readonly from: number;
}

/** A prelude that was added to the open file. */
export interface Added {
  /** What it says about itself, on its own axis. */
  readonly prelude: Header;
  /** The window and the prelude on the window's axis. Rows, categories and counters of the window have the places that they had. */
  readonly both: Header;
  /** Rows of which older events may be gone. */
  readonly held: readonly Held[];
}

/** What the page will show first of a file: so many pixels of a span in ns, or of all events. */
export interface First {
  readonly width: number;
  readonly span: { readonly from: number; readonly to: number } | undefined;
}

/** What the page wants to draw. Times in ns. */
export interface ViewRequest {
  readonly from: number;
  readonly to: number;
  readonly nsPerPixel: number;
  /** Whether the names' colours are needed, which are known when the names have been read. */
  readonly named: boolean;
}

/** A run of rectangles of one row, lane and category, by start. */
export interface Run {
  readonly row: number;
  /** 255 where the rectangles stand for all lanes of the row. */
  readonly lane: number;
  /** Place in the header's list; counters have -1. */
  readonly category: number;
  readonly first: number;
  readonly count: number;
}

/** What can be drawn. */
export interface View {
  readonly from: number;
  readonly to: number;
  /** Width in ns that was merged into one rectangle. */
  readonly step: number;
  readonly instances: ArrayBuffer;
  /** Under each rectangle: the event's index in its category, or the sample's in its series. */
  readonly events: Uint32Array;
  /** Of how many events each rectangle is. */
  readonly counts: Uint32Array;
  /** Rectangles that are wide enough for a text. */
  readonly wide: Uint32Array;
  readonly runs: readonly Run[];
  /** Times in which a device does nothing, a run for each of its streams. */
  readonly idle: readonly Run[];
  /** What the full height of each counter stands for, in its unit. */
  readonly peaks: readonly number[];
  /** Lanes that are known of each row so far. */
  readonly lanes: Uint16Array;
  /** Whether rectangles have the colours of their names. */
  readonly named: boolean;
  /** Categories that are shown by a level of detail: their names and lanes come when you zoom in. */
  readonly coarse: readonly number[];
  /** Time that the worker spent on it, ms. */
  readonly tookMs: number;
}

/** An event by its place in the file. */
export interface EventRef {
  readonly category: number;
  readonly index: number;
}

/** Where an event is. */
export interface EventPlace extends EventRef {
  readonly start: number;
  readonly duration: number;
  readonly row: number;
  readonly lane: number;
  readonly name: number;
}

/** Everything that the file says about an event. */
export interface EventDetails extends EventPlace {
  readonly text: string;
  /** The category's own columns: numbers and texts. */
  readonly fields: readonly (readonly [string, number | string])[];
}

/** What belongs to an event: calls and the GPU work that they launched, and what it happened in. */
export interface Flow {
  readonly launch: EventPlace | undefined;
  /** By start; of a range or an operator it is the work of its calls. */
  readonly launched: readonly EventPlace[];
  /** What encloses the event on its thread, or the call that launched it: from the outermost to the innermost. */
  readonly ancestors: readonly EventPlace[];
  /** Whether the search for launched work ended at its limit. */
  readonly more: boolean;
}

/** A time in which the device of a row does nothing, as the row shows it. */
export interface IdleTime {
  readonly row: number;
  readonly from: number;
  readonly to: number;
}

/** Why a device did nothing. */
export interface IdleCause {
  /** In words. */
  readonly words: string;
  /** The event of the host that tells it; undefined where none was recorded. */
  readonly place: EventPlace | undefined;
}

/** What is searched for. */
export interface Query {
  readonly text: string;
}

/** Parts of the hit strip: equal shares of the time from the first event to the last. */
export const STRIP = 1024;

/** Which names match, and where. */
export interface Hits {
  /** Per category: 1 for each name that matches. */
  readonly names: readonly Uint8Array[];
  readonly matchingNames: number;
  /** Events that match; undefined where they were too many to count. */
  readonly events: number | undefined;
  /** Events that match, in each part of the strip. */
  readonly strip: Uint32Array;
}

/** An event that matches a search. */
export interface Hit extends EventPlace {
  /** Its place among all that match, by start, from 1 on; undefined where they were too many to count. */
  readonly rank: number | undefined;
}

/** An area of the timeline. */
export interface Area {
  readonly from: number;
  readonly to: number;
  /** Rows of the area. */
  readonly rows: readonly number[];
}

/** A value of an event, exactly. */
export interface EventValue {
  readonly column: "duration_ns" | "bytes";
  readonly value: number;
}

/** Events of one name in an area. Times in ns. */
export interface AreaRow {
  readonly category: number;
  readonly name: number;
  readonly text: string;
  readonly count: number;
  /** Sum of the parts that lie in the area. */
  readonly inside: number;
  /** Figures of the whole events. */
  readonly total: number;
  readonly min: number;
  readonly max: number;
  /** Indexes in the category: of the event that starts first, and of those with the figures `min` and `max`. */
  readonly first: number;
  readonly shortest: number;
  readonly longest: number;
}

/** What is in an area. */
export interface AreaStats {
  readonly rows: readonly AreaRow[];
  readonly events: number;
  /** Time of the area in which an event of GPU rows runs, per device row group; undefined without such rows. */
  readonly busy: number | undefined;
}

/** An event among those of its name. */
export interface Ranked {
  /** Undefined where there is none on that side. */
  readonly place: EventPlace | undefined;
  /** Its place by length, from 1 of the longest on; without one, that of the event that was asked for. */
  readonly rank: number;
  /** How many events have the name. */
  readonly count: number;
}

/** Counts of events by length. */
export interface Distribution {
  /** The least length of each bin in ns. */
  readonly from: readonly number[];
  readonly counts: readonly number[];
}

/** The worker's calls. */
export interface Calls {
  /** Undefined when another file was opened meanwhile. What is shown `first` is read ahead. */
  open(place: Place, first: First | undefined): Header | undefined;
  /** Adds what was before the window. Undefined when another file was opened meanwhile. */
  prelude(place: Place): Added | undefined;
  /** Takes the prelude away again. */
  withoutPrelude(): void;
  names(category: number): readonly string[];
  view(request: ViewRequest): View | undefined;
  event(ref: EventRef): EventDetails;
  flow(ref: EventRef): Flow;
  /** Undefined where no work of the device ends the time. */
  idleCause(idle: IdleTime): IdleCause | undefined;
  search(query: Query): Hits | undefined;
  next(from: EventPlace | undefined, time: number, forward: boolean): Hit | undefined;
  /** The first event of a name; with a value, the first that has it. */
  instanceOf(category: number, text: string, value: EventValue | undefined): EventPlace | undefined;
  /** The event of the same name that is next longer, or next shorter. */
  besideByLength(ref: EventRef, longer: boolean): Ranked | undefined;
  area(area: Area): AreaStats | undefined;
  sample(counter: number, at: number): { t: number; value: number } | undefined;
  /** A counter's samples, thinned to at most so many. */
  series(counter: number, most: number): { readonly t: readonly number[]; readonly value: readonly number[] };
  /** How busy the GPUs are in each part of the strip, from 0 to 1. */
  density(): Float32Array;
  /** Undefined where a category has too many events. */
  distribution(category: number): Distribution | undefined;
  summary(): string;
}

export type Call = keyof Calls;

/** A call on its way to the worker. */
export interface Request {
  readonly id: number;
  readonly call: Call;
  readonly args: readonly unknown[];
}

/** What comes back: an answer, an error and whether it says that a file is no timeline, or how many bytes have come in. */
export type Response =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string; readonly kind: "foreign" | "closed" | undefined }
  | { readonly loaded: Loaded };

/** What came in of a file. */
export interface Loaded {
  readonly bytes: number;
  readonly requests: number;
  /** Time in which requests were under way, in ms. */
  readonly fetchMs: number;
  /** Chunks that were unpacked since the worker began, and the time by the wall for that in ms: none where all was kept. */
  readonly unpacked: number;
  readonly unpackMs: number;
  /** Bytes that are on their way. */
  readonly missing: number;
  /** The part that came of what was asked for since nothing was on its way, from 0 to 1. */
  readonly share: number;
}
