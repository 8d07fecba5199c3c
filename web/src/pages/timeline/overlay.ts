/** What lies over the rectangles: grid, texts, selection, flows, marks. A 2D canvas, since texts are few. */

import { KIND, MOST_LANES } from "../../engine/instances";
import type { EventPlace } from "../../engine/protocol";
import * as format from "../../view/format";
import type { Line } from "../../view/layout";
import { categoryRgb, css, overGround, slotRgb, textOn } from "../../view/palette";
import { nsPerPixel, toPixel } from "../../view/scale";
import { settings } from "../../workspace/settings";
import type { Controller } from "./controller";
import { drawBefore, drawSeam } from "./seam";
import { ticks, tickStep } from "./ticks";

/** A text needs so many pixels. */
const LEAST_TEXT = 28;
const FONT = "11px system-ui, sans-serif";
/** A range launches more than arrows can show. */
const MAX_ARROWS = 16;
/** Pixels of a letter, roughly: texts are cut by it, and never measured. */
const LETTER = 5.9;

/** Sizes a canvas for the screen and clears it; drawing is in CSS pixels. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | undefined {
  const ratio = devicePixelRatio;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d") ?? undefined;
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

export function drawOverlay(canvas: HTMLCanvasElement, controller: Controller): void {
  const { viewport, height } = controller;
  const context = prepare(canvas, viewport.width, height);
  if (!context) {
    return;
  }
  drawGrid(context, controller);
  drawBefore(context, controller);
  drawLines(context, controller);
  drawTexts(context, controller);
  drawScales(context, controller);
  drawArea(context, controller);
  drawSelection(context, controller);
  drawMarks(context, controller);
  drawSeam(context, controller);
  if (controller.pointer !== undefined) {
    context.fillStyle = controller.theme.line;
    context.fillRect(Math.round(controller.pointer), 0, 1, height);
  }
}

function drawGrid(context: CanvasRenderingContext2D, { viewport, height, theme }: Controller): void {
  context.fillStyle = theme.grid;
  for (const at of ticks(viewport.from, viewport.to, tickStep(nsPerPixel(viewport)))) {
    context.fillRect(Math.round(toPixel(viewport, at)), 0, 1, height);
  }
}

function visible(controller: Controller): Line[] {
  const inSight = (line: Line) => {
    const top = controller.topOf(line);
    return top < controller.height && top + line.height > controller.layout.pinnedHeight;
  };
  return [...controller.layout.pinned, ...controller.layout.lines.filter(inSight)];
}

function drawLines(context: CanvasRenderingContext2D, controller: Controller): void {
  const { viewport, theme, layout } = controller;
  for (const line of visible(controller)) {
    const top = controller.topOf(line);
    // What scrolls ends below what stays.
    const from = Math.max(top, line.pinned && top < layout.pinnedHeight ? 0 : layout.pinnedHeight);
    const bottom = top + line.height;
    context.fillStyle = line.kind === "group" ? theme.group : theme.grid;
    context.fillRect(0, line.kind === "group" ? from : Math.max(from, bottom - 1), viewport.width, line.kind === "group" ? bottom - from : 1);
  }
  if (layout.pinnedHeight > 0) {
    context.fillStyle = theme.accent;
    context.fillRect(0, layout.pinnedHeight - 1, viewport.width, 1);
  }
}

function drawTexts(context: CanvasRenderingContext2D, controller: Controller): void {
  const { picker, viewport, theme, layout, workspace } = controller;
  if (!picker) {
    return;
  }
  const lines = new Map(visible(controller).filter((line) => line.laneHeight >= 12).map((line) => [line.row, line]));
  context.font = FONT;
  context.textBaseline = "middle";
  const perPixel = nsPerPixel(viewport);
  const { selected, hitFlags: flags, firstNames } = workspace;
  const chosen = selected && (firstNames[selected.category] ?? 0) + selected.name;
  const { wide } = picker.view;
  const categories = controller.drawn?.categories ?? [];
  for (let place = 0; place < wide.length; place += 1) {
    const at = wide[place] as number;
    const line = lines.get(picker.row(at));
    if (!line) {
      continue;
    }
    const begin = (picker.begin(at) - viewport.from) / perPixel;
    const end = (picker.end(at) - viewport.from) / perPixel;
    const left = Math.max(0, begin);
    const room = Math.min(viewport.width, end) - left - 8;
    if (room < LEAST_TEXT) {
      continue;
    }
    const lane = picker.lane(at);
    const height = lane === MOST_LANES ? line.laneHeight * line.lanes : line.laneHeight;
    const y = controller.topOf(line) + (lane === MOST_LANES ? 0 : Math.min(lane, line.lanes - 1) * line.laneHeight) + height / 2;
    if (!line.pinned && y - 6 < layout.pinnedHeight) {
      continue;
    }
    const text = controller.textOf(at);
    if (text !== undefined) {
      const name = picker.name(at);
      // Bars that are not searched for, or of another name than the selected one, are pale.
      const pale = flags ? (flags[name] === 1 ? 1 : 0.18) : chosen !== undefined && chosen !== name ? 0.4 : 1;
      const color = workspace.byName ? slotRgb(picker.slot(at), theme.dark) : categoryRgb(categories[picker.category(at)]?.name ?? "", theme.dark, workspace.coloring);
      context.fillStyle = css(textOn(overGround(color, picker.opacity(at) * pale, theme.dark)));
      context.fillText(shortened(settings.named(text), Math.floor(room / LETTER)), left + 4, y);
    }
  }
}

/** Says at the left edge what the full height of each counter stands for. */
function drawScales(context: CanvasRenderingContext2D, controller: Controller): void {
  const { picker, drawn, theme, layout } = controller;
  context.font = FONT;
  context.textBaseline = "middle";
  for (const line of visible(controller)) {
    const counter = line.row - (drawn?.rows.length ?? 0);
    const peak = picker?.view.peaks[counter];
    const top = controller.topOf(line);
    if (!line.counter || peak === undefined || (!line.pinned && top < layout.pinnedHeight)) {
      continue;
    }
    const text = format.quantity(peak, drawn?.counters[counter]?.unit ?? "");
    context.fillStyle = theme.ground;
    context.fillRect(0, top, context.measureText(text).width + 8, 14);
    context.fillStyle = theme.faint;
    context.fillText(text, 4, top + 7);
  }
}

/** `text` in at most `most` letters. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}

function drawArea(context: CanvasRenderingContext2D, controller: Controller): void {
  const { workspace, viewport, theme, height, draft, layout } = controller;
  if (draft) {
    const left = toPixel(viewport, Math.min(draft.from, draft.to));
    const right = toPixel(viewport, Math.max(draft.from, draft.to));
    context.fillStyle = theme.area;
    context.strokeStyle = theme.accent;
    const top = Math.min(draft.top, draft.bottom);
    context.fillRect(left, top, right - left, Math.abs(draft.bottom - draft.top));
    context.strokeRect(left + 0.5, top + 0.5, right - left, Math.abs(draft.bottom - draft.top));
    context.fillStyle = theme.text;
    context.fillText(format.duration(Math.abs(draft.to - draft.from)), left + 6, top + 10);
  }
  if (workspace.area) {
    const { from, to } = workspace.area;
    const left = toPixel(viewport, from);
    const right = toPixel(viewport, to);
    const rows = new Set(workspace.area.rows);
    context.fillStyle = theme.area;
    for (const line of visible(controller)) {
      if (rows.has(line.row)) {
        const top = Math.max(controller.topOf(line), line.pinned ? 0 : layout.pinnedHeight);
        context.fillRect(left, top, right - left, controller.topOf(line) + line.height - top);
      }
    }
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(left), 0, 1, height);
    context.fillRect(Math.round(right), 0, 1, height);
  }
}

/** Where an event is on the screen; undefined when its row is folded away. */
function boxOf(controller: Controller, place: EventPlace): { left: number; right: number; top: number; height: number } | undefined {
  const line = controller.lineOf(place.row);
  if (!line) {
    return undefined;
  }
  const left = toPixel(controller.viewport, place.start);
  const right = Math.max(left + 2, toPixel(controller.viewport, place.start + place.duration));
  const top = controller.topOf(line) + Math.min(place.lane, line.lanes - 1) * line.laneHeight;
  return { left, right, top, height: line.laneHeight - 1 };
}

function drawSelection(context: CanvasRenderingContext2D, controller: Controller): void {
  const { workspace, viewport, theme, hover, picker } = controller;
  const { selected, flow } = workspace;
  context.lineWidth = 1;
  if (hover && picker && picker.kind(hover.at) !== KIND.counter) {
    const line = hover.line;
    const lane = picker.lane(hover.at);
    const left = Math.max(-2, toPixel(viewport, picker.begin(hover.at)));
    const right = Math.min(viewport.width + 2, Math.max(left + 2, toPixel(viewport, picker.end(hover.at))));
    const all = lane === MOST_LANES;
    const top = controller.topOf(line) + (all ? 0 : Math.min(lane, line.lanes - 1) * line.laneHeight);
    context.strokeStyle = theme.text;
    context.strokeRect(left + 0.5, top + 0.5, right - left - 1, (all ? line.laneHeight * line.lanes : line.laneHeight) - 2);
  }
  if (!selected) {
    return;
  }
  const own = boxOf(controller, selected);
  if (own) {
    context.lineWidth = 2;
    context.strokeStyle = theme.accent;
    const left = Math.max(-4, own.left);
    const right = Math.min(viewport.width + 4, own.right);
    context.strokeRect(left, own.top, Math.max(2, right - left), own.height);
  }
  if (flow) {
    context.strokeStyle = theme.flow;
    context.fillStyle = theme.flow;
    context.lineWidth = 1.5;
    if (flow.launch) {
      arrow(context, controller, flow.launch, selected);
    }
    for (const work of flow.launched.slice(0, MAX_ARROWS)) {
      arrow(context, controller, selected, work);
    }
  }
}

/** A curve from the end of a call to the begin of its work. */
function arrow(context: CanvasRenderingContext2D, controller: Controller, from: EventPlace, to: EventPlace): void {
  const a = boxOf(controller, from);
  const b = boxOf(controller, to);
  if (!a || !b) {
    return;
  }
  const x0 = Math.max(-1e4, Math.min(1e4, a.left + Math.min(a.right - a.left, 4) / 2));
  const x1 = Math.max(-1e4, Math.min(1e4, b.left));
  const y0 = a.top + (b.top > a.top ? a.height : 0);
  const y1 = b.top + b.height / 2;
  const bend = Math.max(16, Math.min(120, Math.abs(x1 - x0) / 2));
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend / 3, y0 + (y1 - y0) / 2, x1 - bend, y1, x1 - 5, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 7, y1 - 4);
  context.lineTo(x1 - 7, y1 + 4);
  context.fill();
}

function drawMarks(context: CanvasRenderingContext2D, controller: Controller): void {
  const { workspace, viewport, theme, height } = controller;
  for (const mark of workspace.marks) {
    const left = toPixel(viewport, mark.from);
    const right = toPixel(viewport, mark.to);
    if (mark.to > mark.from) {
      context.fillStyle = theme.area;
      context.fillRect(left, 0, right - left, height);
    }
    context.fillStyle = theme.hit;
    context.fillRect(Math.round(left), 0, 1, height);
    context.fillRect(Math.round(right), 0, 1, height);
  }
}
