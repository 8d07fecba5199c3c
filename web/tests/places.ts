/** Where something is on the tracks of the timeline, for tests that point at it. */

import type { Page } from "playwright-core";
import { settled } from "./stage";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export const tracks = (page: Page) => page.locator("canvas.overlay");
export const panel = (page: Page) => page.locator(".panel");

/** The middle of an event on the tracks, in pixels; the view is moved there so that it is 40 pixels wide. */
export async function placeOf(page: Page, category: string, index: number): Promise<Point> {
  const place = await page.evaluate(
    async ({ category, index }) => {
      const { controller, workspace } = (globalThis as any).flopwatch;
      const at = workspace.shown.categories.findIndex(({ name }: { name: string }) => name === category);
      const event = await workspace.engine.call("event", { category: at, index });
      const span = (event.duration / 40) * controller.viewport.width;
      controller.set({ ...controller.viewport, from: event.start - span / 4, to: event.start - span / 4 + span });
      controller.showRow(event.row);
      return event as { start: number; duration: number; row: number; lane: number };
    },
    { category, index },
  );
  await settled(page);
  return page.evaluate(({ start, duration, row, lane }) => {
    const { controller } = (globalThis as any).flopwatch;
    const { from, to, width } = controller.viewport;
    const line = controller.lineOf(row);
    return { x: ((start + duration / 2 - from) / (to - from)) * width, y: controller.topOf(line) + (lane + 0.5) * line.laneHeight };
  }, place);
}

/** Idle time of a GPU that can be pointed at where its middle is. */
export interface IdleOnTracks {
  readonly point: Point;
  readonly row: number;
  readonly begin: number;
  readonly end: number;
}

/** The first idle time that is seen. */
export async function idleOn(page: Page): Promise<IdleOnTracks> {
  const found = await page.evaluate(() => {
    const { controller } = (globalThis as any).flopwatch;
    const { picker, viewport } = controller;
    for (const { row, first, count } of picker.view.idle) {
      for (let at = first; at < first + count; at += 1) {
        const [begin, end] = [picker.begin(at), picker.end(at)] as [number, number];
        const line = controller.lineOf(row);
        const x = ((begin + (end - begin) / 2 - viewport.from) / (viewport.to - viewport.from)) * viewport.width;
        const y = controller.topOf(line) + line.laneHeight / 2;
        if (x > 20 && x < viewport.width - 20 && y > 0 && y < controller.height - 20 && controller.pick(x, y)?.at === at) {
          return { point: { x, y }, row: row as number, begin, end };
        }
      }
    }
    return undefined;
  });
  if (!found) {
    throw new Error("no idle time is seen");
  }
  return found;
}
