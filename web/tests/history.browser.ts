import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { detailsOf, settled, type Stage, stage, told } from "./stage";

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

const open = async (hash = ""): Promise<Page> => {
  const page = await on.open(`?file=files/synthetic.h5#page=timeline${hash}`);
  await settled(page);
  return page;
};

const tracks = (page: Page) => page.locator("canvas.overlay");
const panel = (page: Page) => page.locator(".panel");
const pages = (page: Page, name: string) => page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name });

/** Draws an area over the first rows. */
const drawArea = async (page: Page): Promise<void> => {
  const box = (await tracks(page).boundingBox())!;
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 200, box.y + 2);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 120, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await panel(page).getByText(/\d events/).waitFor();
};

test("Back and Forward lead over pages and jumps, each with the view that was left", async () => {
  const page = await open();
  await page.keyboard.press("w");
  await page.waitForFunction(() => /t=\d/.test(location.hash));
  await settled(page);
  const first = await told(page);
  await pages(page, "Tables").click();
  await page.locator(".tables .choices").getByRole("button", { name: "NVTX ranges" }).click();
  await page.locator(".tables td.name button.link").first().click();
  await settled(page);
  await panel(page).waitFor();
  await page.waitForFunction(() => location.hash.includes("sel="));
  const jumped = await detailsOf(page);
  await page.goBack();
  await page.getByRole("region", { name: "NVTX ranges" }).locator("tbody tr").first().waitFor();
  await page.goBack();
  await settled(page);
  await panel(page).waitFor({ state: "detached" });
  const back = await told(page);
  expect(Math.abs(back.from - first.from)).toBeLessThanOrEqual(1);
  expect(Math.abs(back.to - first.to)).toBeLessThanOrEqual(1);
  await page.goForward();
  await page.locator(".tables tbody tr").first().waitFor();
  await page.goForward();
  await settled(page);
  await panel(page).waitFor();
  expect(await detailsOf(page)).toBe(jumped);
});

test("moving and zooming leave no entries behind", async () => {
  const page = await open();
  const before = await page.evaluate(() => history.length);
  for (const key of ["w", "d", "w", "s"]) {
    await page.keyboard.press(key, { delay: 300 });
  }
  await page.waitForFunction(() => /t=\d/.test(location.hash));
  expect(await page.evaluate(() => history.length)).toBe(before);
});

test("a link holds the area, marks, pinned rows and the filter of rows", async () => {
  const page = await open();
  await drawArea(page);
  await page.keyboard.press("m");
  const row = page.locator(".label.row").filter({ hasText: "stream 10" });
  await row.hover();
  await row.getByRole("button").last().click();
  await page.getByRole("searchbox", { name: "Filter rows" }).fill("stream");
  await page.waitForFunction(() => ["area=", "marks=", "pin=", "filter="].every((part) => location.hash.includes(part)));
  const state = () =>
    page.evaluate(() => {
      const { area, marks, arrangement } = (globalThis as any).flopwatch.workspace;
      return { from: Math.round(area.from), to: Math.round(area.to), rows: area.rows, marks: marks.length, pinned: arrangement.pinned, filter: arrangement.filter };
    });
  const [chosen, text] = [await state(), await panel(page).locator("tbody").innerText()];
  await page.reload();
  await settled(page);
  await panel(page).getByText(/\d events/).waitFor();
  expect(await state()).toEqual(chosen);
  expect(await panel(page).locator("tbody").innerText()).toBe(text);
});

test("a link is copied as it is in the address bar, and one to this machine is said to be one", async () => {
  await on.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await open("&sel=cuda_memcpy_h2d:3");
  await panel(page).waitFor();
  const button = page.getByRole("button", { name: "Copy link" });
  expect(await button.getAttribute("title")).toContain("this machine only");
  await button.click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(page.url());
  expect(copied).toContain("sel=cuda_memcpy_h2d");
});

test("a link that is pasted over the address changes what is seen, without another opening", async () => {
  const page = await open();
  await page.evaluate(() => {
    location.hash = "page=timeline&t=1000-5000&color=name&marks=2000-3000";
  });
  await page.waitForFunction(() => (globalThis as any).flopwatch.workspace.coloring === "name");
  await settled(page);
  const { from, to } = await told(page);
  expect([Math.round(from), Math.round(to)]).toEqual([1000, 5000]);
  expect(await page.evaluate(() => (globalThis as any).flopwatch.workspace.marks)).toEqual([{ from: 2000, to: 3000 }]);
});
