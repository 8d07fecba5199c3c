import { expect, test } from "vitest";
import { enclosingBy } from "./enclosing";

const CATEGORIES = ["cuda_kernel", "cpu_op", "python_function", "nvtx_range"];
const place = (category: number, index: number) => ({ category, index, start: 0, duration: 100 - index, row: 0, lane: 0, name: 0 });

test("what encloses an event is told by kind, of a deep stack the innermost functions", () => {
  const stack = Array.from({ length: 9 }, (_, at) => place(2, at));
  const found = enclosingBy([place(3, 0), ...stack, place(1, 10), place(1, 11)], (category) => CATEGORIES[category] ?? "");
  expect(found.map(({ words, places, outer }) => [words, places.map(({ index }) => index), outer])).toEqual([
    ["in range", [0], 0],
    ["in operator", [10, 11], 0],
    ["in Python", [5, 6, 7, 8], 5],
  ]);
});

test("nothing is told of an event that nothing encloses", () => {
  expect(enclosingBy([], () => "")).toEqual([]);
});
