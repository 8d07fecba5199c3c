/** Events of one name in the order of their lengths. */

import type { EventPlace, EventRef, Ranked } from "./protocol";
import type { Session, Stale } from "./session";

interface Length {
  readonly duration: number;
  readonly index: number;
}

/** Whether `a` stands before `b` where the longest is the first: of events of one length, the one that starts first. */
function isBefore(a: Length, b: Length): boolean {
  return a.duration > b.duration || (a.duration === b.duration && a.index < b.index);
}

/** The event of `ref`'s name that is next longer, or next shorter, and which place it has; undefined when a newer request came meanwhile. */
export async function besideByLength(session: Session, ref: EventRef, longer: boolean, stale: Stale): Promise<Ranked | undefined> {
  const own: EventPlace = await session.place(ref);
  let [best, ahead, count]: [Length | undefined, number, number] = [undefined, 0, 0];
  const chunks = session.category(ref.category).tiles.first.length;
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const [block] = await session.blocks.get(ref.category, [chunk]);
    if (stale()) {
      return undefined;
    }
    for (let at = 0; block && at < block.name.length; at += 1) {
      if (block.name[at] !== own.name) {
        continue;
      }
      count += 1;
      const one = { duration: block.duration[at] as number, index: block.first + at };
      const isAhead = isBefore(one, own);
      ahead += isAhead ? 1 : 0;
      const counts = longer ? isAhead : isBefore(own, one);
      // Of those on the wanted side, the one that is nearest.
      if (counts && (!best || (longer ? isBefore(best, one) : isBefore(one, best)))) {
        best = one;
      }
    }
  }
  const place = best && (await session.place({ category: ref.category, index: best.index }));
  return { place, rank: ahead + 1 + (place ? (longer ? -1 : 1) : 0), count };
}
