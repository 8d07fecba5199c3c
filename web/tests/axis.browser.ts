/** The time axis: what is written there. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { settled, type Stage, stage } from "./stage";

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());

interface Written {
  readonly text: string;
  readonly left: number;
  readonly right: number;
}

/** The texts at the axis when a span is marked that begins at a share of the view; none without one. */
const writtenWith = (page: Page, share: number | undefined): Promise<Written[]> =>
  page.evaluate((share) => {
    const { controller, workspace } = (globalThis as any).flopwatch;
    const { from, to } = controller.viewport;
    workspace.clearMarks();
    if (share !== undefined) {
      workspace.mark({ from: from + (to - from) * share, to: from + (to - from) * (share + 0.0537) });
    }
    const written: Written[] = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (this: CanvasRenderingContext2D, text: string, x: number, y: number) {
      if (this.canvas.classList.contains("ruler")) {
        written.push({ text, left: x, right: x + this.measureText(text).width });
      }
      fillText.call(this, text, x, y);
    };
    try {
      controller.draw();
    } finally {
      CanvasRenderingContext2D.prototype.fillText = fillText;
    }
    return written;
  }, share);

test.each([1024, 1440])("at %i pixels the length of a mark is whole and lies over no other text of the axis, wherever it is", async (width) => {
  const page = await on.open("?file=files/synthetic.h5#page=timeline");
  await settled(page);
  await page.setViewportSize({ width, height: 700 });
  await page.waitForFunction(() => (globalThis as any).flopwatch.controller.viewport.width === document.querySelector("canvas.overlay")?.clientWidth);
  await settled(page);
  const pixels = await page.evaluate(() => (globalThis as any).flopwatch.controller.viewport.width as number);
  const times = (await writtenWith(page, undefined)).map(({ text }) => text);
  expect(times.length).toBeGreaterThan(1);
  for (const share of [0.001, 0.2, 0.37, 0.5, 0.68, 0.93, 0.98]) {
    const written = await writtenWith(page, share);
    expect(written.filter(({ text }) => !times.includes(text)).length, `at ${share}`).toBe(1);
    const inOrder = written.sort((a, b) => a.left - b.left);
    inOrder.forEach(({ text, left, right }, at) => {
      expect(left, text).toBeGreaterThanOrEqual(0);
      expect(right, text).toBeLessThanOrEqual(inOrder[at + 1]?.left ?? pixels);
    });
  }
  await page.close();
});
