/** Where an axis has its marks. */

/** Marks are at least so many pixels apart. */
const LEAST_PIXELS = 110;

/** Texts are at least so many pixels apart. */
const LEAST_SPACE = 4;

/** A text at the axis, in pixels. */
export interface AxisText {
  readonly text: string;
  readonly x: number;
  readonly width: number;
}

/** Of texts, of which the first matter most, those that are whole on an axis of so many pixels and lie over none of the others. */
export function apart<T extends AxisText>(texts: readonly T[], pixels: number): T[] {
  const kept: T[] = [];
  for (const one of texts) {
    const end = one.x + one.width;
    // A part of a figure would be another one.
    if (end <= pixels && kept.every(({ x, width }) => end + LEAST_SPACE <= x || x + width + LEAST_SPACE <= one.x)) {
      kept.push(one);
    }
  }
  return kept;
}

/** The distance of marks in ns: 1, 2 or 5 times a power of ten. */
export function tickStep(nsPerPixel: number, leastPixels = LEAST_PIXELS): number {
  const least = Math.max(1, nsPerPixel * leastPixels);
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-12)) ?? 10;
  return Math.max(1, Math.round(factor * power));
}

/** The marks between `from` and `to`. */
export function ticks(from: number, to: number, step: number): number[] {
  const found: number[] = [];
  for (let at = Math.ceil(from / step); at * step <= to && found.length < 1000; at += 1) {
    found.push(at * step);
  }
  return found;
}
