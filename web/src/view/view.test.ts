import { expect, test } from "vitest";
import * as format from "./format";
import { covers, fitted, focused, nsPerPixel, padded, panned, toPixel, toTime, within, zoomed } from "./scale";
import { ticks, tickStep } from "./ticks";

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

test("a focused event is in the middle third", () => {
  const view = focused(5000, 6000, 900, AXIS);
  expect([toPixel(view, 5000), toPixel(view, 6000)]).toEqual([300, 600]);
});

test("what was drawn covers a view until it moves out or a pixel grows or shrinks by more than twice", () => {
  const view = within(1_000_000, 2_000_000, 1000, AXIS);
  const window = { ...padded(view), step: 1024 };
  expect(covers(window, view, AXIS)).toBe(true);
  expect(covers(window, panned(view, 900, AXIS), AXIS)).toBe(true);
  expect(covers(window, panned(view, 1100, AXIS), AXIS)).toBe(false);
  expect(covers(window, zoomed(view, 0.45, 500, AXIS), AXIS)).toBe(false);
});

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
