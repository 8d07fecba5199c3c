/** Rows of a table whose names differ in numbers alone, as one. */

import type { SummaryRow } from "../../summary/summary";

/** A row of the overview: what it is called, its figures, and the name of the first one in it. */
export interface Merged {
  readonly label: string;
  readonly first: string;
  readonly total: number;
  readonly calls: number;
  readonly share: number;
}

/** Each row by itself. */
export function plain(rows: readonly SummaryRow[]): Merged[] {
  return rows.map(({ name, total, calls, share_of_table: share }) => ({ label: name, first: name, total, calls, share }));
}

/** Rows whose names differ in numbers alone are one, with `#` in their place; the largest total first. */
export function merged(rows: readonly SummaryRow[]): Merged[] {
  const groups = new Map<string, Merged>();
  for (const row of plain(rows)) {
    const key = row.label.replace(/\d+/g, "#");
    const known = groups.get(key);
    groups.set(
      key,
      known ? { ...known, label: key, total: known.total + row.total, calls: known.calls + row.calls, share: known.share + row.share } : row,
    );
  }
  return [...groups.values()].sort((a, b) => b.total - a.total);
}
