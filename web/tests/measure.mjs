// Measures the viewer on one timeline file: `node tests/measure.mjs PROGRAM FILE`, after a build. PROGRAM is a `flopwatch` that was built with it, and serves
// the file on loopback.
//
// Prints a line of JSON: times in ms, sizes in bytes. The file is opened three times: in a browser that was just started, whose graphics start then
// (`cold…`); in one that has drawn before, as that of a user has; and there once more (`again…`). Graphics are those of a GPU where this machine has one that
// the browser can use, otherwise software; `renderer` names them. The load of the machine is printed beside the figures: times by the wall are longer by
// it, times of the page's own thread are not.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { basename, resolve } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const SOFTWARE = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"];
const GPU = ["--use-gl=angle", "--use-angle=vulkan", "--enable-features=Vulkan"];
/** What a processor draws alone. */
const BY_SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

const launch = (graphics) =>
  chromium.launch({
    executablePath: process.env.FLOPWATCH_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", ...graphics, "--ignore-gpu-blocklist", "--enable-precise-memory-info"],
  });

/** A page that draws next to nothing: how long its context takes, from then to what is seen, and who draws. */
async function drawn(browser) {
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  const figures = await page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    const canvas = document.body.appendChild(document.createElement("canvas"));
    const began = performance.now();
    const gl = canvas.getContext("webgl2");
    if (!gl) {
      return undefined;
    }
    const context = performance.now() - began;
    gl.clearColor(1, 0, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    await frame();
    // The one after it comes when it is on its way to the screen.
    await frame();
    const names = gl.getExtension("WEBGL_debug_renderer_info");
    return { context, seen: performance.now() - began, renderer: String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) };
  });
  await page.close();
  return figures;
}

/** The flags with which a GPU draws, where one does. */
async function graphics() {
  if (!existsSync("/dev/dri") && !existsSync("/dev/nvidia0")) {
    return SOFTWARE;
  }
  const browser = await launch(GPU);
  try {
    const found = await drawn(browser);
    return found && !BY_SOFTWARE.test(found.renderer) ? GPU : SOFTWARE;
  } finally {
    await browser.close();
  }
}

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

/** Opens the viewer, and waits for its first picture. */
async function opened(context, address) {
  const page = await context.newPage();
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
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const thread = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value * 1000]));
  await page.addInitScript(() => {
    const frame = () => new Promise(requestAnimationFrame);
    new PerformanceObserver((list, observer) => {
      if (list.getEntriesByName("flopwatch-first-paint").length > 0) {
        observer.disconnect();
        void frame().then(frame).then(() => performance.mark("seen"));
      }
    }).observe({ type: "mark" });
  });
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName("seen").length > 0);
  const openScriptCpu = (await thread()).ScriptDuration;
  const { paintedAt, ...told } = await page.evaluate(() => {
    const { controller, workspace } = globalThis.flopwatch;
    const { bytes, requests, fetchMs, unpacked, unpackMs } = workspace.loaded;
    const entry = (name) => performance.getEntriesByName(name)[0];
    const opened = entry("flopwatch-open").startTime;
    const painted = entry("flopwatch-first-paint").startTime;
    return {
      paintedAt: performance.timeOrigin + painted,
      firstPaint: painted,
      openToPaint: painted - opened,
      paintToSeen: entry("seen").startTime - painted,
      context: entry("flopwatch-context").duration,
      program: entry("flopwatch-program").duration,
      fetch: fetchMs,
      unpack: unpackMs,
      unpacked,
      view: controller.figures.viewMs,
      instances: controller.figures.instances,
      bytesAtFirstPaint: bytes,
      requestsAtFirstPaint: requests,
    };
  });
  const settled = () => page.waitForFunction(() => globalThis.flopwatch?.workspace.names.length > 0 && globalThis.flopwatch.controller.isSettled());
  return { page, cdp, thread, settled, figures: { ...told, openScriptCpu, bytesToPaint: paintedAt - Math.max(...parts.filter((at) => at <= paintedAt)) } };
}

/** `figures` with names that begin with `prefix`. */
const named = (prefix, figures) => Object.fromEntries(Object.entries(figures).map(([name, value]) => [prefix + name[0].toUpperCase() + name.slice(1), value]));

const at = (list, share) => [...list].sort((a, b) => a - b)[Math.floor(share * (list.length - 1))];

/** Zooms in to some hundred events, moves there, and comes back, a step per frame. */
async function moved({ page, thread }) {
  const steps = [[40, "zoom(0.75, 900)"], [40, "pan(25)"], [20, "pan(-120)"], [40, "zoom(1.33, 300)"]];
  // What a frame costs is told by the thread's own clock; it includes what this loop costs itself.
  const frames = [];
  await page.evaluate(() => (globalThis.flopwatch.controller.figures.frames.length = 0));
  for (const [count, step] of steps) {
    for (let at = 0; at < count; at += 1) {
      const before = (await thread()).ScriptDuration;
      await page.evaluate(`flopwatch.controller.${step}; new Promise((done) => requestAnimationFrame(() => setTimeout(done)))`);
      frames.push((await thread()).ScriptDuration - before);
    }
  }
  const wall = await page.evaluate(() => globalThis.flopwatch.controller.figures.frames);
  return {
    frames: frames.length,
    frameScriptCpuMedian: at(frames, 0.5),
    frameScriptCpuP95: at(frames, 0.95),
    frameScriptCpuMost: at(frames, 1),
    frameWallMedian: at(wall, 0.5),
    frameWallP95: at(wall, 0.95),
    draws: await page.evaluate(() => globalThis.flopwatch.controller.figures.draws),
  };
}

/** The same as fast as frames come, which tells something of a GPU alone. */
async function framesPerSecond({ page }) {
  const times = await page.evaluate(async () => {
    const { controller } = globalThis.flopwatch;
    const times = [];
    for (let step = 0; step < 300; step += 1) {
      times.push(await new Promise(requestAnimationFrame));
      step % 150 < 75 ? controller.zoom(0.95, 900) : controller.zoom(1 / 0.95, 900);
    }
    return times;
  });
  const gaps = times.slice(1).map((time, place) => time - times[place]);
  return { framesPerSecond: (1000 * gaps.length) / gaps.reduce((sum, gap) => sum + gap, 0), frameGapP95: at(gaps, 0.95) };
}

const [program, file] = process.argv.slice(2).map((path) => resolve(path));
const serving = spawn(program, ["serve", file, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
const flags = await graphics();
let browser = await launch(flags);
try {
  let address;
  for await (const line of createInterface({ input: serving.stdout })) {
    if (line.includes("/?file=")) {
      address = `${line.trim()}#page=timeline`;
      break;
    }
  }
  const viewport = { width: 1600, height: 900 };
  const cold = await opened(await browser.newContext({ viewport }), address);
  await browser.close();
  browser = await launch(flags);
  // What the graphics of a browser take that was just started, without any of ours.
  const { renderer, ...bare } = await drawn(browser);
  const context = await browser.newContext({ viewport });
  const first = await opened(context, address);
  const { page, cdp, settled } = first;
  const { events, fileBytes } = await page.evaluate(() => ({ events: flopwatch.workspace.header.totalEvents, fileBytes: flopwatch.workspace.header.fileBytes }));
  // Of the page and of the worker, deflated as they are sent, until the first picture; those of other pages come when there is time.
  const scripts = await page.evaluate((painted) => {
    const until = Math.min(painted, performance.getEntriesByName("flopwatch-ahead")[0]?.startTime ?? painted);
    const before = performance.getEntriesByType("resource").filter(({ name, startTime }) => new URL(name).pathname.endsWith(".js") && startTime < until);
    // The worker's is named twice: as it is fetched ahead, and as it is taken.
    return [...new Map(before.map(({ name, encodedBodySize }) => [name, encodedBodySize])).values()];
  }, first.figures.firstPaint);
  await settled();
  const settledBytes = await page.evaluate(() => globalThis.flopwatch.workspace.bytes);
  const moving = await moved(first);
  const gpu = BY_SOFTWARE.test(renderer) ? {} : await framesPerSecond(first);
  await settled();
  const usages = [await cdp.send("Runtime.getHeapUsage"), ...(await workersHeaps(cdp))];
  const usage = (name) => usages.reduce((sum, of) => sum + of[name], 0);
  const bytes = await page.evaluate(() => globalThis.flopwatch.workspace.bytes);
  // What was read is kept soon after nothing more comes.
  await page.waitForTimeout(2000);
  await page.close();
  const again = await opened(context, address);
  console.log(
    JSON.stringify({
      file: basename(file),
      renderer,
      events,
      fileBytes,
      ...named("bare", bare),
      ...named("cold", cold.figures),
      ...first.figures,
      ...named("again", again.figures),
      settledBytes,
      scriptBytes: scripts.reduce((sum, size) => sum + size, 0),
      ...moving,
      ...gpu,
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
