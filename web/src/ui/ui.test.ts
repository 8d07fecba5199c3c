import { expect, test } from "vitest";
import { hashOf, parseAddress } from "./address";
import { progress } from "../view/format";
import { looksLikeProfile } from "./dropped";
import { describe } from "./fields";
import { chosen, goalBefore, listUrl } from "./prelude";
import type { Summary, SummaryRow } from "./summary";
import { tablesOf } from "./tables";
import { csvOf, csvOfRows, filtered, sorted } from "./table";

test("an address comes back as it was written", () => {
  const address = {
    page: "tables",
    session: "0badcafe",
    analysis: "nvtx_sum",
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

test("an address tells events and times of before the window", () => {
  const address = parseAddress("", "#t=-9000--1000&sel=prelude.nvtx_range:5");
  expect(address).toMatchObject({ from: -9000, to: -1000, selected: { category: "prelude.nvtx_range", index: 5 } });
  expect(parseAddress("", hashOf(address))).toEqual(address);
});

test("a link leads to a time before the window as soon as that is there, and to one in the window at once", () => {
  expect(goalBefore({ from: -9000, to: -1000 }, 1000)).toEqual({ from: -9000, to: -1000, row: undefined, fills: true });
  expect(goalBefore({ from: -10, to: 1000 }, 1000)).toBeUndefined();
  expect(goalBefore({ from: undefined, to: undefined }, 1000)).toBeUndefined();
});

test.each([
  ["https://g/api/profiling/timeline/0badcafe.h5?capture=a%2Fb", "https://g/api/profiling/session/0badcafe/artifacts?capture=a%2Fb"],
  ["http://127.0.0.1:4/v1/namespaces/n/captures/c/artifacts/timeline.h5", "http://127.0.0.1:4/v1/namespaces/n/captures/c/artifacts"],
  ["http://127.0.0.1:4/files/timeline.h5", undefined],
])("the artifacts beside %s are listed at %s", (file, list) => {
  expect(listUrl(file)).toBe(list);
});

test("of files that are given together the prelude is told by its name, and alone it is a file like any other", () => {
  const [timeline, prelude] = [new File([], "timeline.h5"), new File([], "prelude (1).h5")];
  expect(chosen([prelude, timeline])).toEqual({ file: timeline, prelude });
  expect(chosen([timeline])).toEqual({ file: timeline, prelude: undefined });
  expect(chosen([prelude])).toEqual({ file: prelude, prelude: undefined });
});

test("an address that nobody wrote is as usual", () => {
  expect(parseAddress("", "#t=9-1&sel=x&time=never&session=../x&color=pink&hide=,A b&analysis=A/b")).toMatchObject({ coloring: "category", hidden: [], file: undefined, session: undefined, analysis: undefined, from: undefined, selected: undefined, timeFormat: "auto", search: "" });
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

test.each(["=1", "+1", "-1", "@A1", "\t=1", "\0=1"])("n12: the text %j is no formula in CSV, also where it reads as a number", (text) => {
  expect(csvOfRows(["name"], [{ name: text }, { name: -1 }, { name: null }, { name: "a=b" }])).toBe(`name\r\n'${text}\r\n-1\r\n\r\na=b\r\n`);
  expect(csvOfRows(["0"], [], [text])).toBe(`'${text}\r\n`);
});

test("n12: a text that begins with a carriage return is quoted and no formula", () => {
  expect(csvOfRows(["name"], [{ name: "\r=1" }])).toBe("name\r\n\"'\r=1\"\r\n");
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

test.each([
  ['[{"operation": "load", "duration_ms": 2.5}]', true],
  ['\n{"entries": [], "summary": {"load": {"operation": "load", "call_count": 1}}}', true],
  ['{"traceEvents": [{"operation": "x", "duration_ms": 1}]}', false],
  ["operation,duration_ms", false],
  ['{"operation": 1}', false],
])("of %s one is told what helps with a profile: %s", (beginning, is) => {
  expect(looksLikeProfile(beginning)).toBe(is);
});

test("a percentage is whole, and all only when all is there", () => {
  expect([0, 0.499, 0.999, 1, 1.2].map(progress)).toEqual(["0 %", "49 %", "99 %", "100 %", "100 %"]);
});
