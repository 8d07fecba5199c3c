/** The search: how many events match, and at which of them one is. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { settled, type Stage, stage } from "./stage";

let on: Stage;

beforeAll(async () => {
  on = await stage();
});
afterAll(() => on.close());

test("while one walks over hits one reads at which of them one is, from the last to the first and back", async () => {
  const page = await on.open("?file=files/synthetic.h5#page=timeline");
  await settled(page);
  const search = page.getByRole("searchbox", { name: /Search names/ });
  const count = page.locator("search .count");
  const reads = (text: string) => expect.poll(() => count.innerText()).toBe(text);
  await search.fill("layer 8");
  await count.waitFor();
  const all = await count.innerText();
  expect(Number(all)).toBeGreaterThan(3);
  await search.press("Enter");
  await reads(`1 of ${all}`);
  await search.press("Enter");
  await reads(`2 of ${all}`);
  await search.press("Shift+Enter");
  await reads(`1 of ${all}`);
  await search.press("Shift+Enter");
  await reads(`${all} of ${all}`);
  await search.press("Enter");
  await reads(`1 of ${all}`);
  await search.fill("layer 80");
  await expect.poll(() => count.innerText()).toMatch(/^\d+$/);
});
