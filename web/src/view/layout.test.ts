import { expect, test } from "vitest";
import type { Header, Row } from "../timeline/header";
import { type Arrangement, GROUP_HEIGHT, laneAt, LANE_HEIGHT, layoutOf, leavesOf, lineAt, moved, ROW_GAP } from "./layout";
import { counterGroups, treeOf } from "./tree";

const row = (change: Partial<Row>): Row => ({
  capture: 0,
  machine: 0,
  process: 7,
  track: "gpu_stream",
  device: undefined,
  context: undefined,
  stream: undefined,
  thread: undefined,
  lanes: 1,
  label: "python (7)",
  ...change,
});

const HEADER: Header = {
  sessionId: "s",
  beginNs: 0,
  durationNs: 1000,
  totalEvents: 0,
  startUtcNs: undefined,
  source: { profiler: "p", version: "1", details: {} },
  drops: [],
  redactions: 0,
  devices: [{ id: 0, name: "A100", computeCapability: "8.0", multiprocessors: 108, memoryBytes: undefined, peakBandwidth: undefined, figuresFrom: "", part: "" }],
  rows: [
    row({ device: 0, stream: 7, label: "python (7) GPU 0 stream 7" }),
    row({ device: 0, stream: 8, label: "python (7) GPU 0 stream 8" }),
    row({ track: "cuda_api", thread: 70, label: "python (7) main (70)" }),
    row({ track: "nvtx", thread: 70, label: "python (7) main (70)" }),
    row({ track: "os_runtime", thread: 71, label: "python (7) worker (71)" }),
  ],
  categories: [],
  counters: [{ source: "nvml", device: "gpu0", metric: "power", unit: "W" }],
  parts: ["counters"],
  fileBytes: 0,
  extent: [0, 1000],
};

const TREE = treeOf(HEADER);

test("a device that is a part of a GPU says which, and times on a CPU stand below what the thread did", () => {
  const devices = HEADER.devices.map((device) => ({ ...device, name: "A100 MIG 1g.5gb", part: "GPU instance 3, compute instance 0" }));
  const rows = [
    ...HEADER.rows,
    row({ track: "cpu_running", thread: 70, label: "python (7) main (70)" }),
    row({ track: "library", thread: 70, label: "python (7) main (70)" }),
  ];
  const tree = treeOf({ ...HEADER, devices, rows });
  const children = (label: string) => tree[0]?.children.flatMap((node) => (node.label === label && node.kind === "group" ? node.children.map((child) => child.label) : []));
  expect(tree[0]?.children[0]?.label).toBe("GPU 0 · A100 MIG 1g.5gb, GPU instance 3, compute instance 0");
  expect(children("thread main (70)")).toEqual(["NVTX", "libraries", "CUDA API", "on a CPU"]);
});
const LANES = [2, 1, 1, 3, 1, 1];
const PLAIN: Arrangement = { folded: new Set(), pinned: [], order: new Map(), filter: "" };
const labels = (arrangement: Arrangement) => layoutOf(TREE, LANES, arrangement).lines.map((line) => line.label);

test("rows stand by process, device, stream and thread, counters below their device, NVTX above the calls", () => {
  expect(labels(PLAIN)).toEqual([
    "python (7)",
    "GPU 0 · A100",
    "stream 7",
    "stream 8",
    "counters (nvml)",
    "power (W)",
    "thread main (70)",
    "NVTX",
    "CUDA API",
    "thread worker (71): OS runtime",
  ]);
});

test("threads of a flight recorder are called as those of a profiler are", () => {
  const rows = [row({ track: "nvtx", thread: 70, label: "loader (process 7) thread 70" }), row({ track: "nvtx", thread: 71, label: "process 7 thread 71" })];
  const { lines } = layoutOf(treeOf({ ...HEADER, rows, counters: [] }), [1, 1], PLAIN);
  expect(lines.map((line) => line.label)).toEqual(["process 7", "thread loader (70): NVTX", "thread 71: NVTX"]);
});

const counter = (source: string, device: string) => ({ source, device, metric: "power", unit: "W" });

test("devices and their counters stand in the order of their numbers", () => {
  const rows = [row({ device: 10, stream: 7 }), row({ device: 2, stream: 7 })];
  const counters = [counter("nvml", "gpu10"), counter("nvml", "gpu2"), counter("nvml", "gpu3"), counter("host", "memory")];
  const tree = treeOf({ ...HEADER, devices: [], rows, counters });
  const { lines } = layoutOf(tree, [1, 1, 1, 1, 1, 1], { ...PLAIN, folded: new Set(counterGroups(tree)) });
  expect(lines.map((line) => line.label)).toEqual([
    "python (7)",
    "GPU 2",
    "stream 7",
    "counters (nvml)",
    "GPU 10",
    "stream 7",
    "counters (nvml)",
    "counters, host: memory",
    "counters, nvml: gpu3",
  ]);
});

test("counters are below no device where several machines have one of that number", () => {
  const rows = [row({ device: 0, stream: 7 }), row({ machine: 1, device: 0, stream: 7 })];
  const tree = treeOf({ ...HEADER, rows, counters: [counter("nvml", "gpu0")] });
  expect(tree.map(({ key }) => key)).toEqual(["process/0/0/7", "process/0/1/7", "counters/nvml/gpu0"]);
});

test("ranks that were merged keep their names", () => {
  const rows = [
    row({ track: "nvtx", process: 4000, thread: 70, label: "python ([TP00] 4000) thread 70" }),
    row({ track: "nvtx", process: 4001, thread: 71, label: "[TP01] 4001 thread 71" }),
  ];
  const { lines } = layoutOf(treeOf({ ...HEADER, rows, counters: [] }), [1, 1], PLAIN);
  expect(lines.map((line) => line.label)).toEqual(["python ([TP00] 4000)", "thread 70: NVTX", "[TP01] 4001", "thread 71: NVTX"]);
});

test("lines follow each other without a gap or an overlap", () => {
  const { lines, height } = layoutOf(TREE, LANES, PLAIN);
  let y = 0;
  for (const line of lines) {
    expect(line.y).toBe(y);
    y += line.height;
  }
  expect(height).toBe(y);
});

test("a row is as high as its lanes, and less when it is folded", () => {
  const find = (folded: ReadonlySet<string>) => layoutOf(TREE, LANES, { ...PLAIN, folded }).lines.find((line) => line.row === 3);
  expect(find(new Set())?.height).toBe(3 * LANE_HEIGHT + ROW_GAP);
  const folded = find(new Set(["row/3"]));
  expect(folded?.height).toBeLessThan(LANE_HEIGHT + ROW_GAP + 1);
  expect(folded?.lanes).toBe(3);
});

test("a folded group hides its rows, unless a filter looks for them", () => {
  const folded = new Set(["process/0/0/7"]);
  expect(labels({ ...PLAIN, folded })).toEqual(["python (7)"]);
  expect(labels({ ...PLAIN, folded, filter: "stream 8" })).toEqual(["python (7)", "GPU 0 · A100", "stream 8"]);
});

test("a pinned row stands at the top alone, with its whole name", () => {
  const layout = layoutOf(TREE, LANES, { ...PLAIN, pinned: ["row/1"] });
  expect(layout.pinned.map((line) => line.label)).toEqual(["python (7) GPU 0 stream 8"]);
  expect(layout.pinnedHeight).toBe(LANE_HEIGHT + ROW_GAP);
  expect(layout.lines.some((line) => line.row === 1)).toBe(false);
});

test("moved rows stand in their new order", () => {
  const order = new Map([["0/0/7/gpu0", ["row/1", "row/0"]]]);
  expect(labels({ ...PLAIN, order }).slice(2, 4)).toEqual(["stream 8", "stream 7"]);
});

test("a row is moved among its neighbours, up and down, and not into another group", () => {
  const { lines } = layoutOf(TREE, LANES, PLAIN);
  expect(moved(lines, "row/0", "row/1")).toEqual(["row/1", "row/0", "counters/nvml/gpu0"]);
  expect(moved(lines, "row/1", "row/0")).toEqual(["row/1", "row/0", "counters/nvml/gpu0"]);
  expect(moved(lines, "row/0", "row/3")).toBeUndefined();
  expect(moved(lines, "row/0", "row/0")).toBeUndefined();
});

test("the line and the lane under a point are found", () => {
  const { lines } = layoutOf(TREE, LANES, PLAIN);
  for (const line of lines) {
    expect(lineAt(lines, line.y)).toBe(line);
    expect(lineAt(lines, line.y + line.height - 1)).toBe(line);
  }
  expect(lineAt(lines, -1)).toBeUndefined();
  expect(lineAt(lines, 1e6)).toBeUndefined();
  const nvtx = lines.find((line) => line.row === 3);
  expect(nvtx && [0, 20, 53].map((y) => laneAt(nvtx, nvtx.y + y))).toEqual([0, 1, 2]);
  expect(GROUP_HEIGHT).toBeGreaterThan(0);
});

test("every row of the file and every counter is in the tree once", () => {
  expect(leavesOf(TREE).map((leaf) => leaf.row).sort()).toEqual([0, 1, 2, 3, 4, 5]);
});
