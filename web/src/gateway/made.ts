/** What a server makes on demand: it is asked again when it says, until it is there. */

import { problemOf } from "./problem";

/** Longest wait in ms. */
const LONGEST = 600_000;

/** The answer at `url`; rejects with the server's problem. */
export async function made(url: string, signal?: AbortSignal): Promise<Response> {
  const until = Date.now() + LONGEST;
  for (;;) {
    const response = await fetch(url, signal ? { signal } : {});
    if (response.ok) {
      return response;
    }
    const problem = await problemOf(response);
    const wait = Number(response.headers.get("Retry-After"));
    if (response.status !== 503 || !(wait > 0) || Date.now() > until) {
      throw problem;
    }
    await new Promise((wake) => setTimeout(wake, wait * 1000));
    signal?.throwIfAborted();
  }
}
