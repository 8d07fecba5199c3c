import { expect, test } from "vitest";
import { capturesOf, hrefOf } from "./captures";

const HELD = { file: "a.json.gz", capture: "local/a.json.gz/a.json.gz", path: "/v1/namespaces/local/captures/a.json.gz/artifacts/timeline.h5", events: 7, dropped: false };

test("what a service holds is read, and the answer of another program is not taken for it", () => {
  expect(capturesOf({ captures: [HELD] })).toEqual([HELD]);
  expect(capturesOf({ captures: [] })).toEqual([]);
  for (const other of [null, "text", {}, { captures: "none" }, { captures: [{ file: 1 }] }, { captures: [null] }]) {
    expect(capturesOf(other)).toBeUndefined();
  }
});

test("a capture is opened by the address of its timeline", () => {
  expect(new URLSearchParams(hrefOf(HELD)).get("file")).toBe(HELD.path);
});
