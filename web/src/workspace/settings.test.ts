import { expect, test } from "vitest";
import { Settings } from "./settings";

const storage = () => {
  const kept = new Map<string, string>();
  return { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
};

test("settings are there the next time", () => {
  const kept = storage();
  const settings = new Settings(kept);
  expect([settings.fullNames, settings.dragSelects]).toEqual([false, false]);
  settings.set("dragSelects", true);
  const again = new Settings(kept);
  expect([again.fullNames, again.dragSelects]).toEqual([false, true]);
  again.size(40);
  expect(new Settings(kept).panelShare).toBe(40);
  again.size(undefined);
  expect(new Settings(kept).panelShare).toBeUndefined();
  again.set("dragSelects", false);
  expect(new Settings(kept).dragSelects).toBe(false);
});

test("without a storage, or with a full one, settings last as long as the page", () => {
  const full = {
    getItem: () => null,
    setItem: () => {
      throw new Error("it is full");
    },
  };
  for (const kept of [undefined, full]) {
    const settings = new Settings(kept);
    settings.set("fullNames", true);
    expect(settings.fullNames).toBe(true);
  }
});

test("names are short until full ones are asked for, and what watches is told", () => {
  const settings = new Settings(undefined);
  let told = 0;
  settings.watch(() => (told += 1));
  const name = "void lib::gemm<float, 4>(float*)";
  expect(settings.named(name)).toBe("gemm<float, 4>");
  settings.set("fullNames", true);
  expect(settings.named(name)).toBe(name);
  expect(told).toBe(1);
});
