/** Figures of an area of the timeline, by name. */

import { chunksWithin } from "../timeline/tiles";
import type { Area, AreaRow, AreaStats } from "./protocol";
import type { Session, Stale } from "./session";

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Exact figures of the events that run in the area; undefined when a newer request came meanwhile. */
export async function areaStats(session: Session, area: Area, stale: Stale): Promise<AreaStats | undefined> {
  const rows = new Set(area.rows);
  const sums = new Map<number, Writable<Omit<AreaRow, "text">>>();
  const spans: [number, number][] = [];
  let events = 0;
  let gpu = false;
  for (const [category, data] of session.file.categories.entries()) {
    const busy = session.isGpuWork(category);
    for (const chunk of chunksWithin(data.tiles, area.from, area.to)) {
      const [block] = await session.blocks.get(category, [chunk]);
      if (stale()) {
        return undefined;
      }
      for (let at = 0; block && at < block.start.length; at += 1) {
        const start = block.start[at] as number;
        if (start >= area.to) {
          break;
        }
        const duration = block.duration[at] as number;
        const end = start + duration;
        // Half-open, so that neighbouring areas share no event of no length.
        if (end < area.from || (end === area.from && duration > 0) || !rows.has(block.row[at] as number)) {
          continue;
        }
        const name = block.name[at] as number;
        const inside = Math.min(end, area.to) - Math.max(start, area.from);
        const key = category * 2 ** 32 + name;
        const sum = sums.get(key);
        if (sum) {
          sum.count += 1;
          sum.inside += inside;
          sum.total += duration;
          if (duration < sum.min) {
            sum.min = duration;
            sum.shortest = block.first + at;
          }
          if (duration > sum.max) {
            sum.max = duration;
            sum.longest = block.first + at;
          }
        } else {
          const index = block.first + at;
          sums.set(key, { category, name, count: 1, inside, total: duration, min: duration, max: duration, first: index, shortest: index, longest: index });
        }
        events += 1;
        if (busy) {
          gpu = true;
          spans.push([Math.max(start, area.from), Math.min(end, area.to)]);
        }
      }
    }
  }
  const found: AreaRow[] = [];
  for (const sum of sums.values()) {
    const names = await session.category(sum.category).names();
    found.push({ ...sum, text: names[sum.name] ?? "" });
  }
  found.sort((a, b) => b.inside - a.inside || a.count - b.count || (a.text < b.text ? -1 : 1));
  return { rows: found, events, busy: gpu ? unionLength(spans) : undefined };
}

/** The length of the union of spans. */
export function unionLength(spans: [number, number][]): number {
  spans.sort((a, b) => a[0] - b[0]);
  let sum = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const [begin, end] of spans) {
    if (end > until) {
      sum += end - Math.max(begin, until);
      until = end;
    }
  }
  return sum;
}
