/** What stands beside the search. */

import type { Hit, Hits } from "../engine/protocol";
import { grouped } from "../view/format";

/** How many events match a search and, while one walks over them, at which of them one is: `3 of 120`. */
export function hitCount({ events, matchingNames }: Pick<Hits, "events" | "matchingNames">, hit: Pick<Hit, "rank"> | undefined): string {
  if (events === undefined) {
    return matchingNames === 1 ? "1 name" : `${grouped(matchingNames)} names`;
  }
  return hit?.rank === undefined ? grouped(events) : `${grouped(hit.rank)} of ${grouped(events)}`;
}
