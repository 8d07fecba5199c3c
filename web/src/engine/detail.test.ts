import { expect, test } from "vitest";
import { bytesOf, chunkOf, chunksWithin, type Tiles } from "../timeline/tiles";
import { CHEAP_BYTES, CHEAP_UNPACKED, chooseDetails, mergeStep } from "./detail";

/** Chunks of 100 events and `each` bytes per column, each 1,000 ns long; the first holds an event that ends at `longest`. */
function tiles(chunks: number, each: number, longest = 0): Tiles {
  const columns = ["start_ns", "duration_ns", "name_idx", "row", "lane"];
  const starts = Float64Array.from({ length: chunks }, (_, at) => at * 1000);
  return {
    events: chunks * 100,
    chunkEvents: 100,
    columns,
    widths: [8, 8, 2, 1, 1],
    first: Float64Array.from({ length: chunks }, (_, at) => at * 100),
    count: new Uint32Array(chunks).fill(100),
    tMin: starts,
    tMax: starts.map((start, at) => (at === 0 ? Math.max(longest, 1000) : start + 1000)),
    offset: new Float64Array(chunks * columns.length),
    bytes: new Float64Array(chunks * columns.length).fill(each),
  };
}

const LEVELS = { levels: [4, 6, 8, 10].map((shift) => ({ shift, strips: [] })) };
const none = () => false;

test("a step is a power of two of a pixel to two", () => {
  expect([0.01, 1, 1.5, 2, 1000, 1024].map(mergeStep)).toEqual([1, 1, 2, 2, 1024, 1024]);
});

test("the chunks of a time are found, with one from long before that is still running", () => {
  expect(chunksWithin(tiles(10, 1), 3500, 5200)).toEqual([3, 4, 5]);
  expect(chunksWithin(tiles(10, 1, 4000), 3500, 5200)).toEqual([0, 3, 4, 5]);
  expect(chunksWithin(tiles(10, 1), 20_000, 30_000)).toEqual([]);
});

test("the chunk of an event is found, and one that is not there is refused", () => {
  expect(chunkOf(tiles(10, 1), 999)).toBe(9);
  expect(() => chunkOf(tiles(10, 1), 1000)).toThrow("there is no event 1000");
});

test("bytes are counted by column", () => {
  expect(bytesOf(tiles(10, 7), [1, 2], ["start_ns", "lane", "missing"])).toBe(28);
});

test("cheap events are drawn one by one although a level would do", () => {
  expect(chooseDetails([{ tiles: tiles(10, 10), levels: LEVELS }], { from: 0, to: 1e4, step: 1024 }, none)[0]?.kind).toBe("events");
});

test("costly events are drawn by the coarsest level that is no wider than a step", () => {
  const choice = { tiles: tiles(100, CHEAP_BYTES), levels: LEVELS };
  const at = (step: number) => chooseDetails([choice], { from: 0, to: 1e5, step }, none)[0];
  expect(at(256)).toEqual({ kind: "level", level: LEVELS.levels[2] });
  expect(at(512)).toEqual({ kind: "level", level: LEVELS.levels[2] });
  expect(at(1 << 20)).toEqual({ kind: "level", level: LEVELS.levels[3] });
});

test("where every level is wider than a step, or there is none, events are drawn", () => {
  const costly = tiles(100, CHEAP_BYTES);
  expect(chooseDetails([{ tiles: costly, levels: LEVELS }], { from: 0, to: 1e5, step: 8 }, none)[0]?.kind).toBe("events");
  expect(chooseDetails([{ tiles: costly, levels: undefined }], { from: 0, to: 1e5, step: 1e6 }, none)[0]?.kind).toBe("events");
});

test("what is in memory costs nothing", () => {
  const choice = { tiles: tiles(100, CHEAP_BYTES), levels: LEVELS };
  expect(chooseDetails([choice], { from: 0, to: 1e5, step: 256 }, () => true)[0]?.kind).toBe("events");
});

test("what is few bytes but many events is drawn by a level until it is in memory", () => {
  const choice = { tiles: { ...tiles(2, 10), count: Uint32Array.of(CHEAP_UNPACKED, 1) }, levels: LEVELS };
  const kind = (cached: (category: number, chunk: number) => boolean) => chooseDetails([choice], { from: 0, to: 1e5, step: 256 }, cached)[0]?.kind;
  expect(kind(none)).toBe("level");
  expect(kind((_, chunk) => chunk === 0)).toBe("events");
});

test("all categories of a view share what may be fetched, the cheapest first", () => {
  const half = { tiles: tiles(1, CHEAP_BYTES * 0.15), levels: LEVELS };
  const small = { tiles: tiles(1, 10), levels: LEVELS };
  const kinds = chooseDetails([half, half, small], { from: 0, to: 1000, step: 256 }, none).map((detail) => detail.kind);
  expect(kinds).toEqual(["events", "level", "events"]);
});
