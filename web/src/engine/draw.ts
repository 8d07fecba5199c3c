/** From events, levels and samples to rectangles. Pure: what comes out depends on the arguments alone. */

import type { Entries } from "../timeline/levels";
import { type Block, firstEndingAfter, type Lane } from "./block";
import { type InstanceWriter, KIND, NO_NAME } from "./instances";

/** The window that is drawn: times in ns, `step` is the width that is merged into one rectangle. */
export interface Window {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** How a category looks. */
export interface Look {
  readonly category: number;
  /** Added to the names' places to make them unique over all categories. */
  readonly firstName: number;
  /** Colour of each name. */
  readonly slots: Uint8Array;
}

/**
 * Draws the events of a lane that run in the window. Events of a pixel or longer are drawn as they are; shorter ones that start
 * within the same step become one rectangle that names the longest, so nothing is drawn more often than there are pixels.
 */
export function drawLane(out: InstanceWriter, block: Block, lane: Lane, window: Window, look: Look): void {
  const { members, row } = lane;
  const { start, duration, name } = block;
  const { from, to, step } = window;
  let bucket = -1;
  let longest = -1;
  let longestDuration = -1;
  let busy = 0;
  let count = 0;
  const flush = () => {
    if (count === 0) {
      return;
    }
    const idx = name[longest] as number;
    const slot = look.slots[idx] ?? 0;
    if (count === 1) {
      const begin = (start[longest] as number) - from;
      const event = block.first + longest;
      out.push(begin, begin + longestDuration, row, lane.lane, KIND.event, look.firstName + idx, look.category, slot, 1, event, 1);
    } else {
      const begin = bucket * step - from;
      const event = block.first + longest;
      out.push(begin, begin + step, row, lane.lane, KIND.merged, look.firstName + idx, look.category, slot, busy / step, event, count);
    }
    count = 0;
    longestDuration = -1;
    busy = 0;
  };
  for (let place = firstEndingAfter(block, members, from - 1); place < members.length; place += 1) {
    const at = members[place] as number;
    const begin = start[at] as number;
    if (begin > to) {
      break;
    }
    const length = duration[at] as number;
    if (length >= step) {
      flush();
      const idx = name[at] as number;
      const left = begin - from;
      out.push(left, left + length, row, lane.lane, KIND.event, look.firstName + idx, look.category, look.slots[idx] ?? 0, 1, block.first + at, 1);
      continue;
    }
    const here = Math.floor(begin / step);
    if (here !== bucket) {
      flush();
      bucket = here;
    }
    count += 1;
    busy += length;
    if (length > longestDuration) {
      longestDuration = length;
      longest = at;
    }
  }
  flush();
}

/**
 * Draws a lane's entries of a level of detail, of buckets of 2^shift ns; MOST_LANES stands for all lanes of the row. Those of a step become one rectangle; the length of the
 * longest event is exact, its start is known to a bucket, which is at most a step.
 */
export function drawEntries(out: InstanceWriter, entries: Entries, row: number, lane: number, shift: number, window: Window, look: Look): void {
  const { bucket, event, duration, count, busy, name } = entries;
  const { from, to, step } = window;
  const width = 2 ** shift;
  const draw = (at: number, begin: number, end: number, level: number, events: number) => {
    const idx = name === undefined ? NO_NAME : Number(name[at]);
    const global = idx === NO_NAME ? NO_NAME : look.firstName + idx;
    const slot = idx === NO_NAME ? 0 : (look.slots[idx] ?? 0);
    out.push(begin - from, end - from, row, lane, KIND.level, global, look.category, slot, level, Number(event[at]), events);
  };
  let merged = -1;
  let longest = -1;
  let busySum = 0;
  let countSum = 0;
  const flush = () => {
    if (countSum > 0) {
      draw(longest, merged * step, (merged + 1) * step, busySum / step, countSum);
    }
    busySum = 0;
    countSum = 0;
    longest = -1;
  };
  for (let at = 0; at < bucket.length; at += 1) {
    const begin = Number(bucket[at]) * width;
    if (begin > to) {
      break;
    }
    const length = Number(duration[at]);
    if (length >= step) {
      if (begin + length >= from) {
        flush();
        draw(at, begin, begin + length, 1, Number(count[at]));
      }
      continue;
    }
    const here = Math.floor(begin / step);
    if ((here + 1) * step <= from) {
      continue;
    }
    if (here !== merged) {
      flush();
      merged = here;
    }
    if (longest < 0 || length > Number(duration[longest])) {
      longest = at;
    }
    busySum += Number(busy[at]);
    countSum += Number(count[at]);
  }
  flush();
}

/** Draws a counter as steps; within a step the largest value counts. Heights are shares of `most`. */
export function drawSamples(
  out: InstanceWriter,
  t: Float64Array,
  value: Float64Array,
  most: number,
  row: number,
  category: number,
  window: Window,
): void {
  const { from, to, step } = window;
  let at = lowerBound(t, from) - 1;
  at = Math.max(0, at);
  while (at < t.length) {
    const begin = t[at] as number;
    if (begin > to) {
      break;
    }
    const bucket = Math.floor(begin / step);
    let top = at;
    let next = at + 1;
    while (next < t.length && Math.floor((t[next] as number) / step) === bucket) {
      if ((value[next] as number) > (value[top] as number)) {
        top = next;
      }
      next += 1;
    }
    const end = next < t.length ? (t[next] as number) : begin + Math.max(step, at > 0 ? begin - (t[at - 1] as number) : step);
    const share = most > 0 ? (value[top] as number) / most : 0;
    out.push(begin - from, end - from, row, 0, KIND.counter, NO_NAME, category, 0, share, top, next - at);
    at = next;
  }
}

/** The place of the first value that is not below `wanted`. */
export function lowerBound(values: ArrayLike<number>, wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** The gaps of at least `least` between the union of `spans` (begin, end, begin, end, ...) within 0 to `length`. */
export function gapsBetween(spans: readonly number[], least: number): [number, number][] {
  const order = Array.from({ length: spans.length / 2 }, (_, at) => at).sort(
    (a, b) => (spans[2 * a] as number) - (spans[2 * b] as number),
  );
  const gaps: [number, number][] = [];
  let until: number | undefined;
  for (const at of order) {
    const begin = spans[2 * at] as number;
    const end = spans[2 * at + 1] as number;
    if (until !== undefined && begin - until >= least) {
      gaps.push([until, begin]);
    }
    until = Math.max(until ?? end, end);
  }
  return gaps;
}
