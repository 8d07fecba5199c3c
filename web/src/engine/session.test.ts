import { openAsBlob } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { BlobSource } from "../bytes/source";
import { Picker } from "../pages/timeline/picking";
import { openTimeline } from "../timeline/file";
import { shortName } from "../view/names";
import { areaStats, unionLength } from "./area";
import { Finder } from "./find";
import { Session } from "./session";

/** Made by this repository's own programs: `flopwatch-trace-bench make-export` with 6000 kernels, 300 copies and 700 ranges, then `flopwatch convert`. */
const FILE = fileURLToPath(new URL("../../tests/data/synthetic.h5", import.meta.url));

let session: Session;
const never = () => false;

beforeAll(async () => {
  const source = new BlobSource(await openAsBlob(FILE));
  session = new Session(await openTimeline(source));
});

test("the header tells rows, categories and the source", () => {
  const { header } = session.file;
  expect(header.totalEvents).toBe(7000);
  expect(header.source.profiler).toBe("NVIDIA Nsight Systems");
  expect(header.rows.map((row) => [row.track, row.device, row.stream])).toContainEqual(["gpu_stream", 0, 7]);
  expect(header.categories.find((category) => category.name === "cuda_kernel")?.count).toBe(6000);
});

test("a view of everything draws or counts each event once", async () => {
  const { durationNs } = session.file.header;
  const view = await session.view({ from: 0, to: durationNs, nsPerPixel: durationNs / 1000, named: true }, never);
  expect(view?.counts.reduce((sum, count) => sum + count, 0)).toBe(7000);
  expect(view?.named).toBe(true);
});

test("a level of detail counts the events as the events themselves do", async () => {
  const kernels = session.category(0);
  expect(kernels.levels?.levels.length).toBeGreaterThan(0);
  for (const level of kernels.levels?.levels ?? []) {
    let sum = 0;
    for (const strip of level.strips) {
      const entries = await kernels.levels!.within(strip, level.shift, 0, session.file.header.durationNs);
      sum += Array.from<number | bigint>(entries.count).reduce<number>((sum, count) => sum + Number(count), 0);
    }
    expect(sum).toBe(6000);
  }
});

test("a level of detail has the lanes of the events, and the names of the longest of them", async () => {
  const kernels = session.category(0);
  const level = kernels.levels!.levels[0]!;
  expect(level.strips.length).toBeGreaterThan(1);
  for (const strip of level.strips.slice(0, 4)) {
    const entries = await kernels.levels!.within(strip, level.shift, 0, session.file.header.durationNs);
    for (const at of [0, entries.bucket.length - 1]) {
      const event = await session.event({ category: 0, index: Number(entries.event[at]) });
      expect([event.row, event.lane, event.name, event.duration]).toEqual([strip.row, strip.lane, Number(entries.name![at]), Number(entries.duration[at])]);
      expect(Math.floor(event.start / 2 ** level.shift)).toBe(Number(entries.bucket[at]));
    }
  }
});

test("the entries of a time come with the last one before it, which may run into it", async () => {
  const kernels = session.category(0);
  const level = kernels.levels!.levels[0]!;
  const strip = level.strips[0]!;
  const all = await kernels.levels!.within(strip, level.shift, 0, session.file.header.durationNs);
  const at = all.bucket.length >> 1;
  const from = (Number(all.bucket[at]) + 1) * 2 ** level.shift;
  const some = await kernels.levels!.within(strip, level.shift, from, session.file.header.durationNs);
  expect(Number(some.event[0])).toBe(Number(all.event[at]));
});

test("rows tell how many lanes their events take before any is read", async () => {
  const { header } = session.file;
  const view = await session.view({ from: 0, to: 1000, nsPerPixel: 1, named: false }, never);
  expect([...view!.lanes].slice(0, header.rows.length)).toEqual(header.rows.map(({ lanes }) => lanes));
  expect(header.rows.some(({ lanes }) => lanes > 1)).toBe(true);
});

test("idle times of a device lie between the events of its streams, in each of them", async () => {
  const { header } = session.file;
  const view = await session.view({ from: 0, to: header.durationNs, nsPerPixel: 1, named: false }, never);
  const streams = header.rows.flatMap(({ track }, row) => (track === "gpu_stream" ? [row] : []));
  expect(view!.idle.map(({ row }) => row)).toEqual(streams);
  const picker = new Picker(view!);
  const { row, first, count } = view!.idle[0]!;
  const lengthOf = (at: number) => picker.end(at) - picker.begin(at);
  const gap = Array.from({ length: count }, (_, at) => first + at).reduce((longest, at) => (lengthOf(at) > lengthOf(longest) ? at : longest));
  expect(lengthOf(gap)).toBeGreaterThan(100);
  expect(picker.pickIdle(row, (picker.begin(gap) + picker.end(gap)) / 2)).toBe(gap);
  expect(picker.pickIdle(row, picker.end(gap) + 1e12)).toBeUndefined();
  // Times of rectangles are rounded to some ns.
  const rows = streams.filter((other) => header.rows[other]?.device === header.rows[row]?.device);
  const inside = await areaStats(session, { from: picker.begin(gap) + 16, to: picker.end(gap) - 16, rows }, never);
  expect(inside?.events).toBe(0);
});

test("counters of one metric have one scale, which is told", async () => {
  const values = [[1, 5], [200, 100], [3, 4]];
  const counters = [
    { source: "nvml", device: "gpu0", metric: "power", unit: "W" },
    { source: "nvml", device: "gpu1", metric: "power", unit: "W" },
    { source: "nvml", device: "gpu0", metric: "clock", unit: "MHz" },
  ];
  const file = {
    ...session.file,
    header: { ...session.file.header, counters },
    summary: () => session.file.summary(),
    samples: async (at: number) => ({ t: Float64Array.of(0, 10), value: Float64Array.from(values[at]!) }),
  };
  const view = await new Session(file).view({ from: 0, to: 1000, nsPerPixel: 1, named: false }, never);
  expect(view?.peaks).toEqual([200, 200, 4]);
});

test("a request that a newer one replaced is not answered", async () => {
  expect(await session.view({ from: 0, to: 1e6, nsPerPixel: 1000, named: false }, () => true)).toBeUndefined();
});

test("an event has its name, its place and its own columns", async () => {
  const event = await session.event({ category: 0, index: 0 });
  expect(event.text).toMatch(/^void /);
  expect(event.fields.map(([name]) => name)).toEqual(expect.arrayContaining(["grid_x", "block_x", "registers", "correlation"]));
  expect(event.duration).toBeGreaterThan(0);
});

test("next and previous walk over every hit once, in order, there and back", async () => {
  const finder = new Finder(session);
  const hits = await finder.search("vectorized_elementwise_kernel<19", never);
  expect(hits?.events).toBeGreaterThan(50);
  expect(hits?.strip.reduce((sum, count) => sum + count, 0)).toBe(hits?.events);
  const seen: number[] = [];
  let at = await finder.next(undefined, 0, true);
  while (at && seen.length < 10_000) {
    expect(at.rank).toBe(seen.length + 1);
    expect(at.start).toBeGreaterThanOrEqual((await session.place({ category: 0, index: seen.at(-1) ?? 0 })).start * (seen.length > 0 ? 1 : 0));
    seen.push(at.index);
    at = await finder.next(at, 0, true);
  }
  expect(new Set(seen).size).toBe(hits?.events);
  const back: number[] = [];
  at = await finder.next(undefined, Number.MAX_SAFE_INTEGER, false);
  while (at && back.length < 10_000) {
    expect(at.rank).toBe((hits?.events ?? 0) - back.length);
    back.push(at.index);
    at = await finder.next(at, 0, false);
  }
  expect(back.reverse()).toEqual(seen);
});

test("hits of several categories are counted in the order in which they are walked over", async () => {
  const finder = new Finder(session);
  const hits = await finder.search("/memcpy|layer 1/", never);
  const categories = new Set<number>();
  let at = await finder.next(undefined, 0, true);
  for (let rank = 1; at && rank < 10_000; rank += 1) {
    expect(at.rank).toBe(rank);
    categories.add(at.category);
    at = await finder.next(at, 0, true);
  }
  expect(categories.size).toBeGreaterThan(2);
  at = await finder.next(undefined, Number.MAX_SAFE_INTEGER, false);
  expect(at?.rank).toBe(hits?.events);
});

test("a kernel is found by its short name, which its full one does not contain", async () => {
  const full = (await session.event({ category: 0, index: 0 })).text;
  const short = shortName(full);
  expect(full).not.toContain(short);
  const finder = new Finder(session);
  const [byShort, byFull] = [await finder.search(short, never), await finder.search(full, never)];
  expect(byShort?.events).toBe(byFull?.events);
  expect(byFull?.events).toBeGreaterThan(0);
});

test("the shortest and the longest event of a name are found by their figures, copies by their bytes", async () => {
  const summary = JSON.parse(await session.file.summary()) as Record<string, { rows: { name: string; min: number; max: number }[] }>;
  const finder = new Finder(session);
  for (const { name, min, max } of summary["kernels"]!.rows.slice(0, 5)) {
    for (const value of [min, max]) {
      const found = await finder.instanceOf(0, name, { column: "duration_ns", value });
      expect([found?.duration, (await session.event(found!)).text]).toEqual([value, name]);
    }
    expect(await finder.instanceOf(0, name, { column: "duration_ns", value: max + 1 })).toBeUndefined();
  }
  const row = summary["memcpy_size"]!.rows[0]!;
  const names = await Promise.all(session.file.categories.map((category) => category.names()));
  const copies = session.file.categories.findIndex(({ name }, at) => name.startsWith("cuda_memcpy") && names[at]!.includes(row.name));
  const largest = await finder.instanceOf(copies, row.name, { column: "bytes", value: row.max });
  expect(new Map((await session.event(largest!)).fields).get("bytes")).toBe(row.max);
});

test("nothing is found for a name that is not there", async () => {
  const finder = new Finder(session);
  expect((await finder.search("no such name", never))?.events).toBe(0);
  expect(await finder.next(undefined, 0, true)).toBeUndefined();
});

test("an area of everything has the figures of the summary", async () => {
  const rows = session.file.header.rows.map((_, at) => at);
  const stats = await areaStats(session, { from: 0, to: session.file.header.durationNs + 1, rows }, never);
  expect(stats?.events).toBe(7000);
  const summary = JSON.parse(await session.file.summary()) as { kernels: { rows: { name: string; calls: number; total: number; min: number; max: number }[] } };
  for (const row of summary.kernels.rows) {
    const found = stats?.rows.find((one) => one.category === 0 && one.text === row.name);
    expect(found).toMatchObject({ count: row.calls, total: row.total, inside: row.total, min: row.min, max: row.max });
    const [first, shortest, longest] = await Promise.all([found!.first, found!.shortest, found!.longest].map((index) => session.place({ category: 0, index })));
    expect([shortest!.duration, longest!.duration, longest!.name]).toEqual([row.min, row.max, found!.name]);
    expect(first!.start).toBeLessThanOrEqual(Math.min(shortest!.start, longest!.start));
  }
});

test("neighbouring areas hold the time of the area that they make up", async () => {
  const rows = session.file.header.rows.map((_, at) => at);
  const middle = session.file.header.durationNs / 2;
  const inside = async (from: number, to: number) => {
    const stats = await areaStats(session, { from, to, rows }, never);
    return stats?.rows.reduce((sum, row) => sum + row.inside, 0) ?? 0;
  };
  expect((await inside(0, middle)) + (await inside(middle, middle * 2))).toBeCloseTo(await inside(0, middle * 2), 3);
});

test("the union of spans counts overlap once", () => {
  expect(unionLength([[0, 10], [5, 20], [30, 31], [30, 31]])).toBe(21);
  expect(unionLength([])).toBe(0);
});
