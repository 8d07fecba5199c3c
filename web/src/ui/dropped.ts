/**
 * Captures that are no timelines: the program that serves this page converts them, if it is one that does (`flopwatch-agent serve`). They go no
 * further than that program, which runs on this machine.
 */

import { problemOf } from "../gateway/client";
import * as format from "../view/format";

const PATH = "v1/dropped";

/** Why a capture was not converted. The message says what helps. */
export class NotConverted extends Error {
  override name = "NotConverted";
}

/** What helps wherever a file is not converted. */
const REMEDY = "Make a timeline of it with `flopwatch-agent convert`, or drop it onto the viewer of `flopwatch-agent serve`.";

/**
 * Has `file` converted: the address of its timeline. `why` says why it cannot be shown as it is, `onSent` is told of bytes that were sent. Rejects with
 * {@link NotConverted}.
 */
export async function convert(file: File, why: string, onSent: (sent: number) => void, signal: AbortSignal): Promise<string> {
  const most = await mostBytes(signal);
  if (most === undefined) {
    throw new NotConverted(`${why}. ${REMEDY}`);
  }
  if (file.size > most) {
    throw new NotConverted(`The file has ${format.bytes(file.size)}, and at most ${format.bytes(most)} are taken here. Make a timeline of it with \`flopwatch-agent convert\`.`);
  }
  const answer = await send(file, onSent, signal);
  if (!answer.ok) {
    throw new NotConverted((await problemOf(answer)).message);
  }
  const { path } = (await answer.json()) as { path: string };
  return new URL(path.replace(/^\//, ""), new URL(".", location.href)).href;
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
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "blob";
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
