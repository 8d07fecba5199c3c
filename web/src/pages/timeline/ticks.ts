/** Where an axis has its marks. */

/** Marks are at least so many pixels apart. */
const LEAST_PIXELS = 110;

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
