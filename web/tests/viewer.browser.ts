import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { compare } from "./pictures.mjs";
import { differs, settled, type Stage, stage, told } from "./stage";

/** Pictures may differ in so many pixels: texts are drawn by the fonts of the machine. */
const TOLERANCE = 0.02;

const FILE = fileURLToPath(new URL("data/synthetic.h5", import.meta.url));

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

const open = async (hash = ""): Promise<Page> => {
  const page = await on.open(`?file=files/synthetic.h5${hash}`);
  await settled(page);
  return page;
};

const tracks = (page: Page) => page.locator("canvas.overlay");
const panel = (page: Page) => page.locator(".panel");

test("a capture is shown as it was, in at most two draws", async () => {
  const page = await open();
  expect(await differs(page, "whole")).toBeLessThan(TOLERANCE);
  expect((await told(page)).draws).toBeLessThanOrEqual(2);
  expect(await page.locator(".label .text").allTextContents()).toContain("stream 7");
});

test("a click on a kernel shows its name, grid and duration, which are those of the table", async () => {
  const page = await on.open("?file=files/synthetic.h5#page=tables");
  await page.getByRole("searchbox", { name: "Filter rows of the table" }).fill("<17,");
  const row = page.locator(".tables tbody tr").first();
  const name = await row.locator("button.link").innerText();
  const longest = await row.locator("td").nth(6).innerText();
  const calls = Number(await row.locator("td").nth(2).innerText());
  await row.locator("button.link").click();
  await settled(page);
  await panel(page).waitFor();
  const selected = await page.evaluate(() => (globalThis as any).flopwatch.workspace.selected.start as number);
  const seen = await told(page);
  expect(seen.from).toBeLessThan(selected);
  expect(seen.to).toBeGreaterThan(selected);
  expect(seen.to - seen.from).toBeLessThan(1_000_000);
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Fit", exact: true }).click();
  await page.getByRole("searchbox", { name: /Search names/ }).fill(name);
  await page.waitForFunction((calls) => document.querySelector("search .count")?.textContent === String(calls), calls);
  await page.keyboard.press("Enter");
  await panel(page).waitFor();
  // Its own text alone would show what the search chose; so let go of it, and click where it is seen.
  await tracks(page).focus();
  await page.keyboard.press("f");
  await settled(page);
  const y = await page.evaluate(() => {
    const { controller, workspace } = (globalThis as any).flopwatch;
    const line = controller.lineOf(workspace.selected.row);
    return controller.topOf(line) + (workspace.selected.lane + 0.5) * line.laneHeight;
  });
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "detached" });
  await settled(page);
  const box = (await tracks(page).boundingBox())!;
  await tracks(page).click({ position: { x: box.width / 2, y } });
  await panel(page).waitFor();
  const text = await panel(page).innerText();
  expect(text).toContain(name);
  expect(text).toMatch(/grid\s+\d+ × \d+ × \d+/);
  const shown = /duration\s+([\d.]+ \S+)/.exec(text)?.[1];
  expect([shown, longest].every((duration) => duration?.endsWith("µs"))).toBe(true);
  expect(Number(shown?.split(" ")[0])).toBeLessThanOrEqual(Number(longest.split(" ")[0]));
});

test("with keys alone one searches, walks over hits, follows, marks, folds and comes back", async () => {
  const page = await open();
  await page.keyboard.press("/");
  await page.keyboard.type("forward");
  await page.waitForFunction(() => Number(document.querySelector("search .count")?.textContent?.replaceAll(" ", "")) > 0);
  await page.keyboard.press("Enter");
  await panel(page).waitFor();
  const first = await panel(page).innerText();
  await page.keyboard.press("Enter");
  await page.waitForFunction((first) => document.querySelector<HTMLElement>(".panel")?.innerText !== first, first);
  expect(await page.getByRole("status").innerText()).toContain("forward");
  await page.keyboard.press("Shift+Enter");
  await page.waitForFunction((first) => document.querySelector<HTMLElement>(".panel")?.innerText === first, first);
  // Away from the text field, keys are commands.
  await tracks(page).focus();
  const before = await told(page);
  await page.keyboard.down("w");
  await page.waitForFunction((span) => {
    const { viewport } = (globalThis as any).flopwatch.controller;
    return viewport.to - viewport.from < span * 0.9;
  }, before.to - before.from);
  await page.keyboard.up("w");
  await page.keyboard.press("m");
  await page.keyboard.press("t");
  await page.getByRole("button", { name: "Times: seconds" }).waitFor();
  const rows = await page.locator(".label").count();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("c");
  await page.waitForFunction((rows) => document.querySelectorAll(".label").length < rows, rows);
  await page.keyboard.press("c");
  await page.waitForFunction((rows) => document.querySelectorAll(".label").length === rows, rows);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard help" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("0");
  await settled(page);
});

test.each(["timeline", "overview", "tables"])("by Tab one reaches every control of the page %s, and each has a name", async (name) => {
  const page = await on.open(`?file=files/synthetic.h5#page=${name}`);
  await page.locator({ timeline: ".label", overview: ".bar", tables: "tbody tr" }[name] ?? "main").first().waitFor();
  const controls = `button, input, select, summary, a[href], [tabindex="0"]`;
  const most = await page.locator(controls).count();
  const names: string[] = [];
  for (let tabs = 0; tabs < most + 5; tabs += 1) {
    await page.keyboard.press("Tab");
    const named = await page.evaluate(() => {
      const control = document.activeElement as HTMLElement;
      if (control === document.body || control.dataset["reached"]) {
        return undefined;
      }
      control.dataset["reached"] = "yes";
      const label = control instanceof HTMLInputElement || control instanceof HTMLSelectElement ? control.labels?.[0]?.textContent : undefined;
      return (control.ariaLabel ?? label ?? control.textContent).trim();
    });
    if (named !== undefined) {
      names.push(named);
    }
  }
  expect(names.filter((name) => name === "")).toEqual([]);
  const missed = await page.evaluate((controls) => {
    const all = [...document.querySelectorAll<HTMLInputElement>(controls)];
    const reachable = all.filter((control) => control.checkVisibility() && !control.disabled && control.tabIndex >= 0 && !control.dataset["reached"]);
    return reachable.map((control) => control.outerHTML.slice(0, 120));
  }, controls);
  expect(missed).toEqual([]);
});

test("arrow keys walk from event to event of a lane, there and back", async () => {
  const page = await open("#sel=cuda_memcpy_h2d:3");
  await panel(page).waitFor();
  await tracks(page).focus();
  await page.keyboard.press("f");
  await settled(page);
  const selected = () => page.evaluate(() => (globalThis as any).flopwatch.workspace.selected as { start: number; category: number; index: number });
  const walk = async (key: string) => {
    const from = await selected();
    await page.keyboard.press(key);
    await page.waitForFunction((start) => (globalThis as any).flopwatch.workspace.selected.start !== start, from.start);
    await settled(page);
    return selected();
  };
  const start = await selected();
  const next = await walk("ArrowRight");
  expect(next.start).toBeGreaterThan(start.start);
  const back = await walk("ArrowLeft");
  expect([back.category, back.index]).toEqual([start.category, start.index]);
});

test("an area has the figures of its events", async () => {
  const page = await open();
  const box = (await tracks(page).boundingBox())!;
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 2, box.y + 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + 250, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await panel(page).getByText("7 000 events").waitFor();
  expect(await panel(page).locator("tbody tr").count()).toBeGreaterThan(100);
});

test("a category is hidden and shown again, and the earlier viewer's colours can be had", async () => {
  const page = await open();
  await settled(page);
  const clip = (await page.locator(".tracks").boundingBox())!;
  const picture = () => page.screenshot({ clip });
  const whole = await picture();
  const kernels = page.locator(".legend").getByRole("button", { name: "kernel" });
  await kernels.click();
  await page.waitForFunction(() => location.hash.includes("hide=cuda_kernel"));
  await settled(page);
  const without = await picture();
  expect(await compare(page, whole, without)).toBeGreaterThan(0.001);
  expect(await kernels.getAttribute("aria-pressed")).toBe("false");
  await kernels.click();
  await page.waitForFunction(() => !location.hash.includes("hide="));
  await settled(page);
  expect(await compare(page, whole, await picture())).toBeLessThan(0.001);
  await page.getByRole("combobox").selectOption("classic");
  await page.waitForFunction(() => location.hash.includes("color=classic"));
  await settled(page);
  expect(await compare(page, whole, await picture())).toBeGreaterThan(0.001);
});

test("a link shows what was seen: time, selection, search, colours", async () => {
  const page = await open();
  await page.getByRole("searchbox", { name: /Search names/ }).fill("layer 8");
  await page.waitForFunction(() => document.querySelector("search .count") !== null);
  await page.keyboard.press("Enter");
  await panel(page).waitFor();
  await page.getByRole("combobox").selectOption("name");
  await settled(page);
  await page.waitForFunction(() => location.hash.includes("sel=nvtx_range") && location.hash.includes("color=name"));
  const [seen, text] = [await told(page), await panel(page).innerText()];
  await page.reload();
  await settled(page);
  await panel(page).waitFor();
  const again = await told(page);
  expect(Math.abs(again.from - seen.from)).toBeLessThanOrEqual(1);
  expect(Math.abs(again.to - seen.to)).toBeLessThanOrEqual(1);
  expect(await panel(page).innerText()).toBe(text);
  expect(await page.getByRole("searchbox", { name: /Search names/ }).inputValue()).toBe("layer 8");
});

test("the picture comes back when the graphics were lost", async () => {
  const page = await open();
  const clip = (await page.locator(".tracks").boundingBox())!;
  await page.mouse.move(5, 5);
  const before = await page.screenshot({ clip });
  await page.evaluate(async () => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.gl")!;
    const lose = canvas.getContext("webgl2")!.getExtension("WEBGL_lose_context")!;
    const lost = new Promise((done) => canvas.addEventListener("webglcontextlost", done, { once: true }));
    lose.loseContext();
    await lost;
    const restored = new Promise((done) => canvas.addEventListener("webglcontextrestored", done, { once: true }));
    // Not in the same turn: the browser refuses that.
    setTimeout(() => lose.restoreContext());
    await restored;
  });
  await settled(page);
  expect(await compare(page, before, await page.screenshot({ clip }))).toBeLessThan(0.001);
});

/** Drops a file onto the page, as a file manager does. */
async function drop(page: Page, path: string, name = "dropped.h5"): Promise<void> {
  const dropped = { name, base64: readFileSync(path).toString("base64") };
  const transfer = await page.evaluateHandle(({ name, base64 }) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name));
    return transfer;
  }, dropped);
  for (const type of ["dragenter", "dragover", "drop"]) {
    await page.locator("main").dispatchEvent(type, { dataTransfer: transfer });
  }
}

test("a capture that is opened again comes out of the browser's own storage", async () => {
  let requests = 0;
  const count = (request: Request) => (requests += new URL(request.url()).pathname.endsWith("/synthetic.h5") ? 1 : 0);
  on.context.on("request", count);
  const opened = async () => {
    requests = 0;
    await open();
    return requests;
  };
  // The one that is left asks which version there is, and whether one may read it. What was read is kept soon after it is shown.
  await expect.poll(opened, { timeout: 60_000 }).toBe(1);
  on.context.off("request", count);
});

test("the demo is inside the viewer", async () => {
  const page = await on.open("");
  await page.getByRole("link", { name: "Show the demo" }).click();
  await settled(page);
  expect(await page.locator(".facts").innerText()).toMatch(/7\s000 events/);
});

test("a file that is dropped is shown without any network", async () => {
  const page = await open();
  const served = await page.screenshot({ clip: (await page.locator(".tracks").boundingBox())! });
  await page.goto(on.base);
  await page.getByText("No capture is open").waitFor();
  await on.context.setOffline(true);
  try {
    // The worker's script is read before; only the file is not.
    await drop(page, FILE);
    await settled(page);
    const clip = (await page.locator(".tracks").boundingBox())!;
    expect(await compare(page, served, await page.screenshot({ clip }))).toBeLessThan(0.001);
  } finally {
    await on.context.setOffline(false);
  }
});

test("a file that is dropped beside another is seen whole, and the address names neither", async () => {
  const page = await open("#t=0-50000");
  await page.goto(`${on.base}?file=files/synthetic.h5#t=1000-50000`);
  await settled(page);
  await drop(page, FILE);
  await page.waitForFunction(() => (globalThis as any).flopwatch.workspace.status.what === "dropped.h5");
  await settled(page);
  const { from, to } = await told(page);
  expect(to - from).toBeGreaterThan(70_000_000);
  await page.waitForFunction(() => !location.search.includes("synthetic"));
});

test("a capture that is no timeline is not converted by just any server, and one reads what helps", async () => {
  const page = await open();
  await drop(page, fileURLToPath(new URL("data/plain.py", import.meta.url)));
  const alert = page.getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toMatch(/no HDF5 file.*flopwatch convert.*flopwatch serve/s);
});

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
  const page = await on.open("");
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

test("while a file loads one reads how much of it is there, in percent", async () => {
  // A server that knows no ranges, and sends a file in four parts.
  const part = Buffer.alloc(1_000_000);
  const server = createServer((request, response) => {
    response.writeHead(200, { "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*", "Content-Length": request.method === "OPTIONS" ? 0 : 4 * part.length });
    const send = (left: number) => {
      response.write(part);
      if (left > 1) {
        setTimeout(() => send(left - 1), 500);
      } else {
        response.end();
      }
    };
    if (request.method === "OPTIONS") {
      response.end();
    } else {
      send(4);
    }
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    const { port } = server.address() as AddressInfo;
    const page = await on.context.newPage();
    await page.addInitScript(() => {
      const said = new Set<string>();
      Object.assign(globalThis, { said });
      new MutationObserver(() => {
        const words = document.querySelector(".opening [role=status]")?.textContent;
        if (words) {
          said.add(`${words}; bar: ${document.querySelector<HTMLProgressElement>(".opening progress")?.value}`);
        }
      }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    });
    await page.goto(`${on.base}?file=${encodeURIComponent(`http://127.0.0.1:${port}/slow.h5`)}`);
    await page.getByRole("alert").waitFor();
    const said = await page.evaluate(() => [...(globalThis as any).said] as string[]);
    const shares = said.filter((words) => !words.startsWith("0 %") && !words.startsWith("100 %")).map((words) => Number(/^(\d+) %/.exec(words)?.[1]));
    expect(shares.length, said.join("\n")).toBeGreaterThanOrEqual(2);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(said.join("\n")).toMatch(/bar: 0\.\d/);
  } finally {
    server.close();
  }
});

test("the timeline is printed with its events, dark on white", async () => {
  const page = await open();
  await page.getByRole("button", { name: "Use dark colours" }).click();
  await settled(page);
  const painted = () =>
    page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>("canvas.overlay")!;
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 3; at < data.length; at += 4) {
        count += data[at]! > 80 ? 1 : 0;
      }
      return count / (data.length / 4);
    });
  const before = await painted();
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  expect(await painted()).toBeGreaterThan(before + 0.05);
  await page.emulateMedia({ media: "print" });
  expect(await page.evaluate(() => getComputedStyle(document.querySelector(".app")!).backgroundColor)).toBe("rgb(255, 255, 255)");
  await page.emulateMedia({ media: null });
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await settled(page);
  expect(await painted()).toBeLessThan(before + 0.01);
  await page.getByRole("button", { name: "Use light colours" }).click();
});

test.each([
  ["files/none.h5", "retention"],
  ["files/structures.h5", "it has no /meta"],
  ["files/structures.py", "this is no HDF5 file"],
])("for %s one reads what is wrong", async (file, words) => {
  const page = await on.open(`?file=${file}`);
  const alert = page.getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toContain(words);
});

test("a file of bare columns, in an old layout, is shown by HDF5's own library", async () => {
  const page = await on.open("?file=files/plain.h5");
  await settled(page);
  expect(await page.locator(".label.row .text").allTextContents()).toEqual(["stream 7", "stream 8", "nvtx range: NVTX"]);
  await page.getByRole("searchbox", { name: /Search names/ }).fill("backward");
  await page.waitForFunction(() => document.querySelector("search .count")?.textContent === "1");
  await page.keyboard.press("Enter");
  await panel(page).waitFor();
  expect(await panel(page).innerText()).toMatch(/duration\s+400 µs/);
});

test("Perfetto is given the trace in a window of its own, once the server has made it", async () => {
  // Perfetto's page is on the network, and its server's conversion a test of its own: both answer as they are documented to.
  await on.context.route("https://ui.perfetto.dev/**", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<script>
        addEventListener("message", ({ data, source, origin }) => {
          if (data === "PING") source.postMessage("PONG", origin);
          if (data.perfetto) document.title = data.perfetto.title + ", bytes: " + data.perfetto.buffer.byteLength;
        });
      </script>`,
    }),
  );
  let asked = 0;
  await on.context.route("**/artifacts/timeline.pftrace", (route) => {
    asked += 1;
    const making = { status: 503, headers: { "Retry-After": "1" }, contentType: "application/problem+json", body: '{"reason":"Converting","detail":"it is being made"}' };
    return route.fulfill(asked === 1 ? making : asked === 2 ? { body: "trace" } : { status: 502, contentType: "application/problem+json", body: '{"reason":"ConversionFailed","detail":"the child was ended"}' });
  });
  const page = await on.open("?file=files/artifacts/synthetic.h5");
  await settled(page);
  const button = page.getByRole("button", { name: "Open in Perfetto" });
  const [perfetto] = await Promise.all([on.context.waitForEvent("page"), button.click()]);
  await perfetto.waitForFunction(() => document.title.endsWith(", bytes: 5"));
  expect(asked).toBe(2);
  expect(await perfetto.title()).toContain("Flopwatch");
  await button.click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  expect(await alert.innerText()).toContain("the child was ended");
  await on.context.unrouteAll();
});

test("rows are pinned, filtered and folded", async () => {
  const page = await open();
  const row = page.locator(".label.row").filter({ hasText: "stream 10" });
  await row.hover();
  await row.getByRole("button").last().click();
  await page.locator(".pinned .label").filter({ hasText: "stream 10" }).waitFor();
  await page.getByRole("searchbox", { name: "Filter rows" }).fill("nvtx");
  await page.waitForFunction(() => document.querySelectorAll(".scrolling .label.row").length === 1);
});

test("light and dark are kept for the next time", async () => {
  const page = await open();
  await page.getByRole("button", { name: "Use dark colours" }).click();
  await page.reload();
  await settled(page);
  expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  expect(await differs(page, "dark")).toBeLessThan(TOLERANCE);
  await page.getByRole("button", { name: "Use light colours" }).click();
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
