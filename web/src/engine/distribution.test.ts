import { expect, test } from "vitest";
import { BINS_PER_DECADE, binOf, binStart, thinned } from "./distribution";

test("powers of ten begin a bin, and every length is in the bin that it is not shorter than", () => {
  for (let power = 0; power <= 12; power += 1) {
    expect(binOf(10 ** power)).toBe(power * BINS_PER_DECADE);
  }
  for (let ns = 1; ns < 1e9; ns = Math.ceil(ns * 1.07)) {
    expect(binStart(binOf(ns))).toBeLessThanOrEqual(ns * (1 + 1e-9));
    expect(binStart(binOf(ns) + 1)).toBeGreaterThan(ns * (1 - 1e-9));
  }
  expect(binOf(0)).toBe(0);
});

test("a thinned series keeps its peaks and its order", () => {
  const t = Array.from({ length: 1000 }, (_, at) => at);
  const value = t.map((at) => (at === 777 ? 100 : at % 10));
  const thin = thinned(t, value, 50);
  expect(thin.t.length).toBe(50);
  expect(Math.max(...thin.value)).toBe(100);
  expect([...thin.t].sort((a, b) => a - b)).toEqual(thin.t);
  expect(thinned([], [], 10)).toEqual({ t: [], value: [] });
});
