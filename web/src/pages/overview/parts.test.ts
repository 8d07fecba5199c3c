import { expect, test } from "vitest";
import { ANALYSES } from "../../generated/catalogue";
import { partsOf } from "./parts";

const TIME = { window_ns: 340, compute_ns: 140, exposed_communication_ns: 100, exposed_memory_ns: 20, idle_ns: 80 };

test("the parts of the time add up to it, and each leads to an analysis that there is", () => {
  const parts = partsOf(TIME);
  expect(parts.reduce((sum, { ns }) => sum + ns, 0)).toBe(340);
  expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 12);
  const names: readonly string[] = ANALYSES.map(({ name }) => name);
  expect(parts.filter(({ analysis }) => !names.includes(analysis))).toEqual([]);
});

test("of no time there are no parts", () => {
  expect(partsOf({ ...TIME, window_ns: 0 })).toEqual([]);
});
