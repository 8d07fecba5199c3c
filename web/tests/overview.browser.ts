/** The overview as the landing page, and the catalogue of analyses. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Advice, CUT, type PageDocument } from "../src/generated/catalogue";
import { answer, QUERY } from "./agent";
import { ADVICE, RESULTS } from "./results";
import { settled, type Stage, stage, told } from "./stage";

const DOCUMENT = JSON.parse(readFileSync(fileURLToPath(new URL("data/page.json", import.meta.url)), "utf8")) as PageDocument;
/** The same with its table folded. */
const FOLDED: PageDocument = { ...DOCUMENT, page: { ...DOCUMENT.page, blocks: DOCUMENT.page.blocks.map((block) => (block.kind === "table" ? { ...block, folded: true } : block)) } };

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

/** Opens the capture as an agent serves it, with these results. */
async function open(hash: string, advice: Advice = ADVICE): Promise<Page> {
  const page = await on.context.newPage();
  await answer(page, { ...RESULTS, advice }, (name) => (name === "advice" ? FOLDED : DOCUMENT));
  await page.goto(on.base + QUERY + hash);
  return page;
}

const region = (page: Page, heading: string) => page.locator(".overview section", { has: page.getByRole("heading", { name: heading, exact: true }) });

test("an address without a page leads to the overview: what it is, steps, time, findings, and last what was not checked", async () => {
  const page = await open("");
  await page.getByText("Title of one").waitFor();
  const headings = await page.locator(".overview h2").allInnerTexts();
  expect(headings.slice(0, 4)).toEqual(["Capture", "How long a step takes", "Where the GPUs' time goes", "What is worth mending"]);
  expect(headings.at(-1)).toBe("What is not here");
  expect(await region(page, "Capture").innerText()).toMatch(/file\s+c\s/);
  expect(await region(page, "How long a step takes").innerText()).toMatch(/^How long a step takes\s+2 ms is the median of 3 steps, 95 of 100 take at most 3 ms, the longest took 3 ms/);
  expect(await page.locator("rect.step").count()).toBe(4);
  const shares = await region(page, "Where the GPUs' time goes").locator(".part .number").allInnerTexts();
  expect(shares).toEqual(["50 %, 500 µs", "20 %, 200 µs", "5 %, 50 µs", "25 %, 250 µs"]);
  const findings = await page.locator(".findings li").allInnerTexts();
  expect(findings.length).toBe(3);
  expect(findings[0]).toMatch(/Title of one worth up to 400 µs \(10 %\), high severity, medium confidence\s+Sentence of one\.\s+Do this first: First action of one/);
  const unchecked = page.getByText("GPU memory headroom");
  expect(await unchecked.isVisible()).toBe(false);
  await page.locator("summary", { hasText: /^Not checked \(/ }).click();
  expect(await unchecked.locator("..").innerText()).toBe("GPU memory headroom: not checked: profile with profile_memory=True");
});

test("a finding leads to its place, one without a place to the advice, a row of a table to its event", async () => {
  const page = await open("");
  await page.getByRole("button", { name: "Title of one" }).click();
  await settled(page);
  expect(await page.evaluate(() => (globalThis as any).flopwatch.workspace.area)).toMatchObject({ from: 100_000, to: 120_000, rows: [0] });
  await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name: "Overview" }).click();
  await page.getByRole("button", { name: "Title of two" }).click();
  await page.locator('section.analysis[data-analysis="advice"]').waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name: "Overview" }).click();
  const row = region(page, "Kernels").locator(".bar button").first();
  const name = await row.innerText();
  await row.click();
  await page.locator(".panel").waitFor();
  expect(await page.locator(".panel h2 .name").innerText()).toBe(name);
});

test("a jump to a gap of a few pixels zooms until it fills an eighth of the view, and can be read", async () => {
  const page = await open("");
  await page.getByRole("button", { name: "Title of one" }).click();
  await settled(page);
  const { from, to } = await told(page);
  expect(20_000 / (to - from)).toBeCloseTo(1 / 8, 2);
  const { width } = (await page.locator("canvas.overlay").boundingBox())!;
  expect((20_000 / (to - from)) * width).toBeGreaterThan(100);
});

test("where nothing was found, one reads so and what was not checked", async () => {
  const page = await open("", { ...ADVICE, findings: [] });
  await page.getByText("Nothing that was checked is worth mending.").waitFor();
  await page.getByRole("button", { name: "What was checked, and a topic that was not" }).waitFor();
  expect(await page.locator(".findings").count()).toBe(0);
});

test("without a program that serves the file one reads what does, and the tables are there all the same", async () => {
  const page = await on.open("?file=files/synthetic.h5");
  await page.getByText("nothing is analyzed here").waitFor();
  expect(await page.locator(".overview h2").allInnerTexts()).not.toContain("How long a step takes");
  expect(await region(page, "Kernels").locator(".bar").count()).toBe(8);
});

test.each([
  [1024, "dark"],
  [1024, "light"],
  [1440, "dark"],
  [1440, "light"],
])("%i pixels wide, %s, nothing of the overview and of the catalogue is cut off", async (width, theme) => {
  const page = await open("");
  await page.setViewportSize({ width, height: 800 });
  await page.evaluate((theme) => (document.documentElement.dataset["theme"] = theme), theme);
  await page.getByText("Title of three").waitFor();
  const overflowing = () =>
    page.evaluate(() => [...document.querySelectorAll<HTMLElement>(".overview, .overview section, nav.choices, nav.choices button")].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1).map(({ outerHTML }) => outerHTML.slice(0, 120)));
  expect(await overflowing()).toEqual([]);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name: "Analyses" }).click();
  await page.locator("nav.choices button").first().waitFor();
  expect(await overflowing()).toEqual([]);
});

test("that a file was cut is said on every page, before everything else", async () => {
  const page = await open("#page=timeline");
  await settled(page);
  const drop = (what: string) =>
    page.evaluate((what) => {
      const { workspace } = (globalThis as any).flopwatch;
      workspace.header.drops.push({ reason: "truncated", what, count: 1 });
      workspace.say(what);
    }, what);
  // Ranges that were open at the end are told in the header alone.
  await drop("NVTX_EVENTS: not ended");
  await page.locator(".facts .warn").waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  await drop(CUT[0]);
  for (const name of ["Overview", "Tables", "Analyses", "Timeline"]) {
    await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name }).click();
    await page.locator(".cut").waitFor();
    expect(await page.getByRole("alert").first().innerText()).toMatch(/^This file ends before its end\./);
  }
});

test("a table that is folded is closed until it is opened, and says how many rows it has", async () => {
  const page = await open("#page=analyses&analysis=advice");
  const summary = page.locator(".analysis summary");
  await summary.waitFor();
  expect(await summary.innerText()).toBe("Kernels (14)");
  const row = page.locator(".analysis tbody tr").first();
  expect(await row.isVisible()).toBe(false);
  await summary.press("Enter");
  await row.waitFor();
});

test("the catalogue begins with advice, is searched from the key /, and says what the capture cannot have", async () => {
  const page = await open("#page=analyses");
  const list = page.getByRole("navigation", { name: "Analyses" });
  await list.locator("button").first().waitFor();
  await page.locator('section.analysis[data-analysis="advice"]').waitFor();
  expect(await list.locator("h2").first().innerText()).toBe("What is slow, why, what to do?");
  expect(await list.locator('button[data-analysis="roofline"]').innerText()).toMatch(/^Roofline\s+needs launches that Nsight Compute measured$/);
  expect(await list.locator('button[data-analysis="gpu-time"]').innerText()).toBe("GPU time");
  await list.locator("button").first().focus();
  await page.keyboard.press("/");
  const search = page.getByRole("searchbox", { name: "Search analyses" });
  expect(await search.evaluate((input) => input === document.activeElement)).toBe(true);
  await page.keyboard.type("queue");
  await page.waitForFunction(() => document.querySelectorAll("nav.choices button").length < 10);
  await page.keyboard.press("Enter");
  await page.locator('section.analysis[data-analysis="queue-length"]').waitFor();
  await page.waitForFunction(() => location.hash.includes("analysis=queue-length"));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll("nav.choices button").length > 50);
});
