/** How long the events of a category take: counts by length, in bins that grow evenly. */

import type { Distribution } from "./protocol";
import type { Session, Stale } from "./session";

/** Bins per factor of ten. */
export const BINS_PER_DECADE = 8;

/** More events are not read for a chart. */
const MOST_EVENTS = 4_000_000;

/** The bin of a length in ns; 0 ns and 1 ns share the first. */
export function binOf(ns: number): number {
  // Powers of ten begin a bin, whatever the logarithm rounds to.
  return Math.max(0, Math.floor(Math.log10(Math.max(1, ns)) * BINS_PER_DECADE + 1e-9));
}

/** The least length of a bin in ns. */
export function binStart(bin: number): number {
  return 10 ** (bin / BINS_PER_DECADE);
}

/** Counts by length; undefined where there are too many events, or when a newer request came meanwhile. */
export async function distributionOf(session: Session, category: number, stale: Stale): Promise<Distribution | undefined> {
  const { tiles, count, read } = session.category(category);
  if (count > MOST_EVENTS) {
    return undefined;
  }
  const counts: number[] = [];
  for (let chunk = 0; chunk < tiles.first.length; chunk += 1) {
    const [columns] = await read([chunk], ["duration_ns"]);
    if (stale()) {
      return undefined;
    }
    const durations = columns?.get("duration_ns") ?? new Float64Array(0);
    for (let at = 0; at < durations.length; at += 1) {
      const bin = binOf(durations[at] as number);
      counts[bin] = (counts[bin] ?? 0) + 1;
    }
  }
  const first = counts.findIndex((count) => count !== undefined);
  if (first < 0) {
    return { from: [], counts: [] };
  }
  const bins = Array.from({ length: counts.length - first }, (_, at) => first + at);
  return { from: bins.map(binStart), counts: bins.map((bin) => counts[bin] ?? 0) };
}

/** At most `most` points of a series: in each equal share of time the largest value. */
export function thinned(t: ArrayLike<number>, value: ArrayLike<number>, most: number): { t: number[]; value: number[] } {
  const points = { t: [] as number[], value: [] as number[] };
  const share = Math.max(1, Math.ceil(t.length / Math.max(1, most)));
  for (let from = 0; from < t.length; from += share) {
    let top = from;
    for (let at = from; at < Math.min(t.length, from + share); at += 1) {
      if ((value[at] as number) > (value[top] as number)) {
        top = at;
      }
    }
    points.t.push(t[top] as number);
    points.value.push(value[top] as number);
  }
  return points;
}
