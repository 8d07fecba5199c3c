import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { panel, placeOf, tracks } from "./places";
import { settled, type Stage, stage, told } from "./stage";

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

const open = async (hash = "", file = "synthetic.h5"): Promise<Page> => {
  const page = await on.open(`?file=files/${file}#page=timeline${hash}`);
  await settled(page);
  return page;
};

const selected = (page: Page) => page.evaluate(() => (globalThis as any).flopwatch.workspace.selected as { category: number; index: number; start: number; duration: number } | undefined);

test("a double-click zooms to what was clicked, whatever was selected before", async () => {
  const page = await open("&sel=cuda_memcpy_h2d:3");
  await panel(page).waitFor();
  const position = await placeOf(page, "cuda_kernel", 100);
  await tracks(page).dblclick({ position });
  await page.waitForFunction(() => (globalThis as any).flopwatch.workspace.selected?.index === 100);
  await settled(page);
  const event = (await selected(page))!;
  const { from, to } = await told(page);
  // In the middle third.
  expect((event.start - from) / (to - from)).toBeCloseTo(1 / 3, 1);
  expect(event.duration / (to - from)).toBeCloseTo(1 / 3, 1);
});

test("a double-click on nothing moves nothing", async () => {
  const page = await open("&sel=cuda_memcpy_h2d:3");
  await panel(page).waitFor();
  const before = await told(page);
  await tracks(page).dblclick({ position: { x: 300, y: 5 } });
  await settled(page);
  expect(await told(page)).toMatchObject({ from: before.from, to: before.to });
});

test("the strip of all events shows where there are many", async () => {
  const page = await open();
  await page.waitForFunction(() => (globalThis as any).flopwatch.workspace.density !== undefined);
  const shares = await page.evaluate(() => [...(globalThis as any).flopwatch.workspace.density.shares] as number[]);
  expect(Math.max(...shares)).toBe(1);
  expect(shares.filter((share) => share > 0).length).toBeGreaterThan(100);
});

test("a drag moves or selects, as one set it, now and the next time", async () => {
  const page = await open();
  await page.keyboard.press("w", { delay: 800 });
  await settled(page);
  const area = () => page.evaluate(() => (globalThis as any).flopwatch.workspace.area as { from: number } | undefined);
  const drag = async () => {
    const box = (await tracks(page).boundingBox())!;
    await page.mouse.move(box.x + 400, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 90, { steps: 4 });
    await page.mouse.up();
    await settled(page);
  };
  const before = await told(page);
  await drag();
  const moved = await told(page);
  expect(moved.from).toBeLessThan(before.from);
  expect(await area()).toBeUndefined();
  await page.getByRole("button", { name: "Drag: move" }).click();
  await drag();
  await panel(page).getByText(/\d events/).waitFor();
  expect(await told(page)).toMatchObject({ from: moved.from, to: moved.to });
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "detached" });
  await page.keyboard.down("Shift");
  await drag();
  await page.keyboard.up("Shift");
  expect(await area()).toBeUndefined();
  expect((await told(page)).from).toBeLessThan(moved.from);
  await page.reload();
  await settled(page);
  await page.getByRole("button", { name: "Drag: select" }).click();
});

test("a flow is followed at the scale that one has, there and back", async () => {
  const page = await open("&sel=cuda_kernel:100", "launches.h5");
  await panel(page).getByText("launched by").waitFor();
  await tracks(page).focus();
  await page.keyboard.press("f");
  await settled(page);
  const [kernel, before] = [(await selected(page))!, await told(page)];
  await page.keyboard.press("[");
  await page.waitForFunction((category) => (globalThis as any).flopwatch.workspace.selected.category !== category, kernel.category);
  await settled(page);
  const [call, there] = [(await selected(page))!, await told(page)];
  expect(there.to - there.from).toBeCloseTo(before.to - before.from, 3);
  expect(there.from).toBeLessThanOrEqual(call.start);
  expect(there.to).toBeGreaterThanOrEqual(call.start + call.duration);
  await panel(page).getByText("launched", { exact: true }).waitFor();
  await page.keyboard.press("]");
  await page.waitForFunction((category) => (globalThis as any).flopwatch.workspace.selected.category === category, kernel.category);
  expect((await selected(page))!.index).toBe(kernel.index);
  await settled(page);
  const back = await told(page);
  expect(back.to - back.from).toBeCloseTo(before.to - before.from, 3);
});

test("an operator's details lead to its kernels, and a kernel's to what it happened in", async () => {
  const page = await open("", "launches.h5");
  await page.getByRole("searchbox", { name: /Search names/ }).fill("aten::linear");
  await page.waitForFunction(() => document.querySelector("search .count")?.textContent === "100");
  await page.keyboard.press("Enter");
  await panel(page).getByText("2 launched, 72 µs in all").waitFor();
  const field = (name: string) => panel(page).locator(".fields > div", { has: page.getByText(name, { exact: true }) });
  expect(await field("in Python").getByRole("button").allInnerTexts()).toEqual(["train.py(7): step", "model.py(10): forward"]);
  expect(await field("launched").getByRole("button").allInnerTexts()).toEqual(["gemm<float, 128>", "add<float, Broadcast<float>>"]);
  await tracks(page).focus();
  await page.keyboard.press("]");
  await panel(page).locator("h2 .name").getByText("gemm<float, 128>").waitFor();
  await field("in operator").first().waitFor();
  expect(await field("in operator").getByRole("button").allInnerTexts()).toEqual(["aten::linear", "aten::addmm"]);
  await field("in step").getByRole("button").click();
  await panel(page).locator("h2 .name").getByText("ProfilerStep#0").waitFor();
  await panel(page).getByText("10 launched, 410 µs in all").waitFor();
});

test("counters are below their device, folded, and say what their height stands for", async () => {
  const page = await open("", "launches.h5");
  const labels = page.locator(".label .text");
  expect(await labels.allTextContents()).toEqual(["python (4711)", "GPU 0 · NVIDIA A100-SXM4-40GB", "stream 7", "counters (kineto)", "thread 4711", "annotations", "Python", "operators", "CUDA API"]);
  await page.locator(".label").filter({ hasText: "counters (kineto)" }).click();
  await labels.filter({ hasText: "memory_allocated (bytes)" }).waitFor();
  await settled(page);
  const peaks = await page.evaluate(() => (globalThis as any).flopwatch.controller.picker.view.peaks as number[]);
  expect(peaks).toEqual([6 * 2 ** 26 + 1, 2 ** 30]);
});
