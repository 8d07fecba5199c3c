// Looks at analyses where a program serves a timeline and the viewer: `node tests/analyses.mjs URL [NAME...]`, all of one capture without names.
// Prints a line for each that is shown right: its page in the viewer has the figures of its document, and every whole number of a table is in its JSON;
// its HTML file, opened from a disk, has the same, asks for nothing, is sorted by keys, and fits the paper. A row leads into the timeline by keys alone.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { complaintsOf } from "./complaints.mjs";

const [url, ...names] = process.argv.slice(2);
/** Widths of A4 between Chromium's margins, upright and across, in pixels. */
const [UPRIGHT, ACROSS] = [718, 1047];
/** Rows of a table that are compared. */
const ROWS = 200;

const folder = mkdtempSync(join(tmpdir(), "flopwatch-analyses-"));
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
});

const same = (what, seen, expected) => {
  if (JSON.stringify(seen) !== JSON.stringify(expected)) {
    throw new Error(`${what}: ${JSON.stringify(seen)?.slice(0, 600)} where ${JSON.stringify(expected)?.slice(0, 600)} was expected`);
  }
};

/** Every number of a result, and the lengths of what has a start and an end. */
const numbers = (value, into = new Set()) => {
  if (typeof value === "number") {
    into.add(value);
  } else if (value !== null && typeof value === "object") {
    Object.values(value).forEach((inner) => numbers(inner, into));
    into.add(value.end_ns - value.start_ns);
  }
  return into;
};

const fetched = async (address) => {
  for (;;) {
    const response = await fetch(address);
    if (response.status !== 503) {
      return response.ok ? response : Promise.reject(new Error(`${address}: ${response.status} ${await response.text()}`));
    }
    await new Promise((wake) => setTimeout(wake, 500));
  }
};

/** What a document says: tiles and rows, as the page's titles have them. */
const saidBy = ({ page: { blocks } }, printable) => {
  const cell = (value) => (value === null ? "not known" : printable(String(value)));
  return {
    tiles: blocks.filter(({ kind }) => kind === "tiles").flatMap(({ tiles }) => tiles.map(({ value }) => (value === null ? "" : cell(value)))),
    tables: blocks.filter(({ kind, rows }) => kind === "table" && rows.length > 0).map(({ rows }) => rows.slice(0, ROWS).map(({ cells }) => cells.map(cell))),
  };
};
const printable = (text) => text.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]/gu, "\ufffd");

async function inViewer(page, name, document) {
  await page.getByRole("navigation", { name: "Analyses" }).locator(`button[data-analysis="${name}"]`).press("Enter");
  await page.waitForFunction((name) => document.querySelector(`section.analysis[data-analysis="${name}"][aria-busy="false"]`) !== null, name);
  const alert = await page.locator(".analysis [role=alert]").allInnerTexts();
  same("complaints", alert, []);
  const seen = await page.evaluate((rows) => ({
    tiles: [...document.querySelectorAll(".analysis .tiles dd:not(.faint)")].map(({ title }) => title),
    tables: [...document.querySelectorAll(".analysis .block tbody")].map((body) => [...body.rows].slice(0, rows).map((row) => [...row.cells].map(({ title }) => title))),
  }), ROWS);
  same("the viewer's page", seen, saidBy(document, printable));
}

async function onDisk(name, html, document) {
  const file = join(folder, `${name}.html`);
  writeFileSync(file, html);
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const [requests, complaints] = [[], []];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`file://${file}`);
  const counts = await page.evaluate(() => [...document.querySelectorAll("main tbody")].map(({ rows }) => rows.length));
  const tables = document.page.blocks.filter(({ kind, rows }) => kind === "table" && rows.length > 0);
  same("its tables", counts.length, tables.length);
  counts.forEach((count, at) => count < tables[at].rows.length && count < 1000 && same("its rows", count, tables[at].rows.length));
  const shown = await page.locator("main .tiles dd:not(.small)").evaluateAll((all) => all.map(({ title }) => title));
  const numeric = document.page.blocks.flatMap(({ kind, tiles }) => (kind === "tiles" ? tiles.map(({ value }) => (typeof value === "number" ? value : undefined)) : []));
  numeric.forEach((value, at) => value !== undefined && same("a key figure", Number(shown[at]), value));
  // One of a table that is folded is not seen.
  const head = page.locator("main thead button:visible").first();
  if ((await head.count()) > 0) {
    await head.press("Enter");
    const order = await head.locator("..").getAttribute("aria-sort");
    await head.press("Enter");
    const turned = await head.locator("..").getAttribute("aria-sort");
    same("orders", [order, turned].sort(), ["ascending", "descending"]);
  }
  await page.emulateMedia({ media: "print" });
  const wider = async (width, which) => {
    await page.setViewportSize({ width, height: 900 });
    return page.evaluate(
      ({ which, width }) => [...document.querySelectorAll(which)].filter(({ scrollWidth }) => scrollWidth > width + 1).map((section) => `${section.querySelector("h2")?.textContent}: ${section.scrollWidth} of ${width}`),
      { which, width },
    );
  };
  const cut = [...(await wider(UPRIGHT, "main > section:not(.wide)")), ...(await wider(ACROSS, "main > section.wide"))];
  same("what does not fit the paper", cut, []);
  same("requests", requests, [`file://${file}`]);
  same("complaints", complaints, []);
  await page.close();
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
  page.setDefaultTimeout(120_000);
  const complaints = complaintsOf(page);
  await page.goto(`${url}#page=analyses`);
  const nav = page.getByRole("navigation", { name: "Analyses" });
  await nav.waitFor();
  const all = await nav.locator("button[data-analysis]").evaluateAll((buttons) => buttons.map((button) => button.dataset.analysis));
  const file = await page.evaluate(() => globalThis.flopwatch?.workspace.url ?? new URL(new URLSearchParams(location.search).get("file"), location.href).href);
  const base = file.replace(/artifacts\/[^/]+$/, "analyses/");
  let led = false;
  const failures = [];
  for (const name of names.length > 0 ? names : all) {
    try {
      const probe = await fetch(`${base}${name}`);
      if (probe.status === 400) {
        console.log(`${name}: not of one capture`);
        continue;
      }
      const json = await (await fetched(`${base}${name}`)).text();
      const response = await fetch(`${base}${name}?format=page`);
      if (!response.ok) {
        console.log(`${name}: no page`);
        continue;
      }
      const document = await response.json();
      const known = numbers(JSON.parse(json));
      const cells = document.page.blocks.flatMap(({ kind, rows }) => (kind === "table" ? rows.flatMap(({ cells }) => cells) : []));
      const whole = cells.filter(Number.isInteger);
      const missing = whole.filter((value) => !known.has(value));
      await inViewer(page, name, document);
      await onDisk(name, await (await fetched(`${base}${name}?format=html`)).text(), document);
      const place = document.page.blocks.flatMap(({ kind, rows }) => (kind === "table" ? rows : [])).find(({ place }) => place?.input === 0)?.place;
      if (place && !led) {
        led = true;
        await page.locator('.analysis button.link[title="Show in the timeline"]:visible').first().press("Enter");
        await page.waitForFunction(() => globalThis.flopwatch?.workspace.area !== undefined && globalThis.flopwatch.controller.isSettled());
        const { from, to } = await page.evaluate(() => globalThis.flopwatch.workspace.area);
        same("the place", [from, to], [place.start_ns, Math.max(place.end_ns, place.start_ns + 1)]);
        await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name: "Analyses" }).press("Enter");
        await nav.waitFor();
      }
      same("whole numbers that are not in the JSON", missing, []);
      console.log(`${name}: ${cells.length} cells`);
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  if (complaints.length + failures.length > 0) {
    throw new Error([...failures, ...complaints].join("\n"));
  }
  if (!led) {
    console.log("no row has a place");
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
