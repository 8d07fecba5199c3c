import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { inflate, unfilter, unshuffle } from "./filters";

test("shuffled bytes come back in order, and what is left over stays at the end", () => {
  // Two values of three bytes, and one byte more.
  expect([...unshuffle(Uint8Array.from([1, 4, 2, 5, 3, 6, 9]), 3)]).toEqual([1, 2, 3, 4, 5, 6, 9]);
});

test("values of one byte are not shuffled", () => {
  expect([...unshuffle(Uint8Array.from([3, 1, 2]), 1)]).toEqual([3, 1, 2]);
});

test("filters are undone in the opposite order", async () => {
  const packed = new Uint8Array(deflateSync(Uint8Array.from([1, 3, 2, 4])));
  expect([...(await unfilter(packed, [{ id: 2, values: [2] }, { id: 1, values: [5] }], 2))]).toEqual([1, 2, 3, 4]);
});

test("a damaged stream says so", async () => {
  await expect(inflate(Uint8Array.from([1, 2, 3, 4]))).rejects.toThrow("they are no zlib stream");
});

test("an unknown filter is named", async () => {
  await expect(unfilter(new Uint8Array(8), [{ id: 32001, values: [] }], 1)).rejects.toThrow("filter 32001");
});
