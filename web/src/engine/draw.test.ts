import { expect, test } from "vitest";
import { Picker } from "../pages/timeline/picking";
import type { Entries } from "../timeline/levels";
import { blockOf, lanesOf } from "./block";
import { drawEntries, drawLane, drawSamples, gapsBetween, type Look, type Window } from "./draw";
import { INSTANCE_BYTES, InstanceWriter, KIND, MOST_LANES, NO_NAME } from "./instances";
import type { View } from "./protocol";

const LOOK: Look = { category: 2, firstName: 100, slots: Uint8Array.from({ length: 50 }, (_, at) => at) };

/** Numbers that look random and are the same each time. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Events of one lane: none overlap. */
function laneOf(count: number, seed: number) {
  const next = random(seed);
  const start = new Float64Array(count);
  const duration = new Float64Array(count);
  let time = 0;
  for (let at = 0; at < count; at += 1) {
    time += Math.floor(next() * 50);
    start[at] = time;
    duration[at] = Math.floor(next() ** 6 * 5000);
    time += duration[at] as number;
  }
  const columns = new Map([
    ["start_ns", start],
    ["duration_ns", duration],
  ] as const);
  return blockOf(0, new Map<string, Float64Array | Uint8Array>([...columns, ["name_idx", new Uint8Array(count)], ["row", new Uint8Array(count)], ["lane", new Uint8Array(count)]]));
}

function view(out: InstanceWriter, window: Window, lane = 0): View {
  const parts = out.finish(window.step * 12);
  return {
    ...window,
    ...parts,
    runs: [{ row: 0, lane, category: 2, first: 0, count: out.length }],
    idle: [],
    peaks: [],
    lanes: Uint16Array.of(1),
    named: true,
    coarse: [],
    tookMs: 0,
  };
}

test.each([1, 16, 256, 4096])("with steps of %i ns every event is drawn or counted once, and no more is drawn than there is room for", (step) => {
  const block = laneOf(5000, step);
  const window = { from: 0, to: 1e9, step };
  const out = new InstanceWriter();
  const lane = block.lanes[0];
  expect(lane).toBeDefined();
  drawLane(out, block, lane!, window, LOOK);
  const drawn = out.finish(0);
  expect(drawn.counts.reduce((sum, count) => sum + count, 0)).toBe(5000);
  const length = (block.start.at(-1) as number) + (block.duration.at(-1) as number);
  // Of each step at most a merged one and a long one begin in it.
  expect(out.length).toBeLessThanOrEqual(2 * Math.ceil(length / step) + 1);
  for (let at = 1; at < out.length; at += 1) {
    expect(out.begin(at)).toBeGreaterThanOrEqual(out.begin(at - 1));
  }
});

test("a window draws what runs in it, also what began before", () => {
  const block = blockOf(0, new Map<string, Float64Array | Uint8Array>([
    ["start_ns", Float64Array.of(0, 100, 200, 300)],
    ["duration_ns", Float64Array.of(90, 90, 90, 90)],
    ["name_idx", Uint8Array.of(0, 1, 2, 3)],
    ["row", new Uint8Array(4)],
    ["lane", new Uint8Array(4)],
  ]));
  const out = new InstanceWriter();
  drawLane(out, block, block.lanes[0]!, { from: 150, to: 250, step: 1 }, LOOK);
  expect([...out.finish(0).events]).toEqual([1, 2]);
  expect([out.begin(0), out.end(0)]).toEqual([-50, 40]);
});

test("times an hour into a session are exact to the ns in a narrow window", () => {
  const hour = 3_600_000_000_000;
  const block = blockOf(0, new Map<string, Float64Array | Uint8Array>([
    ["start_ns", Float64Array.of(hour + 1, hour + 3)],
    ["duration_ns", Float64Array.of(1, 1)],
    ["name_idx", new Uint8Array(2)],
    ["row", new Uint8Array(2)],
    ["lane", new Uint8Array(2)],
  ]));
  const out = new InstanceWriter();
  drawLane(out, block, block.lanes[0]!, { from: hour, to: hour + 100, step: 1 }, LOOK);
  expect([out.begin(0), out.end(0), out.begin(1), out.end(1)]).toEqual([1, 2, 3, 4]);
});

test("events are sorted into their rows and lanes, in their order", () => {
  const lanes = lanesOf([0, 1, 0, 0, 1], [0, 0, 1, 0, 0]);
  expect(lanes.map(({ row, lane, members }) => [row, lane, [...members]])).toEqual([
    [0, 0, [0, 3]],
    [1, 0, [1, 4]],
    [0, 1, [2]],
  ]);
});

const ENTRIES: Entries = {
  bucket: Uint32Array.of(0, 1, 2, 9),
  event: Uint32Array.of(5, 6, 7, 8),
  duration: Uint32Array.of(3, 4, 40, 2),
  count: Uint32Array.of(2, 3, 1, 1),
  busy: Uint32Array.of(4, 8, 8, 2),
  name: undefined,
};

test("entries of a level that share a step become one, and long events keep their length", () => {
  const out = new InstanceWriter();
  drawEntries(out, ENTRIES, 0, 1, 3, { from: 0, to: 1000, step: 16 }, LOOK);
  const { events, counts } = out.finish(0);
  expect([...events]).toEqual([6, 7, 8]);
  expect([...counts]).toEqual([5, 1, 1]);
  expect([out.begin(0), out.end(0), out.begin(1), out.end(1)]).toEqual([0, 16, 16, 56]);
});

test("an entry in the lane that began before the window is drawn when it runs into it, and only then", () => {
  const before = (duration: number) => ({ ...ENTRIES, duration: Uint32Array.of(duration, 4, 40, 2) });
  const drawn = (entries: Entries) => {
    const out = new InstanceWriter();
    drawEntries(out, entries, 0, 2, 3, { from: 16, to: 1000, step: 8 }, LOOK);
    return { events: [...out.finish(0).events], begin: out.begin(0), end: out.end(0) };
  };
  expect(drawn(before(900))).toEqual({ events: [5, 7, 8], begin: -16, end: 884 });
  expect(drawn(before(3)).events).toEqual([7, 8]);
});

test("a counter's steps last until the next sample", () => {
  const out = new InstanceWriter();
  drawSamples(out, Float64Array.of(0, 10, 20), Float64Array.of(1, 4, 2), 4, 3, 9, { from: 0, to: 100, step: 1 });
  expect([out.begin(0), out.end(0), out.begin(2), out.end(2)]).toEqual([0, 10, 20, 30]);
});

test("gaps are what no span covers", () => {
  expect(gapsBetween([10, 20, 15, 30, 100, 110, 32, 34], 5)).toEqual([[34, 100]]);
  expect(gapsBetween([], 5)).toEqual([]);
  expect(gapsBetween([0, 100, 10, 20, 103, 104], 2)).toEqual([[100, 103]]);
});

test("every event that is drawn is picked where it is drawn, and nothing between them", () => {
  const block = laneOf(400, 7);
  const window = { from: 0, to: 1e9, step: 1 };
  const out = new InstanceWriter();
  drawLane(out, block, block.lanes[0]!, window, LOOK);
  const picker = new Picker(view(out, window));
  for (let at = 0; at < block.start.length; at += 1) {
    const length = block.duration[at] as number;
    if (length > 1) {
      const found = picker.pick(0, 0, (block.start[at] as number) + length / 2, 0);
      expect(found === undefined ? undefined : picker.view.events[found]).toBe(at);
    }
  }
  expect(picker.pick(0, 0, 1e8, 0)).toBeUndefined();
  expect(picker.pick(1, 0, 10, 1e9)).toBeUndefined();
});

test("near a thin event the pointer finds it, within the slack", () => {
  const out = new InstanceWriter();
  out.push(100, 101, 0, 0, KIND.event, NO_NAME, 0, 0, 1, 42, 1);
  const picker = new Picker(view(out, { from: 0, to: 1000, step: 1 }));
  expect(picker.pick(0, 0, 98, 3)).toBe(0);
  expect(picker.pick(0, 0, 104, 3)).toBe(0);
  expect(picker.pick(0, 0, 96, 3)).toBeUndefined();
});

test("what stands for all lanes is picked in each", () => {
  const out = new InstanceWriter();
  out.push(0, 10, 0, MOST_LANES, KIND.level, NO_NAME, 0, 0, 1, 1, 3);
  const picker = new Picker(view(out, { from: 0, to: 10, step: 1 }, MOST_LANES));
  expect([0, 3].map((lane) => picker.pick(0, lane, 5, 0))).toEqual([0, 0]);
});

test("a rectangle's row, lane, kind, name and category come back as they were written", () => {
  const out = new InstanceWriter();
  for (let at = 0; at < 5000; at += 1) {
    out.push(at, at + 1, at, at % 300, KIND.merged, at * 7, 19, 31, 0.5, at, 2);
  }
  const picker = new Picker(view(out, { from: 0, to: 1e4, step: 1 }));
  expect(out.finish(0).instances.byteLength).toBe(5000 * INSTANCE_BYTES);
  expect([picker.row(4999), picker.lane(200), picker.lane(299), picker.kind(1), picker.name(3000), picker.category(9)]).toEqual([4999, 200, 255, KIND.merged, 21000, 19]);
});
