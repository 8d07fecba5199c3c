/** Which level of detail answers a view. */

import type { Level } from "../timeline/levels";
import { bytesOf, chunksWithin, type Tiles } from "../timeline/tiles";
import { DRAWN } from "./block";

/** Events are drawn one by one, even where a level would do, as long as all of a view's come in so few bytes: they have names and lanes. */
export const CHEAP_BYTES = 1.5 * 1024 * 1024;

/** And are so few, */
export const CHEAP_EVENTS = 600_000;

/** of which so few are to be unpacked first. */
export const CHEAP_UNPACKED = 250_000;

/** How a category is drawn. */
export type Detail =
  | { readonly kind: "events"; readonly chunks: readonly number[] }
  | { readonly kind: "level"; readonly level: Level };

/** What is asked: a time span, and the width in ns that is merged into one rectangle. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** A category as far as the choice goes. */
export interface Choice {
  readonly tiles: Tiles;
  readonly levels: { readonly levels: readonly Level[] } | undefined;
}

/**
 * How to draw each category: by the coarsest level whose buckets are no wider than a step, or event by event where every level is
 * too coarse, and where that is cheap: the cheapest categories first, until what is `cached` or cheap is used up.
 */
export function chooseDetails(categories: readonly Choice[], span: Span, cached: (category: number, chunk: number) => boolean): Detail[] {
  const ways = categories.map(({ tiles, levels }, category) => {
    const chunks = chunksWithin(tiles, span.from, span.to);
    const missing = chunks.filter((chunk) => !cached(category, chunk));
    return {
      chunks,
      level: levels?.levels.filter((level) => 2 ** level.shift <= span.step).at(-1),
      events: eventsOf(tiles, chunks),
      packed: eventsOf(tiles, missing),
      bytes: bytesOf(tiles, missing, DRAWN),
    };
  });
  const details = ways.map(({ chunks }): Detail => ({ kind: "events", chunks }));
  const open = ways.flatMap((way, at) => (way.level ? [{ ...way, level: way.level, at }] : [])).sort((a, b) => a.bytes - b.bytes || a.events - b.events);
  let [events, packed, bytes] = [0, 0, 0];
  for (const way of open) {
    events += way.events;
    packed += way.packed;
    bytes += way.bytes;
    if (events > CHEAP_EVENTS || packed > CHEAP_UNPACKED || bytes > CHEAP_BYTES) {
      details[way.at] = { kind: "level", level: way.level };
    }
  }
  return details;
}

function eventsOf({ count }: Tiles, chunks: readonly number[]): number {
  return chunks.reduce((sum, chunk) => sum + (count[chunk] as number), 0);
}

/** The width of what is merged into a rectangle: a power of two, so that panning merges the same events; a pixel, or up to two. */
export function mergeStep(nsPerPixel: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, nsPerPixel))));
}
