/** The rows of a page's table: sorted, filtered. */

import type { PageCell, PageRow, PageTable } from "../generated/catalogue";

/** Whether a column holds numbers alone, those that are not known aside; one of which nothing is known does where it has a unit. */
export function isNumeric({ columns, rows }: PageTable, at: number): boolean {
  const known = rows.map(({ cells }) => cells[at] ?? null).filter((cell) => cell !== null);
  const unit = columns[at]?.unit ?? "none";
  return (known.length > 0 || unit !== "none") && known.every((cell) => typeof cell === "number");
}

/** Longest text that is no name and stays on one line. */
const WORD = 28;

/** How the cells of a column are laid out. */
export function lookOf(table: PageTable, at: number): "number" | "name" | "word" {
  if (isNumeric(table, at)) {
    return "number";
  }
  const isLong = ({ cells }: PageRow) => {
    const cell = cells[at];
    return typeof cell === "string" && cell.length > WORD;
  };
  return table.rows.some(isLong) ? "name" : "word";
}

/** Sorted by a column; what is not known comes last, however the order is. */
export function sorted(rows: readonly PageRow[], at: number, up: boolean): PageRow[] {
  const sign = up ? 1 : -1;
  const compare = (x: PageCell, y: PageCell) => (typeof x === "string" && typeof y === "string" ? x.localeCompare(y) : (x ?? 0) < (y ?? 0) ? -1 : (x ?? 0) > (y ?? 0) ? 1 : 0);
  return [...rows].sort((a, b) => {
    const [x, y] = [a.cells[at] ?? null, b.cells[at] ?? null];
    if (x === null || y === null) {
      return Number(x === null) - Number(y === null);
    }
    return sign * compare(x, y);
  });
}

/** The rows with `text` in one of their texts, in any case. */
export function filtered(rows: readonly PageRow[], text: string): readonly PageRow[] {
  const wanted = text.trim().toLowerCase();
  return wanted === "" ? rows : rows.filter(({ cells }) => cells.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)));
}
