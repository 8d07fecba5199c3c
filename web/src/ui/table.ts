/** A summary table's rows: sorted, filtered, written. */

import * as format from "../view/format";
import type { SummaryRow } from "./summary";

/** A column of a table. */
export type Figure = "name" | "share_of_table" | "total" | "calls" | "avg" | "median" | "min" | "max" | "stddev";

export const FIGURES: readonly { readonly key: Figure; readonly title: string }[] = [
  { key: "share_of_table", title: "Share" },
  { key: "total", title: "Total" },
  { key: "calls", title: "Calls" },
  { key: "avg", title: "Average" },
  { key: "median", title: "Median" },
  { key: "min", title: "Least" },
  { key: "max", title: "Most" },
  { key: "stddev", title: "Deviation" },
  { key: "name", title: "Name" },
];

export function sorted(rows: readonly SummaryRow[], by: Figure, up: boolean): SummaryRow[] {
  const sign = up ? 1 : -1;
  return [...rows].sort((a, b) => (by === "name" ? sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) : sign * (a[by] - b[by])));
}

export function filtered(rows: readonly SummaryRow[], text: string): readonly SummaryRow[] {
  const wanted = text.trim().toLowerCase();
  return wanted === "" ? rows : rows.filter((row) => row.name.toLowerCase().includes(wanted));
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

/** Any rows as CSV with exact figures, by RFC 4180; what is not known is empty. The heads are the columns' names where no others are given. */
export function csvOfRows(columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[], heads: readonly string[] = columns): string {
  const lines = rows.map((row) => columns.map((column) => cell(row[column])).join(","));
  return `${[heads.map(cell).join(","), ...lines].join("\r\n")}\r\n`;
}

/** Has the browser keep a text as a file. */
export function save(name: string, text: string): void {
  keep(name, new Blob([text], { type: "text/csv" }));
}

/** The same of any content. */
export function keep(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** First characters by which spreadsheets take a text for a formula; the engine's CSV knows the same (`flopwatch_model::spreadsheet`). */
const FORMULA = ["=", "+", "-", "@", "\t", "\r", "\0"];

/** A value as a field: a number is as it is, and a text is no formula. */
function cell(value: unknown): string {
  const text = String(value ?? "");
  const safe = typeof value !== "number" && FORMULA.some((first) => text.startsWith(first)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
