import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MemorySource } from "../bytes/source";
import { FormatError } from "./cursor";
import { openHdf5 } from "./file";

/** Made by structures.py beside it. */
const BYTES = new Uint8Array(readFileSync(new URL("../../tests/data/structures.h5", import.meta.url)));

const open = (bytes: Uint8Array<ArrayBuffer> = BYTES) => {
  const source = new MemorySource(bytes);
  return openHdf5(source, source);
};

test("a group of many links and attributes is read from its heap", async () => {
  const many = await (await open()).group("many");
  expect(many.names().sort()).toEqual(Array.from({ length: 40 }, (_, at) => `group ${String(at).padStart(2, "0")}`));
  const attributes = await many.attributes();
  expect(attributes.size).toBe(40);
  expect(attributes.get("attribute 39")).toBe(39);
});

test("an attribute of text is read", async () => {
  expect((await (await open()).attributes()).get("few")).toBe("one attribute");
});

test.each([
  ["none", []],
  ["contiguous", Array.from({ length: 50 }, (_, at) => at)],
  ["one chunk", Array.from({ length: 50 }, (_, at) => at * 1_000_003)],
  ["chunks", Array.from({ length: 1000 }, (_, at) => BigInt(at) * 10_000_000_007n)],
  ["plain chunks", Array.from({ length: 100 }, (_, at) => at)],
  ["many chunks", Array.from({ length: 1100 }, (_, at) => at)],
])("the column %s is read whole", async (name, expected) => {
  const columns = await (await open()).group("columns");
  const numbers = await (await columns.dataset(name)).numbers();
  expect(Array.from<number | bigint>(numbers)).toEqual(expected);
});

test.each([
  ["chunks", 0, 1],
  ["chunks", 63, 2],
  ["chunks", 990, 10],
  ["many chunks", 1000, 100],
  ["one chunk", 49, 1],
])("of the column %s the values from %i on, %i of them, are read", async (name, first, count) => {
  const columns = await (await open()).group("columns");
  const set = await columns.dataset(name);
  expect(Array.from<number | bigint>(await set.range(first, count))).toEqual(Array.from<number | bigint>(await set.numbers()).slice(first, first + count));
});

test("texts are read from the heap, empty and long ones too", async () => {
  const columns = await (await open()).group("columns");
  const texts = await (await columns.dataset("texts")).texts();
  expect(texts.length).toBe(304);
  expect(texts.slice(0, 3)).toEqual(["", "short", "ünïcödé"]);
  expect(texts[3]).toBe("x".repeat(10_000));
  expect(texts[303]).toBe("name 299");
  expect(await (await columns.dataset("text")).texts()).toEqual(["a single text"]);
});

test("what is not there is named", async () => {
  const root = await open();
  await expect(root.group("missing")).rejects.toThrow("the file has no /missing");
});

test("a truncated file says so", async () => {
  await expect(open(BYTES.slice(0, BYTES.length - 100))).rejects.toThrow(/truncated/);
});

test("a file of another kind says so", async () => {
  await expect(open(new TextEncoder().encode("{}".repeat(200)))).rejects.toThrow("this is no HDF5 file");
});

test("damage ends in an error of its own kind, never in a loop or in memory", async () => {
  // Every byte of the structures at the file's start in turn, by a fixed pattern.
  for (let at = 48; at < 2000; at += 7) {
    const bytes = BYTES.slice();
    bytes[at] = (bytes[at] as number) ^ 0xff;
    try {
      const root = await open(bytes);
      for (const name of root.names()) {
        await (await root.group(name)).attributes();
      }
    } catch (error) {
      const known = error instanceof FormatError || (error as Error).name === "SourceError" || error instanceof RangeError;
      expect(known, `byte ${at}: ${String(error)}`).toBe(true);
    }
  }
});
