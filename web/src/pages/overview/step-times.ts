/** How long steps take: what they are called, and which of them one looks at. */

import type { IterationRow, IterationsResult } from "../../generated/catalogue";

/** What a step is called here, one and many: what repeats need not be a step of training. */
export function unitOf({ source, name }: Pick<IterationsResult, "source" | "name">): readonly [one: string, many: string] {
  switch (source) {
    case "step":
    case "device_step":
      return ["step", "steps"];
    case "kernel_period":
      return ["period of kernels", "periods of kernels"];
    default:
      return [`range “${name}”`, `ranges “${name}”`];
  }
}

/** The longest step that is no warm-up; undefined without any. */
export function longestOf(rows: readonly IterationRow[]): IterationRow | undefined {
  return rows.filter(({ warm_up }) => !warm_up).reduce<IterationRow | undefined>((longest, row) => (longest === undefined || row.time_ns > longest.time_ns ? row : longest), undefined);
}

/** A bar of the plot: its height as a share of the longest, and what it is told apart by. */
export interface StepBar {
  readonly row: IterationRow;
  readonly height: number;
  readonly kind: "usual" | "outlier" | "warm-up";
}

/** The bars of steps, on one scale from 0. */
export function barsOf(rows: readonly IterationRow[]): StepBar[] {
  const longest = rows.reduce((most, { time_ns }) => Math.max(most, time_ns), 1);
  return rows.map((row) => ({ row, height: row.time_ns / longest, kind: row.warm_up ? "warm-up" : row.outlier ? "outlier" : "usual" }));
}
