import { expect, test } from "vitest";
import { ANALYSES } from "../generated/catalogue";
import { hashOf, parseAddress } from "./address";
import { analysisUrl, filtered as filteredRows, shown, sorted as sortedRows, TABLE_ANALYSES } from "./analysis";
import { describe } from "./fields";
import { type Summary, type SummaryRow, tablesOf } from "./summary";
import * as format from "../view/format";
import { csvOf, filtered, sorted } from "./table";

test("an address comes back as it was written", () => {
  const address = {
    page: "tables",
    session: "0badcafe",
    from: -10,
    to: 5000,
    selected: { category: "cuda_kernel", index: 5 },
    search: "a & b=#",
    coloring: "classic" as const,
    hidden: ["cuda_api", "nvtx_range"],
    timeFormat: "utc" as const,
  };
  expect(parseAddress("?file=a%20b.h5", hashOf(address))).toEqual({ ...address, file: "a b.h5" });
});

test("an address that nobody wrote is as usual", () => {
  expect(parseAddress("", "#t=9-1&sel=x&time=never&session=../x&color=pink&hide=,A b")).toMatchObject({ coloring: "category", hidden: [], file: undefined, session: undefined, from: undefined, selected: undefined, timeFormat: "auto", search: "" });
});

const row = (name: string, total: number): SummaryRow => ({ name, share_of_table: 0.5, calls: 2, total, avg: 1, median: 1, min: 1, max: 1, stddev: 0 });

test("tables are sorted both ways and filtered in any case", () => {
  const rows = [row("b", 1), row("A", 3), row("c", 2)];
  expect(sorted(rows, "total", false).map((row) => row.name)).toEqual(["A", "c", "b"]);
  expect(sorted(rows, "name", true).map((row) => row.name)).toEqual(["A", "b", "c"]);
  expect(filtered(rows, "a").map((row) => row.name)).toEqual(["A"]);
});

test("CSV has exact figures, quotes what needs it, and is no formula", () => {
  const lines = csvOf([row('k<"a", b>', 12_345_678_901), row("=SUM(A1)", -1)], "ns").split("\r\n");
  expect(lines[0]).toBe("share_of_table,total_ns,calls,avg_ns,median_ns,min_ns,max_ns,stddev_ns,name");
  expect(lines[1]).toBe('0.5,12345678901,2,1,1,1,1,0,"k<""a"", b>"');
  expect(lines[2]).toContain("'=SUM(A1)");
  expect(lines[2]).toContain(",-1,");
});

test("an event's columns are put into words, and what stands for none is left out", () => {
  const event = {
    category: 0, index: 0, start: 0, duration: 1000, row: 0, lane: 0, name: 0, text: "",
    fields: [["grid_x", 8], ["grid_y", 4], ["grid_z", 1], ["block_x", 256], ["block_y", 1], ["block_z", 1], ["launch", 5], ["shared_dynamic", 2048], ["graph_node", 0], ["bytes", 1_000_000], ["sequence", 2 ** 64]] as const,
  };
  expect(describe("cuda_kernel", event)).toEqual([
    ["grid", "8 × 4 × 1"],
    ["block", "256 × 1 × 1"],
    ["shared dynamic", "2 KiB"],
    ["bytes", "976.6 KiB (931.3 GiB/s)"],
  ]);
});

test("texts, shares and kinds of memory are said as such", () => {
  const event = {
    category: 0, index: 0, start: 0, duration: 1000, row: 0, lane: 0, name: 0, text: "",
    fields: [["src_memory_kind", 1], ["dst_memory_kind", 0], ["achieved_occupancy_ppm", 590_000], ["theoretical_occupancy_ppm", 0xffff_ffff], ["warps_per_sm_milli", 37_926], ["hlo_op", "fusion.3"], ["tf_op", ""]] as const,
  };
  expect(describe("cuda_kernel", event)).toEqual([
    ["src memory kind", "pageable"],
    ["achieved occupancy", "59 %"],
    ["warps per sm", "37.926"],
    ["hlo op", "fusion.3"],
  ]);
});

test("every table that a summary holds is listed, a kernel profiler's too", () => {
  const table = { captured: true, unit: "ns" as const, rows: [row("k", 1)] };
  const summary = { kernels: table, profiled_kernels: table } as unknown as Summary;
  expect(tablesOf(summary).map(({ key, title }) => [key, title])).toEqual([
    ["kernels", "Kernels"],
    ["profiled_kernels", "Profiled kernels"],
  ]);
});

test("every analysis whose result is a table has a page of its own", () => {
  const names = TABLE_ANALYSES.map(({ name }) => name);
  expect(names).toEqual(ANALYSES.filter(({ columns }) => columns !== null).map(({ name }) => name));
  expect(names).toContain("kernels-per-stream");
});

test.each([
  ["http://127.0.0.1:1/v1/namespaces/local/captures/c/artifacts/timeline.h5", "http://127.0.0.1:1/v1/namespaces/local/captures/c/analyses/kernel-changes?limit=20&with=s%2Fd"],
  ["https://gateway.example/base/api/profiling/timeline/0badcafe.h5?capture=c", "https://gateway.example/base/api/profiling/session/0badcafe/analyses/kernel-changes?capture=c&limit=20&with=s%2Fd"],
  ["https://files.example/timeline.h5", undefined],
])("the result of an analysis of %s is asked for where the capture is", (file, url) => {
  expect(analysisUrl(file, "kernel-changes", { limit: "20", name_contains: "" }, "s/d")).toBe(url);
});

test("rows of any analysis are sorted with the unknown last, filtered by their texts, and put into words by their columns", () => {
  const rows = [{ name: "b", mean_ns: 2 }, { name: "A", mean_ns: null }, { name: "c", mean_ns: 10 }];
  expect(sortedRows(rows, "mean_ns", true).map(({ name }) => name)).toEqual(["b", "c", "A"]);
  expect(sortedRows(rows, "mean_ns", false).map(({ name }) => name)).toEqual(["c", "b", "A"]);
  expect(filteredRows(rows, "a").map(({ name }) => name)).toEqual(["A"]);
  const column = (name: string) => ({ name, cells: "integer" as const, about: "" });
  expect(shown(column("difference_ns"), -1500)).toBe("−1.5 µs");
  expect(shown(column("launches"), 12_345)).toBe(format.grouped(12_345));
  expect(shown(column("launches"), null)).toBe("");
});
