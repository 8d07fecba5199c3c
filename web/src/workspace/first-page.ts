/** Which page a file is first looked at on. */

import type { Header, PARTS } from "../timeline/header";

/** A page, and the analysis that is shown there. */
export interface FirstPage {
  readonly page: string;
  readonly analysis?: string;
}

/** The analysis that shows what a file holds beside events, the most telling first. */
const ANALYSIS_OF: readonly (readonly [(typeof PARTS)[number], string])[] = [
  ["profiles", "profiled-kernels"],
  ["stacks", "memory-profile"],
  ["programs", "hlo-operations"],
];

/** Whether the timeline has nothing to show. */
function isBare({ totalEvents, counters }: Header): boolean {
  return totalEvents === 0 && counters.length === 0;
}

/**
 * The page by what the file holds: a report of kernels, a profile of memory and a dump of programs have no events, and analyses of their own,
 * where analyses can be run. Everything else is looked at on the overview.
 */
export function firstPage(header: Header, canAnalyze: boolean): FirstPage {
  const found = canAnalyze && isBare(header) ? ANALYSIS_OF.find(([part]) => header.parts.includes(part)) : undefined;
  return found ? { page: "analyses", analysis: found[1] } : { page: "overview" };
}

/** Whether a page that was chosen for an earlier file has anything of this one. */
export function fits(page: string, header: Header): boolean {
  const isOfEvents = page === "timeline" || page === "tables";
  // Kernels that Nsight Compute measured have a table.
  return !isOfEvents || !isBare(header) || (page === "tables" && header.parts.includes("profiles"));
}
