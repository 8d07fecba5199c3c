/** What a capture is, in words. */

import type { Header } from "../../timeline/header";
import * as format from "../../view/format";
import type { Branch } from "../../view/tree";

/** More programs are counted. */
const MOST_PROGRAMS = 3;

/** A window that is longer by this much is told beside the time in which something happened. */
const MUCH_LONGER = 1.1;

/** GPUs by their product names, each with how many of that name there are; undefined where no name is known. */
export function gpusOf(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names.filter((name) => name !== "")) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const labels = [...counts].map(([name, count]) => (count === 1 ? name : `${count} × ${name}`));
  return labels.length === 0 ? undefined : labels.join(", ");
}

/** Programs of the capture's processes, without their numbers; undefined where none has a name. */
export function programsOf(tree: readonly Branch[]): string | undefined {
  const labels = tree.filter(({ key }) => key.startsWith("process/")).map(({ label }) => /^(.+) \((?:\[[^\]]*\] )?\d+\)$/.exec(label)?.[1]);
  const names = [...new Set(labels.filter((label) => label !== undefined))];
  const more = names.length - MOST_PROGRAMS;
  return names.length === 0 ? undefined : `${names.slice(0, MOST_PROGRAMS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** When the capture began, to the second. */
export function beganOf(startUtcNs: string): string {
  const [day, time] = format.time(0, "utc", startUtcNs).split("T");
  return `${day} ${time?.slice(0, 8)} UTC`;
}

/** Whether the window is much longer than the time in which something happened. */
export function isMuchLonger(windowNs: number, spanNs: number): boolean {
  return spanNs > 0 && windowNs > spanNs * MUCH_LONGER;
}

/** How long the capture is: the time in which something happened, and the window where that is much longer. */
export function lengthOf({ durationNs }: Pick<Header, "durationNs">, spanNs: number): string {
  return isMuchLonger(durationNs, spanNs)
    ? `${format.duration(spanNs)} from the first event to the last, in a window of ${format.duration(durationNs)}`
    : format.duration(durationNs);
}
