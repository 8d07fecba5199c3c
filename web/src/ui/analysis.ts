/** Analyses whose results are tables: where to ask for one, and its rows sorted, filtered and put into words. */

import { ANALYSES } from "../generated/catalogue";
import * as format from "../view/format";

export type Cell = string | number | boolean | null;
export type Row = Readonly<Record<string, Cell>>;

export interface Column {
  readonly name: string;
  readonly cells: "integer" | "number" | "boolean" | "text";
  readonly about: string;
}

/** The schema of a parameter, as much as a form needs of it. */
export interface Parameter {
  readonly description?: string;
  readonly type?: string;
  readonly default?: Cell;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** An analysis whose result is a table. */
export interface TableAnalysis {
  readonly name: string;
  readonly about: string;
  readonly inputs: "one" | "two" | "many";
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly columns: readonly Column[];
}

/** A result of one. */
export interface TableResult {
  /** Whether the captures recorded what it is about. */
  readonly captured?: boolean;
  readonly rows: readonly Row[];
}

/** Those of the catalogue, in its order. */
export const TABLE_ANALYSES: readonly TableAnalysis[] = ANALYSES.flatMap((analysis) => (analysis.columns === null ? [] : [analysis as unknown as TableAnalysis]));

/** Where the results of the capture at `file` are; undefined for files that no gateway and no agent serves. */
export function analysisUrl(file: string, name: string, values: Readonly<Record<string, string>>, other: string): string | undefined {
  const url = new URL(file);
  const ofGateway = /^(.*\/profiling)\/timeline\/([^/]+)\.h5$/.exec(url.pathname);
  const ofAgent = /^(.*)\/artifacts\/[^/]+\.h5$/.exec(url.pathname);
  const base = ofGateway ? `${ofGateway[1]}/session/${ofGateway[2]}` : ofAgent?.[1];
  if (base === undefined) {
    return undefined;
  }
  url.pathname = `${base}/analyses/${name}`;
  for (const [parameter, value] of Object.entries(values)) {
    if (value !== "") {
      url.searchParams.set(parameter, value);
    }
  }
  if (other !== "") {
    url.searchParams.set("with", other);
  }
  return url.href;
}

/** Whether one of those that an analysis is made of is still to be named. */
export function wantsAnother(analysis: TableAnalysis): boolean {
  return analysis.inputs === "two";
}

export function sorted(rows: readonly Row[], by: string, up: boolean): Row[] {
  const sign = up ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a[by] ?? null, b[by] ?? null];
    if (x === y) {
      return 0;
    }
    // What is not known comes last, however the order is.
    if (x === null || y === null) {
      return x === null ? 1 : -1;
    }
    return x < y ? -sign : sign;
  });
}

export function filtered(rows: readonly Row[], text: string): readonly Row[] {
  const wanted = text.trim().toLowerCase();
  return wanted === "" ? rows : rows.filter((row) => Object.values(row).some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)));
}

/** A cell for people; the unit is the ending of the column's name. */
export function shown(column: Column, cell: Cell | undefined): string {
  if (cell === null || cell === undefined) {
    return "";
  }
  if (typeof cell !== "number") {
    return String(cell);
  }
  const sign = cell < 0 ? "−" : "";
  const size = Math.abs(cell);
  if (column.name.endsWith("_ns")) {
    return sign + format.duration(size);
  }
  if (column.name.endsWith("_bytes")) {
    return sign + format.bytes(size);
  }
  if (column.name.endsWith("_ratio")) {
    return sign + format.percent(size);
  }
  return sign + (Number.isInteger(cell) ? format.grouped(size) : size.toPrecision(4));
}

/** What a column is called over it. */
export function titleOf(column: Column): string {
  const words = column.name.replace(/_(ns|bytes|ratio)$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
