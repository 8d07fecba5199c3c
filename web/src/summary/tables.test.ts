import { expect, test } from "vitest";
import type { Summary, SummaryRow } from "./summary";
import { tablesOf } from "./tables";

const ROW: SummaryRow = { name: "k", share_of_table: 0.5, calls: 2, total: 1, avg: 1, median: 1, min: 1, max: 1, stddev: 0 };

test("every table that a summary holds is listed, a kernel profiler's too", () => {
  const table = { captured: true, unit: "ns" as const, rows: [ROW] };
  const summary = { kernels: table, profiled_kernels: table } as unknown as Summary;
  expect(tablesOf(summary).map(({ key, title }) => [key, title])).toEqual([
    ["kernels", "Kernels"],
    ["profiled_kernels", "Profiled kernels"],
  ]);
});
