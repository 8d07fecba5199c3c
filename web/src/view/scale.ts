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

/** What is followed to is not nearer to an edge of the view than this share of it. */
const FOLLOWED_ROOM = 0.05;

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

/** `from` to `to`, kept on the axis and not too narrow. What is so already stays what it is, to the last bit. */
export function within(from: number, to: number, width: number, axis: Axis): Viewport {
  const { begin, end } = axis;
  const span = Math.min(mostSpan(axis), Math.max(LEAST_SPAN, to - from));
  const room = mostSpan(axis) - (end - begin);
  const [first, last] = [begin - room / 2, end + room / 2];
  if (span === to - from && from >= first && to <= last) {
    return { from, to, width };
  }
  const middle = (from + to) / 2;
  const low = Math.max(first, Math.min(middle - span / 2, last - span));
  return { from: low, to: low + span, width };
}

/** On tracks of another width: from the same time on, at the same scale. On tracks of the same width nothing moves. */
export function resized(view: Viewport, width: number, axis: Axis): Viewport {
  const to = width === view.width ? view.to : view.from + width * nsPerPixel(view);
  return within(view.from, to, width, axis);
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

/**
 * Follows from one span to another without zooming: both are seen where they fit, moved no more than
 * is needed for that; otherwise the second one is in the middle, or as much of it as there is room for.
 */
export function followed(view: Viewport, from: readonly [number, number], to: readonly [number, number], axis: Axis): Viewport {
  const span = view.to - view.from;
  const room = span * FOLLOWED_ROOM;
  const [first, last] = [Math.min(from[0], to[0]) - room, Math.max(from[1], to[1]) + room];
  const moved = (least: number, most: number) => Math.max(least, Math.min(most, view.from));
  const middle = (to[0] + to[1] - span) / 2;
  const isLong = to[1] - to[0] > span;
  const begin = last - first <= span ? moved(last - span, first) : isLong ? moved(to[0] - room, to[1] + room - span) : middle;
  return within(begin, begin + span, view.width, axis);
}

/** Moves to a span: as it is zoomed where the span is at least `leastPixels` wide so and fits, otherwise nearer or wider. */
export function revealed(view: Viewport, from: number, to: number, leastPixels: number, axis: Axis): Viewport {
  const span = view.to - view.from;
  const length = to - from;
  const middle = (from + to) / 2;
  if (length > span * 0.8 || length < nsPerPixel(view) * leastPixels) {
    const room = Math.max(length * 4, 200);
    return within(middle - room, middle + room, view.width, axis);
  }
  return from >= view.from && to <= view.to ? view : within(middle - span / 2, middle + span / 2, view.width, axis);
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
