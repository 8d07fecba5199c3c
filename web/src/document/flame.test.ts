import { expect, test } from "vitest";
import { layout, search } from "./flame.js";

// all 10 > a 6 > (b 4, c 1), then d 3 > b 3
const graph = {
  names: ["all", "a", "b", "c", "d"],
  name: [0, 1, 2, 3, 4, 2],
  depth: [0, 1, 2, 2, 1, 2],
  value: [10, 6, 4, 1, 3, 3],
};

test("frames stand beside each other inside the frame around them", () => {
  const { left, parent, behind, deepest } = layout(graph);
  expect([...left]).toEqual([0, 0, 0, 4, 6, 6]);
  expect([...parent]).toEqual([-1, 0, 1, 1, 0, 4]);
  expect([...behind]).toEqual([6, 4, 3, 4, 6, 6]);
  expect(deepest).toBe(2);
});

test("what is found inside another frame that is found counts once", () => {
  const places = layout(graph);
  expect(search(graph, places, "B")).toMatchObject({ total: 7, count: 2 });
  const nested = { ...graph, names: ["all", "ab", "b", "c", "d"] };
  expect(search(nested, places, "b")).toMatchObject({ total: 9, count: 3 });
  expect(search(graph, places, "").count).toBe(0);
});
