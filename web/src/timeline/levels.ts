/** Levels of detail of a category: per row, lane and bucket of time the longest event, how many start there, and how long the lane is busy. */

import type { Dataset, Group, Numbers } from "../hdf5/file";
import { asFloats } from "./file";

/** This lane's entries stand for all lanes from it on, whose events overlap. */
export const LAST_LANE = 63;

/** A lane's entries in a level: `count` from `first` on. */
export interface LevelStrip {
  readonly row: number;
  /** Undefined in older files, whose entries stand for all lanes of the row. */
  readonly lane: number | undefined;
  readonly first: number;
  readonly count: number;
}

/** A level: its buckets are 2^shift ns wide. */
export interface Level {
  readonly shift: number;
  readonly strips: readonly LevelStrip[];
}

/** The levels of a category, the finest first. */
export interface Levels {
  readonly levels: readonly Level[];
  /**
   * The entries of a strip of a level of buckets of 2^shift ns that start between `from` and `to`, and the last one before them: within a
   * lane no other can reach into that time by more than a bucket.
   */
  within(strip: LevelStrip, shift: number, from: number, to: number): Promise<Entries>;
}

/** Entries, by column. Times in ns. */
export interface Entries {
  readonly bucket: Numbers;
  readonly event: Numbers;
  readonly duration: Numbers;
  readonly count: Numbers;
  readonly busy: Numbers;
  /** Name of the longest event, where the file tells it. */
  readonly name: Numbers | undefined;
}

/** Entries that are read at once, before it is known which of them lie in the window: fewer than a chunk holds. */
const AT_ONCE = 65536;

/** Decoded chunks of entry columns that are kept. */
const MOST_KEPT = 48;

export async function openLevels(group: Group): Promise<Levels> {
  const [directory, columns] = await Promise.all([group.group("levels"), group.group("entries")]);
  const names = ["shift", "row", "first", "count", ...(directory.has("lane") ? ["lane"] : [])];
  const [shift, row, first, count, lane] = await Promise.all(names.map((name) => directory.dataset(name).then((set) => set.numbers())));
  const starts = asFloats(first);
  const byShift = new Map<number, LevelStrip[]>();
  starts.forEach((start, at) => {
    const key = Number(shift?.[at] ?? 0);
    const strips = byShift.get(key) ?? [];
    strips.push({ row: Number(row?.[at] ?? 0), lane: lane && Number(lane[at]), first: start, count: Number(count?.[at] ?? 0) });
    byShift.set(key, strips);
  });
  const levels = [...byShift].sort(([a], [b]) => a - b).map(([shift, strips]) => ({ shift, strips }));
  const sets = new Map<string, Promise<Dataset>>();
  const kept = new Map<string, Promise<Numbers>>();
  const part = (set: Dataset, chunk: number): Promise<Numbers> => {
    const key = `${set.path}/${chunk}`;
    const known = kept.get(key);
    const begin = chunk * set.chunkLength;
    const part = known ?? set.range(begin, Math.min(set.chunkLength, set.length - begin));
    kept.delete(key);
    kept.set(key, part);
    if (!known) {
      part.catch(() => kept.delete(key));
    }
    for (const oldest of kept.keys()) {
      if (kept.size <= MOST_KEPT) {
        break;
      }
      kept.delete(oldest);
    }
    return part;
  };
  const column = async (name: string, from: number, many: number): Promise<Numbers> => {
    let opening = sets.get(name);
    if (!opening) {
      opening = columns.dataset(name);
      sets.set(name, opening);
    }
    const set = await opening;
    const chunks = [];
    for (let chunk = Math.floor(from / set.chunkLength); chunk * set.chunkLength < from + many; chunk += 1) {
      chunks.push(part(set, chunk));
    }
    const parts = await Promise.all(chunks);
    const skip = from % set.chunkLength;
    return parts.length === 1 && parts[0] ? parts[0].subarray(skip, skip + many) : join(parts).subarray(skip, skip + many);
  };
  const entries = async (from: number, many: number): Promise<Entries> => {
    const [bucket, event, duration, count, busy, name] = await Promise.all([
      column("bucket", from, many),
      column("event", from, many),
      column("duration_ns", from, many),
      column("count", from, many),
      column("busy_ns", from, many),
      columns.has("name_idx") ? column("name_idx", from, many) : undefined,
    ]);
    return { bucket, event, duration, count, busy, name };
  };
  return {
    levels,
    within: async (strip, shift, from, to) => {
      if (strip.count === 0) {
        return entries(strip.first, 0);
      }
      const width = 2 ** shift;
      const between = (buckets: Numbers): [number, number] => {
        const low = Math.max(0, place(buckets, Math.floor(from / width)) - 1);
        return [low, Math.max(low, place(buckets, Math.floor(to / width) + 1))];
      };
      if (strip.count <= AT_ONCE) {
        const all = await entries(strip.first, strip.count);
        const [low, high] = between(all.bucket);
        const cut = (column: Numbers) => column.subarray(low, high);
        const { bucket, event, duration, count, busy, name } = all;
        return { bucket: cut(bucket), event: cut(event), duration: cut(duration), count: cut(count), busy: cut(busy), name: name && cut(name) };
      }
      // Where the time lies is told by the buckets alone, which take next to no bytes.
      const [low, high] = between(await column("bucket", strip.first, strip.count));
      return entries(strip.first + low, high - low);
    },
  };
}

/** The place of the first value that is not below `wanted`. */
function place(values: Numbers, wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Number(values[middle]) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function join(parts: readonly Numbers[]): Numbers {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (parts[0] instanceof BigUint64Array) {
    const whole = new BigUint64Array(length);
    let at = 0;
    for (const part of parts) {
      whole.set(part as BigUint64Array, at);
      at += part.length;
    }
    return whole;
  }
  const whole = new Float64Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part as Float64Array, at);
    at += part.length;
  }
  return whole;
}
