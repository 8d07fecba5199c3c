import { expect, test } from "vitest";
import { sharesOf } from "./density";
import { InstanceWriter, KIND } from "./instances";
import { STRIP } from "./protocol";

test("work is spread over the parts in which it runs, by its share of them", () => {
  const out = new InstanceWriter();
  // Two parts of 10 ns and a half; then half of the first part again, half busy.
  out.push(0, 25, 0, 0, KIND.event, 0, 0, 0, 1, 0, 1);
  out.push(0, 5, 1, 0, KIND.merged, 0, 0, 0, 0.5, 0, 9);
  // Of a category that is not asked for.
  out.push(0, 100, 2, 0, KIND.event, 0, 1, 0, 1, 0, 1);
  const { instances } = out.finish(1);
  const runs = [
    { row: 0, lane: 0, category: 0, first: 0, count: 2 },
    { row: 2, lane: 0, category: 1, first: 2, count: 1 },
  ];
  const shares = sharesOf({ from: 1000, instances, runs }, 1000, 10, new Set([0]));
  expect(shares.length).toBe(STRIP);
  expect(shares[0]).toBe(1);
  expect(shares[1]).toBeCloseTo(1 / 1.25, 2);
  expect(shares[2]).toBeCloseTo(0.5 / 1.25, 2);
  expect(shares[3]).toBe(0);
});

test("nothing is dense where nothing runs", () => {
  expect(Math.max(...sharesOf({ from: 0, instances: new ArrayBuffer(0), runs: [] }, 0, 1, new Set([0])))).toBe(0);
});
