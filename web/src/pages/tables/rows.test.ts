import { expect, test } from "vitest";
import type { SummaryRow } from "../../summary/summary";
import { csvOf, filtered, sorted } from "./rows";

const row = (name: string, total: number): SummaryRow => ({ name, share_of_table: 0.5, calls: 2, total, avg: 1, median: 1, min: 1, max: 1, stddev: 0 });

test("tables are sorted both ways and filtered in any case", () => {
  const rows = [row("b", 1), row("A", 3), row("c", 2)];
  expect(sorted(rows, "total", false).map((row) => row.name)).toEqual(["A", "c", "b"]);
  expect(sorted(rows, "name", true).map((row) => row.name)).toEqual(["A", "b", "c"]);
  expect(filtered([row("void lib::gemm<lib::half>(int)", 1)], "gemm<half>").length).toBe(1);
  expect(filtered(rows, "a").map((row) => row.name)).toEqual(["A"]);
});

test("CSV has exact figures, quotes what needs it, and is no formula", () => {
  const lines = csvOf([row('k<"a", b>', 12_345_678_901), row("=SUM(A1)", -1)], "ns").split("\r\n");
  expect(lines[0]).toBe("share_of_table,total_ns,calls,avg_ns,median_ns,min_ns,max_ns,stddev_ns,name");
  expect(lines[1]).toBe('0.5,12345678901,2,1,1,1,1,0,"k<""a"", b>"');
  expect(lines[2]).toContain("'=SUM(A1)");
  expect(lines[2]).toContain(",-1,");
});
