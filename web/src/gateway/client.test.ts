import { expect, test } from "vitest";
import { Gateway } from "./client";
import { problemOf } from "./problem";

test.each([
  [Response.json({ reason: "Forbidden", detail: "You may not." }, { status: 403 }), { status: 403, reason: "Forbidden", message: "You may not." }],
  // What a proxy on the way may say.
  [new Response("<html>", { status: 502, statusText: "Bad Gateway" }), { status: 502, reason: "", message: "The server answers 502 Bad Gateway" }],
  [Response.json({ detail: 7 }, { status: 500 }), { status: 500, reason: "", message: "The server answers 500" }],
  [Response.json(null, { status: 500 }), { status: 500, reason: "", message: "The server answers 500" }],
])("an answer other than success is told in its own words (%#)", async (response, expected) => {
  expect(await problemOf(response)).toMatchObject(expected);
});

test("a link to a timeline holds where it is, and nothing of whoever made it", () => {
  const gateway = new Gateway("https://gateway.example/flopwatch/api/");
  const link = new URL(gateway.timelineHref("0badcafe", "train a", "tables"), "https://gateway.example/flopwatch/");
  expect(link.hash).toBe("#page=tables");
  expect(new URLSearchParams(link.search).get("file")).toBe("/flopwatch/api/profiling/timeline/0badcafe.h5?capture=train+a");
  expect([...link.searchParams.keys()]).toEqual(["file"]);
  expect(gateway.artifactUrl("0badcafe", "c", "../x")).toBe("https://gateway.example/flopwatch/api/profiling/session/0badcafe/artifacts/..%2Fx?capture=c");
});
