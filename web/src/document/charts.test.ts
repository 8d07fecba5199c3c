import { expect, test } from "vitest";
import { thinned } from "./charts";

test("a long line keeps its peaks and its gaps", () => {
  const times = Array.from({ length: 100_000 }, (_, at) => at);
  const values: (number | null)[] = times.map((at) => (at === 777 ? 9 : at === 50_000 ? null : 1));
  const points = thinned(times, values);
  expect(points.length).toBeLessThanOrEqual(1000);
  expect(points).toContainEqual([777, 9]);
  expect(points).toContainEqual([50_000, null]);
});
