/** The page's side of the worker. */

import type { Call, Calls, Loaded, Request, Response } from "./protocol";

type Answer<C extends Call> = ReturnType<Calls[C]>;

/** A file that is no timeline; it may be a capture that can be made into one. */
export class ForeignFile extends Error {
  override name = "ForeignFile";
}

/** What was asked of a file that was closed meanwhile: nobody waits for it. */
export class ClosedFile extends Error {
  override name = "ClosedFile";
}

const FAILURES = { foreign: ForeignFile, closed: ClosedFile } as const;

/** Calls the worker; answers come when they come, errors as rejections with the worker's message. */
export class Engine {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, { resolve: (value: never) => void; reject: (reason: Error) => void }>();
  private last = 0;

  constructor(private readonly onLoaded: (loaded: Loaded) => void) {
    this.worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.worker.onmessage = (event: MessageEvent<Response>) => this.receive(event.data);
    this.worker.onerror = (event) => this.fail(new Error(event.message || "the worker ended"));
  }

  call<C extends Call>(call: C, ...args: Parameters<Calls[C]>): Promise<Answer<C>> {
    this.last += 1;
    const request: Request = { id: this.last, call, args };
    return new Promise((resolve, reject) => {
      this.waiting.set(request.id, { resolve, reject });
      this.worker.postMessage(request);
    });
  }

  private receive(response: Response): void {
    if ("loaded" in response) {
      this.onLoaded(response.loaded);
      return;
    }
    const waiting = this.waiting.get(response.id);
    this.waiting.delete(response.id);
    if ("error" in response) {
      const Failure = response.kind === undefined ? Error : FAILURES[response.kind];
      waiting?.reject(new Failure(response.error));
    } else {
      waiting?.resolve(response.answer as never);
    }
  }

  private fail(reason: Error): void {
    for (const { reject } of this.waiting.values()) {
      reject(reason);
    }
    this.waiting.clear();
  }
}
