/** The summary artifact. */

import type { Summary, Table, TableRow } from "../generated/catalogue";

export type { Summary, Table as SummaryTable, TableRow as SummaryRow };

/** The summary that `text` is. */
export function parseSummary(text: string): Summary {
  try {
    return JSON.parse(text) as Summary;
  } catch {
    throw new Error("the file's tables are damaged: they are no JSON");
  }
}
