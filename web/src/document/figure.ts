/** Numbers of a page in their unit, as the terminal and the HTML file show them. */

import type { PageCell, PageColumn, PageUnit } from "../generated/catalogue";
import { settings } from "../workspace/settings";

const DURATIONS: readonly (readonly [string, number])[] = [
  ["ns", 1],
  ["µs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
];

/** A cell for people; empty where it is not known. */
export function shown(cell: PageCell | undefined, unit: PageUnit, decimals?: number | null): string {
  if (cell === null || cell === undefined) {
    return "";
  }
  if (typeof cell === "boolean") {
    return cell ? "yes" : "no";
  }
  return typeof cell === "number" ? figure(cell, unit, decimals) : printable(cell);
}

/** A number in its unit. */
export function figure(value: number, unit: PageUnit, decimals?: number | null): string {
  const fixed = typeof decimals === "number" && !Number.isInteger(value);
  switch (unit) {
    case "none":
      return fixed ? value.toFixed(decimals) : plain(value);
    case "ns":
      return inSteps(value, DURATIONS);
    case "instant":
      return `${(value / 1e9).toFixed(6)} s`;
    case "bytes":
      return inSteps(value, steps("B"));
    case "bytes_per_second":
      return inSteps(value, steps("B/s"));
    case "count":
      return inSteps(value, steps("")).trimEnd();
    case "flop_per_second":
      return inSteps(value, steps("FLOP/s"));
    case "instructions_per_second":
      return inSteps(value, steps("inst/s"));
    case "ratio":
      return percent(value * 100);
    case "percent":
      return fixed ? `${value.toFixed(decimals)} %` : percent(value);
  }
}

/** What a column is called where its numbers are shown with their unit. */
export function titleOf({ title, unit }: PageColumn): string {
  return unit === "ns" || unit === "instant" ? title.replace(/ \(ns\)$/, "") : unit === "percent" ? title.replace(/ \(%\)$/, "") : title;
}

/** The head of a column in CSV: its name for programs, or its title with the unit. */
export function csvHead({ name, title, unit }: PageColumn): string {
  const symbol = { none: "", count: "", ns: "ns", instant: "ns", bytes: "B", bytes_per_second: "B/s", flop_per_second: "FLOP/s", instructions_per_second: "inst/s", ratio: "ratio", percent: "%" }[unit];
  return name !== "" ? name : symbol === "" || title.endsWith(")") ? title : `${title} (${symbol})`;
}

/** Text of a foreign capture without what turns the direction of the text after it, or is no character to be seen. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]/gu, "\ufffd");
}

/** Printable text of at most so many characters: the middle of a longer one is left out. */
export function shortened(text: string, longest: number): string {
  const letters = [...printable(text)];
  const half = Math.floor((longest - 1) / 2);
  return letters.length <= longest ? letters.join("") : `${letters.slice(0, half).join("")}…${letters.slice(-half).join("")}`;
}

/** Longest text of a cell: a foreign name may have any length. The whole is beside it. */
const CELL_CHARACTERS = 2_000;

/** The text of a cell: names are short until full ones are asked for, sentences are whole. */
export function inCell(text: string): string {
  return shortened(settings.named(text), CELL_CHARACTERS);
}

function steps(unit: string): readonly (readonly [string, number])[] {
  return ["", "k", "M", "G", "T", "P", "E"].map((prefix, at) => [prefix + unit, 1e3 ** at] as const);
}

function plain(value: number): string {
  if (Number.isInteger(value)) {
    return String(value);
  }
  if (Math.abs(value) < 0.001) {
    return value.toExponential(3).replace("e+", "e");
  }
  return String(Number(value.toFixed(Math.abs(value) < 10 ? 4 : 2)));
}

function percent(value: number): string {
  return `${value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 3 : 1)} %`;
}

function inSteps(value: number, units: readonly (readonly [string, number])[]): string {
  // What two digits behind the point would round to a thousand is of the next unit.
  const at = Math.max(0, units.findLastIndex(([, size]) => Math.abs(value) >= size * 0.999995));
  const [unit, size] = units[at] ?? ["", 1];
  const scaled = value / size;
  return `${scaled.toFixed(at === 0 && Number.isInteger(scaled) ? 0 : 2)} ${unit}`;
}
