/** The details of the timeline: the walk by length, and how much room they have. */

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { settled, type Stage, stage } from "./stage";

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

const panel = (page: Page) => page.locator(".panel");

async function open(): Promise<Page> {
  const page = await on.open("?file=files/synthetic.h5#page=timeline&sel=cuda_kernel:100");
  await settled(page);
  await panel(page).waitFor();
  return page;
}

const selected = (page: Page) => page.evaluate(() => (globalThis as any).flopwatch.workspace.selected as { text: string; duration: number; index: number });

/** Does what selects another event, and waits until one is. */
async function afterwards(page: Page, act: () => Promise<void>) {
  const { index } = await selected(page);
  await act();
  await page.waitForFunction((index) => ((globalThis as any).flopwatch.workspace.selected?.index ?? index) !== index, index);
  return selected(page);
}

test("L and Shift+L walk over the events of a name by their lengths, and Back leads to where the walk began", async () => {
  const page = await open();
  const first = await selected(page);
  const longer = await afterwards(page, () => page.keyboard.press("l"));
  const longest = await afterwards(page, () => panel(page).getByRole("button", { name: "Longer" }).click());
  expect([longer.text, longest.text]).toEqual([first.text, first.text]);
  expect(longer.duration).toBeGreaterThanOrEqual(first.duration);
  expect(longest.duration).toBeGreaterThanOrEqual(longer.duration);
  const { rank, count } = await page.evaluate(() => (globalThis as any).flopwatch.workspace.ranked as { rank: number; count: number });
  await panel(page).getByText(`${rank} of ${count}, from the longest`).waitFor();
  expect((await afterwards(page, () => page.keyboard.press("Shift+l"))).index).toBe(longer.index);
  await settled(page);
  await afterwards(page, async () => void (await page.goBack()));
  expect((await selected(page)).index).toBe(first.index);
});

test("the walk ends at the longest, and says so", async () => {
  const page = await open();
  const { text } = await selected(page);
  const max = await page.evaluate(async () => {
    const { workspace } = (globalThis as any).flopwatch;
    for (;;) {
      const before = workspace.selected;
      await workspace.stepByLength(true);
      if (workspace.selected === before) {
        return workspace.selected.duration as number;
      }
    }
  });
  await page.getByRole("status").getByText(/^This is the longest of \d+$/).waitFor({ state: "attached" });
  const rows = await page.evaluate(async () => JSON.parse(await (globalThis as any).flopwatch.workspace.engine.call("summary")).kernels.rows as { name: string; max: number }[]);
  expect(max).toBe(rows.find(({ name }) => name === text)?.max);
});

test("the details are given room by keys and by dragging, also the next time, and take what they need again", async () => {
  const page = await open();
  const line = page.getByRole("separator", { name: "Height of the details" });
  const height = async () => (await panel(page).boundingBox())!.height;
  const before = await height();
  await line.focus();
  const rows = await page.evaluate(() => (globalThis as any).flopwatch.controller.focusKey as unknown);
  await page.keyboard.press("End");
  await expect.poll(height).toBeGreaterThan(before * 1.2);
  const most = await height();
  await page.keyboard.press("ArrowDown");
  await expect.poll(height).toBeLessThan(most);
  expect(await line.getAttribute("aria-valuenow")).toBe("76");
  // The keys choose no row meanwhile.
  expect(await page.evaluate(() => (globalThis as any).flopwatch.controller.focusKey as unknown)).toBe(rows);
  const box = (await line.boundingBox())!;
  await page.mouse.move(box.x + 100, box.y + 3);
  await page.mouse.down();
  await page.mouse.move(box.x + 100, box.y + 203, { steps: 4 });
  await page.mouse.up();
  await expect.poll(height).toBeLessThan(most - 150);
  const dragged = await height();
  await page.reload();
  await panel(page).waitFor();
  await expect.poll(height).toBe(dragged);
  await line.press("Enter");
  await expect.poll(height).toBe(before);
});
