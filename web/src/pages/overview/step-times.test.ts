import { expect, test } from "vitest";
import type { IterationRow } from "../../generated/catalogue";
import { barsOf, longestOf, unitOf } from "./step-times";

const row = (number: number, time_ns: number, kind: Partial<IterationRow> = {}) => ({ number, time_ns, warm_up: false, outlier: false, ...kind }) as IterationRow;

test("what repeats is called what it is", () => {
  expect(unitOf({ source: "step", name: "ProfilerStep##" })).toEqual(["step", "steps"]);
  expect(unitOf({ source: "kernel_period", name: "" })).toEqual(["period of kernels", "periods of kernels"]);
  expect(unitOf({ source: "range_to_next", name: "block" })).toEqual(["range “block”", "ranges “block”"]);
});

test("the longest step is none of the warm-up, and bars are on one scale from 0", () => {
  const rows = [row(0, 100, { warm_up: true }), row(1, 25), row(2, 50, { outlier: true })];
  expect(longestOf(rows)?.number).toBe(2);
  expect(longestOf(rows.slice(0, 1))).toBeUndefined();
  expect(barsOf(rows).map(({ height, kind }) => [height, kind])).toEqual([
    [1, "warm-up"],
    [0.25, "usual"],
    [0.5, "outlier"],
  ]);
  expect(barsOf([])).toEqual([]);
});
