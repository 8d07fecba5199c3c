import { expect, test } from "vitest";
import { contrast, overGround, type Rgb } from "../../view/palette";
import { colors } from "./theme";

/** What WCAG 2 asks of texts of this size. */
const MIN_CONTRAST = 4.5;

const rgb = (hex: string): Rgb => {
  const part = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16);
  return [part(1), part(3), part(5)];
};

test.each([false, true])("the times of the axis and the lengths of marks can be read, dark: %s", (dark) => {
  const { faint, hit, text } = colors(dark);
  const ground = overGround([0, 0, 0], 0, dark);
  for (const color of [faint, hit, text]) {
    expect(contrast(rgb(color), ground), color).toBeGreaterThanOrEqual(MIN_CONTRAST);
  }
});
