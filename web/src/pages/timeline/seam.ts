/** What is drawn over a prelude: its ground, where the window begins, and what is not known since a ring wrapped. */

import { toPixel } from "../../view/scale";
import type { Controller } from "./controller";

const UNKNOWN = "not known: the ring wrapped";

const FONT = "11px system-ui, sans-serif";

/** Pixels between the lines of the hatching. */
const HATCH = 8;

/** Shades what is from before the window. */
export function drawBefore(context: CanvasRenderingContext2D, controller: Controller): void {
  const { workspace, viewport, theme, height } = controller;
  const seam = Math.round(toPixel(viewport, 0));
  if (workspace.prelude && seam > 0) {
    context.fillStyle = theme.before;
    context.fillRect(0, 0, Math.min(seam, viewport.width), height);
    drawUnknown(context, controller);
  }
}

/** Says where the window begins. */
export function drawSeam(context: CanvasRenderingContext2D, { workspace, viewport, theme, height }: Controller): void {
  const seam = Math.round(toPixel(viewport, 0));
  if (!workspace.prelude || seam < 0) {
    return;
  }
  context.fillStyle = theme.seam;
  context.fillRect(seam, 0, 2, height);
  // Where the line is out of sight, the text says on which side of it one is.
  const text = seam < viewport.width ? "window begins" : "before the window";
  context.font = FONT;
  const width = context.measureText(text).width + 14;
  const left = Math.min(seam, viewport.width - width);
  context.fillRect(left, 0, width, 16);
  context.textBaseline = "middle";
  context.fillStyle = theme.onBar;
  context.fillText(text, left + 7, 8.5);
}

/** Hatches the part of each row of which nothing is known since the ring wrapped. */
function drawUnknown(context: CanvasRenderingContext2D, controller: Controller): void {
  const { workspace, viewport, theme, axis, layout } = controller;
  const begin = toPixel(viewport, axis.begin);
  const left = Math.max(0, begin);
  for (const { row, from } of workspace.held) {
    const line = controller.lineOf(row);
    const right = Math.min(viewport.width, toPixel(viewport, from));
    const top = line ? Math.max(controller.topOf(line), line.pinned ? 0 : layout.pinnedHeight) : 0;
    const height = line ? controller.topOf(line) + line.height - top : 0;
    if (!line || right - left < 1 || height < 1 || top > controller.height) {
      continue;
    }
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, height);
    context.clip();
    context.beginPath();
    // Counted from the axis' begin, so that the lines move with what they lie on.
    for (let x = left - height - ((left - begin) % HATCH); x < right; x += HATCH) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.strokeStyle = theme.unknown;
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = theme.faint;
    context.font = FONT;
    context.textBaseline = "middle";
    if (right - left > context.measureText(UNKNOWN).width + 12) {
      context.fillText(UNKNOWN, left + 6, controller.topOf(line) + line.laneHeight / 2);
    }
    context.restore();
  }
}
