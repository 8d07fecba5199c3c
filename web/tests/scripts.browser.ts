import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Stage, settled, stage } from "./stage";

/** Most bytes of scripts until the first picture, deflated as they are sent: the budget of `cargo xtask bench viewer`. */
const MOST_BYTES = 60_000;

const SITE = fileURLToPath(new URL("../dist/site/", import.meta.url));

let on: Stage;

beforeAll(async () => {
  on = await stage();
});

afterAll(() => on.close());

test.each(["index", "gateway"])("the scripts until the first picture of %s.html are within their budget", async (name) => {
  // No gateway is there: it is asked who is signed in, and the file is shown all the same.
  await on.context.route("**/api/sign-in", (route) => route.fulfill({ json: { user: "somebody" } }));
  const page = await on.open(`${name}.html?file=files/synthetic.h5#page=timeline`);
  await settled(page);
  const early = await page.evaluate(() => {
    const at = (mark: string) => performance.getEntriesByName(mark)[0]?.startTime ?? Number.POSITIVE_INFINITY;
    // What comes when there is time may be there before the picture of a busy machine.
    const until = Math.min(at("flopwatch-first-paint"), at("flopwatch-ahead"));
    const before = performance.getEntriesByType("resource").filter(({ startTime }) => startTime < until);
    return before.map(({ name }) => new URL(name).pathname).filter((path) => path.endsWith(".js"));
  });
  const sizes = [...new Set(early)].map((path) => [path, gzipSync(readFileSync(SITE + path), { level: 9 }).length] as const);
  expect(sizes.map(([path]) => path).join()).toMatch(/main-.*worker-|worker-.*main-/);
  expect(sizes.reduce((sum, [, size]) => sum + size, 0), JSON.stringify(sizes)).toBeLessThanOrEqual(MOST_BYTES);
});
