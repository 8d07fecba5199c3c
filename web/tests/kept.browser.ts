/** What the browser keeps of captures: it spares reading and unpacking, and shows nothing that the server would not give. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page, Request, Route } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { compare } from "./pictures.mjs";
import { settled, type Stage, stage } from "./stage";

const SYNTHETIC = readFileSync(fileURLToPath(new URL("data/synthetic.h5", import.meta.url)));
const WINDOW = readFileSync(fileURLToPath(new URL("data/window.h5", import.meta.url)));
const PATH = "files/capture.h5";

let on: Stage;
/** What the server has, and how it answers. */
let file: { bytes: Buffer; tag: string; status: number };
const asked: string[] = [];

beforeAll(async () => {
  on = await stage();
  await on.context.route(`**/${PATH}`, serve);
});
afterAll(() => on.close());
afterEach(async () => {
  const page = on.context.pages()[0] ?? (await on.open(""));
  await forget(page);
  await Promise.all(on.context.pages().map((page) => page.close()));
});

async function serve(route: Route, request: Request): Promise<void> {
  const { bytes, tag, status } = file;
  asked.push(request.headers()["range"] ?? "");
  if (status !== 206) {
    return route.fulfill({ status });
  }
  const [from = 0, to = 0] = /bytes=(\d+)-(\d+)/.exec(request.headers()["range"] ?? "")?.slice(1).map(Number) ?? [];
  const end = Math.min(to, bytes.byteLength - 1);
  return route.fulfill({ status: 206, body: bytes.subarray(from, end + 1), headers: { ETag: `"${tag}"`, "Content-Range": `bytes ${from}-${end}/${bytes.byteLength}` } });
}

/** Opens the capture; how many chunks were unpacked for it. */
async function opened(): Promise<{ page: Page; unpacked: number }> {
  asked.length = 0;
  const page = await on.open(`?file=${PATH}#page=timeline`);
  await settled(page);
  return { page, unpacked: await page.evaluate(() => (globalThis as any).flopwatch.workspace.loaded.unpacked as number) };
}

const picture = async (page: Page) => page.screenshot({ clip: (await page.locator(".tracks").boundingBox())! });

/** What is known of the files of which something is kept. */
const entries = (page: Page): Promise<{ file: string; at: number; bytes: number; crates: number }[]> =>
  page.evaluate(async () => {
    const of = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = () => reject(request.error))));
    if ((await indexedDB.databases()).length === 0) {
      return [];
    }
    const database = await of(indexedDB.open("flopwatch"));
    const all = await of(database.transaction("index").objectStore("index").getAll());
    database.close();
    return all;
  });

/** Waits until something is kept of the file whose tag is `tag`. */
const keeps = (page: Page, tag: string) => expect.poll(async () => (await entries(page)).some(({ file }) => file.startsWith(`"${tag}"`)), { timeout: 60_000 }).toBe(true);

async function forget(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Keyboard help" }).click();
  await page.getByRole("button", { name: "Forget them" }).click();
  await page.getByText("Nothing of captures is kept").waitFor();
}

/** Opens the capture, which is `bytes`, and waits until it is kept. */
async function openedOnce(bytes = SYNTHETIC): Promise<{ page: Page; unpacked: number }> {
  file = { bytes, tag: "one", status: 206 };
  const first = await opened();
  expect(first.unpacked).toBeGreaterThan(20);
  await keeps(first.page, "one");
  return first;
}

test("a capture that is opened again is neither fetched nor unpacked again, and looks the same", async () => {
  const first = await openedOnce();
  const again = await opened();
  expect(again.unpacked).toBe(0);
  // The one request asks which version there is, and whether one may read it.
  expect(asked).toEqual(["bytes=0-196607"]);
  expect(await compare(again.page, await picture(first.page), await picture(again.page))).toBeLessThan(0.001);
  // What was not read before still comes, by its own request.
  await again.page.getByRole("button", { name: "Tables" }).click();
  await again.page.locator(".tables tbody tr").first().waitFor();
});

test("another file at the same address is read anew", async () => {
  const first = await openedOnce();
  file = { bytes: WINDOW, tag: "two", status: 206 };
  const other = await opened();
  expect(other.unpacked).toBeGreaterThan(0);
  const events = (page: Page) => page.evaluate(() => (globalThis as any).flopwatch.workspace.header.totalEvents as number);
  expect(await events(other.page)).not.toBe(await events(first.page));
  await keeps(other.page, "two");
  // Also one of the same tag and another length, as a careless server has it.
  file = { bytes: SYNTHETIC, tag: "two", status: 206 };
  const third = await opened();
  expect(await events(third.page)).toBe(await events(first.page));
});

test.each([401, 403, 404])("where the server answers %i, nothing of what is kept is shown", async (status) => {
  await openedOnce();
  file = { ...file, status };
  asked.length = 0;
  const page = await on.open(`?file=${PATH}#page=timeline`);
  await page.getByRole("alert").waitFor();
  expect(asked.length).toBe(1);
  expect(await page.evaluate(() => (globalThis as any).flopwatch === undefined)).toBe(true);
  expect(await page.locator("canvas").count()).toBe(0);
});

test("what is damaged in the browser's storage is read from the file again", async () => {
  const first = await openedOnce();
  const damaged = await first.page.evaluate(async () => {
    const of = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = () => reject(request.error))));
    const database = await of(indexedDB.open("flopwatch"));
    const parts = database.transaction("parts", "readwrite").objectStore("parts");
    const keys = (await of(parts.getAllKeys())).filter((key) => Array.isArray(key) && typeof key[1] === "number");
    for (const key of keys) {
      const crate = await of(parts.get(key));
      crate.bytes[crate.bytes.length >> 1] ^= 255;
      await of(parts.put(crate, key));
    }
    database.close();
    return keys.length;
  });
  expect(damaged).toBeGreaterThan(0);
  const again = await opened();
  expect(again.unpacked).toBe(first.unpacked);
  expect(await compare(again.page, await picture(first.page), await picture(again.page))).toBeLessThan(0.001);
  await keeps(again.page, "one");
  await expect.poll(async () => (await opened()).unpacked, { timeout: 60_000 }).toBe(0);
});

/** Whether the page's worker wanted the browser's storage, which a test has it refused. */
const isRefused = async (page: Page) => (await Promise.all(page.workers().map((worker) => worker.evaluate(() => (globalThis as any).refused === true)))).includes(true);

test.each([
  ["cannot be opened", 'Object.defineProperty(self, "indexedDB", { get: () => { self.refused = true; throw new DOMException("no", "SecurityError"); } });'],
  ["is full", 'IDBObjectStore.prototype.put = () => { self.refused = true; throw new DOMException("no", "QuotaExceededError"); };'],
])("where the browser's storage %s, a capture is shown all the same, and nothing is kept", async (_, refuse) => {
  file = { bytes: SYNTHETIC, tag: "one", status: 206 };
  const pattern = /\/worker-[^/]*\.js$/;
  await on.context.route(pattern, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: refuse + (await response.text()) });
  });
  try {
    const first = await opened();
    expect(first.unpacked).toBeGreaterThan(20);
    await expect.poll(() => isRefused(first.page), { timeout: 60_000 }).toBe(true);
    expect((await opened()).unpacked).toBe(first.unpacked);
    expect(await entries(first.page)).toEqual([]);
  } finally {
    await on.context.unroute(pattern);
  }
});

test("so much is kept and no more: the captures that were opened longest ago go, and those of a week ago", async () => {
  const page = await on.open("");
  // The viewer makes it.
  await page.waitForFunction(async () => (await indexedDB.databases()).length > 0);
  await page.evaluate(async () => {
    const of = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = () => reject(request.error))));
    const database = await of(indexedDB.open("flopwatch"));
    const both = database.transaction(["parts", "index"], "readwrite");
    const [MB, hour] = [1024 * 1024, 3600_000];
    for (const [file, hours, bytes] of [["oldest", 5, 100 * MB], ["older", 4, 200 * MB], ["newer", 3, 212 * MB - 1000], ["of a week ago", 24 * 8, 10]] as const) {
      both.objectStore("index").put({ file, at: Date.now() - hours * hour, bytes, crates: 1 });
      both.objectStore("parts").put({}, [file, 0]);
    }
    await new Promise((resolve) => (both.oncomplete = resolve));
    database.close();
  });
  await openedOnce();
  await expect.poll(async () => (await entries(page)).map(({ file }) => file), { timeout: 60_000 }).not.toContain("of a week ago");
  const left = await entries(page);
  expect(left.map(({ file }) => file).sort()).toEqual([expect.stringMatching(/^"one" \d+ http/), "newer", "older"]);
  expect(left.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(512 * 1024 * 1024);
  const parts = await page.evaluate(async () => {
    const of = <T>(request: IDBRequest<T>) => new Promise<T>((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await of(indexedDB.open("flopwatch"));
    const keys = await of(database.transaction("parts").objectStore("parts").getAllKeys());
    database.close();
    return keys.map((key) => (Array.isArray(key) ? key[0] : key));
  });
  expect(parts).not.toContain("oldest");
  expect(parts).not.toContain("of a week ago");
  expect(parts).toContain("newer");
});

test("what is forgotten in one window is not kept by another that has read it", async () => {
  file = { bytes: SYNTHETIC, tag: "one", status: 206 };
  const first = await opened();
  const other = await on.open("");
  await keeps(first.page, "one");
  await forget(other);
  expect(await entries(other)).toEqual([]);
  // It reads more, and would keep that.
  await first.page.getByRole("button", { name: "Tables" }).click();
  await first.page.locator(".tables tbody tr").first().waitFor();
  // Nothing outside of the worker tells that it will not keep that: it would, once nothing more
  // came for half a second (QUIET_MS).
  await first.page.waitForTimeout(1500);
  expect(await entries(other)).toEqual([]);
  expect((await opened()).unpacked).toBeGreaterThan(20);
});
