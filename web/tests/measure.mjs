// Measures the viewer on one timeline file: `node tests/measure.mjs AGENT FILE`, after a build. AGENT is a flopwatch-agent that was built with it, and serves
// the file on loopback.
//
// Prints a line of JSON: times in ms, sizes in bytes. Software graphics. The load of the machine is printed beside the figures: times by the wall are
// longer by it, times of the page's own thread are not.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { basename, resolve } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** The memory of each worker. Workers are reached through their page, by messages. */
async function workersHeaps(cdp) {
  const found = [];
  const waiting = new Map();
  cdp.on("Target.receivedMessageFromTarget", ({ sessionId, message }) => {
    const { id, result } = JSON.parse(message);
    if (id === 1) {
      waiting.get(sessionId)?.(result);
    }
  });
  cdp.on("Target.attachedToTarget", ({ sessionId }) => {
    found.push(new Promise((done) => waiting.set(sessionId, done)));
    void cdp.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id: 1, method: "Runtime.getHeapUsage" }) });
  });
  await cdp.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  return Promise.all(found);
}

const [agent, file] = process.argv.slice(2).map((path) => resolve(path));
const serving = spawn(agent, ["serve", file, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
const browser = await chromium.launch({
  executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--enable-precise-memory-info"],
});
try {
  let address;
  for await (const line of createInterface({ input: serving.stdout })) {
    if (line.includes("/?file=")) {
      address = line.trim();
      break;
    }
  }
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  page.setDefaultTimeout(120_000);
  // What comes, and when its last byte is there.
  const parts = [];
  page.on("requestfinished", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.endsWith(".h5")) {
      const { startTime, responseEnd } = request.timing();
      parts.push(startTime + responseEnd);
    }
  });
  // Time of the page's own thread, which other programs' load does not add to.
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const thread = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value * 1000]));
  const settled = () => page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled());
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName("flopwatch-first-paint").length > 0);
  const first = await page.evaluate(() => {
    const { controller, workspace } = globalThis.flopwatch;
    const opened = performance.getEntriesByName("flopwatch-open")[0]?.startTime ?? 0;
    const painted = performance.getEntriesByName("flopwatch-first-paint")[0].startTime;
    return {
      events: workspace.header.totalEvents,
      fileBytes: workspace.header.fileBytes,
      firstPaint: painted,
      paintedAt: performance.timeOrigin + painted,
      openToPaint: painted - opened,
      view: controller.figures.viewMs,
      instances: controller.figures.instances,
      bytesAtFirstPaint: workspace.bytes,
      requestsAtFirstPaint: workspace.requests,
    };
  });
  const opening = await thread();
  await settled();
  const settledBytes = await page.evaluate(() => globalThis.flopwatch.workspace.bytes);
  const { paintedAt, ...told } = first;
  const bytesToPaint = paintedAt - Math.max(...parts.filter((at) => at <= paintedAt));
  // Zooms in to some hundred events, moves there, and comes back, a step per frame. What a frame costs is told by the thread's own
  // clock; it includes what this loop costs itself.
  const frames = [];
  await page.evaluate(() => (globalThis.flopwatch.controller.figures.frames.length = 0));
  for (const [count, step] of [[40, "zoom(0.75, 900)"], [40, "pan(25)"], [20, "pan(-120)"], [40, "zoom(1.33, 300)"]]) {
    for (let at = 0; at < count; at += 1) {
      const before = (await thread()).ScriptDuration;
      await page.evaluate(`flopwatch.controller.${step}; new Promise((done) => requestAnimationFrame(() => setTimeout(done)))`);
      frames.push((await thread()).ScriptDuration - before);
    }
  }
  const wall = await page.evaluate(() => globalThis.flopwatch.controller.figures.frames);
  const at = (list, share) => [...list].sort((a, b) => a - b)[Math.floor(share * (list.length - 1))];
  const draws = await page.evaluate(() => globalThis.flopwatch.controller.figures.draws);
  await settled();
  const usages = [await cdp.send("Runtime.getHeapUsage"), ...(await workersHeaps(cdp))];
  const usage = (name) => usages.reduce((sum, of) => sum + of[name], 0);
  // Of the page and of the worker, deflated as they are sent, until the first picture; those of other pages come when there is time.
  const scripts = await page.evaluate((painted) => performance.getEntriesByType("resource").flatMap(({ name, encodedBodySize, startTime }) => (new URL(name).pathname.endsWith(".js") && startTime < painted ? [encodedBodySize] : [])), first.firstPaint);
  const bytes = await page.evaluate(() => globalThis.flopwatch.workspace.bytes);
  console.log(
    JSON.stringify({
      file: basename(file),
      ...told,
      bytesToPaint,
      settledBytes,
      scriptBytes: scripts.reduce((sum, size) => sum + size, 0),
      openScriptCpu: opening.ScriptDuration,
      frames: frames.length,
      frameScriptCpuMedian: at(frames, 0.5),
      frameScriptCpuP95: at(frames, 0.95),
      frameScriptCpuMost: at(frames, 1),
      frameWallMedian: at(wall, 0.5),
      frameWallP95: at(wall, 0.95),
      draws,
      heapBytes: usage("usedSize"),
      bufferBytes: usage("backingStorageSize"),
      bytes,
      load: loadavg()[0],
    }),
  );
} finally {
  await browser.close();
  if (serving.exitCode === null) {
    serving.kill("SIGTERM");
    await once(serving, "exit");
  }
}
