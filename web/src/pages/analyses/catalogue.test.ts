import { expect, test } from "vitest";
import { found, lacking } from "./catalogue";
import { analysisOf, GROUPED } from "./request";

const captured = (names: readonly string[]) => names.map((name) => ({ name, count: 0, columns: [] }));

const lack = (name: string, categories: readonly string[], parts: readonly string[] = []) => {
  const analysis = analysisOf(name);
  expect(analysis?.name).toBe(name);
  return analysis && lacking(analysis, { categories: captured(categories), parts });
};

test("what a capture cannot have is said with what it would take", () => {
  expect(lack("gpu-time", ["os_runtime"])).toBe("GPU work");
  expect(lack("osrt_sum", ["cuda_kernel"])).toBe("operating system calls");
  expect(lack("roofline", ["cuda_kernel"])).toMatch(/Nsight Compute/);
  expect(lack("memory-profile", [], ["profiles"])).toMatch(/pprof/);
});

test("what was captured is not greyed, whether or not anything happened", () => {
  expect(lack("gpu-time", ["cuda_memset"])).toBeUndefined();
  expect(lack("osrt_sum", ["os_runtime"])).toBeUndefined();
  expect(lack("roofline", [], ["profiles"])).toBeUndefined();
  expect(lack("advice", [])).toBeUndefined();
});

test("the questions begin with advice and end with the earlier suite and the files for other programs", () => {
  expect(GROUPED[0]?.analyses.map(({ name }) => name as string)).toEqual(["advice"]);
  const [earlier, exports] = GROUPED.slice(-2);
  expect(earlier?.analyses.every(({ name }) => name.startsWith("profiler-"))).toBe(true);
  expect(exports?.analyses.every(({ page }) => !page)).toBe(true);
  const others = GROUPED.slice(0, -2).flatMap(({ analyses }) => analyses);
  expect(others.filter(({ name, page }) => name.startsWith("profiler-") || !page)).toEqual([]);
});

test("a search finds titles, names and questions by all of its words, in any case", () => {
  const names = (text: string) => found(GROUPED, text).flatMap(({ analyses }) => analyses.map(({ name }) => name as string));
  expect(names("KERNELS per stream")).toEqual(["kernels-per-stream"]);
  expect(names("osrt_sum")).toEqual(["osrt_sum"]);
  expect(names("where did the gpus' time go")).toContain("idle");
  expect(names("no such thing")).toEqual([]);
  expect(found(GROUPED, " ")).toEqual(GROUPED);
});
