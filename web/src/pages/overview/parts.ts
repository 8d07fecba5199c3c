/** Where the GPUs' time went, in parts that add up. */

import type { ExclusiveTime } from "../../generated/catalogue";

/** A part of the time. */
export interface Part {
  readonly title: string;
  readonly ns: number;
  /** Share of the whole, from 0 to 1. */
  readonly share: number;
  /** The analysis that says more of it. */
  readonly analysis: string;
  /** Its colour among those of charts. */
  readonly colour: number;
}

/** The parts of a time, in the order in which shared time is counted; none of no time. */
export function partsOf(time: ExclusiveTime): Part[] {
  const whole = time.window_ns;
  const part = (title: string, ns: number, analysis: string, colour: number): Part => ({ title, ns, share: ns / whole, analysis, colour });
  return whole <= 0
    ? []
    : [
        part("computation", time.compute_ns, "kernel-types", 0),
        part("communication that nothing hides", time.exposed_communication_ns, "overlap", 1),
        part("copies that nothing hides", time.exposed_memory_ns, "overlap", 2),
        part("GPU idle", time.idle_ns, "idle", 6),
      ];
}
