// Measures the viewer on one timeline file: `node tests/measure.mjs FILE`, after `npm run build`.
//
// Prints a line of JSON: times in ms, sizes in bytes. Software graphics; the load of the machine is printed beside the figures,
// since everything here is measured against the clock.

import { loadavg } from "node:os";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { preview } from "vite";

const file = resolve(process.argv[2] ?? "");
process.env.FLOPWATCH_FILES = dirname(file);
const root = fileURLToPath(new URL("..", import.meta.url));
const server = await preview({ root, preview: { port: 0, host: "127.0.0.1" }, logLevel: "error" });
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--enable-precise-memory-info"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  // Time of the page's own thread, which other programs' load does not add to.
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const thread = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value * 1000]));
  const settled = () => page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled(), null, { timeout: 60_000 });
  await page.goto(`${server.resolvedUrls.local[0]}?file=files/${basename(file)}`);
  await page.waitForFunction(() => performance.getEntriesByName("flopwatch-first-paint").length > 0);
  const first = await page.evaluate(() => {
    const { controller, workspace } = globalThis.flopwatch;
    const opened = performance.getEntriesByName("flopwatch-open")[0]?.startTime ?? 0;
    const painted = performance.getEntriesByName("flopwatch-first-paint")[0].startTime;
    return { firstPaint: painted, openToPaint: painted - opened, view: controller.figures.viewMs, instances: controller.figures.instances, bytesAtFirstPaint: workspace.bytes, requestsAtFirstPaint: workspace.requests };
  });
  const opening = await thread();
  await settled();
  const whole = await page.evaluate(() => ({ bytesSettled: globalThis.flopwatch.workspace.bytes }));
  // Zooms in to some hundred events, moves there, and comes back, a step per frame. What a frame costs is told by the thread's own
  // clock; it includes what this loop costs itself.
  const frames = [];
  const wall = [];
  await page.evaluate(() => (globalThis.flopwatch.controller.figures.frames.length = 0));
  for (const [count, step] of [[40, "zoom(0.75, 900)"], [40, "pan(25)"], [20, "pan(-120)"], [40, "zoom(1.33, 300)"]]) {
    for (let at = 0; at < count; at += 1) {
      const before = (await thread()).ScriptDuration;
      await page.evaluate(`flopwatch.controller.${step}; new Promise((done) => requestAnimationFrame(() => setTimeout(done)))`);
      frames.push((await thread()).ScriptDuration - before);
    }
  }
  wall.push(...(await page.evaluate(() => globalThis.flopwatch.controller.figures.frames)));
  const at = (list, share) => [...list].sort((a, b) => a - b)[Math.floor(share * (list.length - 1))];
  const draws = await page.evaluate(() => globalThis.flopwatch.controller.figures.draws);
  const threadTimes = {
    openScriptCpu: opening.ScriptDuration,
    openTaskCpu: opening.TaskDuration,
    frames: frames.length,
    frameScriptCpuMedian: at(frames, 0.5),
    frameScriptCpuP95: at(frames, 0.95),
    frameScriptCpuMost: at(frames, 1),
    frameWallMedian: at(wall, 0.5),
    frameWallP95: at(wall, 0.95),
    draws,
  };
  await settled();
  const heaps = [await page.evaluate(() => performance.memory.usedJSHeapSize), ...(await Promise.all(page.workers().map((worker) => worker.evaluate(() => performance.memory?.usedJSHeapSize ?? 0))))];
  const bytes = await page.evaluate(() => globalThis.flopwatch.workspace.bytes);
  console.log(JSON.stringify({ file: basename(file), ...first, ...whole, ...threadTimes, pageHeap: heaps[0], workerHeap: heaps[1], bytes, load: loadavg()[0] }));
} finally {
  await browser.close();
  await server.close();
}
