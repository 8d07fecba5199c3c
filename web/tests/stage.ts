/** A browser and a server for the tests. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type PreviewServer, preview } from "vite";
import * as pictures from "./pictures.mjs";

/** The browser: Debian's, unless FLOPWATCH_CHROMIUM names another. */
const CHROMIUM = process.env["FLOPWATCH_CHROMIUM"] ?? "/usr/bin/chromium";

const WEB = fileURLToPath(new URL("..", import.meta.url));
const DATA = fileURLToPath(new URL("data", import.meta.url));

/** Software rendering, so that pictures are the same with any graphics card and with none. */
const FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--font-render-hinting=none"];

export interface Stage {
  readonly base: string;
  readonly context: BrowserContext;
  /** Opens a page, and fails the test on any error in it. */
  open(address: string): Promise<Page>;
  close(): Promise<void>;
}

export async function stage(): Promise<Stage> {
  if (!existsSync(`${WEB}dist/site/index.html`)) {
    throw new Error("there is no build to test: run `npm run build` first");
  }
  process.env["FLOPWATCH_FILES"] ??= DATA;
  const server: PreviewServer = await preview({ root: WEB, preview: { port: 0, host: "127.0.0.1" }, logLevel: "error" });
  const base = server.resolvedUrls?.local[0] ?? "";
  const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce" });
  // Machines that run tests may be busy with other things.
  context.setDefaultTimeout(120_000);
  return {
    base,
    context,
    open: async (address) => {
      const page = await context.newPage();
      page.on("pageerror", (error) => {
        throw error;
      });
      await page.goto(base + address);
      return page;
    },
    close: async () => {
      await browser.close();
      await server.close();
    },
  };
}

/** What the page tells tests; see pages/timeline/page.tsx. */
export interface Told {
  readonly draws: number;
  readonly instances: number;
  readonly bytes: number;
  readonly requests: number;
  readonly from: number;
  readonly to: number;
}

export async function told(page: Page): Promise<Told> {
  return page.evaluate(() => {
    const { controller, workspace } = (globalThis as unknown as { flopwatch: { controller: any; workspace: any } }).flopwatch;
    return {
      draws: controller.figures.draws,
      instances: controller.figures.instances,
      bytes: workspace.bytes,
      requests: workspace.requests,
      from: controller.viewport.from,
      to: controller.viewport.to,
    };
  });
}

/** Waits until what is asked for is drawn, with its names. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const { flopwatch } = globalThis as unknown as { flopwatch?: { controller: any; workspace: any } };
    return flopwatch !== undefined && flopwatch.workspace.names.length > 0 && flopwatch.controller.isSettled();
  });
}

/** What the details of the selected event say, with what belongs to it. */
export async function detailsOf(page: Page): Promise<string> {
  await page.locator(".panel").waitFor();
  await page.waitForFunction(() => (globalThis as unknown as { flopwatch: { workspace: any } }).flopwatch.workspace.flow !== undefined);
  // It is rendered with the next frame.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  return page.locator(".panel").innerText();
}

/** The share of pixels of the tracks that differ clearly from the picture that is kept under `name`. */
export async function differs(page: Page, name: string): Promise<number> {
  const clip = await page.locator(".tracks").boundingBox();
  if (!clip) {
    throw new Error("no tracks to look at");
  }
  return pictures.differs(page, await page.screenshot({ clip }), name);
}

/** Drops a file onto the page, as a file manager does. */
export async function drop(page: Page, path: string, name = "dropped.h5"): Promise<void> {
  const dropped = { name, base64: readFileSync(path).toString("base64") };
  const transfer = await page.evaluateHandle(({ name, base64 }) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name));
    return transfer;
  }, dropped);
  for (const type of ["dragenter", "dragover", "drop"]) {
    await page.locator("main").dispatchEvent(type, { dataTransfer: transfer });
  }
}
