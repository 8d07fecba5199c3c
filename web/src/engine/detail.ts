/** Which level of detail answers a view. */

import { bytesOf, chunksWithin, type Tiles } from "../timeline/tiles";
import type { Level } from "../timeline/levels";
import { DRAWN } from "./block";

/** Events are drawn one by one where they come in so few bytes, even when a level would do: they have names and lanes. */
export const CHEAP_BYTES = 1.5 * 1024 * 1024;

/** And are so few. */
export const CHEAP_EVENTS = 600_000;

/** How a category is drawn. */
export type Detail =
  | { readonly kind: "events"; readonly chunks: readonly number[] }
  | { readonly kind: "level"; readonly level: Level };

/**
 * The way to draw the time from `from` to `to` where a pixel is `step` ns: the coarsest level whose buckets are no wider than a
 * pixel, or the events themselves where they are cheap, already `cached`, or where every level is too coarse.
 */
export function chooseDetail(
  tiles: Tiles,
  levels: readonly Level[],
  from: number,
  to: number,
  step: number,
  cached: (chunk: number) => boolean,
): Detail {
  const chunks = chunksWithin(tiles, from, to);
  const fitting = levels.filter((level) => 2 ** level.shift <= step).at(-1);
  if (!fitting) {
    return { kind: "events", chunks };
  }
  const events = chunks.reduce((sum, chunk) => sum + (tiles.count[chunk] as number), 0);
  const missing = chunks.filter((chunk) => !cached(chunk));
  const cheap = events <= CHEAP_EVENTS && bytesOf(tiles, missing, DRAWN) <= CHEAP_BYTES;
  return cheap ? { kind: "events", chunks } : { kind: "level", level: fitting };
}

/** The width of the pixels that rectangles are merged into: a power of two, so that panning merges the same events. */
export function mergeStep(nsPerPixel: number): number {
  return 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, nsPerPixel))));
}
