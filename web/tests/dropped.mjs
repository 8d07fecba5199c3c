// Drops files onto the viewer where `flopwatch serve` serves it: `node tests/dropped.mjs URL FILE...`. Prints what becomes of each as a line of
// JSON: how many events of each category are shown, or why none is; and whether the page spoke of bytes meanwhile. With FLOPWATCH_SCREENS it
// leaves pictures in that folder.

import { basename } from "node:path";
import { chromium } from "playwright-core";
import { complaintsOf } from "./complaints.mjs";

const [url, ...files] = process.argv.slice(2);
const screens = process.env.FLOPWATCH_SCREENS;
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme: "light", reducedMotion: "reduce" });
  page.setDefaultTimeout(60_000);
  // That a file is refused is told in words; the browser tells its console too.
  const complaints = complaintsOf(page, /^Failed to load resource: .* 422/);
  await page.goto(`${url}#page=timeline`);
  await page.getByRole("heading", { name: "No capture is open" }).waitFor();
  await page.evaluate(() => {
    globalThis.said = new Set();
    new MutationObserver(() => {
      const words = document.querySelector(".opening [role=status]")?.textContent ?? "";
      if (/\d [KM]?i?B (of .* )?sent/.test(words)) {
        globalThis.said.add("bytes");
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  for (const file of files) {
    await page.evaluate(() => globalThis.said.clear());
    await page.locator('input[type="file"]').setInputFiles(file);
    const name = basename(file);
    // Where a file is open already it stays, and the other one is told of beside it.
    const beside = page.getByRole("alert").filter({ hasText: `${name} cannot be shown` });
    const heading = page.getByRole("heading", { name: `${name} cannot be shown` }).or(beside);
    const shown = page.waitForFunction((name) => {
      const { status, names, header } = globalThis.flopwatch?.workspace ?? {};
      return status?.kind === "open" && status.what === name && names.length === header.categories.length;
    }, name);
    const outcome = await Promise.race([heading.waitFor().then(() => "refused"), shown.then(() => "shown")]);
    // The other wait ends with the page.
    for (const wait of [shown, heading.waitFor()]) {
      wait.catch(() => {});
    }
    const bytes = await page.evaluate(() => globalThis.said.has("bytes"));
    if (outcome === "refused") {
      console.log(JSON.stringify({ name, outcome, bytes, why: await page.locator(".opening p").or(beside).innerText() }));
    } else {
      const pages = page.getByRole("navigation", { name: "Pages" });
      await pages.getByRole("button").first().waitFor();
      const timeline = pages.getByRole("button", { name: "Timeline" });
      // What Nsight Compute measured has no times, and so no page of them.
      if ((await timeline.count()) > 0) {
        await timeline.click();
        await page.waitForFunction(() => globalThis.flopwatch.controller.isSettled());
      }
      const { counts, drawn, address } = await page.evaluate(() => {
        const { workspace, controller } = globalThis.flopwatch;
        const counts = Object.fromEntries(workspace.header.categories.filter(({ count }) => count > 0).map(({ name, count }) => [name, count]));
        return { counts, drawn: (controller?.figures.instances ?? 0) > 0, address: workspace.url };
      });
      console.log(JSON.stringify({ name, outcome, bytes, counts, drawn, perfetto: await page.getByRole("button", { name: "Open in Perfetto" }).count(), address: new URL(address).pathname }));
    }
    if (screens) {
      await page.screenshot({ path: `${screens}/dropped-${name}.png` });
    }
  }
  // What was converted last is behind the address of the page.
  const last = await page.evaluate(() => globalThis.flopwatch?.workspace.status.what);
  if (last !== undefined) {
    await page.waitForFunction(() => location.search.includes("captures"));
    await page.reload();
    await page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled());
    console.log("reloaded");
  }
  if (complaints.length > 0) {
    throw new Error(complaints.join("\n"));
  }
} finally {
  await browser.close();
}
