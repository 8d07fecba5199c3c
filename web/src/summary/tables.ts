/** The tables of a summary, by name. */

import { SUMMARY_TABLES, type Summary, type Table } from "../generated/catalogue";

/** A table and what it is called. */
export interface NamedTable {
  readonly key: string;
  readonly title: string;
  readonly table: Table;
  /** Categories whose events its rows count. */
  readonly categories: readonly string[];
}

/** The tables that a summary has; files of before lack some. */
export function tablesOf(summary: Summary): NamedTable[] {
  return SUMMARY_TABLES.flatMap(({ field, title, categories }) => {
    const table = summary[field];
    return table && Array.isArray(table.rows) ? [{ key: field, title, table, categories }] : [];
  });
}
