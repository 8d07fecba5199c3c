/** Rows as CSV. */

/**
 * Any rows as CSV with exact figures, by RFC 4180; what is not known is empty.
 * The heads are the columns' names where no others are given.
 */
export function csvOfRows(columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[], heads: readonly string[] = columns): string {
  const lines = rows.map((row) => columns.map((column) => cell(row[column])).join(","));
  return `${[heads.map(cell).join(","), ...lines].join("\r\n")}\r\n`;
}

/**
 * First characters by which spreadsheets take a text for a formula.
 * The engine's CSV knows the same (`flopwatch_model::spreadsheet`).
 */
const FORMULA = ["=", "+", "-", "@", "\t", "\r", "\0"];

/** A value as a field: a number is as it is, and a text is no formula. */
export function cell(value: unknown): string {
  const text = String(value ?? "");
  const safe = typeof value !== "number" && FORMULA.some((first) => text.startsWith(first)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
