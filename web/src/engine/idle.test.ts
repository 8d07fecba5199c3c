import { openAsBlob } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { BlobSource } from "../bytes/source";
import { openTimeline } from "../timeline/file";
import { idleCauseOf, longestOf } from "./idle";
import type { EventPlace } from "./protocol";
import { Session } from "./session";

const dataOf = async (name: string): Promise<Session> => {
  const path = fileURLToPath(new URL(`../../tests/data/${name}`, import.meta.url));
  return new Session(await openTimeline(new BlobSource(await openAsBlob(path))));
};

/** 20 steps whose kernels are launched in time, and between them 610 µs in which nothing is launched. See launches.py beside it. */
let session: Session;
let stream: number;
let calls: number;

beforeAll(async () => {
  session = await dataOf("launches.h5");
  stream = session.file.header.rows.findIndex(({ track }) => track === "gpu_stream");
  calls = session.file.categories.findIndex(({ name }) => name === "cuda_api");
});

const OVERHEAD = 0;
const API = 1;
const SYSTEM = 2;

const event = (category: number, name: number, start: number, end: number): EventPlace => ({ category, index: start, start, duration: end - start, row: 0, lane: 0, name });

test("a gap in which nothing was launched leads to the launch that ended it, and tells for how long nothing was recorded", async () => {
  const expected = { words: "nothing was recorded of the host for 391 µs", place: { category: calls, index: 10 } };
  expect(await idleCauseOf(session, { row: stream, from: 495_000, to: 932_000 })).toMatchObject(expected);
  // Times of rectangles are rounded.
  expect(await idleCauseOf(session, { row: stream, from: 495_090, to: 931_950 })).toMatchObject(expected);
});

test("a gap before work that was launched in time is the wait of one kernel for another, and leads to its launch", async () => {
  const cause = await idleCauseOf(session, { row: stream, from: 127_000, to: 129_000 });
  expect(cause).toMatchObject({ words: "kernel wait: the next work was launched in time", place: { category: calls, index: 1 } });
});

test("a time that no work of the device ends has no cause", async () => {
  const thread = session.file.header.rows.findIndex(({ track }) => track === "cuda_api");
  expect(thread).toBeGreaterThanOrEqual(0);
  expect(await idleCauseOf(session, { row: thread, from: 495_000, to: 932_000 })).toBeUndefined();
  const { durationNs } = session.file.header;
  expect(await idleCauseOf(session, { row: stream, from: durationNs + 1, to: durationNs + 2 })).toBeUndefined();
});

test("where the launch was not recorded one reads so, and is led nowhere", async () => {
  const other = await dataOf("synthetic.h5");
  const row = other.file.header.rows.findIndex(({ track }) => track === "gpu_stream");
  const cause = await idleCauseOf(other, { row, from: 0, to: 100 });
  expect(cause).toEqual({ words: "the launch of the next work was not recorded", place: undefined });
});

test("the host was where it spent most of the time: an outer call counts with what is inside it, without what the profiler did", () => {
  const malloc = event(API, 0, 10, 50);
  const lists = [[event(OVERHEAD, 0, 30, 35)], [malloc, event(API, 1, 15, 40)], [event(SYSTEM, 0, 20, 30), event(SYSTEM, 1, 45, 90)]];
  expect(longestOf(lists, { from: 0, to: 80 })).toEqual({ longest: { place: malloc, ns: 35 }, nothing: 10 });
});

test("calls of one name count together, and the longest of them stands for all", () => {
  const polls = [event(SYSTEM, 7, 0, 10), event(SYSTEM, 7, 20, 32), event(SYSTEM, 7, 40, 48)];
  const found = longestOf([[], [event(API, 0, 60, 85)], polls], { from: 0, to: 100 });
  expect(found).toEqual({ longest: { place: polls[1], ns: 30 }, nothing: 45 });
});

test("of a time in which nothing was recorded all is unknown", () => {
  expect(longestOf([[], [], []], { from: 5, to: 25 })).toEqual({ longest: undefined, nothing: 20 });
});
