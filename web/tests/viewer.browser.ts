import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { compare } from "./pictures.mjs";
import { detailsOf, differs, drop, settled, type Stage, stage, told } from "./stage";

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

const open = async (hash = "#page=timeline"): Promise<Page> => {
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
  const name = await row.locator("td.name button.link").innerText();
  const longest = await row.locator("td").nth(6).innerText();
  const calls = Number(await row.locator("td").nth(2).innerText());
  await row.locator("td.name button.link").click();
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

test("Min and Max of a table lead to those very launches, and a row to the first one", async () => {
  const page = await on.open("?file=files/synthetic.h5#page=tables");
  const row = page.locator(".tables tbody tr").nth(3);
  const name = await row.locator("td.name button").getAttribute("title");
  const figures = await Promise.all([5, 6].map(async (column) => Number(await row.locator("td").nth(column).getAttribute("title"))));
  const selected = () => page.evaluate(() => (globalThis as any).flopwatch?.workspace.selected as { text: string; duration: number } | undefined);
  for (const [at, expected] of figures.entries()) {
    await row.locator("td").nth(5 + at).getByRole("button").click();
    await settled(page);
    await panel(page).waitFor();
    expect(await selected()).toMatchObject({ text: name, duration: expected });
    await page.goBack();
    await row.waitFor();
  }
  await row.locator("td").first().click();
  await settled(page);
  await panel(page).waitFor();
  expect((await selected())?.text).toBe(name);
});

test("names are short in tables and details until full ones are asked for, now and the next time", async () => {
  const page = await on.open("?file=files/synthetic.h5#page=tables");
  const name = page.locator(".tables td.name button.link").filter({ hasText: "vectorized_elementwise_kernel" }).first();
  const short = await name.innerText();
  const full = await name.getAttribute("title");
  expect(short).toMatch(/^vectorized_elementwise_kernel<\d+, FillFunctor<float>>$/);
  expect(full).toMatch(/^void at::native::/);
  await page.getByRole("checkbox", { name: "full names" }).check();
  expect(await name.innerText()).toBe(full);
  await page.reload();
  expect(await name.innerText()).toBe(full);
  await name.click();
  await panel(page).waitFor();
  expect(await panel(page).locator("h2 .name").innerText()).toBe(full);
  await panel(page).getByRole("checkbox", { name: "full names" }).uncheck();
  expect(await panel(page).locator("h2 .name").innerText()).toBe(short);
});

test("with keys alone one searches, walks over hits, follows, marks, folds and comes back", async () => {
  const page = await open();
  await page.keyboard.press("/");
  await page.keyboard.type("forward");
  await page.waitForFunction(() => Number(document.querySelector("search .count")?.textContent?.replaceAll(" ", "")) > 0);
  await page.keyboard.press("Enter");
  await panel(page).waitFor();
  const first = await detailsOf(page);
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

test("the first Tab offers to skip the header, and leads to the timeline", async () => {
  const page = await open();
  await page.keyboard.press("Tab");
  const skip = page.getByRole("button", { name: "Skip to the page" });
  expect(await skip.evaluate((button) => button === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  expect(await tracks(page).evaluate((canvas) => canvas === document.activeElement)).toBe(true);
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
  const longest = panel(page).locator("tbody tr").first().getByRole("button").last();
  const figure = await longest.innerText();
  await longest.click();
  await panel(page).getByText("duration").first().waitFor();
  expect(await panel(page).innerText()).toContain(figure);
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
  const [seen, text] = [await told(page), await detailsOf(page)];
  await page.reload();
  await settled(page);
  await panel(page).waitFor();
  const again = await told(page);
  expect(Math.abs(again.from - seen.from)).toBeLessThanOrEqual(1);
  expect(Math.abs(again.to - seen.to)).toBeLessThanOrEqual(1);
  expect(await detailsOf(page)).toBe(text);
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
  // An address that names no page leads to the overview.
  await page.locator(".overview").waitFor();
  expect(await page.locator(".facts").innerText()).toMatch(/7\s000 events/);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name: "Timeline" }).click();
  await settled(page);
});

test("a file that is dropped is shown without any network", async () => {
  const page = await open();
  const served = await page.screenshot({ clip: (await page.locator(".tracks").boundingBox())! });
  await page.goto(`${on.base}#page=timeline`);
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
  await page.waitForFunction(() => {
    const { kind, what } = (globalThis as any).flopwatch.workspace.status;
    return kind === "open" && what === "dropped.h5";
  });
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

test("what is open stays as it was when another file cannot be shown", async () => {
  const page = await open("#page=timeline&sel=cuda_memcpy_h2d:3");
  await panel(page).waitFor();
  await page.keyboard.press("m");
  await page.waitForFunction(() => location.hash.includes("marks="));
  const [seen, text, address, title] = [await told(page), await detailsOf(page), page.url(), await page.title()];
  await drop(page, fileURLToPath(new URL("data/plain.py", import.meta.url)), "broken.h5");
  await page.getByRole("alert").getByText("broken.h5 cannot be shown").waitFor();
  await settled(page);
  await panel(page).waitFor();
  expect(await detailsOf(page)).toBe(text);
  expect(await told(page)).toMatchObject({ from: seen.from, to: seen.to });
  await page.waitForFunction((address) => location.href === address, address);
  expect(await page.title()).toBe(title);
  // It is still read, too.
  await page.getByRole("searchbox", { name: /Search names/ }).fill("layer 8");
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => document.querySelector<HTMLElement>(".panel")?.innerText !== text, text);
});

test("a pattern that is none is told, and nothing is dimmed by it", async () => {
  const page = await open();
  const search = page.getByRole("searchbox", { name: /Search names/ });
  await search.fill("/layer [0-9/");
  await page.getByRole("alert").getByText(/layer \[0-9/).waitFor();
  expect(await page.evaluate(() => (globalThis as any).flopwatch.workspace.hits)).toBeUndefined();
  await search.fill("/layer [0-9]/");
  await page.waitForFunction(() => Number(document.querySelector("search .count")?.textContent) > 0);
  expect(await page.getByRole("alert").count()).toBe(0);
});

test("Enter closes the help, and deletes nothing of what is kept", async () => {
  const page = await open();
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard help" });
  await help.waitFor();
  await page.waitForFunction(() => document.activeElement?.textContent?.trim() === "Close");
  await page.keyboard.press("Enter");
  await help.waitFor({ state: "detached" });
});

test.each([1024, 1440])("at %i pixels the header shows name, length and what is missing", async (width) => {
  const page = await open();
  await page.setViewportSize({ width, height: 700 });
  await page.evaluate(() => {
    const { workspace } = (globalThis as any).flopwatch;
    workspace.header = { ...workspace.header, sessionId: "a session of a long name", drops: [{ reason: "Truncated", what: "kernels", count: 12345 }] };
    workspace.say("");
  });
  const facts = page.locator(".facts");
  for (const part of [facts.locator(".file-name"), facts.locator(".length"), facts.locator(".warn")]) {
    const box = (await part.boundingBox())!;
    expect(box.width).toBeGreaterThan(30);
    expect(box.x + box.width).toBeLessThanOrEqual(width);
    // Nothing of what is beside it lies over it.
    expect(await part.evaluate((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return [left + 2, right - 2].every((x) => element.contains(document.elementFromPoint(x, (top + bottom) / 2)));
    })).toBe(true);
  }
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
  await page.getByRole("button", { name: "Use dark colors" }).click();
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
  await page.getByRole("button", { name: "Use light colors" }).click();
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
  const page = await on.open("?file=files/plain.h5#page=timeline");
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
  const page = await on.open("?file=files/artifacts/synthetic.h5#page=timeline");
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
  await page.getByRole("button", { name: "Use dark colors" }).click();
  await page.reload();
  await settled(page);
  expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  expect(await differs(page, "dark")).toBeLessThan(TOLERANCE);
  await page.getByRole("button", { name: "Use light colors" }).click();
});
