import { expect, test } from "vitest";
import { matcher, patternProblem, SLOTS, slotsOf, stem } from "./names";

test("names that differ in numbers alone have one colour", () => {
  expect(stem("void gemm<float, 4>(int)")).toBe(stem("void gemm<float, 16>(int)"));
  const [a, b, c] = slotsOf(["layer 1: forward", "layer 20: forward", "backward"]);
  expect(a).toBe(b);
  expect(a).not.toBe(c);
});

test("colours are spread over all slots", () => {
  const slots = slotsOf(Array.from({ length: 2000 }, (_, at) => `kernel_${String.fromCharCode(97 + (at % 26))}${String.fromCharCode(97 + Math.floor(at / 26) % 26)}`));
  expect(new Set(slots).size).toBe(SLOTS);
});

test.each([
  ["gemm", "ampere_sgemm_128", true],
  ["GEMM", "ampere_sgemm_128", true],
  ["/^ampere.*128$/", "ampere_sgemm_128", true],
  ["/^sgemm/", "ampere_sgemm_128", false],
  ["/SGEMM/i", "ampere_sgemm_128", true],
  ["a.b", "aXb", false],
])("searching for %s in %s finds it: %s", (query, name, found) => {
  expect(matcher(query)(name)).toBe(found);
});

test("a pattern that is none is told, and nothing is searched for by it", () => {
  expect(patternProblem("/half typed(/")).toMatch(/half typed\(/);
  expect(() => matcher("/half typed(/")).toThrow(/half typed\(/);
  for (const fine of ["", "half typed(", "/gemm.*/", "/gemm/i", "/"]) {
    expect(patternProblem(fine)).toBeUndefined();
  }
});
