// Walks through the viewer as a gateway serves it over TLS, with keys alone: `node tests/gateway.mjs URL CERTIFICATES`. Signs in, lists, follows one
// that runs, starts, stops, deletes, opens a timeline and its tables, hands it to Perfetto, and signs out; then tries what a page of another site would.
// The sessions, users and pods are those of the gateway's own tests, the other site has its certificate. Pictures are held against those that are kept;
// with FLOPWATCH_SCREENS all are left in that folder, too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { chromium } from "playwright-core";
import { complaintsOf } from "./complaints.mjs";
import { differs } from "./pictures.mjs";

/** Pictures may differ in so many pixels: texts are drawn by the fonts of the machine. */
const TOLERANCE = 0.02;

const [base, certificates] = process.argv.slice(2);
const screens = process.env.FLOPWATCH_SCREENS;
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--font-render-hinting=none"],
});
const [cert, key] = ["tls.crt", "tls.key"].map((name) => readFileSync(`${certificates}/${name}`));
const stranger = createServer({ cert, key }, (_, response) => response.end("<!doctype html><title>another</title>"));
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light", reducedMotion: "reduce", locale: "en-GB", timezoneId: "UTC", ignoreHTTPSErrors: true });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  // That a request is refused is part of the walk.
  const complaints = complaintsOf(page, /^Failed to load resource: the server responded with a status of (401|403|404|503)/);
  let pictures = 0;
  const picture = async (name, kept = false) => {
    const taken = await page.screenshot(screens ? { path: `${screens}/${(pictures += 1)}-${name}.png` } : {});
    if (kept) {
      const share = await differs(page, taken, `gateway-${name}`);
      assert.ok(share < TOLERANCE, `${name} looks otherwise than it did: ${share}`);
    }
  };
  const row = (name) => page.getByRole("row").filter({ has: page.getByRole("button", { name, exact: true }) });
  const detail = page.getByRole("region", { name: "Session" });
  const settled = () => page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled());
  // By Tab from where the focus is.
  const reach = async (locator) => {
    await locator.waitFor();
    for (let tabs = 0; !(await locator.evaluate((element) => element === document.activeElement)); tabs += 1) {
      assert.ok(tabs < 100, `${locator} is not reached by Tab`);
      await page.keyboard.press("Tab");
    }
  };
  const press = async (locator) => {
    await reach(locator);
    await page.keyboard.press("Enter");
  };
  const type = async (locator, text) => {
    await reach(locator);
    await page.keyboard.press("Control+A");
    await page.keyboard.type(text);
  };
  const choose = async (locator, key) => {
    await reach(locator);
    await page.keyboard.press(key);
  };
  // The field has the focus as it comes.
  const signIn = async (token) => {
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
  };

  // Perfetto's page is on the network; it answers as it is documented to. The form is made by the agent of the gateway's tests: it says how large the
  // timeline is, and takes longer than one request waits.
  const timelineBytes = readFileSync(new URL("data/synthetic.h5", import.meta.url)).byteLength;
  await context.route("https://ui.perfetto.dev/**", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<script>
        addEventListener("message", ({ data, source, origin }) => {
          if (data === "PING") source.postMessage("PONG", origin);
          if (data.perfetto) document.title = "given " + new TextDecoder().decode(data.perfetto.buffer);
        });
      </script>`,
    }),
  );
  await page.goto(base);
  await signIn("nobody");
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /^Not signed in: the cluster does not know this token/);
  assert.equal(await page.getByLabel("Token of the cluster").inputValue(), "", "a refused token is not kept in the form");
  await picture("sign-in");
  await signIn("admin");
  await row("infer").waitFor();
  // The heads of the table are a row too.
  assert.equal(await page.getByRole("row").count(), 3);
  assert.match(await row("train").innerText(), /team.*completed.*nsys.*alice/s);
  const kept = await page.evaluate(() => JSON.stringify([document.cookie, location.href, { ...localStorage }, { ...sessionStorage }]));
  assert.doesNotMatch(kept, /admin|__Host/, "the page keeps no token");
  const cookies = await context.cookies();
  assert.deepEqual(
    cookies.map(({ name, path, httpOnly, secure, sameSite }) => ({ name, path, httpOnly, secure, sameSite })),
    [{ name: "__Host-flopwatch", path: "/", httpOnly: true, secure: true, sameSite: "Strict" }],
  );
  assert.ok(cookies[0].expires < Date.now() / 1000 + 3601);
  await page.reload();
  await row("infer").waitFor();

  await choose(page.getByLabel("Status", { exact: true }), "f");
  await page.getByText("No session matches.").waitFor();
  await choose(page.getByLabel("Status", { exact: true }), "Home");
  await press(row("infer").getByRole("button"));
  await detail.getByText("team/infer").waitFor();
  await detail.getByRole("status").getByText("Collecting").waitFor();
  await detail.getByText(/^So far: cuda_kernel 1\s\d{3}$/).waitFor();
  await detail.getByText("at::native::gemm: 2.5 ms in 3 launches").waitFor();
  const percent = () => detail.locator("progress").evaluate((progress) => progress.value);
  const first = await percent();
  await page.waitForFunction((first) => document.querySelector(".session progress").value !== first, first);
  const stopped = page.waitForResponse((response) => response.url().endsWith("/stop"));
  await press(detail.getByRole("button", { name: "Stop and keep" }));
  assert.equal((await stopped).status(), 200);
  // What becomes of it is seen without looking again.
  await detail.getByText("completed").waitFor();
  await detail.getByRole("link", { name: "Timeline", exact: true }).waitFor();
  await row("infer").getByText("completed").waitFor();

  await press(page.getByRole("button", { name: "New session" }));
  await type(page.getByLabel("Namespace", { exact: true }).last(), "team");
  await page.locator("#start-pods option").first().waitFor({ state: "attached" });
  assert.deepEqual(await page.locator("#start-pods option").evaluateAll((options) => options.map(({ value }) => value)), ["train"]);
  await type(page.getByLabel("Pod", { exact: true }), "train");
  await page.getByText("logs").waitFor();
  await type(page.getByLabel("Seconds", { exact: true }), "301");
  await press(page.getByRole("button", { name: "Start", exact: true }));
  assert.equal(await page.getByRole("form", { name: "New session" }).count(), 1, "a form with a bad figure is not sent");
  await type(page.getByLabel("Seconds", { exact: true }), "7");
  await picture("start", true);
  await press(page.getByRole("button", { name: "Start", exact: true }));
  await detail.getByText("team/run-0").waitFor();
  await row("run-0").waitFor();
  await press(detail.getByRole("button", { name: "Delete…" }));
  await press(detail.getByRole("button", { name: "Delete it" }));
  await detail.waitFor({ state: "detached" });

  await press(row("train").getByRole("button"));
  await detail.getByRole("link", { name: "Timeline", exact: true }).waitFor();
  await picture("sessions", true);
  await press(page.getByRole("button", { name: "Use dark colors" }));
  await picture("sessions-dark");
  await press(page.getByRole("button", { name: "Use light colors" }));
  await page.reload();
  await detail.getByText("team/train").waitFor();
  await press(detail.getByRole("link", { name: "Timeline", exact: true }));
  await settled();
  const timeline = page.url();
  assert.match(timeline, /timeline%2F0badcafe\.h5/);
  const kernels = () => page.evaluate(() => globalThis.flopwatch.workspace.header.categories.find(({ name }) => name === "cuda_kernel")?.count);
  console.log(`timeline, kernels: ${await kernels()}`);
  await picture("timeline");
  const [perfetto] = await Promise.all([context.waitForEvent("page"), press(page.getByRole("button", { name: "Open in Perfetto" }))]);
  await perfetto.waitForFunction(() => document.title.startsWith("given "));
  assert.equal(await perfetto.title(), `given ${timelineBytes} bytes`);
  await perfetto.close();
  await press(page.getByRole("button", { name: "Tables" }));
  const kernel = page.getByTestId("row-name").first();
  await kernel.waitFor();
  await picture("tables");
  const name = await kernel.innerText();
  await press(kernel);
  const event = page.getByRole("region", { name: "Selected event" });
  // Its details come behind the page that holds them.
  await event.getByRole("heading", { name }).waitFor();
  await settled();
  await picture("kernel");
  await press(page.getByRole("button", { name: "Overview" }));
  await page.getByRole("heading", { name: "GPUs: busy and idle" }).waitFor();
  await picture("overview");
  await press(page.getByRole("button", { name: "Sessions" }));
  await row("infer").waitFor();

  // A page on another port of the host is of the same site: browsers send it cookies. One on another host is not.
  await new Promise((listening) => stranger.listen(0, "127.0.0.1", listening));
  const { port } = stranger.address();
  for (const host of ["localhost", "127.0.0.1"]) {
    const other = await context.newPage();
    await other.goto(`https://${host}:${port}/`);
    await other.evaluate(async (base) => {
      const stop = { method: "POST", mode: "no-cors", credentials: "include", body: '{"stop": "discard"}' };
      await fetch(`${base}api/profiling/session/0badcafe/stop`, stop);
      await fetch(`${base}api/sign-in`, { ...stop, body: '{"token": "reader"}' });
      await fetch(`${base}api/profiling/session/0badcafe`, { method: "DELETE", credentials: "include" }).catch(() => {});
      await fetch(`${base}api/sign-in`, { method: "DELETE", credentials: "include" }).catch(() => {});
    }, base);
    await other.close();
  }
  await page.reload();
  await row("infer").waitFor();
  assert.equal(await page.locator(".toolbar .faint").innerText(), "admin");

  const parts = () =>
    page.evaluate(async () => {
      const of = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
      const database = await of(indexedDB.open("flopwatch"));
      const count = await of(database.transaction("index").objectStore("index").count());
      database.close();
      return count;
    });
  assert.ok((await parts()) > 0, "parts of the timeline are kept while one is signed in");
  await press(page.getByRole("button", { name: "Sign out" }));
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.equal(await parts(), 0, "and none after one signed out");
  assert.deepEqual(await context.cookies(), []);
  // A link to a timeline asks who one is, and then shows it.
  await page.goto("about:blank");
  await page.goto(timeline);
  await signIn("reader");
  await settled();
  console.log(`after signing in, kernels: ${await kernels()}`);
  // Who may list one namespace alone names it.
  await press(page.getByRole("button", { name: "Sessions" }));
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /namespace=NAME/);
  await type(page.getByLabel("Namespace", { exact: true }), "team");
  await page.keyboard.press("Enter");
  await row("infer").waitFor();
  await press(page.getByRole("button", { name: "Sign out" }));
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  if (complaints.length > 0) {
    throw new Error(complaints.join("\n"));
  }
} catch (error) {
  // What is seen tells more than what was waited for.
  for (const page of browser.contexts().flatMap((context) => context.pages())) {
    console.error(page.url(), await page.locator("body").innerText().catch(String));
  }
  throw error;
} finally {
  stranger.close();
  await browser.close();
}
