import { expect, test } from "vitest";
import * as format from "./format";
import { covers, fitted, focused, followed, nsPerPixel, padded, panned, resized, revealed, toPixel, toTime, within, zoomed } from "./scale";

const HOUR = 3_600_000_000_000;

/** A capture of an hour. */
const AXIS = { begin: 0, end: HOUR };

test("times and pixels turn into each other, to the ns, hours into a session", () => {
  const view = within(HOUR - 1000, HOUR, 1000, AXIS);
  expect(toPixel(view, HOUR - 1)).toBe(999);
  expect(toTime(view, 1)).toBe(HOUR - 999);
});

test("zooming keeps what is under the pointer where it is", () => {
  let view = fitted(1200, AXIS);
  const time = toTime(view, 700);
  for (let step = 0; step < 25; step += 1) {
    view = zoomed(view, 0.5, 700, AXIS);
    expect(Math.abs(toPixel(view, time) - 700)).toBeLessThan(0.5);
  }
});

test("nothing zooms nearer than some ns, or wider than the session", () => {
  expect(zoomed(fitted(1000, AXIS), 1e-30, 500, AXIS)).toMatchObject({ width: 1000 });
  const near = zoomed(fitted(1000, AXIS), 1e-30, 500, AXIS);
  expect(near.to - near.from).toBeCloseTo(20, 3);
  const wide = zoomed(fitted(1000, AXIS), 1000, 500, AXIS);
  expect(wide.to - wide.from).toBeLessThanOrEqual(HOUR * 1.02);
});

test("moving stops at both ends", () => {
  const view = within(0, 1000, 1000, AXIS);
  expect(panned(view, -1e12, AXIS).from).toBeGreaterThanOrEqual(-HOUR * 0.011);
  expect(panned(view, 1e12, AXIS).to).toBeLessThanOrEqual(HOUR * 1.011);
});

test("an axis that begins before the window is moved over and zoomed out to its begin, below zero", () => {
  const axis = { begin: -HOUR, end: 1000 };
  const first = panned(within(0, 1000, 1000, axis), -1e13, axis).from;
  expect(first).toBeLessThanOrEqual(-HOUR);
  expect(first).toBeGreaterThan(-HOUR * 1.011);
  expect(fitted(1000, axis)).toMatchObject({ from: -HOUR, to: 1000 });
  expect(within(-2000, -1000, 1000, axis)).toMatchObject({ from: -2000, to: -1000 });
  const view = within(-2000, 0, 1000, axis);
  expect(covers({ ...padded(view), step: 2 }, view, axis)).toBe(true);
  expect(covers({ from: -1999, to: 0, step: 2 }, view, axis)).toBe(false);
});

test("tracks of another height move nothing, not by a bit, and of another width show from the same time on", () => {
  for (let step = 1; step < 400; step += 1) {
    const view = within(step * 1_234_567.1, step * 1_333_332.4, 1040, AXIS);
    expect(resized(view, 1040, AXIS)).toEqual(view);
    const wider = resized(view, 1300, AXIS);
    expect(wider.from).toBe(view.from);
    expect(nsPerPixel(wider)).toBeCloseTo(nsPerPixel(view), 6);
  }
});

test("a focused event is in the middle third", () => {
  const view = focused(5000, 6000, 900, AXIS);
  expect([toPixel(view, 5000), toPixel(view, 6000)]).toEqual([300, 600]);
});

test("what is shown moves the view as little as lets one see it", () => {
  const view = within(100_000, 200_000, 1000, AXIS);
  expect(revealed(view, 150_000, 152_000, 4, AXIS)).toBe(view);
  expect(revealed(view, 300_000, 302_000, 4, AXIS)).toMatchObject({ from: 251_000, to: 351_000 });
  // Twenty pixels are enough of an event, and too few of a place that a finding names.
  expect(revealed(view, 150_000, 152_000, 24, AXIS)).toMatchObject({ from: 143_000, to: 159_000 });
  expect(revealed(view, 0, 500_000, 4, AXIS).to - revealed(view, 0, 500_000, 4, AXIS).from).toBeGreaterThan(500_000);
});

test("a jump to a gap of a few pixels zooms until it fills an eighth of the view, and can be read", () => {
  const minute = { begin: 0, end: 60_000_000_000 };
  const gap = [31_000_000_000, 31_002_400_000] as const;
  const seen = revealed(fitted(1024, minute), ...gap, 24, minute);
  const pixels = gap.map((time) => toPixel(seen, time));
  expect(pixels[1]! - pixels[0]!).toBeCloseTo(1024 / 8, 3);
  expect((pixels[0]! + pixels[1]!) / 2).toBeCloseTo(512, 3);
});

test("what is followed to is seen beside where one came from, at the same scale", () => {
  const view = within(1000, 2000, 500, AXIS);
  expect(followed(view, [1500, 1600], [1100, 1150], AXIS)).toEqual(view);
  expect(followed(view, [1500, 1600], [2200, 2300], AXIS)).toMatchObject({ from: 1350, to: 2350 });
  expect(followed(view, [1500, 1600], [700, 710], AXIS)).toMatchObject({ from: 650, to: 1650 });
});

test("what is followed to is in the middle where it is too far away to be seen with where one came from", () => {
  const view = within(1000, 2000, 500, AXIS);
  expect(followed(view, [1500, 1600], [90_000, 90_200], AXIS)).toMatchObject({ from: 89_600, to: 90_600 });
});

test("what is followed to stays as it is seen where it is longer than the view", () => {
  const view = within(1000, 2000, 500, AXIS);
  expect(followed(view, [1500, 1600], [0, 50_000], AXIS)).toEqual(view);
  expect(followed(view, [1500, 1600], [5000, 50_000], AXIS)).toMatchObject({ from: 4950, to: 5950 });
  expect(followed(within(90_000, 91_000, 500, AXIS), [90_500, 90_600], [5000, 50_000], AXIS)).toMatchObject({ from: 49_050, to: 50_050 });
});

test("what was drawn covers a view until it moves out or a pixel grows or shrinks by more than twice", () => {
  const view = within(1_000_000, 2_000_000, 1000, AXIS);
  const window = { ...padded(view), step: 1024 };
  expect(covers(window, view, AXIS)).toBe(true);
  expect(covers(window, panned(view, 900, AXIS), AXIS)).toBe(true);
  expect(covers(window, panned(view, 1100, AXIS), AXIS)).toBe(false);
  expect(covers(window, zoomed(view, 0.45, 500, AXIS), AXIS)).toBe(false);
});

test.each([
  [0, "0 ns"],
  [999, "999 ns"],
  [1500, "1.5 µs"],
  [2_504_391, "2.504 ms"],
  [1_000_000_000, "1 s"],
  [119_443_348_968, "119.4 s"],
])("%i ns are %s", (ns, text) => {
  expect(format.duration(ns)).toBe(text);
});

test("a time has all its digits in every way to write it", () => {
  expect(format.time(60_111_513_113, "auto", undefined)).toBe("60.111 513 113 s");
  expect(format.time(60_111_513_113, "seconds", undefined)).toBe("60.111513113 s");
  expect(format.time(60_111_513_113, "ns", undefined)).toBe("60 111 513 113 ns");
  expect(format.time(1, "utc", "1754324972242076786")).toBe("2025-08-04T16:29:32.242076787Z");
  expect(format.time(1, "utc", undefined)).toBe("0.000 000 001 s");
});

test.each([
  [200_000_000, 200_000_000, "200 ms"],
  [1_000_000_000, 200_000_000, "1.0 s"],
  [30_000_500_000, 500_000, "30.0005 s"],
  [0, 10_000_000_000, "0 s"],
  [5_000, 1_000, "5 µs"],
  [1_234_567_890, 10, "1.23456789 s"],
])("a mark at %i ns of marks every %i ns is written %s", (at, step, text) => {
  expect(format.tick(at, step, "auto", undefined)).toBe(text);
});

test("sizes, shares and samples have their units", () => {
  expect(format.bytes(1023)).toBe("1023 B");
  expect(format.bytes(1536)).toBe("1.5 KiB");
  expect(format.percent(0.609)).toBe("60.9 %");
  expect(format.percent(0.0016)).toBe("0.16 %");
  expect(format.quantity(0.5, "ratio")).toBe("50 %");
  expect(format.quantity(321.456, "W")).toBe("321.456 W");
  expect(format.grouped(12_345_678)).toBe("12 345 678");
});

test("a percentage is whole, and all only when all is there", () => {
  expect([0, 0.499, 0.999, 1, 1.2].map(format.progress)).toEqual(["0 %", "49 %", "99 %", "100 %", "100 %"]);
});
