/** A chunk of events, decoded, with an index by row and lane. */

import type { ColumnValues } from "../timeline/tiles";

/** The columns that drawing needs. */
export const DRAWN = ["start_ns", "duration_ns", "name_idx", "row", "lane"] as const;

/** Events of one row and lane; none of them overlap. */
export interface Lane {
  readonly row: number;
  readonly lane: number;
  /** Places in the block, by start. */
  readonly members: Uint32Array;
}

/** A decoded chunk. */
export interface Block {
  /** Index in the category of the block's first event. */
  readonly first: number;
  readonly start: Float64Array;
  readonly duration: Float64Array;
  readonly name: Uint8Array | Uint16Array | Uint32Array;
  readonly row: Uint8Array | Uint16Array | Uint32Array;
  readonly lane: Uint8Array | Uint16Array | Uint32Array;
  readonly lanes: readonly Lane[];
}

/** Makes a block of its columns. */
export function blockOf(first: number, columns: ReadonlyMap<string, ColumnValues>): Block {
  const start = floats(columns.get("start_ns"));
  const duration = floats(columns.get("duration_ns"));
  const name = integers(columns.get("name_idx"), start.length);
  const row = integers(columns.get("row"), start.length);
  const lane = integers(columns.get("lane"), start.length);
  return { first, start, duration, name, row, lane, lanes: lanesOf(row, lane) };
}

/** Places by row and lane, in the order that they have: a counting sort. */
export function lanesOf(row: ArrayLike<number>, lane: ArrayLike<number>): Lane[] {
  const numbers = new Map<number, number>();
  const keys: number[] = [];
  const counts: number[] = [];
  const of = new Uint32Array(row.length);
  let lastKey = -1;
  let last = 0;
  for (let at = 0; at < row.length; at += 1) {
    const key = (row[at] as number) * 65536 + (lane[at] as number);
    if (key !== lastKey) {
      lastKey = key;
      const known = numbers.get(key);
      if (known === undefined) {
        last = keys.length;
        numbers.set(key, last);
        keys.push(key);
        counts.push(0);
      } else {
        last = known;
      }
    }
    of[at] = last;
    counts[last] = (counts[last] as number) + 1;
  }
  const members = counts.map((count) => new Uint32Array(count));
  const filled = new Uint32Array(counts.length);
  for (let at = 0; at < of.length; at += 1) {
    const which = of[at] as number;
    const to = filled[which] as number;
    (members[which] as Uint32Array)[to] = at;
    filled[which] = to + 1;
  }
  return keys.map((key, at) => ({
    row: Math.floor(key / 65536),
    lane: key % 65536,
    members: members[at] as Uint32Array,
  }));
}

function floats(values: ColumnValues | undefined): Float64Array {
  return values instanceof Float64Array ? values : Float64Array.from(values ?? []);
}

function integers(values: ColumnValues | undefined, count: number): Uint8Array | Uint16Array | Uint32Array {
  if (values instanceof Float64Array) {
    return Uint32Array.from(values);
  }
  return values ?? new Uint8Array(count);
}

/** The first of `members` whose event ends after `time`; in a lane, ends are in the order of starts. */
export function firstEndingAfter(block: Block, members: Uint32Array, time: number): number {
  let low = 0;
  let high = members.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const at = members[middle] as number;
    if ((block.start[at] as number) + (block.duration[at] as number) > time) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
