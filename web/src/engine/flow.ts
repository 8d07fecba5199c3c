/** From a call to the GPU work that it launched, and back. */

import { chunkOf } from "../timeline/tiles";
import type { EventPlace, EventRef, Flow } from "./protocol";
import type { Session } from "./session";

/** GPU work whose launch was not recorded. */
const NO_LAUNCH = 0xffff_ffff;

/** A call is followed by its work soon; so many chunks are looked through in each category. */
const MOST_CHUNKS = 16;

/** A graph launches thousands; so many are shown. */
const MOST_LAUNCHED = 64;

/** Nothing belongs to the event. */
export const NO_FLOW: Flow = { launch: undefined, launched: [], more: false };

export async function flowOf(session: Session, ref: EventRef): Promise<Flow> {
  const categories = session.file.categories;
  const calls = categories.findIndex((category) => category.name === "cuda_api");
  const own = session.category(ref.category);
  if (calls >= 0 && own.tiles.columns.includes("launch")) {
    const chunk = chunkOf(own.tiles, ref.index);
    const column = await session.column(ref.category, chunk, "launch");
    const index = column?.[ref.index - (own.tiles.first[chunk] as number)] ?? NO_LAUNCH;
    const launch = index === NO_LAUNCH ? undefined : await session.place({ category: calls, index });
    return { launch, launched: [], more: false };
  }
  if (ref.category !== calls) {
    return NO_FLOW;
  }
  const call = await session.place(ref);
  const launched: EventPlace[] = [];
  let more = false;
  for (const [category, { tiles }] of categories.entries()) {
    if (!tiles.columns.includes("launch")) {
      continue;
    }
    let seen = 0;
    let found = false;
    for (let chunk = 0; chunk < tiles.first.length; chunk += 1) {
      // Work begins after its call; clocks of host and device may differ by some microseconds.
      if ((tiles.tMax[chunk] as number) + 1_000_000 < call.start) {
        continue;
      }
      seen += 1;
      if (seen > MOST_CHUNKS) {
        more = true;
        break;
      }
      const column = await session.column(category, chunk, "launch");
      const before = launched.length;
      for (let at = 0; column && at < column.length; at += 1) {
        if (column[at] === ref.index) {
          if (launched.length === MOST_LAUNCHED) {
            return { launch: undefined, launched, more: true };
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
  return { launch: undefined, launched, more };
}
