/** Has a page's requests answered as an agent answers them that holds one capture: the demo's. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import type { PageDocument } from "../src/generated/catalogue";

const FILE = readFileSync(fileURLToPath(new URL("data/synthetic.h5", import.meta.url)));

const CAPTURE = "/v1/namespaces/local/captures/c";

/** The query of an address that names the capture's timeline. */
export const QUERY = `?file=${encodeURIComponent(`${CAPTURE}/artifacts/timeline.h5`)}`;

/** Answers with `results` by the names of their analyses, and to who asks for a page with what `document` gives for one. */
export async function answer(page: Page, results: Readonly<Record<string, unknown>>, document: (analysis: string) => PageDocument): Promise<void> {
  await page.route(`**${CAPTURE}/**`, (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    const name = pathname.replace(/^.*\//, "");
    if (pathname.includes("/analyses/")) {
      return route.fulfill({ json: searchParams.get("format") === "page" ? document(name) : results[name] });
    }
    if (name !== "timeline.h5") {
      return route.fulfill({ json: { artifacts: [] } });
    }
    const range = /^bytes=(\d+)-(\d*)$/.exec(route.request().headers()["range"] ?? "");
    const headers = { "Accept-Ranges": "bytes", ETag: '"1"' };
    if (!range) {
      return route.fulfill({ headers, body: FILE });
    }
    const [start, end] = [Number(range[1]), Math.min(FILE.length - 1, range[2] ? Number(range[2]) : FILE.length - 1)];
    return route.fulfill({ status: 206, headers: { ...headers, "Content-Range": `bytes ${start}-${end}/${FILE.length}` }, body: FILE.subarray(start, end + 1) });
  });
}
