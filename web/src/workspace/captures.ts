/** The captures that the program of this machine holds which serves this page (`flopwatch serve`): files that it was started with, and dropped ones. */

import { listUrl } from "./prelude";
import { Observable } from "./store";

/** A capture that is held. */
export interface HeldCapture {
  /** Name of the file that it was made of. */
  readonly file: string;
  /** What analyses take as a further capture. */
  readonly capture: string;
  /** Where its timeline is, from the root of the service. */
  readonly path: string;
  /** Events of its timeline; null where it is made on the first request. */
  readonly events: number | null;
  /** Whether it was dropped onto the viewer. */
  readonly dropped: boolean;
}

const PATH = "v1/captures";

/** Address of a path of the service that serves this page. */
export function urlOf(path: string): string {
  return new URL(path.replace(/^\//, ""), location.href).href;
}

/** The list, as it was told last. */
export class Captures extends Observable {
  /** Undefined where another program serves this page. */
  held: readonly HeldCapture[] | undefined;

  /** Asks what is held now. */
  async look(): Promise<void> {
    this.held = await heldCaptures();
    this.changed();
  }

  /** Has a file of this machine converted and held. `onSent` is told of bytes that were sent. */
  async add(file: File, onSent: (sent: number) => void, signal: AbortSignal): Promise<HeldCapture> {
    const { convert, NotConverted } = await import("./dropped");
    const made = await convert(file, "No capture can be added here", onSent, signal);
    if ("dashboard" in made) {
      throw new NotConverted("This is a profile of operations, which is compared with no capture.");
    }
    await this.look();
    return made.capture;
  }

  /** The name that the file at an address came with. */
  nameAt(url: string): string | undefined {
    return this.held?.find(({ path }) => urlOf(path) === url)?.file;
  }

  /** The name that the file of a capture came with. */
  nameOf(capture: string): string | undefined {
    return this.held?.find((one) => one.capture === capture)?.file;
  }

  /** What the capture at an address can be compared with; undefined where that is none of this list's service. */
  besides(url: string | undefined): readonly HeldCapture[] | undefined {
    return url === undefined || listUrl(url) === undefined ? undefined : this.held?.filter(({ path }) => urlOf(path) !== url);
  }
}

/** What the service holds; undefined where something else serves this page, or nothing answers. */
async function heldCaptures(): Promise<readonly HeldCapture[] | undefined> {
  try {
    const answer = await fetch(PATH, { cache: "no-store" });
    return answer.ok ? capturesOf(await answer.json()) : undefined;
  } catch {
    // There is no network, or something else answers there.
    return undefined;
  }
}

/** The captures of an answer; undefined where it is none of this service. */
export function capturesOf(answer: unknown): readonly HeldCapture[] | undefined {
  const { captures } = (answer ?? {}) as { readonly captures?: unknown };
  return Array.isArray(captures) && captures.every(isHeld) ? captures : undefined;
}

function isHeld(one: unknown): one is HeldCapture {
  const { file, capture, path } = (one ?? {}) as Partial<HeldCapture>;
  return [file, capture, path].every((text) => typeof text === "string");
}

/** The link that opens a capture. */
export function hrefOf({ path }: HeldCapture): string {
  return `?${new URLSearchParams({ file: path })}`;
}
