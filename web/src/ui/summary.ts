/** The summary artifact: its generated types, and its tables by name. */

import { SUMMARY_TABLES, type Summary, type Table, type TableRow } from "../generated/catalogue";

export type { Summary, Table as SummaryTable, TableRow as SummaryRow };

/** A table and what it is called. */
export interface NamedTable {
  readonly key: string;
  readonly title: string;
  readonly table: Table;
  /** Categories whose events its rows count. */
  readonly categories: readonly string[];
}

/** The summary that `text` is. */
export function parseSummary(text: string): Summary {
  try {
    return JSON.parse(text) as Summary;
  } catch {
    throw new Error("the file's tables are damaged: they are no JSON");
  }
}

/** The tables that a summary has; files of before lack some. */
export function tablesOf(summary: Summary): NamedTable[] {
  return SUMMARY_TABLES.flatMap(({ field, title, categories }) => {
    const table = summary[field];
    return table && Array.isArray(table.rows) ? [{ key: field, title, table, categories }] : [];
  });
}
