/** What belongs to an event: the call that launched it, the GPU work that it launched, and what it happened in. */

import { chunkOf, chunksWithin } from "../timeline/tiles";
import { ancestorsOf, isSameThread } from "./ancestors";
import type { EventPlace, EventRef, Flow } from "./protocol";
import type { Session } from "./session";

/** GPU work whose launch was not recorded. */
const NO_LAUNCH = 0xffff_ffff;

/** A call is followed by its work soon; so many chunks are looked through in each category. */
const MAX_CHUNKS = 16;

/** A graph launches thousands, an epoch millions; so many are told. */
const MAX_LAUNCHED = 64;

/** More calls of a range are not followed. */
const MAX_CALLS = 4096;

/** Clocks of host and device may differ by so much, ns. */
const CLOCK_TOLERANCE = 1_000_000;

/** Nothing belongs to the event. */
const NO_FLOW: Flow = { launch: undefined, launched: [], more: false, ancestors: [] };

/** What belongs to an event; nothing to one of before the window, which the session lacks. */
export async function flowOf(session: Session, ref: EventRef): Promise<Flow> {
  const { categories } = session.file;
  if (ref.category >= categories.length) {
    return NO_FLOW;
  }
  const calls = categories.findIndex((category) => category.name === "cuda_api");
  const event = await session.place(ref);
  const own = session.category(ref.category);
  if (calls >= 0 && own.tiles.columns.includes("launch")) {
    const launch = await launchOf(session, ref);
    return { ...NO_FLOW, launch, ancestors: launch ? await ancestorsOf(session, launch) : [] };
  }
  const ancestors = await ancestorsOf(session, event);
  if (calls < 0) {
    return { ...NO_FLOW, ancestors };
  }
  const made = ref.category === calls ? { indexes: new Set([ref.index]), more: false } : await callsWithin(session, calls, event);
  const { launched, more } = await launchedBy(session, made.indexes, event.start);
  launched.sort((a, b) => a.start - b.start);
  return { launch: undefined, launched, more: more || made.more, ancestors };
}

/** The call that launched GPU work; undefined where it was not recorded. */
export async function launchOf(session: Session, { category, index }: EventRef): Promise<EventPlace | undefined> {
  const calls = session.file.categories.findIndex(({ name }) => name === "cuda_api");
  const { tiles } = session.category(category);
  if (calls < 0 || !tiles.columns.includes("launch")) {
    return undefined;
  }
  const chunk = chunkOf(tiles, index);
  const column = await session.column(category, chunk, "launch");
  const launch = column?.[index - (tiles.first[chunk] as number)] ?? NO_LAUNCH;
  return launch === NO_LAUNCH ? undefined : session.place({ category: calls, index: launch });
}

/** The calls of the event's thread while it runs. */
async function callsWithin(session: Session, calls: number, event: EventPlace): Promise<{ indexes: Set<number>; more: boolean }> {
  const { rows } = session.file.header;
  const own = rows[event.row];
  const indexes = new Set<number>();
  const end = event.start + event.duration;
  for (const chunk of own?.thread === undefined ? [] : chunksWithin(session.category(calls).tiles, event.start, end)) {
    const [block] = await session.blocks.get(calls, [chunk]);
    for (let at = 0; block && at < block.start.length; at += 1) {
      const start = block.start[at] as number;
      const row = rows[block.row[at] as number];
      if (own && isSameThread(own, row) && start >= event.start && start + (block.duration[at] as number) <= end) {
        if (indexes.size === MAX_CALLS) {
          return { indexes, more: true };
        }
        indexes.add(block.first + at);
      }
    }
  }
  return { indexes, more: false };
}

/** The work that calls launched, the first of which began at `start`. */
async function launchedBy(session: Session, calls: ReadonlySet<number>, start: number): Promise<{ launched: EventPlace[]; more: boolean }> {
  const launched: EventPlace[] = [];
  let more = false;
  for (const [category, { tiles }] of session.file.categories.entries()) {
    if (calls.size === 0 || !tiles.columns.includes("launch")) {
      continue;
    }
    let seen = 0;
    let found = false;
    for (let chunk = 0; chunk < tiles.first.length; chunk += 1) {
      // Work begins after its call.
      if ((tiles.tMax[chunk] as number) + CLOCK_TOLERANCE < start) {
        continue;
      }
      seen += 1;
      if (seen > MAX_CHUNKS) {
        more = true;
        break;
      }
      const column = await session.column(category, chunk, "launch");
      const before = launched.length;
      for (let at = 0; column && at < column.length; at += 1) {
        if (calls.has(column[at] as number)) {
          if (launched.length === MAX_LAUNCHED) {
            return { launched, more: true };
          }
          launched.push(await session.place({ category, index: (tiles.first[chunk] as number) + at }));
        }
      }
      // All work of a launch is close together.
      if (found && launched.length === before) {
        break;
      }
      found ||= launched.length > before;
    }
  }
  return { launched, more };
}
