/** The timeline's state from frame to frame: what is seen, what is asked of the worker, what is under the pointer. */

import { mergeStep } from "../../engine/detail";
import { KIND, MOST_LANES, NO_NAME } from "../../engine/instances";
import type { EventPlace, View } from "../../engine/protocol";
import type { Header } from "../../timeline/header";
import { laneAt, type Layout, layoutOf, type Line, lineAt } from "../../view/layout";
import { IDLE, paletteBytes } from "../../view/palette";
import { type Axis, covers, focused, followed, nsPerPixel, padded, panned, resized, revealed, toPixel, toTime, type Viewport, whole, within, zoomed } from "../../view/scale";
import { settings } from "../../workspace/settings";
import { Signal } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import { IdleLead } from "./idle-lead";
import { drawOverlay } from "./overlay";
import { Picker } from "./picking";
import { Renderer } from "./renderer";
import { drawRuler, drawStrip } from "./rulers";
import { colors, type Theme } from "./theme";

/** An event that is gone to is to be so many pixels wide at least. */
const EVENT_PIXELS = 4;

/** The elements that a timeline is drawn on. */
export interface Stage {
  readonly scroller: HTMLElement;
  /** As high as all rows; what makes the scroller scroll. */
  readonly sheet: HTMLElement;
  /** What the canvas of the graphics is put into. */
  readonly tracks: HTMLElement;
  readonly overlay: HTMLCanvasElement;
  readonly ruler: HTMLCanvasElement;
  readonly strip: HTMLCanvasElement;
}

/** What is under the pointer. */
export interface Hover {
  /** Place in the drawn view. */
  readonly at: number;
  readonly x: number;
  readonly y: number;
  readonly line: Line;
}

/** Figures of the last frames, for measurements. */
export interface FrameFigures {
  /** Script time of each of the last frames in ms. */
  readonly frames: number[];
  draws: number;
  instances: number;
  viewMs: number;
  firstPaintMs: number | undefined;
}

export class Controller {
  viewport: Viewport;
  layout: Layout = { pinned: [], lines: [], pinnedHeight: 0, height: 0 };
  height = 300;
  scroll = 0;
  picker: Picker | undefined;
  hover: Hover | undefined;
  /** Where the pointer is, in CSS pixels from the tracks' left; undefined when elsewhere. */
  pointer: number | undefined;
  /** An area that is being drawn, in ns and pixels. */
  draft: { from: number; to: number; top: number; bottom: number } | undefined;
  /** The line that keys act on. */
  focusKey: string | undefined;
  theme: Theme;
  /** Fired when rows moved: layout, scrolling, focus. What shows the time need not know. */
  readonly rowsMoved = new Signal();
  /** Fired when another time is seen or pointed at. What shows the rows need not know. */
  readonly timeMoved = new Signal();
  readonly figures: FrameFigures = { frames: [], draws: 0, instances: 0, viewMs: 0, firstPaintMs: undefined };
  /** What the picture is of. Rows that are added come with the picture that has them. */
  drawn: Header | undefined;
  /** The way from idle time to its cause. */
  readonly lead: IdleLead;
  /** What the density was asked of. */
  private denseOf: Header | undefined;
  private tree: Workspace["tree"];
  private readonly renderer: Renderer;
  private frame = 0;
  private dark = false;
  /** The colours that the renderer has: how events are coloured, and what is hidden. */
  private painted: string | undefined;
  /** What the worker was last asked for, until it answers. */
  private asked: { readonly of: Header | undefined; readonly from: number; readonly to: number; readonly step: number; readonly named: boolean } | undefined;
  private lanes: Uint16Array = new Uint16Array(0);
  private readonly began = performance.now();
  private hitsSeen: unknown;
  private closed = false;
  private readonly unwatch: () => void;

  constructor(
    readonly workspace: Workspace,
    private readonly stage: Stage,
    dark: boolean,
  ) {
    this.theme = colors(dark);
    this.lead = new IdleLead(workspace);
    this.drawn = workspace.shown;
    this.tree = workspace.tree;
    const width = Math.max(1, stage.tracks.clientWidth);
    const { viewport } = workspace;
    this.viewport = viewport ? within(viewport.from, viewport.to, width, this.axis) : this.whole(width);
    // The worker reads while this thread waits for the graphics.
    this.askForView();
    this.renderer = new Renderer();
    this.renderer.onReady = () => this.schedule();
    stage.tracks.prepend(this.renderer.canvas);
    this.setDark(dark);
    const unwatch = [workspace.watch(() => this.follow()), settings.watch(() => this.schedule())];
    this.unwatch = () => unwatch.forEach((end) => end());
    this.follow();
  }

  get axis(): Axis {
    const { beginNs: begin = 0, durationNs = 1 } = this.workspace.shown ?? {};
    return { begin, end: Math.max(1, durationNs) };
  }

  close(): void {
    this.closed = true;
    cancelAnimationFrame(this.frame);
    this.unwatch();
    this.renderer.close();
    this.renderer.canvas.remove();
  }

  setDark(dark: boolean): void {
    this.theme = colors(dark);
    this.dark = dark;
    this.painted = undefined;
    this.schedule();
  }

  /** Gives the renderer its colours where they are others than before. */
  private paint(): void {
    const { coloring, hidden } = this.workspace;
    const names = this.drawn?.categories.map((category) => category.name) ?? [];
    const wanted = `${coloring} ${[...hidden].join()} ${names.length}`;
    if (this.painted !== wanted) {
      this.painted = wanted;
      this.renderer.setPalette(paletteBytes(names, this.dark, coloring, hidden));
    }
  }

  private isHidden(category: number): boolean {
    const name = this.drawn?.categories[category]?.name;
    return name !== undefined && this.workspace.hidden.has(name);
  }

  resize(width: number, height: number): void {
    if (width < 1 || height < 1) {
      return;
    }
    this.height = height;
    // The axis is as wide as the tracks, whatever a scroll bar takes of them.
    for (const canvas of [this.stage.ruler, this.stage.strip]) {
      canvas.style.width = `${width}px`;
    }
    this.rowsMoved.fire();
    this.viewport = resized(this.viewport, width, this.axis);
    if (this.figures.firstPaintMs === undefined) {
      const { viewport } = this.workspace;
      this.viewport = viewport ? within(viewport.from, viewport.to, width, this.axis) : this.whole(width);
    }
    this.schedule();
  }

  /** Takes over what changed in the workspace. */
  private follow(): void {
    const { workspace, drawn } = this;
    const rows = (drawn?.rows.length ?? 0) + (drawn?.counters.length ?? 0);
    this.layout = layoutOf(this.tree, this.lanes, workspace.arrangement);
    this.renderer.setLayout(this.layout, rows);
    this.stage.sheet.style.height = `${this.layout.height + this.layout.pinnedHeight}px`;
    if (workspace.hits !== this.hitsSeen) {
      this.hitsSeen = workspace.hits;
      if (workspace.hitFlags) {
        this.renderer.setHits(workspace.hitFlags);
      }
    }
    const goal = workspace.takeGoal();
    if (goal?.fills) {
      this.set(within(goal.from, goal.to, this.viewport.width, this.axis));
    } else if (goal?.followed) {
      const { from, to, followed: start } = goal;
      this.set(followed(this.viewport, [start.from, start.to], [from, to], this.axis));
    } else if (goal) {
      this.set(revealed(this.viewport, goal.from, goal.to, goal.leastPixels ?? EVENT_PIXELS, this.axis));
    }
    if (goal?.row !== undefined) {
      this.showRow(goal.row);
    }
    this.rowsMoved.fire();
    this.schedule();
  }

  schedule(): void {
    if (this.frame === 0 && !this.closed) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  /** Draws at once, and all onto the canvas that is printed: that of the graphics processor is empty when the printer comes. */
  drawForPrint(): void {
    this.setDark(false);
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.draw();
    const { overlay } = this.stage;
    const gl = this.renderer.canvas;
    // As high as the rows' names beside it, however wide the paper is.
    overlay.style.height = `${this.height}px`;
    const context = overlay.getContext("2d");
    if (context && gl.width > 0) {
      context.save();
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.globalCompositeOperation = "destination-over";
      context.drawImage(gl, 0, 0, overlay.width, overlay.height);
      context.restore();
    }
  }

  /** Goes on as before. */
  printed(dark: boolean): void {
    this.stage.overlay.style.height = "";
    this.setDark(dark);
  }

  private draw(): void {
    const began = performance.now();
    const { workspace, stage, viewport } = this;
    if (this.scroll !== stage.scroller.scrollTop) {
      this.scroll = stage.scroller.scrollTop;
      this.rowsMoved.fire();
    }
    this.askForView();
    this.paint();
    const made = this.drawRectangles();
    drawOverlay(stage.overlay, this);
    drawRuler(stage.ruler, this);
    drawStrip(stage.strip, this);
    workspace.see({ from: viewport.from, to: viewport.to });
    const took = performance.now() - began;
    this.figures.frames.push(took);
    if (this.figures.frames.length > 2000) {
      this.figures.frames.splice(0, 1000);
    }
    this.figures.draws = this.renderer.draws;
    if (made && this.picker && this.figures.firstPaintMs === undefined) {
      this.figures.firstPaintMs = performance.now() - this.began;
      performance.mark("flopwatch-first-paint");
      void workspace.addPrelude();
    }
    if (made && this.drawn && workspace.density?.of !== this.drawn && this.denseOf !== this.drawn) {
      this.denseOf = this.drawn;
      void workspace.findDensity();
    }
  }

  /** Whether there was something to draw with. */
  private drawRectangles(): boolean {
    const { workspace, viewport } = this;
    try {
      return this.renderer.draw({
        viewport,
        height: this.height,
        scroll: this.scroll,
        pinnedHeight: this.layout.pinnedHeight,
        ratio: devicePixelRatio,
        byName: workspace.byName,
        searching: workspace.hits !== undefined,
        name: workspace.selected ? this.globalName(workspace.selected) : undefined,
      });
    } catch (error) {
      workspace.report(error);
      return false;
    }
  }

  /** Whether what is drawn is what is asked for, and nothing is under way. */
  isSettled(): boolean {
    return this.frame === 0 && this.asked === undefined && this.renderer.isReady && this.shows(this.drawn, this.picker?.view);
  }

  /** Whether a drawn or asked-for window of `of` shows what is to be seen. */
  private shows(of: Header | undefined, window: { from: number; to: number; step: number; named: boolean } | undefined): boolean {
    return window !== undefined && of === this.workspace.shown && covers(window, this.viewport, this.axis) && (window.named || !this.workspace.byName);
  }

  private globalName(place: EventPlace): number {
    return (this.workspace.firstNames[place.category] ?? 0) + place.name;
  }

  private askForView(): void {
    const { workspace, viewport } = this;
    if (this.asked ? this.shows(this.asked.of, this.asked) : this.shows(this.drawn, this.picker?.view)) {
      return;
    }
    // A newer request replaces an older one; what the older one fetched stays in the worker's memory.
    const fine = nsPerPixel(viewport);
    const asked = { of: workspace.shown, ...padded(viewport), step: mergeStep(fine), named: workspace.byName };
    this.asked = asked;
    workspace.engine.call("view", { from: asked.from, to: asked.to, nsPerPixel: fine, named: asked.named }).then(
      (view) => {
        if (this.asked === asked) {
          this.asked = undefined;
        }
        // The rows of another file have other numbers.
        if (view && !this.closed && asked.of === workspace.shown) {
          this.take(view, asked.of);
        }
        this.schedule();
      },
      (error: unknown) => {
        if (!this.closed && asked.of === workspace.shown) {
          // It stays what was asked for last, so that a failing file is not asked again and again.
          void workspace.notDrawn(error);
        }
      },
    );
  }

  private take(view: View, of: Header | undefined): void {
    const other = of !== this.drawn;
    this.drawn = of;
    this.tree = this.workspace.tree;
    this.picker = new Picker(view);
    this.renderer.setView(view);
    this.figures.instances = view.events.length;
    this.figures.viewMs = view.tookMs;
    if (other || view.lanes.some((count, at) => count !== this.lanes[at])) {
      this.lanes = view.lanes;
      this.follow();
    }
    this.hover = undefined;
    this.timeMoved.fire();
  }

  /** Categories that are shown by a level of detail only. */
  coarse(): readonly string[] {
    const names = this.picker?.view.coarse.map((at) => this.drawn?.categories[at]?.name ?? "") ?? [];
    return [...new Set(names)];
  }

  zoom(factor: number, pixel = this.pointer ?? this.viewport.width / 2): void {
    this.set(zoomed(this.viewport, factor, pixel, this.axis));
  }

  pan(pixels: number): void {
    this.set(panned(this.viewport, pixels, this.axis));
  }

  set(viewport: Viewport): void {
    this.viewport = viewport;
    this.workspace.see({ from: viewport.from, to: viewport.to });
    this.hover = undefined;
    this.schedule();
    this.timeMoved.fire();
  }

  /** Shows all events, also those before the window; when they are shown already, the whole capture window alone. */
  fit(): void {
    const events = this.whole(this.viewport.width);
    const there = Math.abs(events.from - this.viewport.from) + Math.abs(events.to - this.viewport.to) < nsPerPixel(events);
    this.set(there ? within(0, this.axis.end, this.viewport.width, this.axis) : events);
  }

  /** All events, with a little room. */
  private whole(width: number): Viewport {
    return whole(this.workspace.shown?.extent ?? [0, 0], width, this.axis);
  }

  /** Shows what was before the window, and a little of the window. */
  showBefore(): void {
    const { begin } = this.axis;
    this.set(within(begin * 1.02, -begin * 0.1, this.viewport.width, this.axis));
  }

  /** Brings the selection to the middle; when it is there already, fits it. */
  focusSelection(): void {
    const { selected, area } = this.workspace;
    const span = area ?? (selected && { from: selected.start, to: selected.start + selected.duration });
    if (!span) {
      this.fit();
      return;
    }
    const next = focused(span.from, span.to, this.viewport.width, this.axis);
    const there = Math.abs(next.from - this.viewport.from) < nsPerPixel(next) && Math.abs(next.to - this.viewport.to) < nsPerPixel(next);
    const room = Math.max(1, (span.to - span.from) * 0.02);
    this.set(there ? within(span.from - room, span.to + room, this.viewport.width, this.axis) : next);
    if (selected) {
      this.showRow(selected.row);
    }
  }

  /** Unfolds the groups around a row and scrolls to it. */
  showRow(row: number): void {
    const { workspace } = this;
    const hiding = groupsAround(this.tree, row).filter((key) => workspace.arrangement.folded.has(key));
    if (hiding.length > 0) {
      const folded = new Set(workspace.arrangement.folded);
      for (const key of hiding) {
        folded.delete(key);
      }
      workspace.arrange({ folded });
    }
    const line = this.layout.lines.find((line) => line.row === row);
    if (!line || line.pinned) {
      return;
    }
    const { scroller } = this.stage;
    const room = this.height - this.layout.pinnedHeight;
    if (line.y < scroller.scrollTop || line.y + line.height > scroller.scrollTop + room) {
      scroller.scrollTop = Math.max(0, line.y - room / 3);
    }
  }

  /** The line at `y`, in CSS pixels from the top of the tracks. */
  lineAt(y: number): Line | undefined {
    return y < this.layout.pinnedHeight
      ? lineAt(this.layout.pinned, y)
      : lineAt(this.layout.lines, y - this.layout.pinnedHeight + this.scroll);
  }

  /** Top of a line in CSS pixels from the top of the tracks. */
  topOf(line: Line): number {
    return this.layout.pinned.includes(line) ? line.y : line.y + this.layout.pinnedHeight - this.scroll;
  }

  /** The line that shows a row now; undefined when it is folded away. */
  lineOf(row: number): Line | undefined {
    return this.layout.pinned.find((line) => line.row === row) ?? this.layout.lines.find((line) => line.row === row);
  }

  /** The rectangle at a place in CSS pixels. */
  pick(x: number, y: number): Hover | undefined {
    const { picker, viewport } = this;
    const line = this.lineAt(y);
    if (!picker || !line || line.row < 0) {
      return undefined;
    }
    const lane = laneAt(line, y - this.topOf(line) + line.y);
    const slack = nsPerPixel(viewport) * 2;
    const time = toTime(viewport, x);
    const event = picker.pick(line.row, lane, time, slack);
    const isSeen = event !== undefined && !this.isHidden(picker.category(event));
    const at = isSeen ? event : this.workspace.hidden.has(IDLE) ? undefined : picker.pickIdle(line.row, time);
    return at === undefined ? undefined : { at, x, y, line };
  }

  /** Moves the hover; says whether something changed. */
  hoverAt(x: number, y: number): void {
    this.pointer = x;
    const found = this.pick(x, y);
    const changed = found?.at !== this.hover?.at || found !== undefined;
    this.hover = found;
    this.schedule();
    if (changed) {
      this.timeMoved.fire();
    }
  }

  leave(): void {
    this.pointer = undefined;
    if (this.hover) {
      this.hover = undefined;
      this.timeMoved.fire();
    }
    this.schedule();
  }

  /** Selects what is at a place, or nothing; idle time leads to its cause. */
  async click(x: number, y: number): Promise<void> {
    if (this.lead.askedAt(x, y)) {
      return;
    }
    this.lead.forget();
    const found = this.pick(x, y);
    const { workspace, picker } = this;
    const line = this.lineAt(y);
    if (line) {
      this.focusKey = line.key;
    }
    if (workspace.area) {
      await workspace.choose(undefined);
    }
    if (found && picker?.kind(found.at) === KIND.idle) {
      await this.lead.begin(picker, found.at, x, y);
      return;
    }
    if (!found || !picker || picker.kind(found.at) >= KIND.counter) {
      await workspace.select(undefined);
      return;
    }
    await workspace.select({ category: picker.category(found.at), index: picker.view.events[found.at] as number });
  }

  /** Selects what is at a place and zooms to it: to the middle third, and when it is there already, to all of the view. */
  async zoomTo(x: number, y: number): Promise<void> {
    const idle = this.lead.askedAt(x, y);
    const found = this.pick(x, y);
    this.lead.forget();
    if (idle) {
      this.set(focused(idle.from, idle.to, this.viewport.width, this.axis));
      this.showRow(idle.row);
    } else if (found) {
      await this.click(x, y);
      if (this.workspace.selected) {
        this.focusSelection();
      }
    }
  }

  /** Ends the drawing of an area. */
  async finishDraft(): Promise<void> {
    const { draft } = this;
    this.draft = undefined;
    this.schedule();
    if (!draft || Math.abs(toPixel(this.viewport, draft.to) - toPixel(this.viewport, draft.from)) < 3) {
      return;
    }
    const top = Math.min(draft.top, draft.bottom);
    const bottom = Math.max(draft.top, draft.bottom);
    const lines = [...this.layout.pinned, ...this.layout.lines].filter((line) => {
      const y = this.topOf(line);
      return line.row >= 0 && !line.counter && y < bottom && y + line.height > top;
    });
    const rows = [...new Set(lines.map((line) => line.row))];
    const from = Math.max(this.axis.begin, Math.min(draft.from, draft.to));
    const to = Math.min(this.axis.end, Math.max(draft.from, draft.to));
    await this.workspace.choose({ from, to, rows });
  }

  /** Selects the event beside the selected one in its lane. */
  async selectBeside(forward: boolean): Promise<void> {
    const { picker, workspace } = this;
    const { selected } = workspace;
    if (!picker || !selected) {
      return;
    }
    let best: number | undefined;
    let distance = Number.POSITIVE_INFINITY;
    for (const run of picker.view.runs) {
      if (run.row !== selected.row || (run.lane !== selected.lane && run.lane !== MOST_LANES) || run.category < 0) {
        continue;
      }
      for (let at = run.first; at < run.first + run.count; at += 1) {
        // Positions in the view are rounded; the event itself is told by its index.
        const same = picker.category(at) === selected.category && picker.view.events[at] === selected.index;
        const off = (picker.begin(at) - selected.start) * (forward ? 1 : -1);
        if (!same && off > 0 && off < distance) {
          best = at;
          distance = off;
        }
      }
    }
    if (best !== undefined) {
      await workspace.select({ category: picker.category(best), index: picker.view.events[best] as number });
      const found = workspace.selected;
      if (found) {
        this.set(revealed(this.viewport, found.start, found.start + found.duration, EVENT_PIXELS, this.axis));
        this.showRow(found.row);
      }
    }
  }

  /** The text of a rectangle; undefined where this level of detail has no names. */
  textOf(at: number): string | undefined {
    const name = this.picker?.name(at) ?? NO_NAME;
    if (this.picker?.kind(at) === KIND.idle) {
      return "GPU idle";
    }
    return name === NO_NAME ? undefined : this.workspace.nameText(name);
  }
}

/** Keys of the groups around a row. */
function groupsAround(nodes: Workspace["tree"][number]["children"], row: number): string[] {
  for (const node of nodes) {
    if (node.kind === "row") {
      if (node.row === row) {
        return [];
      }
      continue;
    }
    const holds = node.children.some((child) => child.kind === "row" && child.row === row);
    const inner = groupsAround(node.children, row);
    if (holds || inner.length > 0) {
      return [node.key, ...inner];
    }
  }
  return [];
}
