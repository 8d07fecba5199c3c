/** What was not looked at, as topics that nobody takes for findings. */

import type { Advice, Summary } from "../../generated/catalogue";

/** A topic, and why nothing is said of it. */
export interface Topic {
  readonly what: string;
  readonly why: string;
}

/** What the advice did not check, then the kinds of events that were not captured. */
export function topicsOf(advice: Pick<Advice, "not_captured"> | undefined, summary: Pick<Summary, "categories">): Topic[] {
  const checked = advice?.not_captured.map(({ what, reason }) => ({ what: capitalized(what), why: `not checked: ${reason}` })) ?? [];
  const missing = summary.categories.filter(({ captured }) => !captured).map(({ category }) => category.replaceAll("_", " "));
  return missing.length === 0 ? checked : [...checked, { what: "Kinds of events", why: `not captured, which is not the same as none: ${missing.join(", ")}` }];
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
