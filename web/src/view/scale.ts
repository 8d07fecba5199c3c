/** Time and pixels. Times are doubles in ns from the window's begin: exact, never rounded to float32. */

/** The time that there is to see: the capture window, and what is shown before it. */
export interface Axis {
  readonly begin: number;
  readonly end: number;
}

/** What part of the axis is seen, on how many pixels. */
export interface Viewport {
  readonly from: number;
  readonly to: number;
  readonly width: number;
}

/** The least time that fills the view: nothing is shorter than a ns. */
export const LEAST_SPAN = 20;

export function nsPerPixel(view: Viewport): number {
  return (view.to - view.from) / Math.max(1, view.width);
}

export function toPixel(view: Viewport, time: number): number {
  return (time - view.from) / nsPerPixel(view);
}

export function toTime(view: Viewport, pixel: number): number {
  return view.from + pixel * nsPerPixel(view);
}

/** The most time that is seen at once: all, with a little room on both sides, so that the first and last events can be seen whole. */
function mostSpan({ begin, end }: Axis): number {
  return Math.max((end - begin) * 1.02, LEAST_SPAN);
}

/** `from` to `to`, kept on the axis and not too narrow. */
export function within(from: number, to: number, width: number, axis: Axis): Viewport {
  const { begin, end } = axis;
  const span = Math.min(mostSpan(axis), Math.max(LEAST_SPAN, to - from));
  const room = mostSpan(axis) - (end - begin);
  const middle = (from + to) / 2;
  const low = Math.max(begin - room / 2, Math.min(middle - span / 2, end + room / 2 - span));
  return { from: low, to: low + span, width };
}

/** The whole axis. */
export function fitted(width: number, axis: Axis): Viewport {
  return within(axis.begin, axis.end, width, axis);
}

/** All events, which are between two times, with a little room. */
export function whole([from, to]: readonly [number, number], width: number, axis: Axis): Viewport {
  const room = (to - from) * 0.01;
  return to > from ? within(from - room, to + room, width, axis) : fitted(width, axis);
}

/** Zooms by `factor` (below 1 is nearer) so that the time under `pixel` stays where it is. */
export function zoomed(view: Viewport, factor: number, pixel: number, axis: Axis): Viewport {
  const time = toTime(view, pixel);
  const span = Math.min(mostSpan(axis), Math.max(LEAST_SPAN, (view.to - view.from) * factor));
  const from = time - (pixel / Math.max(1, view.width)) * span;
  return within(from, from + span, view.width, axis);
}

/** Moves by `pixels`; to the right is later. */
export function panned(view: Viewport, pixels: number, axis: Axis): Viewport {
  const by = pixels * nsPerPixel(view);
  return within(view.from + by, view.to + by, view.width, axis);
}

/** Brings a span to the middle, with room around it. */
export function focused(from: number, to: number, width: number, axis: Axis): Viewport {
  const room = Math.max(LEAST_SPAN, to - from);
  return within(from - room, to + room, width, axis);
}

/** The window that is asked for to show `view`: as much again on either side, so that moving needs no waiting. */
export function padded(view: Viewport): { from: number; to: number } {
  const span = view.to - view.from;
  return { from: view.from - span, to: view.to + span };
}

/** Whether what was drawn for a window still shows `view` as it should. */
export function covers(window: { from: number; to: number; step: number }, view: Viewport, axis: Axis): boolean {
  const fine = nsPerPixel(view);
  const within = window.from <= Math.max(axis.begin, view.from) && window.to >= Math.min(axis.end, view.to);
  // Merged for pixels of this size, or of down to half of that.
  return within && (window.step === 1 ? fine <= 1 : window.step / 2 < fine && fine <= window.step);
}
