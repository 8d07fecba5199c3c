/** The time axis, and the strip of all events with the search hits among them. */

import { STRIP } from "../../engine/protocol";
import * as format from "../../view/format";
import { nsPerPixel, toPixel } from "../../view/scale";
import type { Controller } from "./controller";
import { prepare } from "./overlay";
import { apart, type AxisText, ticks, tickStep } from "./ticks";

export const RULER_HEIGHT = 26;
export const STRIP_HEIGHT = 18;

export function drawRuler(canvas: HTMLCanvasElement, controller: Controller): void {
  const { viewport, theme, workspace } = controller;
  const context = prepare(canvas, viewport.width, RULER_HEIGHT);
  if (!context) {
    return;
  }
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const step = tickStep(nsPerPixel(viewport));
  context.fillStyle = theme.faint;
  for (const at of ticks(viewport.from, viewport.to, step)) {
    context.fillRect(Math.round(toPixel(viewport, at)), RULER_HEIGHT - 7, 1, 7);
  }
  for (const { text, x, color } of apart(textsOf(context, controller, step), viewport.width)) {
    context.fillStyle = color;
    context.fillText(text, x, RULER_HEIGHT / 2 - 1);
  }
  context.fillStyle = theme.hit;
  for (const mark of workspace.marks) {
    const left = toPixel(viewport, mark.from);
    const right = toPixel(viewport, mark.to);
    context.beginPath();
    context.moveTo(left, RULER_HEIGHT);
    context.lineTo(left - 5, RULER_HEIGHT - 8);
    context.lineTo(left + 5, RULER_HEIGHT - 8);
    context.fill();
    if (mark.to > mark.from) {
      context.fillRect(left, RULER_HEIGHT - 3, right - left, 2);
    }
  }
  if (controller.pointer !== undefined) {
    const time = viewport.from + controller.pointer * nsPerPixel(viewport);
    const text = format.time(Math.max(controller.axis.begin, time), workspace.timeFormat, workspace.header?.startUtcNs);
    const width = text.length * 6.2 + 8;
    const x = Math.min(viewport.width - width, controller.pointer + 1);
    context.fillStyle = theme.accent;
    context.fillRect(x, 0, width, 14);
    context.fillStyle = theme.onBar;
    context.fillText(text, x + 4, 8);
  }
}

/** What is written at the axis: the lengths of marks, which come first where two texts have one place, and the times. */
function textsOf(context: CanvasRenderingContext2D, { viewport, theme, workspace }: Controller, step: number): (AxisText & { readonly color: string })[] {
  const widthOf = (text: string) => context.measureText(text).width;
  const seen = workspace.marks.filter(({ from, to }) => to > from && to > viewport.from && from < viewport.to);
  const lengths = seen.map(({ from, to }) => {
    const text = format.duration(to - from);
    const width = widthOf(text);
    return { text, width, x: Math.max(4, Math.min(toPixel(viewport, from) + 8, viewport.width - width - 4)), color: theme.hit };
  });
  const times = ticks(viewport.from, viewport.to, step).map((at) => {
    const text = format.tick(at, step, workspace.timeFormat, workspace.header?.startUtcNs);
    return { text, width: widthOf(text), x: Math.round(toPixel(viewport, at)) + 4, color: theme.faint };
  });
  return [...lengths, ...times];
}

/** The outline of the strip's density, which is the same from frame to frame. */
let outline: { readonly of: Float32Array; readonly width: number; readonly path: Path2D } | undefined;

function outlineOf(shares: Float32Array, width: number): Path2D {
  if (outline?.of !== shares || outline.width !== width) {
    const path = new Path2D();
    path.moveTo(0, STRIP_HEIGHT);
    shares.forEach((share, at) => {
      const top = STRIP_HEIGHT * (1 - share);
      path.lineTo((at / STRIP) * width, top);
      path.lineTo(((at + 1) / STRIP) * width, top);
    });
    path.lineTo(width, STRIP_HEIGHT);
    outline = { of: shares, width, path };
  }
  return outline.path;
}

export function drawStrip(canvas: HTMLCanvasElement, controller: Controller): void {
  const { viewport, theme, workspace, axis } = controller;
  const context = prepare(canvas, viewport.width, STRIP_HEIGHT);
  if (!context) {
    return;
  }
  context.fillStyle = theme.group;
  context.fillRect(0, 0, viewport.width, STRIP_HEIGHT);
  const { hits, density } = workspace;
  if (density && density.of === workspace.shown) {
    context.fillStyle = theme.dense;
    context.fill(outlineOf(density.shares, viewport.width));
  }
  if (hits) {
    const most = hits.strip.reduce((most, count) => Math.max(most, count), 0);
    context.fillStyle = theme.hit;
    const width = Math.max(1, viewport.width / STRIP);
    hits.strip.forEach((count, at) => {
      if (count > 0) {
        // The root keeps single hits visible beside crowds.
        const height = 3 + (STRIP_HEIGHT - 3) * Math.sqrt(count / most);
        context.fillRect((at / STRIP) * viewport.width, STRIP_HEIGHT - height, width, height);
      }
    });
  }
  const [begin, end] = workspace.shown?.extent ?? [axis.begin, axis.end];
  const place = (time: number) => Math.max(0, Math.min(1, (time - begin) / Math.max(1, end - begin))) * viewport.width;
  if (workspace.prelude) {
    context.fillStyle = theme.before;
    context.fillRect(0, 0, place(0), STRIP_HEIGHT);
    context.fillStyle = theme.seam;
    context.fillRect(Math.round(place(0)), 0, 2, STRIP_HEIGHT);
  }
  const left = Math.min(viewport.width - 2, place(viewport.from));
  const right = place(viewport.to);
  context.fillStyle = theme.area;
  context.fillRect(left, 0, Math.max(2, right - left), STRIP_HEIGHT);
  context.strokeStyle = theme.accent;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, 0.5, Math.max(2, right - left) - 1, STRIP_HEIGHT - 1);
}
