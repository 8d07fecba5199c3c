import { expect, test } from "vitest";
import * as format from "../../view/format";
import { fitted, nsPerPixel } from "../../view/scale";
import { apart, ticks, tickStep } from "./ticks";

test("marks of the axis are 1, 2 or 5 of a unit apart, and never closer than texts are wide", () => {
  for (let power = 0; power < 12; power += 0.1) {
    const perPixel = 10 ** power / 1000;
    const step = tickStep(perPixel);
    expect([1, 2, 5]).toContain(Number(String(step)[0]));
    expect(step / perPixel).toBeGreaterThanOrEqual(Math.min(110, step / perPixel));
    expect(step).toBeGreaterThanOrEqual(1);
  }
  expect(format.tick(-15_000_000_000, 5_000_000_000, "auto", undefined)).toBe("-15 s");
  expect(format.time(-1_500_000_000, "utc", "1700000000000000000")).toBe("2023-11-14T22:13:18.500000000Z");
  expect(ticks(-5, 25, 10)).toEqual([-0, 10, 20]);
  expect(nsPerPixel(fitted(100, { begin: 0, end: 1000 }))).toBe(10);
});

test("of two texts that lie over each other the first one is written, and none that is cut off", () => {
  const text = (text: string, x: number) => ({ text, x, width: 30 });
  const written = apart([text("mark", 100), text("before", 60), text("over", 75), text("behind", 134), text("beyond", 980)], 1000);
  expect(written.map(({ text }) => text)).toEqual(["mark", "before", "behind"]);
});
