/** A summary table's rows: sorted, filtered, written. */

import { cell } from "../../downloads/csv";
import type { SummaryRow } from "../../summary/summary";
import * as format from "../../view/format";
import { shortName } from "../../view/names";

/** A column of a table. */
export type Figure = "name" | "share_of_table" | "total" | "calls" | "avg" | "median" | "min" | "max" | "stddev";

export const FIGURES: readonly { readonly key: Figure; readonly title: string }[] = [
  { key: "share_of_table", title: "Share" },
  { key: "total", title: "Total" },
  { key: "calls", title: "Calls" },
  { key: "avg", title: "Avg" },
  { key: "median", title: "Med" },
  { key: "min", title: "Min" },
  { key: "max", title: "Max" },
  { key: "stddev", title: "StdDev" },
  { key: "name", title: "Name" },
];

export function sorted(rows: readonly SummaryRow[], by: Figure, up: boolean): SummaryRow[] {
  const sign = up ? 1 : -1;
  return [...rows].sort((a, b) => (by === "name" ? sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) : sign * (a[by] - b[by])));
}

export function filtered(rows: readonly SummaryRow[], text: string): readonly SummaryRow[] {
  const wanted = text.trim().toLowerCase();
  return wanted === "" ? rows : rows.filter(({ name }) => `${name}\n${shortName(name)}`.toLowerCase().includes(wanted));
}

/** A figure for people. */
export function figure(row: SummaryRow, key: Exclude<Figure, "name">, unit: "ns" | "bytes"): string {
  switch (key) {
    case "share_of_table":
      return format.percent(row.share_of_table);
    case "calls":
      return format.grouped(row.calls);
    default:
      return unit === "ns" ? format.duration(row[key]) : format.bytes(row[key]);
  }
}

/** The rows as CSV with exact figures, by RFC 4180. */
export function csvOf(rows: readonly SummaryRow[], unit: string): string {
  const titles = FIGURES.map(({ key }) => (["share_of_table", "calls", "name"].includes(key) ? key : `${key}_${unit}`));
  const lines = rows.map((row) => FIGURES.map(({ key }) => cell(row[key])).join(","));
  return `${[titles.join(","), ...lines].join("\r\n")}\r\n`;
}
