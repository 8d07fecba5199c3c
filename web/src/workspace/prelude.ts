/** Where a capture's prelude is: what was kept of the time before its window. */

import type { Place } from "../engine/protocol";
import { problemOf } from "../gateway/problem";
import { within } from "../view/scale";
import type { Address } from "./address";
import type { Goal } from "./state";

const PRELUDE = "prelude.h5";

/** The prelude of the timeline at `place`, where the gateway or agent that serves it lists one. */
export async function preludeOf(place: Place): Promise<Place | undefined> {
  const list = "url" in place ? listUrl(place.url) : undefined;
  if (list === undefined) {
    return undefined;
  }
  let answer: Response;
  try {
    answer = await fetch(list, { cache: "no-store" });
  } catch {
    // Without a network, a timeline may come out of the browser's own storage.
    return undefined;
  }
  if (answer.status === 404) {
    return undefined;
  }
  if (!answer.ok) {
    throw await problemOf(answer);
  }
  const { artifacts } = (await answer.json()) as { readonly artifacts?: readonly { readonly name?: unknown }[] };
  if (!artifacts?.some(({ name }) => name === PRELUDE)) {
    return undefined;
  }
  const url = new URL(list);
  url.pathname += `/${PRELUDE}`;
  return { url: url.href };
}

/** Where the artifacts are listed of the capture whose timeline is at `file`; undefined for files that no gateway and no agent serves. */
export function listUrl(file: string): string | undefined {
  const url = new URL(file);
  const ofGateway = /^(.*\/profiling)\/timeline\/([^/]+)\.h5$/.exec(url.pathname);
  const ofAgent = /^(.*\/artifacts)\/timeline\.h5$/.exec(url.pathname);
  if (!ofGateway && !ofAgent) {
    return undefined;
  }
  url.pathname = ofGateway ? `${ofGateway[1]}/session/${ofGateway[2]}/artifacts` : (ofAgent?.[1] ?? "");
  return url.href;
}

/** Of files that were given together, the one to open and the prelude that belongs to it; browsers number files that they save twice. */
export function chosen(files: readonly File[]): { readonly file: File | undefined; readonly prelude: File | undefined } {
  const prelude = files.find(({ name }) => /^prelude\b.*\.h5$/i.test(name));
  const file = files.find((file) => file !== prelude);
  return file ? { file, prelude } : { file: prelude, prelude: undefined };
}

/** Where a link leads that names a time which the window alone cannot show. */
export function goalBefore({ from, to }: Pick<Address, "from" | "to">, durationNs: number): Goal | undefined {
  if (from === undefined || to === undefined || within(from, to, 1, { begin: 0, end: durationNs }).from <= from + 1) {
    return undefined;
  }
  return { from, to, row: undefined, fills: true };
}
