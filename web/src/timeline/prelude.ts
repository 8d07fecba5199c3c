/** A window and its prelude on one axis: what was kept of the time before a capture began lies at negative times. */

import { FormatError } from "../hdf5/cursor";
import * as format from "../view/format";
import { type CategoryData, MOST_ROWS, type Samples, type TimelineFile } from "./file";
import type { Counter, Header, Row } from "./header";
import type { Levels } from "./levels";
import type { ColumnValues } from "./tiles";

/** No recorder keeps more: a file from longer before the window is of something else. */
const LONGEST_NS = 24 * 3_600_000_000_000;

/**
 * Both files as one. Rows, categories and counters of the window keep their numbers, and those of the prelude follow; a row or counter that both
 * have is one. The tables stay those of the window.
 */
export function withPrelude(window: TimelineFile, prelude: TimelineFile): TimelineFile {
  const [own, earlier] = [window.header, prelude.header];
  const offset = offsetOf(own, earlier);
  const { rows, places } = joinedRows(own.rows, earlier.rows);
  const { counters, series } = joinedCounters(own.counters, earlier.counters);
  if (rows.length + counters.length > MOST_ROWS) {
    throw new FormatError(`with the window it has ${rows.length + counters.length} rows, the viewer shows up to ${MOST_ROWS}`);
  }
  const moved = prelude.categories.filter(({ count }) => count > 0).map((category) => movedCategory(category, offset, places));
  return {
    header: {
      ...own,
      beginNs: offset,
      totalEvents: own.totalEvents + earlier.totalEvents,
      fileBytes: own.fileBytes + earlier.fileBytes,
      rows,
      counters,
      categories: [...own.categories, ...moved.map(({ name, count, tiles }) => ({ name, count, columns: tiles.columns }))],
      extent: [offset, Math.max(own.extent[1], Math.min(own.durationNs, offset + earlier.extent[1]), 0)],
    },
    categories: [...window.categories, ...moved],
    samples: async (at) => {
      const place = series[at];
      const [before, after] = await Promise.all([
        place === undefined ? NO_SAMPLES : prelude.samples(place),
        at < own.counters.length ? window.samples(at) : NO_SAMPLES,
      ]);
      return joinedSamples({ t: before.t.map((t) => t + offset), value: before.value }, after);
    },
    summary: window.summary,
  };
}

/** Where the prelude begins on the window's axis, in ns. */
function offsetOf(window: Header, prelude: Header): number {
  if (window.startUtcNs === undefined || prelude.startUtcNs === undefined) {
    throw new FormatError(`the ${window.startUtcNs === undefined ? "capture" : "prelude"} does not say when it began`);
  }
  const offset = Number(BigInt(prelude.startUtcNs) - BigInt(window.startUtcNs));
  if (offset >= 0 || offset < -LONGEST_NS) {
    const where = `${format.duration(Math.abs(offset))} ${offset < 0 ? "before" : "behind"} the begin of this capture`;
    throw new FormatError(`it begins ${where}, so it is the prelude of another`);
  }
  return offset;
}

/** The rows of both, and the place of each of the prelude's among them. Only the window's tool tells machines apart. */
function joinedRows(own: readonly Row[], earlier: readonly Row[]): { rows: Row[]; places: number[] } {
  const rows = [...own];
  const threads = placesBy(own, identity);
  const processes = placesBy(own, ({ process }) => process);
  const places = earlier.map((row) => {
    const same = row.thread === undefined ? undefined : threads.get(identity(row));
    const known = same === undefined ? undefined : rows[same];
    if (same !== undefined && known) {
      rows[same] = { ...known, lanes: Math.max(known.lanes, row.lanes) };
      return same;
    }
    const process = own[processes.get(row.process) ?? -1];
    return rows.push(process ? { ...row, capture: process.capture, machine: process.machine } : row) - 1;
  });
  return { rows, places };
}

/** The first place of each key. */
function placesBy<T, K>(list: readonly T[], key: (one: T) => K): Map<K, number> {
  return new Map(list.map((one, at) => [key(one), at] as const).reverse());
}

function identity({ track, process, thread, device }: Row): string {
  return [track, process, thread, device].join();
}

function seriesName({ source, device, metric, unit }: Counter): string {
  return [source, device, metric, unit].join("\n");
}

/** The counters of both, and for each of them the place of its series in the prelude. */
function joinedCounters(own: readonly Counter[], earlier: readonly Counter[]): { counters: Counter[]; series: (number | undefined)[] } {
  const counters = [...own];
  const series: (number | undefined)[] = [];
  const known = placesBy(own, seriesName);
  earlier.forEach((counter, place) => {
    series[known.get(seriesName(counter)) ?? counters.push(counter) - 1] = place;
  });
  return { counters, series };
}

const NO_SAMPLES: Samples = { t: new Float64Array(0), value: new Float64Array(0) };

/** By time: clocks differ a little, so the last samples of the one may lie among the first of the other. */
function joinedSamples(before: Samples, after: Samples): Samples {
  const both = ([before, after] as const).flatMap(({ t, value }) => Array.from(t, (time, at) => [time, value[at] as number] as const));
  both.sort(([a], [b]) => a - b);
  return { t: Float64Array.from(both, ([time]) => time), value: Float64Array.from(both, ([, value]) => value) };
}

/** A category whose times and rows are those of the joined file. */
function movedCategory(category: CategoryData, offset: number, places: readonly number[]): CategoryData {
  const { tiles, levels } = category;
  const later = (time: number) => time + offset;
  return {
    ...category,
    tiles: { ...tiles, tMin: tiles.tMin.map(later), tMax: tiles.tMax.map(later) },
    read: async (chunks, columns) => {
      const found = await category.read(chunks, columns);
      return found.map((values) => new Map([...values].map(([name, column]) => [name, movedColumn(name, column, offset, places)])));
    },
    levels: levels && movedLevels(levels, offset, places),
  };
}

function movedColumn(name: string, column: ColumnValues, offset: number, places: readonly number[]): ColumnValues {
  switch (name) {
    case "start_ns":
      return Float64Array.from(column, (start) => start + offset);
    case "row":
      return Uint32Array.from(column, (row) => places[row] ?? MOST_ROWS);
    default:
      return column;
  }
}

function movedLevels({ levels, within }: Levels, offset: number, places: readonly number[]): Levels {
  return {
    levels: levels.map(({ shift, strips }) => ({ shift, strips: strips.map((strip) => ({ ...strip, row: places[strip.row] ?? MOST_ROWS })) })),
    within: async (strip, shift, from, to) => {
      const entries = await within(strip, shift, from - offset, to - offset);
      // Buckets are then no whole numbers. A double holds them all the same: dividing by a power of two rounds nothing.
      return { ...entries, bucket: Float64Array.from(entries.bucket, (bucket: number | bigint) => Number(bucket) + offset / 2 ** shift) };
    },
  };
}
