import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { drop, settled, type Stage, stage, told } from "./stage";

const FILE = fileURLToPath(new URL("data/synthetic.h5", import.meta.url));

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

const panel = (page: Page) => page.locator(".panel");

const PROFILE = fileURLToPath(new URL("data/operations.json", import.meta.url));
const DASHBOARD = fileURLToPath(new URL("data/operations.page.json", import.meta.url));

/** Has a program like `flopwatch serve` answer to a profile with what the analysis makes of it; what it was asked for. */
const dashboards = async (page: Page): Promise<string[]> => {
  const asked: string[] = [];
  await page.route("**/v1/dropped*", (route) => {
    const request = route.request();
    if (request.method() === "GET") {
      return route.fulfill({ json: { most_bytes: 1 << 30 } });
    }
    asked.push(`${new URL(request.url()).search} ${request.postDataBuffer()?.equals(readFileSync(PROFILE))}`);
    return route.fulfill({ contentType: "application/vnd.flopwatch.page+json", body: readFileSync(DASHBOARD) });
  });
  return asked;
};

test("a profile of operations that is dropped or chosen is shown as its dashboard, with the profile's own figures", async () => {
  const page = await on.open("#page=timeline");
  await page.getByText("No capture is open").waitFor();
  const asked = await dashboards(page);
  await drop(page, PROFILE, "run.json");
  await page.getByRole("heading", { name: "Operations: run.json" }).waitFor();
  const { entries } = JSON.parse(readFileSync(PROFILE, "utf8")) as { entries: { operation: string; duration_ms: number }[] };
  const names = [...new Set(entries.map(({ operation }) => operation))];
  const total = entries.reduce((sum, { duration_ms }) => sum + duration_ms, 0);
  const tiles = await page.locator(".tiles dd").allInnerTexts();
  expect(tiles).toEqual([String(entries.length), String(names.length), `${total.toFixed(2)} ms`, `${(total / entries.length).toFixed(2)} ms`]);
  const all = await cellsOf(page, 'section[aria-label="All operations"] tbody tr');
  const sums = names.map((name) => {
    const own = entries.filter(({ operation }) => operation === name);
    return { name, calls: own.length, total: own.reduce((sum, { duration_ms }) => sum + duration_ms, 0) };
  });
  const expected = [...sums].sort((a, b) => b.total - a.total).map(({ name, calls, total }) => [name, String(calls), `${total.toFixed(2)} ms`]);
  expect(all.map((cells) => cells.slice(0, 3))).toEqual(expected);
  expect(await page.locator("svg.chart").count()).toBeGreaterThanOrEqual(5);
  expect(await page.getByRole("region", { name: "Bottlenecks" }).locator("tbody tr").count()).toBe(5);
  // Its files are made of the file that was dropped.
  const [kept] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "HTML" }).click()]);
  expect(kept.suggestedFilename()).toBe("operations.html");
  expect(asked).toEqual(["?name=run.json true", "?name=run.json&format=html true"]);
  await page.emulateMedia({ media: "print" });
  expect(await page.locator(".downloads").isVisible()).toBe(false);
  const { inner, outer } = await page.evaluate(() => {
    const main = document.querySelector<HTMLElement>(".analysis")!;
    return { inner: main.scrollHeight, outer: main.clientHeight };
  });
  expect(inner).toBeLessThanOrEqual(outer + 1);
  await page.emulateMedia({ media: null });
  // A timeline that is chosen next takes its place.
  await page.locator('input[aria-label="Open a file"]').setInputFiles(FILE);
  await settled(page);
  expect(await page.locator(".dashboard").count()).toBe(0);
  await page.locator('input[aria-label="Open a file"]').setInputFiles(PROFILE);
  await page.getByRole("heading", { name: "Operations: operations.json" }).waitFor();
});

test("where no program makes the dashboard of a profile, one reads what does; the demo's is inside the viewer", async () => {
  const page = await on.open("");
  await drop(page, PROFILE, "run.json");
  const alert = page.getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toMatch(/profile of operations.*flopwatch analyze operations/s);
  await page.goto(on.base);
  await page.getByRole("button", { name: "the dashboard of a made-up profile" }).press("Enter");
  await page.getByRole("heading", { name: "Operations: demo" }).waitFor();
  expect(await page.locator(".downloads").count()).toBe(0);
});


const DOCUMENT = fileURLToPath(new URL("data/page.json", import.meta.url));
const HTML = fileURLToPath(new URL("data/page.html", import.meta.url));

/** Has an agent's answers come from the kept page, for whichever analysis. */
const analysed = async (page: Page): Promise<string[]> => {
  const asked: string[] = [];
  await page.route("**/v1/namespaces/local/captures/c/**", async (route) => {
    const url = new URL(route.request().url());
    if (url.pathname.includes("/analyses/")) {
      asked.push(url.pathname.replace(/^.*\//, "") + url.search);
      const body = url.searchParams.get("format") === "html" ? HTML : DOCUMENT;
      return route.fulfill({ contentType: body === HTML ? "text/html" : "application/json", body: readFileSync(body) });
    }
    const file = readFileSync(FILE);
    const range = /^bytes=(\d+)-(\d*)$/.exec(route.request().headers()["range"] ?? "");
    const headers = { "Accept-Ranges": "bytes", ETag: '"1"' };
    if (!range) {
      return route.fulfill({ headers, body: file });
    }
    const [start, end] = [Number(range[1]), Math.min(file.length - 1, range[2] ? Number(range[2]) : file.length - 1)];
    return route.fulfill({ status: 206, headers: { ...headers, "Content-Range": `bytes ${start}-${end}/${file.length}` }, body: file.subarray(start, end + 1) });
  });
  return asked;
};

const analyses = async (hash: string): Promise<{ page: Page; asked: string[] }> => {
  const page = await on.context.newPage();
  const asked = await analysed(page);
  await page.goto(`${on.base}?file=%2Fv1%2Fnamespaces%2Flocal%2Fcaptures%2Fc%2Fartifacts%2Ftimeline.h5#page=analyses${hash}`);
  return { page, asked };
};

/** The cells of a table, as they are seen. */
const cellsOf = (page: Page, rows: string) => page.locator(rows).evaluateAll((rows) => rows.map((row) => [...(row as HTMLTableRowElement).cells].map((cell) => cell.innerText.trim())));

test("an analysis is shown with the figures of its JSON, and its HTML file has the same", async () => {
  const { page, asked } = await analyses("&analysis=kernels-per-stream");
  const said = JSON.parse(readFileSync(DOCUMENT, "utf8")) as { page: { blocks: { kind: string; rows: { cells: (string | number | null)[] }[] }[] } };
  const table = said.page.blocks.find(({ kind }) => kind === "table")!;
  await page.getByRole("heading", { name: "Sample" }).waitFor();
  expect(asked).toEqual(["kernels-per-stream?format=page"]);
  const shown = await cellsOf(page, ".analysis tbody tr");
  expect(shown.map((cells) => cells[2])).toEqual(table.rows.map(({ cells }) => String(cells[2])));
  expect(shown[0]).toEqual(["gemm", "900.00 µs", "3", "4.10 kB"]);
  expect(shown[1]?.[0]).toBe("</script><img src=x onerror=alert(1)>\ufffd");
  expect(await page.locator(".tiles dd").allInnerTexts()).toEqual(["2.50 ms", "40.0 %", "not known"]);
  // What is missing stands before everything else.
  expect((await page.locator(".analysis aside, .analysis dl").first().innerText()).startsWith("Not captured")).toBe(true);
  expect(await page.locator("svg.chart rect").count()).toBe(6);
  const file = await on.context.newPage();
  await file.goto(`file://${HTML}`);
  const kept = (await cellsOf(file, "main tbody tr")).map((cells) => cells.slice(0, 4));
  expect(kept).toEqual(shown);
  expect(await file.locator("dl.tiles dd").allInnerTexts()).toEqual(["2.50 ms", "40.0 %", "not known"]);
});

test("rows are sorted and filtered, lead to the timeline, and the page is kept as a file", async () => {
  const { page, asked } = await analyses("&analysis=kernels-per-stream");
  const names = async () => (await cellsOf(page, ".analysis tbody tr")).map(([name]) => name);
  await page.getByRole("button", { name: "Calls", exact: true }).press("Enter");
  expect((await names())[0]).toContain("onerror");
  expect(await page.locator('th[aria-sort="descending"]').innerText()).toBe("Calls");
  await page.getByRole("searchbox", { name: "Filter rows of Kernels" }).fill("GEMM");
  expect(await names()).toEqual(["gemm"]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "HTML" }).click()]);
  expect(download.suggestedFilename()).toBe("kernels-per-stream.html");
  expect(asked.at(-1)).toBe("kernels-per-stream?format=html");
  await page.getByRole("button", { name: "gemm" }).press("Enter");
  await settled(page);
  const seen = await told(page);
  expect(seen.from).toBeLessThan(100_000);
  expect(seen.to).toBeGreaterThan(120_000);
  const area = await page.evaluate(() => (globalThis as any).flopwatch.workspace.area as { from: number; to: number; rows: number[] });
  expect(area).toMatchObject({ from: 100_000, to: 120_000, rows: [0] });
});

test("an analysis of two captures asks for the second, with the parameters that were given", async () => {
  const { page, asked } = await analyses("&analysis=kernel-changes");
  await page.getByText("Name the capture to compare with.").waitFor();
  expect(asked).toEqual([]);
  await page.getByLabel("with", { exact: true }).fill("local/d/u-1");
  await page.getByLabel("limit").fill("7");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sample" }).waitFor();
  expect(asked).toEqual(["kernel-changes?limit=7&with=local%2Fd%2Fu-1&format=page"]);
});

test("by Tab one reaches every control of an analysis, and paper shows it whole", async () => {
  const { page } = await analyses("&analysis=kernels-per-stream");
  await page.getByRole("heading", { name: "Sample" }).waitFor();
  await page.locator("nav.choices button").first().focus();
  const controls = await page.locator(".analysis button, .analysis input").count();
  const reached = new Set<string>();
  for (let tabs = 0; tabs < 200 && reached.size < controls; tabs += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const control = document.activeElement as HTMLElement;
      return control.closest(".analysis") ? (control.ariaLabel ?? control.textContent) : undefined;
    });
    if (name !== undefined) {
      expect(name).not.toBe("");
      reached.add(name);
    }
  }
  expect(reached.size).toBe(controls);
  await page.emulateMedia({ media: "print" });
  const { inner, outer } = await page.evaluate(() => {
    const main = document.querySelector<HTMLElement>(".analysis")!;
    return { inner: main.scrollHeight, outer: main.clientHeight };
  });
  expect(inner).toBeLessThanOrEqual(outer + 1);
  expect(await page.locator("nav.choices").isVisible()).toBe(false);
  expect(await page.locator(".downloads").isVisible()).toBe(false);
});

test("an area leads to an analysis of its time, and Back to the area", async () => {
  const page = await on.context.newPage();
  const asked = await analysed(page);
  await page.goto(`${on.base}?file=v1/namespaces/local/captures/c/artifacts/timeline.h5#page=timeline&area=1000-5000:0-1`);
  await settled(page);
  await panel(page).getByRole("button", { name: "GPU time" }).click();
  await page.locator(".analysis").waitFor();
  await expect.poll(() => asked.at(-1)).toMatch(/^gpu-time\?from_ns=1000&to_ns=5000&format=page/);
  expect(await page.getByRole("spinbutton", { name: "from ns" }).inputValue()).toBe("1000");
  await page.waitForFunction(() => location.hash.includes("p.from_ns=1000"));
  await page.goBack();
  await settled(page);
  await panel(page).getByText(/\d events/).waitFor();
  expect(await page.evaluate(() => (globalThis as any).flopwatch.workspace.area)).toMatchObject({ from: 1000, to: 5000 });
});

test("the HTML file asks for nothing, runs nothing foreign, sorts by keys, and prints", async () => {
  const page = await on.context.newPage();
  const [requests, complaints]: [string[], string[]] = [[], []];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("dialog", (dialog) => complaints.push(dialog.message()));
  await page.goto(`file://${HTML}`);
  expect(await page.title()).toBe("Sample · Flopwatch");
  const names = async () => (await cellsOf(page, "main tbody tr")).map(([name]) => name);
  expect((await names())[0]).toBe("gemm");
  await page.getByRole("button", { name: "Calls" }).press("Enter");
  expect((await names())[0]).toContain("onerror");
  await page.getByRole("button", { name: "Calls" }).press("Enter");
  expect((await names()).at(-1)).toContain("onerror");
  // What is not known comes last, both ways.
  for (const _ of [0, 1]) {
    await page.getByRole("button", { name: "Size" }).press("Enter");
    expect((await names()).at(-1)).toContain("onerror");
  }
  const colours = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await colours()).toBe("rgb(18, 21, 27)");
  await page.emulateMedia({ colorScheme: "dark", media: "print" });
  expect(await colours()).toBe("rgb(255, 255, 255)");
  expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000);
  expect(requests).toEqual([`file://${HTML}`]);
  expect(complaints).toEqual([]);
});
