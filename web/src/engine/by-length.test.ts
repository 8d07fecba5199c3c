import { openAsBlob } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { BlobSource } from "../bytes/source";
import { openTimeline } from "../timeline/file";
import { besideByLength } from "./by-length";
import { Session } from "./session";

const FILE = fileURLToPath(new URL("../../tests/data/synthetic.h5", import.meta.url));

const session = new Session(await openTimeline(new BlobSource(await openAsBlob(FILE))));
const never = () => false;

/** Walks from an event to the last one on that side; the events by their indexes, with their ranks. */
async function walk(index: number, longer: boolean): Promise<{ index: number; duration: number; rank: number }[]> {
  const seen = [];
  let ref = { category: 0, index };
  for (;;) {
    const found = (await besideByLength(session, ref, longer, never))!;
    if (!found.place) {
      expect(found.rank).toBe(longer ? 1 : found.count);
      return seen;
    }
    seen.push({ index: found.place.index, duration: found.place.duration, rank: found.rank });
    ref = { category: 0, index: found.place.index };
  }
}

test("walks over all events of a name by their lengths, each once, there and back", async () => {
  const up = await walk(0, true);
  const down = await walk(0, false);
  const { count } = (await besideByLength(session, { category: 0, index: 0 }, true, never))!;
  expect(up.length + 1 + down.length).toBe(count);
  expect(new Set([0, ...up.map(({ index }) => index), ...down.map(({ index }) => index)]).size).toBe(count);
  const lengths = up.map(({ duration }) => duration);
  expect(lengths).toEqual([...lengths].sort((a, b) => a - b));
  expect(up.map(({ rank }) => rank)).toEqual(up.map((_, at) => up.length - at));
  const longest = up.at(-1)!;
  const back = await walk(longest.index, false);
  expect(back.map(({ index }) => index)).toEqual([...up.slice(0, -1).reverse().map(({ index }) => index), 0, ...down.map(({ index }) => index)]);
});

test("a walk that a newer one replaced is not answered", async () => {
  expect(await besideByLength(session, { category: 0, index: 0 }, true, () => true)).toBeUndefined();
});
