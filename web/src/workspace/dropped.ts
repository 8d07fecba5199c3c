/**
 * Captures that are no timelines: the program that serves this page converts them, if it is one that does (`flopwatch serve`). They go no
 * further than that program, which runs on this machine. Of a profile of operations it makes the dashboard, by the analysis that makes that of captures.
 */

import { problemOf } from "../gateway/problem";
import type { PageDocument } from "../generated/catalogue";
import * as format from "../view/format";
import type { HeldCapture } from "./captures";

const PATH = "v1/dropped";
const MEDIA_TYPE = "application/octet-stream";

/** Why a capture was not converted. The message says what helps. */
export class NotConverted extends Error {
  override name = "NotConverted";
}

/** What became of a file: a capture that the program holds, or the dashboard of a profile. */
export type Converted = { readonly capture: HeldCapture } | { readonly dashboard: PageDocument };

/** What helps wherever a file is not converted. */
const REMEDY = "Make a timeline of it with `flopwatch convert`, or drop it onto the viewer of `flopwatch serve`.";
const PROFILE_REMEDY =
  "This looks like a profile of operations: make its page with `flopwatch analyze operations FILE --format html`, or drop it onto the viewer of `flopwatch serve`.";

/** So many bytes tell a profile of operations. */
const BEGINNING = 64 * 1024;

/**
 * Has `file` converted. `why` says why it cannot be shown as it is, `onSent` is told of bytes that were sent. Rejects with {@link NotConverted}.
 */
export async function convert(file: File, why: string, onSent: (sent: number) => void, signal: AbortSignal): Promise<Converted> {
  const most = await mostBytes(signal);
  if (most === undefined) {
    throw new NotConverted(looksLikeProfile(await file.slice(0, BEGINNING).text()) ? PROFILE_REMEDY : `${why}. ${REMEDY}`);
  }
  if (file.size > most) {
    throw new NotConverted(`The file has ${format.bytes(file.size)}, and at most ${format.bytes(most)} are taken here. Make a timeline of it with \`flopwatch convert\`.`);
  }
  const answer = await send(file, onSent, signal);
  if (!answer.ok) {
    throw new NotConverted((await problemOf(answer)).message);
  }
  const made = (await answer.json()) as HeldCapture | PageDocument;
  return "path" in made ? { capture: made } : { dashboard: made };
}

/** The dashboard of a profile that was shown, written in a format. */
export async function dashboardOf(file: File, format: string): Promise<Blob> {
  const query = new URLSearchParams({ name: file.name, format });
  const answer = await fetch(`${PATH}?${query}`, { method: "POST", headers: { "Content-Type": MEDIA_TYPE }, body: file });
  if (!answer.ok) {
    throw await problemOf(answer);
  }
  return answer.blob();
}

/** Whether a text that begins so is likely a profile; only what helps depends on it. */
export function looksLikeProfile(beginning: string): boolean {
  return /^\s*[[{]/.test(beginning) && /"(duration_ms|call_count|avg_time_ms)"/.test(beginning) && beginning.includes('"operation"') && !beginning.includes('"traceEvents"');
}

/** The largest file that is taken; undefined where none is. */
async function mostBytes(signal: AbortSignal): Promise<number | undefined> {
  try {
    const answer = await fetch(PATH, { cache: "no-store", signal });
    const told = answer.ok ? ((await answer.json()) as { most_bytes?: unknown }).most_bytes : undefined;
    return typeof told === "number" ? told : undefined;
  } catch {
    signal.throwIfAborted();
    // There is no network, or something else answers there.
    return undefined;
  }
}

/** Sends it by the one interface of browsers that tells how much was sent. */
function send(file: File, onSent: (sent: number) => void, signal: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open("POST", `${PATH}?${new URLSearchParams({ name: file.name })}`);
    request.setRequestHeader("Content-Type", MEDIA_TYPE);
    request.responseType = "blob";
    onSent(0);
    request.upload.onprogress = ({ loaded }) => onSent(Math.min(loaded, file.size));
    request.upload.onload = () => onSent(file.size);
    request.onload = () => resolve(new Response(request.response as Blob, { status: request.status, statusText: request.statusText }));
    request.onerror = () => reject(new NotConverted("The program that serves this page took not the whole file, or ended. It says why where it was started."));
    request.onabort = () => reject(signal.reason as Error);
    request.onloadend = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort);
    request.send(file);
  });
}
