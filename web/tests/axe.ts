/** What a screen reader and people of weak sight stumble over in a page, by axe-core. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";

const SCRIPT = readFileSync(fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url)), "utf8");

/** The only rule whose answer depends on the theme. */
const THEMED: RunOptions["runOnly"] = ["color-contrast"];

/** Each violation of a rule, with the elements that violate it. With `isThemeAlone` what a change
 * of the theme can violate is asked alone. */
export async function violations(page: Page, isThemeAlone = false): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in globalThis))) {
    // Files of analyses run no scripts but their own.
    await page.evaluate(SCRIPT);
  }
  const options: RunOptions = { resultTypes: ["violations"], ...(isThemeAlone ? { runOnly: THEMED } : {}) };
  const { violations } = await page.evaluate(async (options) => {
    const { axe } = globalThis as unknown as { axe: { run(context: Document, options: RunOptions): Promise<AxeResults> } };
    return axe.run(document, options);
  }, options);
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html, any, all, none }) => `${id} (${help}): ${html.slice(0, 200)} ${[...any, ...all, ...none].map(({ message }) => message).join("; ")}`));
}
