import { expect, test } from "vitest";
import type { SummaryRow } from "../../summary/summary";
import { merged, plain } from "./merged";

const row = (name: string, total: number): SummaryRow => ({ name, share_of_table: total / 100, calls: 2, total, avg: 1, median: 1, min: 1, max: 1, stddev: 0 });

test("ranges that differ in numbers alone are one row, which leads to its first", () => {
  const rows = [row("step", 40), row("aten::to, op_id = 7", 30), row("aten::to, op_id = 999599", 30)];
  expect(merged(rows)).toEqual([
    { label: "aten::to, op_id = #", first: "aten::to, op_id = 7", total: 60, calls: 4, share: 0.6 },
    { label: "step", first: "step", total: 40, calls: 2, share: 0.4 },
  ]);
});

test("a name with a number of which there is one keeps it", () => {
  expect(merged([row("layer 8", 5)])).toEqual(plain([row("layer 8", 5)]));
});
