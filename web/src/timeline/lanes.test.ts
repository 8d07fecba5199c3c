import { expect, test } from "vitest";
import { assignLanes } from "./lanes";

test("nested ranges go downwards, and neighbours share a lane", () => {
  const lanes = assignLanes(Float64Array.of(0, 0, 10, 12, 30), Float64Array.of(100, 10, 20, 5, 10), new Uint32Array(5));
  expect([...lanes]).toEqual([0, 1, 1, 2, 1]);
});

test("rows have lanes of their own", () => {
  expect([...assignLanes(Float64Array.of(0, 0), Float64Array.of(10, 10), Uint32Array.of(0, 1))]).toEqual([0, 0]);
});

test("no two events of a lane overlap", () => {
  let state = 1;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const start = Float64Array.from({ length: 2000 }, () => Math.floor(next() * 10_000)).sort();
  const duration = start.map(() => Math.floor(next() * 200));
  const row = Uint32Array.from(start, () => Math.floor(next() * 3));
  const lanes = assignLanes(start, duration, row);
  const until = new Map<string, number>();
  start.forEach((begin, at) => {
    const key = `${row[at]}/${lanes[at]}`;
    expect(begin).toBeGreaterThanOrEqual(until.get(key) ?? 0);
    until.set(key, begin + (duration[at] as number));
  });
});
