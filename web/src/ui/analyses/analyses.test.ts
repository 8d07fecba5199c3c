import { expect, test } from "vitest";
import { ANALYSES, type PageCell, type PageTable, type PageUnit } from "../../generated/catalogue";
import { thinned } from "./charts";
import { csvHead, inCell, printable, shown, titleOf } from "./figure";
import { analysisOf, GROUPED, isComplete, NOTHING, otherHref, othersOf, resultUrl } from "./request";
import { filtered, isNumeric, sorted } from "./rows";

test.each<[PageCell, PageUnit, string]>([
  [0, "ns", "0 ns"],
  [999, "ns", "999 ns"],
  [999.999, "ns", "1.00 µs"],
  [12.5, "ns", "12.50 ns"],
  [-1500, "ns", "-1.50 µs"],
  [2_500_000, "ns", "2.50 ms"],
  [3_600_000_000_000, "ns", "3600.00 s"],
  [60_391_234_567, "instant", "60.391235 s"],
  [1_000_000, "bytes", "1.00 MB"],
  [2.0e12, "bytes_per_second", "2.00 TB/s"],
  [362, "count", "362"],
  [32_715_571_200, "count", "32.72 G"],
  [9.89e14, "flop_per_second", "989.00 TFLOP/s"],
  [0.125, "ratio", "12.5 %"],
  [0.00012, "ratio", "0.012 %"],
  [50, "percent", "50.0 %"],
  [1_234_567, "none", "1234567"],
  [1.5, "none", "1.5"],
  [0.000012, "none", "1.200e-5"],
  [true, "none", "yes"],
  [null, "ns", ""],
])("%s of unit %s is shown as the terminal and the HTML file show it: %s", (cell, unit, expected) => {
  expect(shown(cell, unit)).toBe(expected);
});

test("a column says its digits, its unit once, and its name for programs", () => {
  expect(shown(33.349, "percent", 1)).toBe("33.3 %");
  expect(shown(5, "none", 1)).toBe("5");
  const column = { title: "Total Time (ns)", name: "", unit: "ns" as const, decimals: null, about: "" };
  expect([titleOf(column), csvHead(column)]).toEqual(["Total Time", "Total Time (ns)"]);
  expect([{ ...column, title: "Busy" }, { ...column, name: "busy_ns" }].map(csvHead)).toEqual(["Busy (ns)", "busy_ns"]);
});

test("what would turn or hide the text after it is not shown", () => {
  expect(printable("a\u202eb\u0007c")).toBe("a\ufffdb\ufffdc");
});

test("a name loses its middle sooner than a sentence", () => {
  const name = `void ${"at::native::elementwise_kernel<".repeat(8)}`;
  const sentence = "The host launches too slowly. ".repeat(8).trim();
  expect(inCell(name)).toMatch(/^void at::.{40,}….*kernel<$/);
  expect([...inCell(name)].length).toBeLessThanOrEqual(120);
  expect(inCell(sentence)).toBe(sentence);
});

test("every analysis is in one group of the list, in the catalogue's order", () => {
  const listed = GROUPED.flatMap(({ analyses }) => analyses.map(({ name }) => name));
  expect([...listed].sort()).toEqual(ANALYSES.map(({ name }) => name as string).sort());
  expect(analysisOf("kernels-per-stream")?.name).toBe("kernels-per-stream");
  expect(analysisOf("no such")?.name).toBe(listed[0]);
});

test.each([
  ["http://127.0.0.1:1/v1/namespaces/local/captures/c/artifacts/timeline.h5", "http://127.0.0.1:1/v1/namespaces/local/captures/c/analyses/kernel-changes?limit=20&with=s%2Fd&with=e&format=html"],
  ["https://gateway.example/base/api/profiling/timeline/0badcafe.h5?capture=c", "https://gateway.example/base/api/profiling/session/0badcafe/analyses/kernel-changes?capture=c&limit=20&with=s%2Fd&with=e&format=html"],
  ["https://files.example/timeline.h5", undefined],
])("the result of an analysis of %s is asked for where the capture is", (file, url) => {
  expect(resultUrl(file, "kernel-changes", { values: { limit: "20", name_contains: "" }, others: ["s/d", "e"] }, "html")).toBe(url);
});

test("a place of another capture leads to that capture's timeline", () => {
  const place = { input: 1, start_ns: 5, end_ns: 9, row: null };
  expect(otherHref("https://g.example/api/profiling/timeline/0badcafe.h5?capture=c", "00000bad/d", place)).toBe("?file=%2Fapi%2Fprofiling%2Ftimeline%2F00000bad.h5%3Fcapture%3Dd#page=timeline&t=5-9");
  expect(otherHref("http://a/v1/namespaces/n/captures/c/artifacts/timeline.h5", "m/d/u-1", place)).toBe("?file=%2Fv1%2Fnamespaces%2Fm%2Fcaptures%2Fd%2Fartifacts%2Ftimeline.h5#page=timeline&t=5-9");
  expect(otherHref("https://files.example/timeline.h5", "x", place)).toBeUndefined();
});

test("an analysis is asked for when as many captures are named as it is made of", () => {
  const of = (inputs: "one" | "two" | "many") => ({ name: "n", about: "", group: "overview", inputs, file_name: "n.json", page: true, parameters: {} });
  expect(othersOf(" a/b, c  d ")).toEqual(["a/b", "c", "d"]);
  const with1 = { ...NOTHING, others: ["a"] };
  expect([isComplete(of("one"), NOTHING), isComplete(of("two"), NOTHING), isComplete(of("many"), NOTHING)]).toEqual([true, false, true]);
  expect([isComplete(of("one"), with1), isComplete(of("two"), with1), isComplete(of("many"), with1)]).toEqual([false, true, true]);
});

const rowOf = (...cells: PageCell[]) => ({ cells, place: null });

test("rows are sorted with the unknown last, and filtered by their texts", () => {
  const rows = [rowOf("b", 2), rowOf("A", null), rowOf("c", 10)];
  expect(sorted(rows, 1, true).map(({ cells }) => cells[0])).toEqual(["b", "c", "A"]);
  expect(sorted(rows, 1, false).map(({ cells }) => cells[0])).toEqual(["c", "b", "A"]);
  expect(filtered(rows, "a").map(({ cells }) => cells[0])).toEqual(["A"]);
  const table: PageTable = { title: "", about: "", columns: [], rows, left_out: 0 };
  expect([isNumeric(table, 0), isNumeric(table, 1)]).toEqual([false, true]);
});

test("a long line keeps its peaks and its gaps", () => {
  const times = Array.from({ length: 100_000 }, (_, at) => at);
  const values: (number | null)[] = times.map((at) => (at === 777 ? 9 : at === 50_000 ? null : 1));
  const points = thinned(times, values);
  expect(points.length).toBeLessThanOrEqual(1000);
  expect(points).toContainEqual([777, 9]);
  expect(points).toContainEqual([50_000, null]);
});
