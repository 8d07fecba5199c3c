import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { differs, settled, type Stage, stage, told } from "./stage";

/** Pictures may differ in so many pixels: texts are drawn by the fonts of the machine. */
const TOLERANCE = 0.02;

const path = (name: string) => fileURLToPath(new URL(`data/${name}`, import.meta.url));
const WINDOW = path("window.h5");
const PRELUDE = path("prelude.h5");

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
  await on.context.unrouteAll();
});

const panel = (page: Page) => page.locator(".panel");
const before = (page: Page) => page.getByRole("button", { name: "15.33 s before" });

/** Opens both files with the Open dialog. */
const opened = async (): Promise<Page> => {
  const page = await on.open("#page=timeline");
  await page.getByLabel("Open a file").setInputFiles([PRELUDE, WINDOW]);
  await before(page).waitFor();
  await settled(page);
  return page;
};

/** Has an agent answer that serves a capture, whose list of artifacts names `listed`. */
const agent = async (listed: readonly string[], prelude: Buffer, listing: () => Promise<unknown>): Promise<string> => {
  const artifacts = "/v1/namespaces/team/captures/train/artifacts";
  const at = (path: string) => (url: URL) => url.pathname === path;
  await on.context.route(at(artifacts), async (route) => {
    await listing();
    await route.fulfill({ json: { artifacts: listed.map((name) => ({ name })) } });
  });
  await on.context.route(at(`${artifacts}/timeline.h5`), (route) => route.fulfill({ path: WINDOW, headers: { ETag: '"w"' } }));
  await on.context.route(at(`${artifacts}/prelude.h5`), (route) => route.fulfill({ body: prelude, headers: { ETag: `"${prelude.length}"` } }));
  return `?file=${artifacts}/timeline.h5`;
};

test("files that are given together are seen on one axis, with the seam between them", async () => {
  const page = await opened();
  const alone = await told(page);
  expect(alone.from).toBeGreaterThan(-100_000_000);
  await page.keyboard.press("0");
  await settled(page);
  expect((await told(page)).from).toBeLessThan(-15_000_000_000);
  expect(await page.locator(".label .text").allTextContents()).toEqual(["sh (7721)", "thread worker-0 (7769): NVTX", "thread worker-1 (7770): NVTX"]);
  expect(await differs(page, "prelude")).toBeLessThan(TOLERANCE);
  await page.getByRole("button", { name: "Use dark colors" }).click();
  await settled(page);
  expect(await differs(page, "prelude-dark")).toBeLessThan(TOLERANCE);
  await page.keyboard.press("0");
  await settled(page);
  expect((await told(page)).from).toBeCloseTo(0, -9);
});

test("a range of before the window is found, selected and said to be one, and its link leads to it", async () => {
  const address = await agent(["timeline.h5", "prelude.h5"], readFileSync(PRELUDE), async () => {});
  const page = await on.open(`${address}#page=timeline`);
  await before(page).click();
  await settled(page);
  await page.getByRole("searchbox", { name: /Search names/ }).fill("optimizer");
  await page.waitForFunction(() => Number(document.querySelector("search .count")?.textContent?.replaceAll(" ", "")) > 1000);
  await page.keyboard.press("Enter");
  await panel(page).waitFor();
  expect(await panel(page).innerText()).toMatch(/recorded\s+before the window \(Flopwatch recorder\)/);
  expect(await panel(page).innerText()).toMatch(/start\s+-15\.\d/);
  expect(await page.locator(".announcer").innerText()).toMatch(/^optimizer, .*, before the window$/);
  await page.waitForFunction(() => /sel=prelude\.nvtx_range/.test(location.hash) && /t=-1\d{10}--?\d/.test(location.hash));
  const [seen, text] = [await told(page), await panel(page).innerText()];
  await page.reload();
  await panel(page).waitFor();
  await settled(page);
  const again = await told(page);
  expect(Math.abs(again.from - seen.from)).toBeLessThanOrEqual(1);
  expect(await panel(page).innerText()).toBe(text);
});

test("the first picture does not wait for what was before the window", async () => {
  let listing = () => {};
  const listed = new Promise<void>((resolve) => (listing = resolve));
  const page = await on.open(`${await agent(["timeline.h5", "prelude.h5"], readFileSync(PRELUDE), () => listed)}#page=timeline`);
  await settled(page);
  expect(await page.evaluate(() => performance.getEntriesByName("flopwatch-first-paint").length)).toBe(1);
  expect(await before(page).count()).toBe(0);
  listing();
  await before(page).waitFor();
});

test("a prelude that cannot be read is told, and the window is shown all the same", async () => {
  const page = await on.open(`${await agent(["timeline.h5", "prelude.h5"], readFileSync(PRELUDE).subarray(0, 40_000), async () => {})}#page=timeline`);
  const alert = page.getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toMatch(/What was before the window cannot be shown: .*(damaged|truncated)/);
  await settled(page);
  expect(await page.locator(".facts").innerText()).toMatch(/1\s205 events/);
  expect((await told(page)).instances).toBeGreaterThan(100);
});

test("a prelude of which a part cannot be read is taken away again", async () => {
  const page = await opened();
  await page.evaluate(async () => {
    const { workspace } = (globalThis as any).flopwatch;
    await workspace.notDrawn(new Error("a part is damaged"));
  });
  expect(await page.getByRole("alert").innerText()).toContain("What was before the window is no longer shown: a part is damaged");
  await settled(page);
  expect(await before(page).count()).toBe(0);
  expect((await told(page)).from).toBeGreaterThan(-100_000_000);
});

test("what the ring no longer held is listed as of before the window, and the figures stay those of the window", async () => {
  const page = await on.open(`${await agent(["timeline.h5", "prelude.h5"], readFileSync(PRELUDE), async () => {})}#page=overview`);
  const lost = page.locator("section", { has: page.getByRole("heading", { name: "What is not here" }) });
  await lost.getByRole("heading", { name: "Before the window" }).waitFor();
  expect(await lost.innerText()).toMatch(/1\s140 × NVTX events that the ring no longer holds/);
  expect(await page.locator(".overview").innerText()).toMatch(/events\s+1\s205/);
  expect(await page.locator(".bar", { hasText: "step" }).first().innerText()).toContain("301 ×");
});

test("an agent whose list names no prelude is asked for none", async () => {
  let asked = false;
  const address = await agent(["timeline.h5"], readFileSync(PRELUDE), async () => {});
  on.context.on("request", (request) => (asked ||= request.url().endsWith("/prelude.h5")));
  const page = await on.open(`${address}#page=timeline`);
  await settled(page);
  await page.waitForLoadState("networkidle");
  expect(asked).toBe(false);
  expect(await page.getByRole("alert").count()).toBe(0);
});
