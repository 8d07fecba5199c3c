/** Why a GPU did nothing for a time: told as the analysis `idle` tells it of the largest gaps of a capture. */

import type { Row } from "../timeline/header";
import { chunksWithin } from "../timeline/tiles";
import { duration } from "../view/format";
import { shortName } from "../view/names";
import { ancestorsOf, isSameThread } from "./ancestors";
import { lowerBound } from "./draw";
import { launchOf } from "./flow";
import type { EventPlace, EventRef, IdleCause, IdleTime } from "./protocol";
import type { Session } from "./session";

/** Shorter gaps before work that was launched in time are the price of one kernel after another, in ns; `KERNEL_WAIT_NS` of the analysis. */
const KERNEL_WAIT_NS = 30_000;

/** What a thread does, as far as waits of GPUs have their causes there; the first of these lie over those behind them. */
const ACTIVITIES = ["overhead", "cuda_api", "os_runtime"];

/** More chunks of a category are not looked through: those that are nearest are. */
const MAX_CHUNKS = 16;

/** A part of the time. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Calls of one name on a thread. */
export interface Spent {
  /** The one that took most of the time. */
  readonly place: EventPlace;
  /** How much of the time they took in all, in ns. */
  readonly ns: number;
}

/** A part of an event. */
interface Piece extends Span {
  readonly place: EventPlace;
}

/** Why the device of a row did nothing; undefined where no work of it ends the time. */
export async function idleCauseOf(session: Session, { row, from, to }: IdleTime): Promise<IdleCause | undefined> {
  const { rows } = session.file.header;
  const middle = (from + to) / 2;
  const after = await firstWork(session, rows[row], middle);
  if (!after) {
    return undefined;
  }
  const call = await launchOf(session, after);
  if (!call) {
    return { words: "the launch of the next work was not recorded", place: undefined };
  }
  // Times of rectangles are rounded.
  const begin = (await lastEnd(session, rows[row], from, middle)) ?? from;
  const length = after.start - begin;
  if (call.start <= begin) {
    return { words: length < KERNEL_WAIT_NS ? "kernel wait: the next work was launched in time" : "the next work was launched in time, and waited for other work or memory", place: call };
  }
  const returned = Math.max(begin, Math.min(after.start, call.start + call.duration));
  const window = { from: begin, to: returned };
  const lists = await Promise.all(ACTIVITIES.map((name) => eventsOf(session, name, rows[call.row], window)));
  const { longest, nothing } = longestOf(lists, window);
  const latency = after.start - returned;
  if (longest && longest.ns >= Math.max(nothing, latency)) {
    return { words: `the host was in ${await nameOf(session, longest.place)} for ${duration(longest.ns)}`, place: longest.place };
  }
  if (latency > nothing) {
    return { words: `launch latency: ${duration(latency)} behind ${await nameOf(session, call)}`, place: call };
  }
  const time = begin + length / 2;
  const around = await ancestorsOf(session, { ...call, start: time, duration: 0, lane: Number.POSITIVE_INFINITY });
  const holder = around.filter(({ category }) => category !== call.category).at(-1);
  const inside = holder ? `, in ${await nameOf(session, holder)}` : "";
  return { words: `nothing was recorded of the host for ${duration(nothing)}${inside}`, place: holder ?? call };
}

/**
 * What took a thread longest in a time, and how much of that nothing was recorded for. Each of `lists` has its events by start;
 * of events inside others the outer one counts, and those of a list count where none of an earlier list is.
 */
export function longestOf(lists: readonly (readonly EventPlace[])[], time: Span): { readonly longest: Spent | undefined; readonly nothing: number } {
  const sums = new Map<string, { place: EventPlace; ns: number; most: number }>();
  let covers: readonly Span[] = [];
  for (const events of lists) {
    const pieces = outermost(events, time);
    const free = uncovered(pieces, covers);
    pieces.forEach(({ place }, at) => {
      const ns = free[at] ?? 0;
      const key = `${place.category}/${place.name}`;
      const sum = sums.get(key) ?? { place, ns: 0, most: 0 };
      sum.ns += ns;
      if (ns > sum.most) {
        sum.most = ns;
        sum.place = place;
      }
      sums.set(key, sum);
    });
    covers = united([...covers, ...pieces]);
  }
  let longest: Spent | undefined;
  for (const { place, ns } of sums.values()) {
    if (ns > (longest?.ns ?? 0)) {
      longest = { place, ns };
    }
  }
  return { longest, nothing: covers.reduce((free, { from, to }) => free - (to - from), time.to - time.from) };
}

/** The parts in a time of events by start that no earlier one of them covers. */
function outermost(events: readonly EventPlace[], time: Span): Piece[] {
  const found: Piece[] = [];
  let until = time.from;
  for (const place of events) {
    const from = Math.max(until, place.start);
    const to = Math.min(time.to, place.start + place.duration);
    if (to > from) {
      found.push({ place, from, to });
      until = to;
    }
  }
  return found;
}

/** How much of each piece none of `covers` covers; both are by start, and do not overlap among themselves. */
function uncovered(pieces: readonly Span[], covers: readonly Span[]): number[] {
  let first = 0;
  return pieces.map(({ from, to }) => {
    while (first < covers.length && (covers[first] as Span).to <= from) {
      first += 1;
    }
    let free = to - from;
    for (let at = first; at < covers.length && (covers[at] as Span).from < to; at += 1) {
      const cover = covers[at] as Span;
      free -= Math.min(to, cover.to) - Math.max(from, cover.from);
    }
    return free;
  });
}

/** Spans by start, in which what overlaps or touches is one. */
function united(spans: readonly Span[]): Span[] {
  const found: { from: number; to: number }[] = [];
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = found.at(-1);
    if (last && from <= last.to) {
      last.to = Math.max(last.to, to);
    } else {
      found.push({ from, to });
    }
  }
  return found;
}

/** The first work of a row's device that begins at `time` or behind it. */
async function firstWork(session: Session, own: Row | undefined, time: number): Promise<EventPlace | undefined> {
  const { categories, header } = session.file;
  let best: (EventRef & { readonly start: number }) | undefined;
  for (const [category, { tiles }] of categories.entries()) {
    const chunks = session.isGpuWork(category) ? chunksWithin(tiles, time, Number.MAX_SAFE_INTEGER).slice(0, MAX_CHUNKS) : [];
    for (const chunk of chunks) {
      // Nothing from here on can be nearer than what another category has.
      if (best && (tiles.tMin[chunk] as number) > best.start) {
        break;
      }
      const [block] = await session.blocks.get(category, [chunk]);
      let at = block ? lowerBound(block.start, time) : 0;
      while (block && at < block.start.length && !isSameDevice(own, header.rows[block.row[at] as number])) {
        at += 1;
      }
      if (!block || at >= block.start.length) {
        continue;
      }
      const start = block.start[at] as number;
      if (!best || start < best.start) {
        best = { category, index: block.first + at, start };
      }
      break;
    }
  }
  return best && session.place(best);
}

/** When the last work before `time` of a row's device ends, which is about `from`; undefined where it does not end before `time`. */
async function lastEnd(session: Session, own: Row | undefined, from: number, time: number): Promise<number | undefined> {
  const { categories, header } = session.file;
  let end: number | undefined;
  for (const [category, { tiles }] of categories.entries()) {
    const chunks = session.isGpuWork(category) ? chunksWithin(tiles, from - (time - from), time).slice(-MAX_CHUNKS) : [];
    for (const chunk of chunks) {
      const [block] = await session.blocks.get(category, [chunk]);
      const until = block ? lowerBound(block.start, time) : 0;
      for (let at = 0; block && at < until; at += 1) {
        const ends = (block.start[at] as number) + (block.duration[at] as number);
        if (ends > (end ?? Number.NEGATIVE_INFINITY) && isSameDevice(own, header.rows[block.row[at] as number])) {
          end = ends;
        }
      }
    }
  }
  return end !== undefined && end <= time ? end : undefined;
}

/** The events of a category and of a row's thread in a time, by start. */
async function eventsOf(session: Session, name: string, own: Row | undefined, time: Span): Promise<EventPlace[]> {
  const { categories, header } = session.file;
  const category = categories.findIndex((category) => category.name === name);
  const found: EventPlace[] = [];
  for (const chunk of category < 0 || !own ? [] : chunksWithin(session.category(category).tiles, time.from, time.to).slice(-MAX_CHUNKS)) {
    const [block] = await session.blocks.get(category, [chunk]);
    const until = block ? lowerBound(block.start, time.to) : 0;
    for (let at = 0; block && own && at < until; at += 1) {
      const [start, duration, row] = [block.start[at] as number, block.duration[at] as number, block.row[at] as number];
      if (start + duration > time.from && isSameThread(own, header.rows[row])) {
        found.push({ category, index: block.first + at, start, duration, row, lane: block.lane[at] as number, name: block.name[at] as number });
      }
    }
  }
  return found;
}

/** Whether two rows are of one device. */
function isSameDevice(one: Row | undefined, other: Row | undefined): boolean {
  return one?.device !== undefined && one.capture === other?.capture && one.machine === other.machine && one.device === other.device;
}

async function nameOf(session: Session, { category, name }: EventPlace): Promise<string> {
  return shortName((await session.category(category).names())[name] ?? "");
}
