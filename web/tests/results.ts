/** Results of analyses, made by hand: those that the overview asks for. */

import type { Advice, Finding, GpuTimes, IterationRow, IterationsResult } from "../src/generated/catalogue";

const finding = (rule: string, gain_ns: number, place: boolean): Finding => ({
  rule,
  title: `Title of ${rule}`,
  area: "idle",
  severity: "high",
  confidence: "medium",
  sentence: `Sentence of ${rule}.`,
  gain: { gain_ns, window_share_ratio: 0.1, assumption: "it is so" },
  actions: [`First action of ${rule}`, "another"],
  evidence: [{ what: "gap", value: 5, unit: "ns", place: place ? { input: 0, start_ns: 100_000, end_ns: 120_000, row: 0 } : null }],
});

export const ADVICE: Advice = {
  window_start_ns: 0,
  window_ns: 1_000_000,
  gpus: 1,
  findings: [finding("one", 400_000, true), finding("two", 300_000, false), finding("three", 200_000, true), finding("four", 100_000, true)],
  findings_left_out: 0,
  rules: [],
  not_captured: [{ what: "GPU memory headroom", reason: "profile with profile_memory=True" }],
};

const PARTS = { window_ns: 1_000_000, compute_ns: 500_000, exposed_communication_ns: 200_000, exposed_memory_ns: 50_000, idle_ns: 250_000 };

const TIMES = { gpus: [], all: PARTS, micro_idle_below_ns: 30_000, not_captured: [] } as GpuTimes;

const step = (number: number, time_ns: number, change: Partial<IterationRow> = {}) =>
  ({ number, row: 0, name: `step ${number}`, start_ns: number * 1_000_000, end_ns: number * 1_000_000 + time_ns, time_ns, warm_up: false, outlier: false, ...change }) as IterationRow;

const STEPS = {
  not_captured: [],
  source: "step",
  name: "step #",
  cautions: [],
  iterations: 4,
  warm_up_iterations: 1,
  left_out: 0,
  time: { min_ns: 2_000_000, median_ns: 2_000_000, mean_ns: 2_333_333, p95_ns: 3_000_000, max_ns: 3_000_000, deviation_ns: 1 },
  rows: [step(0, 9_000_000, { warm_up: true }), step(1, 2_000_000), step(2, 3_000_000, { outlier: true }), step(3, 2_000_000)],
} as unknown as IterationsResult;

/** The results by the names of their analyses. */
export const RESULTS = { advice: ADVICE, "gpu-time": TIMES, iterations: STEPS } as const;
