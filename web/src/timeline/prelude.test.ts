import { openAsBlob } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { BlobSource } from "../bytes/source";
import { Finder } from "../engine/find";
import { heldRows } from "../engine/held";
import { Session } from "../engine/session";
import { treeOf } from "../view/tree";
import { leavesOf } from "../view/layout";
import { openTimeline, type TimelineFile } from "./file";
import type { Header, Row } from "./header";
import { withPrelude } from "./prelude";

/** `flopwatch-sample-workload --threads 2 --range-micros 5000` under Nsight Systems for 3 s, and its flight recorder's file of 256 KiB when that began. */
const WINDOW = fileURLToPath(new URL("../../tests/data/window.h5", import.meta.url));
const PRELUDE = fileURLToPath(new URL("../../tests/data/prelude.h5", import.meta.url));

let window: TimelineFile;
let prelude: TimelineFile;
let both: Session;
const never = () => false;

beforeAll(async () => {
  const open = async (path: string) => openTimeline(new BlobSource(await openAsBlob(path)));
  [window, prelude] = await Promise.all([open(WINDOW), open(PRELUDE)]);
  both = new Session(withPrelude(window, prelude));
});

test("what was before the window lies before 0 by the clock of both, in the rows of the same threads", async () => {
  const { header } = both.file;
  expect(header.beginNs).toBe(Number(BigInt(prelude.header.startUtcNs!) - BigInt(window.header.startUtcNs!)));
  expect(header.rows.map(({ label }) => label)).toEqual(window.header.rows.map(({ label }) => label));
  expect(header.categories.map(({ name, count }) => [name, count])).toEqual([["nvtx_range", 1205], ["nvtx_range", 6247]]);
  const [last, first] = [await both.event({ category: 1, index: 6246 }), await both.event({ category: 0, index: 0 })];
  expect(last.start).toBeLessThan(0);
  expect(first.start).toBeGreaterThan(0);
  const own = await new Session(prelude).event({ category: 0, index: 6246 });
  expect([last.start - header.beginNs, last.duration, last.text]).toEqual([own.start, own.duration, own.text]);
  expect(header.rows[last.row]?.thread).toBe(prelude.header.rows[own.row]?.thread);
});

test("a view over the seam draws or counts each event of both once", async () => {
  const { beginNs, durationNs } = both.file.header;
  const view = await both.view({ from: beginNs, to: durationNs, nsPerPixel: (durationNs - beginNs) / 1000, named: true }, never);
  expect(view?.from).toBe(beginNs);
  expect(view?.counts.reduce((sum, count) => sum + count, 0)).toBe(1205 + 6247);
});

test("levels of detail of the prelude begin when its events do", async () => {
  const { levels } = both.category(1);
  for (const { shift, strips } of levels!.levels) {
    const strip = strips[0]!;
    const entries = await levels!.within(strip, shift, both.file.header.beginNs, 0);
    expect(entries.bucket.length).toBe(strip.count);
    for (const at of [0, strip.count - 1]) {
      const event = await both.event({ category: 1, index: Number(entries.event[at]) });
      const begin = Number(entries.bucket[at]) * 2 ** shift;
      expect(event.start - begin).toBeGreaterThanOrEqual(0);
      expect(event.start - begin).toBeLessThan(2 ** shift);
      expect([event.row, event.duration]).toEqual([strip.row, Number(entries.duration[at])]);
    }
  }
});

test("a search walks over the seam, there and back", async () => {
  const finder = new Finder(both);
  const hits = await finder.search("step", never);
  expect(hits?.strip.reduce((sum, count) => sum + count, 0)).toBe(hits?.events);
  const last = await finder.next(undefined, 0, false);
  const first = await finder.next(last, 0, true);
  expect([last?.category, first?.category]).toEqual([1, 0]);
  expect(last!.start).toBeLessThan(0);
  expect(await finder.next(first, 0, false)).toEqual(last);
});

test("where the ring wrapped, each row tells since when it holds its ranges, and otherwise none does", async () => {
  const held = await heldRows(both, 1, prelude.header.drops);
  expect(held.map(({ row }) => row).sort()).toEqual([0, 1]);
  expect(Math.min(...held.map(({ from }) => from))).toBe(both.file.header.beginNs);
  expect(await heldRows(both, 1, [])).toEqual([]);
});

test("what was read of the window stays when a prelude is added", async () => {
  const alone = new Session(window);
  const [block] = await alone.blocks.get(0, [0]);
  const joined = new Session(withPrelude(window, prelude), alone);
  expect((await joined.blocks.get(0, [0]))[0]).toBe(block);
  expect((await joined.blocks.get(1, [0]))[0]?.start[0]).toBe(both.file.header.beginNs);
});

test.each([
  ["no start", { startUtcNs: undefined }, /does not say when it began/],
  ["one behind the window's", { startUtcNs: "1900000000000000000" }, /behind the begin of this capture, so it is the prelude of another/],
  ["one of days before", { startUtcNs: "1700000000000000000" }, /before the begin of this capture, so it is the prelude of another/],
])("a prelude of %s is refused", (_, change, why) => {
  expect(() => withPrelude(window, { ...prelude, header: { ...prelude.header, ...change } })).toThrow(why);
});

/** A file without events. */
function bare(change: Partial<Header>, samples: Record<string, [number[], number[]]> = {}): TimelineFile {
  const header = { ...window.header, categories: [], counters: [], rows: [], ...change };
  return {
    header,
    categories: [],
    samples: async (at) => {
      const [t, value] = samples[header.counters[at]?.metric ?? ""] ?? [[], []];
      return { t: Float64Array.from(t), value: Float64Array.from(value) };
    },
    summary: async () => "of the window",
  };
}

const row = (change: Partial<Row>): Row => ({ ...window.header.rows[0]!, ...change });
const counter = (metric: string, unit: string) => ({ source: "nvml", device: "gpu0", metric, unit });

test("a thread that ended before the window stands in its process, and another process by itself", () => {
  const own = bare({ rows: [row({ machine: 1, process: 7, thread: 70, lanes: 1 })] });
  const rows = [row({ machine: 0, process: 7, thread: 70, lanes: 3 }), row({ machine: 0, process: 7, thread: 71 }), row({ machine: 0, process: 8, thread: 70 })];
  const { header } = withPrelude(own, bare({ rows, startUtcNs: prelude.header.startUtcNs }));
  expect(header.rows.map(({ process, thread, lanes }) => [process, thread, lanes])).toEqual([[7, 70, 3], [7, 71, 2], [8, 70, 2]]);
  expect(treeOf(header).map((group) => leavesOf([group]).map((leaf) => leaf.row))).toEqual([[0, 1], [2]]);
});

test("a counter that both have is one series, by time, and one of the prelude alone is another", async () => {
  const start = BigInt(window.header.startUtcNs!);
  const own = bare({ counters: [counter("power", "W"), counter("clock", "MHz")] }, { power: [[5, 15], [100, 200]], clock: [[0], [1]] });
  const earlier = bare({ counters: [counter("memory", "bytes"), counter("power", "W")], startUtcNs: String(start - 1000n) }, { power: [[0, 990, 1010], [1, 2, 3]], memory: [[500], [9]] });
  const { header, samples, summary } = withPrelude(own, earlier);
  expect(header.counters.map(({ metric }) => metric)).toEqual(["power", "clock", "memory"]);
  const series = await Promise.all([0, 1, 2].map(samples));
  expect(series.map(({ t, value }) => [[...t], [...value]])).toEqual([
    [[-1000, -10, 5, 10, 15], [1, 2, 100, 3, 200]],
    [[0], [1]],
    [[-500], [9]],
  ]);
  expect(await summary()).toBe("of the window");
});
