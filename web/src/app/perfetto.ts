/**
 * Hands a capture over to Perfetto's own viewer: it comes up in a window of its own and is given the trace there, in this browser. Nothing is
 * uploaded. See https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui
 */

import { made } from "../gateway/made";

const PERFETTO = "https://ui.perfetto.dev";
/** The trace among a capture's artifacts; servers make it of the timeline when it is asked for. */
const TRACE = "timeline.pftrace";
/** Longest wait for the other window, in ms. */
const ANSWER = 60_000;
/** Time between two greetings, in ms. */
const GREETING = 100;

/** Where the trace of the timeline at `file` is; undefined for files that no gateway and no agent serves. */
export function traceUrl(file: string): string | undefined {
  const url = new URL(file);
  const ofGateway = /^(.*\/profiling)\/timeline\/([^/]+)\.h5$/.exec(url.pathname);
  if (ofGateway) {
    url.pathname = `${ofGateway[1]}/session/${ofGateway[2]}/artifacts/${TRACE}`;
    return url.href;
  }
  if (/\/artifacts\/[^/]+\.h5$/.test(url.pathname)) {
    url.pathname = url.pathname.replace(/[^/]+$/, TRACE);
    return url.href;
  }
  return undefined;
}

/** Shows the trace at `url` in Perfetto. Called by a click: browsers open no window otherwise. */
export async function openInPerfetto(url: string, title: string): Promise<void> {
  const other = window.open(PERFETTO);
  if (!other) {
    throw new Error("The browser opened no window: allow this page to open them.");
  }
  try {
    const [buffer] = await Promise.all([made(url).then((answer) => answer.arrayBuffer()), ready(other)]);
    other.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
  } catch (error) {
    other.close();
    throw error;
  }
}

/** Waits until Perfetto answers in the other window. */
function ready(other: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearInterval(greeting);
      clearTimeout(deadline);
      removeEventListener("message", onMessage);
    };
    const onMessage = (event: MessageEvent) => {
      if (event.source === other && event.origin === PERFETTO && event.data === "PONG") {
        end();
        resolve();
      }
    };
    // A greeting holds nothing, and at first the window is not there yet: it goes to whatever is.
    const greeting = setInterval(() => other.postMessage("PING", "*"), GREETING);
    const deadline = setTimeout(() => {
      end();
      reject(new Error(`${PERFETTO} did not answer: can this browser reach it?`));
    }, ANSWER);
    addEventListener("message", onMessage);
  });
}
