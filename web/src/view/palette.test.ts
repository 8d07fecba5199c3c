import { expect, test } from "vitest";
import { SLOTS } from "../engine/names";
import { categoryRgb, COLORED, COLORINGS, contrast, overGround, slotRgb, textOn } from "./palette";

/** What WCAG 2 asks of texts of this size. */
const MIN_CONTRAST = 4.5;

/** From all of a color to the palest that is drawn. */
const OPACITIES = [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.18, 0.063];

test.each([false, true])("every text on a rectangle can be read, dark: %s", (dark) => {
  const byCategory = [...COLORED, "no such"].flatMap((name) => COLORINGS.map((coloring) => categoryRgb(name, dark, coloring)));
  const byName = Array.from({ length: SLOTS }, (_, slot) => slotRgb(slot, dark));
  for (const color of [...byCategory, ...byName]) {
    for (const opacity of OPACITIES) {
      const seen = overGround(color, opacity, dark);
      expect(contrast(textOn(seen), seen)).toBeGreaterThanOrEqual(MIN_CONTRAST);
    }
  }
});

test("contrast is that of the standard", () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21, 5);
  expect(contrast([255, 255, 255], [118, 118, 118])).toBeCloseTo(4.54, 2);
  expect(contrast([10, 20, 30], [10, 20, 30])).toBe(1);
});

test("what is not opaque is mixed with the page's ground", () => {
  expect(overGround([100, 0, 200], 0.5, false)).toEqual([177.5, 127.5, 227.5]);
  expect(overGround([100, 0, 200], 0, true)).toEqual([18, 21, 27]);
});
