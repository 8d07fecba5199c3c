/** Files that end before their end: of what is missing nobody knows how much it is. */

import { CUT } from "../generated/catalogue";
import type { Drop } from "./header";

const SIGNS: readonly string[] = CUT;

/** What a file that was cut lacks; empty of a whole one. */
export function cutOf(drops: readonly Drop[]): readonly Drop[] {
  return drops.filter(({ reason, what }) => reason === "truncated" && SIGNS.includes(what));
}
