/**
 * The gateway that serves this page. Whoever signed in is known to it by a cookie that scripts cannot read: no token is kept here, and none
 * stands in an address.
 */

import { Observable } from "../workspace/store";
import type { Mode, Progress, Run, SessionDetail, SessionList, TargetList } from "./messages";
import { Problem, problemOf } from "./problem";

/** Which sessions to list. What is empty lets every one through. */
export interface Filter {
  readonly namespace: string;
  readonly status: string;
  readonly mode: string;
}

/** What is heard of a session. */
export interface Ears {
  /** It goes on. */
  readonly onProgress: (progress: Progress) => void;
  /** It ended; nothing is heard after it. */
  readonly onEnd: () => void;
  /** The gateway tells no more, such as when too many listen; nothing is heard after it. */
  readonly onLost: () => void;
}

/** Sessions on a page of the list. */
const PAGE = "50";

export class Gateway extends Observable {
  /** Whether somebody is signed in; not known at first. */
  state: "asking" | "out" | "in" = "asking";
  /** The user's name in the cluster. */
  user = "";

  /** `base` is the URL of its paths. */
  constructor(private readonly base: string) {
    super();
  }

  /** Asks who is signed in. */
  async arrive(): Promise<void> {
    try {
      this.know((await this.call<{ user: string | null }>("GET", "sign-in")).user);
    } catch (error) {
      this.know(null);
      throw error;
    }
  }

  /** Shows a token, once. */
  async signIn(token: string): Promise<void> {
    this.know((await this.call<{ user: string }>("POST", "sign-in", { token })).user);
  }

  /** Has the browser forget who signed in; the page is to go then, with what it holds. */
  async signOut(): Promise<void> {
    await this.call("DELETE", "sign-in");
  }

  async modes(): Promise<readonly Mode[]> {
    return (await this.call<{ modes: readonly Mode[] }>("GET", "profiling/modes")).modes;
  }

  /** A page of sessions, the newest first; `after` is what the page before gave as `next`. */
  sessions(filter: Filter, after?: string): Promise<SessionList> {
    const given = Object.entries({ ...filter, after: after ?? "", limit: PAGE }).filter(([, value]) => value !== "");
    return this.call("GET", `profiling/sessions?${new URLSearchParams(given)}`);
  }

  session(id: string): Promise<SessionDetail> {
    return this.call("GET", sessionPath(id));
  }

  /** Pods that run in a namespace. */
  targets(namespace: string): Promise<TargetList> {
    return this.call("GET", `profiling/targets?${new URLSearchParams({ namespace })}`);
  }

  /** Makes a session, and gives its id. */
  async run(run: Run): Promise<string> {
    return (await this.call<{ session_id: string }>("POST", "profiling/run", run)).session_id;
  }

  /** Ends a session now. */
  async stop(id: string, stop: "keep" | "discard"): Promise<void> {
    await this.call("POST", `${sessionPath(id)}/stop`, { stop });
  }

  /** Deletes a session and its artifacts. */
  async delete(id: string): Promise<void> {
    await this.call("DELETE", sessionPath(id));
  }

  /** Hears of a session until it ended; the result ends that sooner. The browser comes back by itself when a connection breaks. */
  listen(id: string, ears: Ears): () => void {
    const source = new EventSource(this.base + `${sessionPath(id)}/events`);
    source.addEventListener("profiling_progress", (event) => ears.onProgress(JSON.parse(event.data) as Progress));
    for (const last of ["profiling_complete", "profiling_error"]) {
      source.addEventListener(last, () => {
        source.close();
        ears.onEnd();
      });
    }
    source.addEventListener("error", () => {
      // Where a connection broke, the browser is about to come back by itself.
      if (source.readyState === EventSource.CLOSED) {
        ears.onLost();
      }
    });
    return () => source.close();
  }

  /** Where an artifact is. */
  artifactUrl(id: string, capture: string, name: string): string {
    return `${this.base}${sessionPath(id)}/artifacts/${encodeURIComponent(name)}?${new URLSearchParams({ capture })}`;
  }

  /** The address under which this viewer shows a capture's timeline. */
  timelineHref(id: string, capture: string, page: string): string {
    const file = new URL(`${this.base}profiling/timeline/${encodeURIComponent(id)}.h5?${new URLSearchParams({ capture })}`);
    return `?${new URLSearchParams({ file: file.pathname + file.search })}#${new URLSearchParams({ page })}`;
  }

  private know(user: string | null): void {
    this.state = user === null ? "out" : "in";
    this.user = user ?? "";
    this.changed();
  }

  private async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const json = body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    let response: Response;
    try {
      response = await fetch(this.base + path, { method, cache: "no-store", ...json });
    } catch {
      throw new Problem(0, "", "The gateway cannot be reached.");
    }
    if (response.ok) {
      return (response.status === 204 ? undefined : await response.json()) as T;
    }
    const problem = await problemOf(response);
    // The sign-in came to its end.
    if (response.status === 401 && this.state === "in") {
      this.know(null);
    }
    throw problem;
  }
}

function sessionPath(id: string): string {
  return `profiling/session/${encodeURIComponent(id)}`;
}
