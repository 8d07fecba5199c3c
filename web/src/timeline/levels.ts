/** Levels of detail of a category: per row and bucket of time the longest event, how many start there, and how long the row is busy. */

import type { Dataset, Group, Numbers } from "../hdf5/file";
import { asFloats } from "./file";

/** A row's entries in a level: `count` from `first` on. */
export interface LevelRow {
  readonly row: number;
  readonly first: number;
  readonly count: number;
}

/** A level: its buckets are 2^shift ns wide. */
export interface Level {
  readonly shift: number;
  readonly rows: readonly LevelRow[];
}

/** The levels of a category, the finest first. */
export interface Levels {
  readonly levels: readonly Level[];
  /** The entries from `first` on. */
  entries(first: number, count: number): Promise<Entries>;
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

export async function openLevels(group: Group): Promise<Levels> {
  const [directory, columns] = await Promise.all([group.group("levels"), group.group("entries")]);
  const [shift, row, first, count] = await Promise.all(
    ["shift", "row", "first", "count"].map((name) => directory.dataset(name).then((set) => set.numbers())),
  );
  const starts = asFloats(first);
  const byShift = new Map<number, LevelRow[]>();
  starts.forEach((start, at) => {
    const key = Number(shift?.[at] ?? 0);
    const rows = byShift.get(key) ?? [];
    rows.push({ row: Number(row?.[at] ?? 0), first: start, count: Number(count?.[at] ?? 0) });
    byShift.set(key, rows);
  });
  const levels = [...byShift].sort(([a], [b]) => a - b).map(([shift, rows]) => ({ shift, rows }));
  const sets = new Map<string, Promise<Dataset>>();
  const column = (name: string, from: number, many: number): Promise<Numbers> => {
    let set = sets.get(name);
    if (!set) {
      set = columns.dataset(name);
      sets.set(name, set);
    }
    return set.then((set) => set.range(from, many));
  };
  return {
    levels,
    entries: async (from, many) => {
      const [bucket, event, duration, count, busy, name] = await Promise.all([
        column("bucket", from, many),
        column("event", from, many),
        column("duration_ns", from, many),
        column("count", from, many),
        column("busy_ns", from, many),
        columns.has("name_idx") ? column("name_idx", from, many) : undefined,
      ]);
      return { bucket, event, duration, count, busy, name };
    },
  };
}
