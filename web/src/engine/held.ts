/** Since when a prelude's ring holds what it recorded. */

import type { Drop } from "../timeline/header";
import type { Held } from "./protocol";
import type { Session } from "./session";

/** What a flight recorder's file says where its ring wrapped. */
const WRAPPED = "NVTX events that the ring no longer holds";

/** A row that has no event in so many chunks is passed over. */
const MOST_CHUNKS = 16;

/**
 * The begin of each row's first range among the categories from `first` on, where `drops` says that the ring wrapped: what was in the row before
 * that is not known. Empty where everything is there.
 */
export async function heldRows(session: Session, first: number, drops: readonly Drop[]): Promise<Held[]> {
  const found = new Map<number, number>();
  if (!drops.some(({ what }) => what === WRAPPED)) {
    return [];
  }
  for (const [category, { name, tiles, levels }] of session.file.categories.entries()) {
    if (category < first || name !== "nvtx_range") {
      continue;
    }
    const rows = new Set(levels?.levels[0]?.strips.map(({ row }) => row));
    for (let chunk = 0; chunk < Math.min(MOST_CHUNKS, tiles.first.length) && (found.size === 0 || found.size < rows.size); chunk += 1) {
      const [block] = await session.blocks.get(category, [chunk]);
      for (const { row, members } of block?.lanes ?? []) {
        const begin = block?.start[members[0] as number] as number;
        found.set(row, Math.min(found.get(row) ?? begin, begin));
      }
    }
  }
  return [...found].map(([row, from]) => ({ row, from }));
}
