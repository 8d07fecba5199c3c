import { expect, test } from "vitest";
import { ANALYSES } from "../../generated/catalogue";
import { analysisOf, compares, GROUPED, isComplete, NOTHING, otherHref, othersOf, resultUrl, valuesOf } from "./request";

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

test("a link gives values to the parameters that an analysis has", () => {
  expect(valuesOf({ parameters: { from_ns: {} } }, { from_ns: "5", constructor: "x", limit: "3" })).toEqual({ from_ns: "5" });
});

test("a place of another capture leads to that capture's timeline", () => {
  const place = { input: 1, start_ns: 5, end_ns: 9, row: null };
  expect(otherHref("https://g.example/api/profiling/timeline/0badcafe.h5?capture=c", "00000bad/d", place)).toBe("?file=%2Fapi%2Fprofiling%2Ftimeline%2F00000bad.h5%3Fcapture%3Dd#page=timeline&t=5-9");
  expect(otherHref("http://a/v1/namespaces/n/captures/c/artifacts/timeline.h5", "m/d/u-1", place)).toBe("?file=%2Fv1%2Fnamespaces%2Fm%2Fcaptures%2Fd%2Fartifacts%2Ftimeline.h5#page=timeline&t=5-9");
  expect(otherHref("https://files.example/timeline.h5", "x", place)).toBeUndefined();
});

test("what a comparison is made of is kept for the next one, and for no analysis of one capture", () => {
  const names = GROUPED.flatMap(({ analyses }) => analyses.filter(compares).map(({ name }) => name));
  for (const name of ["compare", "kernel-changes", "flame-difference", "ranks", "memory-profile-changes", "profiled-in-timeline", "batch-sweep"]) {
    expect(names).toContain(name);
  }
  expect(names).not.toContain("roofline");
  expect(names).not.toContain("summary");
});

test("an analysis is asked for when as many captures are named as it is made of", () => {
  const subject = { categories: null, parts: [], words: "" };
  const of = (inputs: "one" | "two" | "many") => ({ name: "n", title: "N", about: "", group: "capture", subject, inputs, file_name: "n.json", page: true, parameters: {} });
  expect(othersOf(" a/b, c  d ")).toEqual(["a/b", "c", "d"]);
  const with1 = { ...NOTHING, others: ["a"] };
  expect([isComplete(of("one"), NOTHING), isComplete(of("two"), NOTHING), isComplete(of("many"), NOTHING)]).toEqual([true, false, true]);
  expect([isComplete(of("one"), with1), isComplete(of("two"), with1), isComplete(of("many"), with1)]).toEqual([false, true, true]);
});
