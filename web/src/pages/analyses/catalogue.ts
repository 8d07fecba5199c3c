/** The catalogue as a list that people choose from: what a search finds of it, and what the capture cannot have. */

import type { Header } from "../../timeline/header";
import type { Analysis, AnalysisGroup } from "./request";

/** What the capture lacks for an analysis to tell anything, in words; undefined where it has what that takes. */
export function lacking({ subject }: Analysis, { categories, parts }: Pick<Header, "categories" | "parts">): string | undefined {
  const isCaptured = (name: string) => categories.some((category) => category.name === name);
  if (subject.categories === null || subject.categories.some(isCaptured) || subject.parts.some((part) => parts.includes(part))) {
    return undefined;
  }
  return subject.words;
}

/** The groups with those of their analyses that have every word of `text` in their title, name or sentence, or in the group's question. */
export function found(groups: readonly AnalysisGroup[], text: string): AnalysisGroup[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return groups.flatMap((group) => {
    const isFound = ({ title, name, about }: Analysis) => {
      const all = `${group.question} ${title} ${name} ${about}`.toLowerCase();
      return words.every((word) => all.includes(word));
    };
    const analyses = group.analyses.filter(isFound);
    return analyses.length === 0 ? [] : [{ ...group, analyses }];
  });
}
