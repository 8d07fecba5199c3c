// Opens the viewer where another program serves it: `node tests/served.mjs URL`. Prints what it shows of the file, and fails on any
// complaint of the page, such as one of its content security policy.

import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { complaintsOf } from "./complaints.mjs";

const url = process.argv[2];
const plain = fileURLToPath(new URL("data/plain.h5", import.meta.url));
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(120_000);
  const complaints = complaintsOf(page);
  const settled = () => page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled());
  const kernels = () => page.evaluate(() => globalThis.flopwatch.workspace.header.categories.find(({ name }) => name === "cuda_kernel")?.count);
  await page.goto(`${url}#page=timeline`);
  await settled();
  console.log(`${await page.title()}, kernels: ${await kernels()}, drawn: ${await page.evaluate(() => globalThis.flopwatch.controller.figures.instances > 0)}`);
  // A file of an old layout brings in HDF5's own library.
  await page.locator('input[type="file"]').setInputFiles(plain);
  await page.waitForFunction(() => globalThis.flopwatch?.workspace.status.what === "plain.h5" && globalThis.flopwatch.workspace.status.kind !== "opening");
  console.log(`dropped file: ${await page.evaluate(() => globalThis.flopwatch.workspace.status.kind)}`);
  await page.goto(new URL("/", url).href);
  await page.getByRole("link", { name: "Show the demo" }).click();
  await page.locator(".overview").waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("button", { name: "Timeline" }).click();
  await settled();
  console.log(`demo, kernels: ${await kernels()}`);
  if (complaints.length > 0) {
    throw new Error(complaints.join("\n"));
  }
} finally {
  await browser.close();
}
