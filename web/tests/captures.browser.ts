import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Stage, stage } from "./stage";

const FILE = fileURLToPath(new URL("data/synthetic.h5", import.meta.url));
const DOCUMENT = fileURLToPath(new URL("data/page.json", import.meta.url));

/** A capture as the list of `flopwatch serve` has it. */
const held = (file: string, dropped = false) => {
  const name = file.replaceAll("_", "-");
  return { file, capture: `local/${name}/${name}`, path: `/v1/namespaces/local/captures/${name}/artifacts/timeline.h5`, events: 7000, dropped };
};

const BEFORE = held("hta_control.json.gz");
const AFTER = held("hta_test.json.gz");

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
  await on.context.unrouteAll();
});

/** Answers as the program that holds `captures`; what analyses are asked for is in the result. */
const serving = async (captures: { path: string }[]): Promise<string[]> => {
  const asked: string[] = [];
  await on.context.route("**/v1/captures", (route) => route.fulfill({ json: { captures } }));
  // A page names its file in its query.
  const isOfCapture = ({ pathname }: URL) => pathname.startsWith("/v1/namespaces/local/captures/");
  await on.context.route(isOfCapture, (route) => {
    const url = new URL(route.request().url());
    if (url.pathname.includes("/analyses/") && url.searchParams.get("format") !== "page") {
      // What the overview asks for.
      return route.fulfill({ status: 404, contentType: "application/problem+json", body: '{"reason":"NotFound","detail":"it has no analyses"}' });
    }
    if (url.pathname.includes("/analyses/")) {
      asked.push(url.pathname.replace(/^.*\//, "") + url.search);
      return route.fulfill({ contentType: "application/json", body: readFileSync(DOCUMENT) });
    }
    return url.pathname.endsWith(".h5") ? route.fulfill({ path: FILE, headers: { ETag: '"1"' } }) : route.fulfill({ json: { artifacts: [] } });
  });
  return asked;
};

const header = (page: Page) => page.locator("header");

test("several captures are listed by their files, and each opens under its name", async () => {
  await serving([BEFORE, AFTER]);
  const page = await on.open("");
  await page.getByRole("heading", { name: "Captures" }).waitFor();
  const listed = await page.locator(".captures li").allInnerTexts();
  expect(listed).toEqual([BEFORE, AFTER].map(({ file }) => expect.stringMatching(new RegExp(`^${file} 7\\s000 events$`))));
  await page.getByRole("link", { name: AFTER.file }).click();
  await page.locator(".overview").waitFor();
  expect(await header(page).locator(".file-name").innerText()).toBe(AFTER.file);
  expect(await page.title()).toBe("hta_test – Overview – Flopwatch");
  await page.getByRole("button", { name: "Tables" }).click();
  await page.waitForFunction(() => document.title === "hta_test – Tables – Flopwatch");
});

test("the open capture is compared with one of the list, and the next comparison is of the same two", async () => {
  const asked = await serving([BEFORE, AFTER]);
  const page = await on.open(`?file=${BEFORE.path}`);
  await header(page).getByRole("button", { name: "Compare…" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Compare" });
  await expect.poll(() => dialog.locator(".captures button").allInnerTexts()).toEqual([AFTER.file]);
  await dialog.getByRole("button", { name: AFTER.file }).press("Enter");
  await page.getByRole("heading", { name: "Sample" }).waitFor();
  const other = encodeURIComponent(AFTER.capture);
  expect(asked).toEqual([`compare?with=${other}&format=page`]);
  expect(await page.locator('select[name="others"]').inputValue()).toBe(AFTER.capture);
  await page.waitForFunction((other) => location.hash.includes(`with=${other}`), other);
  await page.locator('button[data-analysis="flame-difference"]').or(page.getByRole("button", { name: "flame-difference", exact: true })).click();
  await expect.poll(() => asked.at(-1)).toBe(`flame-difference?with=${other}&format=page`);
  // A link and a reload show the same.
  await page.reload();
  await expect.poll(() => asked.length).toBe(3);
  expect(asked[2]).toBe(asked[1]);
});

test("a file that is chosen is converted beside the open capture, and compared with it at once", async () => {
  const captures = [BEFORE];
  const asked = await serving(captures);
  const added = held("new_run.json", true);
  await on.context.route("**/v1/dropped*", (route) => {
    if (route.request().method() === "GET") {
      return route.fulfill({ json: { most_bytes: 1000 } });
    }
    captures.push(added);
    return route.fulfill({ json: added });
  });
  const page = await on.open(`?file=${BEFORE.path}#page=analyses&analysis=memory-profile-changes`);
  await page.getByText("Choose the capture to compare with.").waitFor();
  await page.getByLabel("Choose a file to compare with").setInputFiles({ name: added.file, mimeType: "application/json", buffer: Buffer.from("{}") });
  await page.getByRole("heading", { name: "Sample" }).waitFor();
  expect(asked).toEqual([`memory-profile-changes?with=${encodeURIComponent(added.capture)}&format=page`]);
  expect(await header(page).locator(".file-name").innerText()).toBe(BEFORE.file);
});

test("a file that cannot be converted is told with its reason, and the open capture stays", async () => {
  await serving([BEFORE]);
  await on.context.route("**/v1/dropped*", (route) =>
    route.request().method() === "GET" ? route.fulfill({ json: { most_bytes: 1000 } }) : route.fulfill({ status: 422, contentType: "application/problem+json", body: '{"reason":"Unreadable","detail":"notes.txt: no format that is read"}' }),
  );
  const page = await on.open(`?file=${BEFORE.path}`);
  await header(page).getByRole("button", { name: "Compare…" }).click();
  await page.getByText("No other capture is here yet.").waitFor();
  await page.getByLabel("Choose a file to compare with").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no capture") });
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").innerText()).toContain("no format that is read");
  await page.getByRole("button", { name: "Close" }).click();
  expect(await page.locator(".overview").count()).toBe(1);
});
