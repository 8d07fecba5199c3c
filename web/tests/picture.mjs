// Takes a picture of the viewer with a timeline file: `node tests/picture.mjs FILE OUT.png`, after a build. It zooms to some events in the
// middle and selects one, so that names and details are seen.

import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { preview } from "vite";

const file = resolve(process.argv[2] ?? "");
const out = process.argv[3] ?? "viewer.png";
process.env.FLOPWATCH_FILES = dirname(file);
const root = fileURLToPath(new URL("..", import.meta.url));
const server = await preview({ root, preview: { port: 0, host: "127.0.0.1" }, logLevel: "error" });
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--font-render-hinting=none"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 560 }, colorScheme: "light", reducedMotion: "reduce" });
  page.setDefaultTimeout(120_000);
  const settled = () => page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled());
  await page.goto(`${server.resolvedUrls.local[0]}?file=files/${basename(file)}#page=timeline`);
  await settled();
  // An event in the middle of the largest category, in a window of some hundred of its kind.
  const [from, to, category, index] = await page.evaluate(async () => {
    const { workspace } = globalThis.flopwatch;
    const { categories } = workspace.header;
    const most = categories.reduce((best, { count }, at) => (count > categories[best].count ? at : best), 0);
    const index = categories[most].count >> 1;
    const begin = await workspace.engine.call("event", { category: most, index: Math.max(0, index - 30) });
    const end = await workspace.engine.call("event", { category: most, index: Math.min(categories[most].count - 1, index + 30) });
    return [begin.start, end.start + end.duration, categories[most].name, index];
  });
  await page.goto("about:blank");
  await page.goto(`${server.resolvedUrls.local[0]}?file=files/${basename(file)}#page=timeline&t=${from}-${to}&sel=${category}:${index}&color=name`);
  await settled();
  await page.locator(".panel").waitFor();
  await settled();
  await page.screenshot({ path: out });
} finally {
  await browser.close();
  await server.close();
}
