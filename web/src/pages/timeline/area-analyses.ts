/** Analyses that answer for a part of the time, by their names in the catalogue. */

/** Name and title of each analysis that an area leads to. */
export const AREA_ANALYSES: readonly (readonly [string, string])[] = [
  ["gpu-time", "GPU time"],
  ["utilization", "Utilization"],
  ["overlap", "Overlap"],
  ["cpu-gpu", "CPU and GPU"],
  ["flame-graph", "Flame graph"],
  ["events", "Events"],
];

/** The parameters that ask an analysis for an area. Analyses begin with the capture window. */
export function parametersOf({ from, to }: { readonly from: number; readonly to: number }): Readonly<Record<string, string>> {
  const begin = Math.max(0, Math.floor(from));
  return { from_ns: String(begin), to_ns: String(Math.max(begin + 1, Math.ceil(to))) };
}
