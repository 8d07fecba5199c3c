/** Has a page's requests answered as a gateway answers them: two sessions, of which one runs. */

import type { Page } from "playwright-core";
import type { SessionDetail } from "../src/gateway/messages";

const of = (session_id: string, name: string, change: Partial<SessionDetail>): SessionDetail => ({
  session_id,
  namespace: "team",
  name,
  mode: "nsys",
  status: "completed",
  reason: null,
  message: null,
  created: "2026-11-30T04:00:00Z",
  requested_by: "alice",
  request: { duration: "10 s" },
  captures: [],
  ...change,
});

const SESSIONS: readonly SessionDetail[] = [
  of("0badcafe", "train", {
    captures: [
      {
        name: "train-0",
        pod: "train",
        container: "main",
        stage: "Done",
        percent: 100,
        message: null,
        artifacts: [
          { name: "timeline.h5", type: "Timeline", bytes: 253_470, sensitive: false },
          { name: "report.nsys-rep", type: "Raw", bytes: 1_000_000, sensitive: true },
        ],
      },
    ],
  }),
  of("0badcaff", "infer", { status: "running" }),
  of("0badcb00", "broken", { status: "failed", reason: "PodNotFound", message: "there is no such pod" }),
];

/** `user` is who is signed in, if somebody is. */
export async function answerAsGateway(page: Page, user: string | null): Promise<void> {
  await page.route("**/api/**", (route) => {
    const path = new URL(route.request().url()).pathname.replace(/^.*\/api\//, "");
    const id = /^profiling\/session\/(\w+)$/.exec(path)?.[1];
    const answers: Readonly<Record<string, unknown>> = {
      "sign-in": { user },
      "profiling/modes": { modes: [{ id: "auto", description: "The deepest one that is safe." }] },
      "profiling/sessions": { sessions: SESSIONS, total: 120, next: "more" },
      "profiling/targets": { targets: [], more: false },
    };
    return route.fulfill({ json: id === undefined ? (answers[path] ?? {}) : SESSIONS.find(({ session_id }) => session_id === id) });
  });
}
