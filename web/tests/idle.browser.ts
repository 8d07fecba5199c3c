/** Idle time of GPUs: what one reads of it, and where it leads. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { PageDocument } from "../src/generated/catalogue";
import { answer, QUERY } from "./agent";
import { idleOn, type IdleOnTracks, panel, placeOf, tracks } from "./places";
import { RESULTS } from "./results";
import { settled, type Stage, stage, told } from "./stage";

const DOCUMENT = JSON.parse(readFileSync(fileURLToPath(new URL("data/page.json", import.meta.url)), "utf8")) as PageDocument;

/** What is told of the gap before the first kernel of a step, whatever the step. */
const CAUSE = "nothing was recorded of the host for 391 µs";

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

/** The gap between two steps, in which nothing was launched. */
const open = async (hash = ""): Promise<{ page: Page; gap: IdleOnTracks }> => {
  const page = await on.open(`?file=files/launches.h5#page=timeline${hash}`);
  await settled(page);
  await placeOf(page, "cuda_kernel", 10);
  return { page, gap: await idleOn(page) };
};

/** Moves the pointer onto idle time. */
const pointAt = async (page: Page, { point }: IdleOnTracks) => {
  const box = (await tracks(page).boundingBox())!;
  await page.mouse.move(box.x + point.x, box.y + point.y);
};

const area = (page: Page) => page.evaluate(() => (globalThis as any).flopwatch.workspace.area as { from: number; to: number; rows: number[] } | undefined);

test("where a GPU is idle one reads for how long and why, and the legend says what the hatching is", async () => {
  const { page, gap } = await open();
  await pointAt(page, gap);
  const tooltip = page.locator(".tooltip");
  await tooltip.getByText("GPU idle").waitFor();
  await tooltip.getByText(CAUSE).waitFor();
  expect(await tooltip.innerText()).toMatch(/^GPU idle\s+437 µs\s+nothing/);
  const legend = page.locator(".legend").getByRole("button", { name: "GPU idle" });
  await legend.click();
  expect(await legend.getAttribute("aria-pressed")).toBe("false");
  await pointAt(page, { ...gap, point: { x: gap.point.x + 1, y: gap.point.y } });
  await tooltip.waitFor({ state: "detached" });
});

test.each(["click", "Enter", "I"])("by %s one is led from idle time to what the GPU waited for, at the same scale", async (way) => {
  const { page, gap } = await open("&sel=cuda_kernel:10");
  await panel(page).getByText("launched by").waitFor();
  const before = await told(page);
  if (way === "click") {
    await tracks(page).click({ position: gap.point });
  } else {
    await tracks(page).focus();
    if (way === "Enter") {
      await pointAt(page, gap);
      await page.locator(".tooltip").waitFor();
    }
    await page.keyboard.press(way === "I" ? "i" : way);
  }
  await panel(page).locator("h2 .name").getByText("cudaLaunchKernel").waitFor();
  await settled(page);
  const call = await page.evaluate(() => (globalThis as any).flopwatch.workspace.selected as { index: number; start: number; duration: number });
  expect(call.index).toBe(10);
  const there = await told(page);
  expect(there.to - there.from).toBeCloseTo(before.to - before.from, 3);
  expect(there.from).toBeLessThanOrEqual(call.start);
  expect(there.to).toBeGreaterThanOrEqual(call.start + call.duration);
});

test("a double-click on idle time zooms to it, wherever its first click leads", async () => {
  const { page, gap } = await open();
  await tracks(page).dblclick({ position: gap.point });
  await settled(page);
  const { from, to } = await told(page);
  expect((gap.begin - from) / (to - from)).toBeCloseTo(1 / 3, 1);
  expect((gap.end - gap.begin) / (to - from)).toBeCloseTo(1 / 3, 1);
});

test("idle time whose cause was not recorded becomes the area, and leads to the analysis of idle time where there is one", async () => {
  const served = await on.context.newPage();
  await answer(served, RESULTS, () => DOCUMENT);
  await served.goto(`${on.base}${QUERY}#page=timeline`);
  const alone = await on.open("?file=files/synthetic.h5#page=timeline");
  for (const page of [served, alone]) {
    await page.bringToFront();
    await settled(page);
    await placeOf(page, "cuda_kernel", 100);
    const gap = await idleOn(page);
    await pointAt(page, gap);
    await page.locator(".tooltip").getByText("the launch of the next work was not recorded").waitFor();
    await tracks(page).click({ position: gap.point });
    await page.waitForFunction(() => (globalThis as any).flopwatch.workspace.area !== undefined);
    expect(await area(page)).toEqual({ from: gap.begin, to: gap.end, rows: [gap.row] });
  }
  await served.bringToFront();
  await served.locator('section.analysis[data-analysis="idle"]').waitFor();
  await alone.bringToFront();
  await panel(alone).getByText(/\d events/).waitFor();
});
