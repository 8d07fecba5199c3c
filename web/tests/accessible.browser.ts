/** Every page, light and dark, without a violation of a rule of accessibility. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { CUT, type PageDocument, type PageFlame } from "../src/generated/catalogue";
import { answer, QUERY } from "./agent";
import { violations } from "./axe";
import { answerAsGateway } from "./cluster";
import { RESULTS } from "./results";
import { drop, settled, type Stage, stage } from "./stage";

const read = (name: string) => JSON.parse(readFileSync(fileURLToPath(new URL(`data/${name}`, import.meta.url)), "utf8")) as PageDocument;

const PROFILE = fileURLToPath(new URL("data/operations.json", import.meta.url));

const FLAME: PageFlame & { kind: "flame" } = {
  kind: "flame",
  title: "Flame graph",
  unit: "ns",
  names: ["all", "step", "gemm"],
  kinds: ["all", "steps", "kernels"],
  name_kind: [0, 1, 2],
  name: [0, 1, 2],
  depth: [0, 1, 2],
  value: [1_000_000, 800_000, 500_000],
  own: [200_000, 300_000, 500_000],
  start_ns: [0, 1000, 2000],
  end_ns: [1_000_000, 900_000, 600_000],
  before: [],
  left_out: 3,
};

/** A page with each kind of block. */
const DOCUMENT = (() => {
  const document = read("page.json");
  return { ...document, page: { ...document.page, blocks: [...document.page.blocks, FLAME] } };
})();

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());
afterEach(async () => {
  await Promise.all(on.context.pages().map((page) => page.close()));
});

/** Opens the capture as an agent serves it. */
async function served(hash: string): Promise<Page> {
  const page = await on.context.newPage();
  await answer(page, RESULTS, () => DOCUMENT);
  await page.route("**/v1/captures", (route) => {
    const held = ["c", "d"].map((name) => ({ file: `${name}.json.gz`, capture: `local/${name}/${name}`, path: `/v1/namespaces/local/captures/${name}/artifacts/timeline.h5`, events: 7000, dropped: name === "d" }));
    return route.fulfill({ json: { captures: held } });
  });
  await page.goto(on.base + (hash.startsWith("#") ? QUERY : "") + hash);
  return page;
}

async function timeline(hash = ""): Promise<Page> {
  const page = await served(`#page=timeline${hash}`);
  await settled(page);
  return page;
}

async function analysis(name: string): Promise<Page> {
  const page = await served(`#page=analyses&analysis=${name}`);
  await page.locator(".flame-graph canvas").waitFor();
  return page;
}

async function gateway(hash: string, user: string | null): Promise<Page> {
  const page = await on.context.newPage();
  await answerAsGateway(page, user);
  await page.goto(`${on.base}gateway.html${hash}`);
  return page;
}

/** Each page by what it shows. */
const PAGES: Readonly<Record<string, () => Promise<Page>>> = {
  "no file": async () => {
    const page = await on.open("");
    await page.getByText("No capture is open").waitFor();
    return page;
  },
  "list of captures": async () => {
    const page = await served("");
    await page.getByRole("heading", { name: "Captures" }).waitFor();
    return page;
  },
  "file that is none": async () => {
    const page = await on.open("?file=files/absent.h5");
    await page.getByRole("alert").waitFor();
    return page;
  },
  "file that is converted": async () => {
    const page = await on.open("");
    await page.getByText("No capture is open").waitFor();
    await page.route("**/v1/dropped*", (route) => (route.request().method() === "GET" ? route.fulfill({ json: { most_bytes: 1 << 30 } }) : undefined));
    await drop(page, PROFILE, "run.json");
    await page.getByRole("heading", { name: "Converting run.json" }).waitFor();
    return page;
  },
  dashboard: async () => {
    const page = await on.open("");
    await page.getByRole("button", { name: "the dashboard of a made-up profile" }).click();
    await page.getByRole("heading", { name: "Operations: demo" }).waitFor();
    return page;
  },
  timeline: () => timeline(),
  "timeline with an event": async () => {
    const page = await timeline("&sel=cuda_kernel:100");
    await page.locator(".panel").waitFor();
    return page;
  },
  "timeline with an area": async () => {
    const page = await timeline("&area=0-100000000:0-1");
    await page.locator(".panel tbody tr").first().waitFor();
    return page;
  },
  "timeline with a bad pattern": async () => {
    const page = await timeline();
    await page.getByRole("searchbox", { name: /Search names/ }).fill("/(/");
    await page.getByRole("alert").waitFor();
    return page;
  },
  "timeline with hits": async () => {
    const page = await timeline("&q=gemm");
    await page.locator("search .count").waitFor();
    return page;
  },
  help: async () => {
    const page = await timeline();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    return page;
  },
  comparison: async () => {
    const page = await timeline();
    await page.getByRole("button", { name: "Compare…" }).click();
    await page.getByRole("dialog").waitFor();
    return page;
  },
  "file that was cut": async () => {
    const page = await timeline();
    await page.evaluate((what) => {
      const { workspace } = (globalThis as any).flopwatch;
      workspace.header.drops.push({ reason: "truncated", what, count: 1 });
      workspace.report(new Error("Something went wrong."));
    }, CUT[0]);
    await page.locator(".cut").waitFor();
    return page;
  },
  overview: async () => {
    const page = await served("#page=overview");
    await page.getByText("Title of one").waitFor();
    await page.locator("rect.step").first().waitFor();
    return page;
  },
  "overview of a lone file": async () => {
    const page = await on.open("?file=files/synthetic.h5");
    await page.getByText("nothing is analyzed here").waitFor();
    return page;
  },
  tables: async () => {
    const page = await served("#page=tables");
    await page.locator("tbody tr").first().waitFor();
    return page;
  },
  catalogue: () => analysis("advice"),
  memory: () => analysis("memory-profile"),
  "comparison's result": () => analysis("compare&with=local/d/d"),
  "timeline with a hidden category": () => timeline("&hide=cuda_kernel"),
  "sign-in": async () => {
    const page = await gateway("", null);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    return page;
  },
  sessions: async () => {
    const page = await gateway("#page=sessions&session=0badcafe", "admin");
    await page.getByRole("link", { name: "Timeline", exact: true }).waitFor();
    return page;
  },
  "form of a session": async () => {
    const page = await gateway("#page=sessions", "admin");
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByText("Options").click();
    return page;
  },
};

test.each(Object.keys(PAGES))("%s violates no rule of accessibility, light and dark", async (name) => {
  const page = await (PAGES[name] as () => Promise<Page>)();
  for (const theme of ["light", "dark"]) {
    // The button may be behind a dialog.
    await page.evaluate((theme) => document.querySelector<HTMLElement>(`[aria-label="Use ${theme} colors"]`)?.click(), theme);
    await page.locator(`:root[data-theme="${theme}"]`).waitFor();
    expect(await violations(page, theme === "dark"), theme).toEqual([]);
  }
});

test.each(["page.html", "operations.html"])("a file of an analysis, %s, violates no rule of accessibility", async (name) => {
  const page = await on.context.newPage();
  await page.goto(`file://${fileURLToPath(new URL(`data/${name}`, import.meta.url))}`);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violations(page, colorScheme === "dark"), colorScheme).toEqual([]);
  }
});
