/** What the address bar holds: the file, the page, the viewport and the selection, so that a link shows what you see. */

import type { Area } from "../engine/protocol";
import { TIME_FORMATS, type TimeFormat } from "../view/format";
import { COLORINGS, type Coloring } from "../view/palette";
import type { Mark } from "./state";

/** More rows of an area are not read from an address. */
const MAX_ROWS = 65_536;

/** Names of an analysis's parameters begin so in an address. */
const PARAMETER = "p.";

/** More marks, pinned rows or parameters are not read from an address. */
const MAX_ENTRIES = 256;

/** The state that a link carries. */
export interface Address {
  /** URL of the timeline file. */
  readonly file: string | undefined;
  readonly page: string | undefined;
  /** Id of the session that is looked at among others. */
  readonly session: string | undefined;
  /** Name of the analysis that is shown. */
  readonly analysis: string | undefined;
  /** Field of the summary's table that is shown. */
  readonly table: string | undefined;
  /** What the analysis is asked with, by the parameters' names. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Further captures that analyses compare the file with. */
  readonly others: readonly string[];
  /** The time that is seen, in ns. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** The selected event: its category's name, behind `prelude.` where it is from before the window, and its index. */
  readonly selected: { readonly category: string; readonly index: number } | undefined;
  readonly search: string;
  readonly coloring: Coloring;
  /** Names of categories that are not drawn. */
  readonly hidden: readonly string[];
  readonly timeFormat: TimeFormat;
  /** The chosen area; its rows have the numbers that the file gives them. */
  readonly area: Area | undefined;
  readonly marks: readonly Mark[];
  /** Keys of the rows that stay at the top. */
  readonly pinned: readonly string[];
  /** Text of the row filter. */
  readonly filter: string;
}

/** An address that says nothing: everything is as usual. */
export const USUAL: Omit<Address, "file"> = {
  page: undefined,
  session: undefined,
  analysis: undefined,
  table: undefined,
  parameters: {},
  others: [],
  from: undefined,
  to: undefined,
  selected: undefined,
  search: "",
  coloring: "category",
  hidden: [],
  timeFormat: "auto",
  area: undefined,
  marks: [],
  pinned: [],
  filter: "",
};

/** Reads a query such as `?file=a.h5` and a hash such as `#page=timeline&t=0-1000&sel=cuda_kernel:5`. */
export function parseAddress(query: string, hash: string): Address {
  const file = new URLSearchParams(query).get("file") ?? undefined;
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const time = spanOf(said.get("t") ?? "");
  const selected = /^((?:prelude\.)?[a-z0-9_]+):(\d+)$/.exec(said.get("sel") ?? "");
  const format = TIME_FORMATS.find((format) => format === said.get("time")) ?? "auto";
  const span = time && time.to > time.from ? time : undefined;
  return {
    file,
    page: said.get("page") ?? undefined,
    session: /^[0-9a-f]{8}$/.exec(said.get("session") ?? "")?.[0],
    analysis: /^[a-z0-9_-]{1,64}$/.exec(said.get("analysis") ?? "")?.[0],
    table: /^[a-z0-9_]{1,64}$/.exec(said.get("table") ?? "")?.[0],
    parameters: parametersIn(said),
    others: said.getAll("with").filter((one) => /^[a-z0-9./-]{1,800}$/.test(one)),
    from: span?.from,
    to: span?.to,
    selected: selected ? { category: selected[1] as string, index: Number(selected[2]) } : undefined,
    search: said.get("q") ?? "",
    coloring: COLORINGS.find((coloring) => coloring === said.get("color")) ?? "category",
    hidden: (said.get("hide") ?? "").split(",").filter((name) => /^[a-z0-9_]+$/.test(name)),
    timeFormat: format,
    area: areaOf(said.get("area") ?? ""),
    marks: (said.get("marks") ?? "").split(",", MAX_ENTRIES).flatMap((text) => spanOf(text) ?? []),
    pinned: said.getAll("pin").slice(0, MAX_ENTRIES),
    filter: said.get("filter") ?? "",
  };
}

/** The page of an address that names none: the overview, unless it shows a time, an area or an event of the timeline. */
export function landingPage({ from, selected, area }: Address): string {
  return from === undefined && selected === undefined && area === undefined ? "overview" : "timeline";
}

/** The parameters of an analysis among the parts of an address. */
function parametersIn(said: URLSearchParams): Record<string, string> {
  const named = [...said].filter(([key]) => /^p\.[a-z0-9_]{1,64}$/.test(key));
  return Object.fromEntries(named.slice(0, MAX_ENTRIES).map(([key, value]) => [key.slice(PARAMETER.length), value]));
}

/** The hash of an address; what is as usual is left out. */
export function hashOf(address: Omit<Address, "file">): string {
  const parts = new URLSearchParams();
  if (address.page !== undefined) {
    parts.set("page", address.page);
  }
  if (address.session !== undefined) {
    parts.set("session", address.session);
  }
  if (address.analysis !== undefined) {
    parts.set("analysis", address.analysis);
  }
  if (address.table !== undefined) {
    parts.set("table", address.table);
  }
  for (const [name, value] of Object.entries(address.parameters)) {
    parts.set(`${PARAMETER}${name}`, value);
  }
  for (const other of address.others) {
    parts.append("with", other);
  }
  if (address.from !== undefined && address.to !== undefined) {
    parts.set("t", `${Math.round(address.from)}-${Math.round(address.to)}`);
  }
  if (address.selected) {
    parts.set("sel", `${address.selected.category}:${address.selected.index}`);
  }
  if (address.search !== "") {
    parts.set("q", address.search);
  }
  if (address.coloring !== "category") {
    parts.set("color", address.coloring);
  }
  if (address.hidden.length > 0) {
    parts.set("hide", address.hidden.join(","));
  }
  if (address.timeFormat !== "auto") {
    parts.set("time", address.timeFormat);
  }
  if (address.area) {
    parts.set("area", `${spanText(address.area)}:${rowsText(address.area.rows)}`);
  }
  if (address.marks.length > 0) {
    parts.set("marks", address.marks.map(spanText).join(","));
  }
  for (const key of address.pinned) {
    parts.append("pin", key);
  }
  if (address.filter !== "") {
    parts.set("filter", address.filter);
  }
  return `#${parts.toString()}`;
}

function spanText({ from, to }: Mark): string {
  return `${Math.round(from)}-${Math.round(to)}`;
}

/** The span that a text such as `-500-1000` is. */
function spanOf(text: string): Mark | undefined {
  const found = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/.exec(text);
  const [from, to] = [Number(found?.[1]), Number(found?.[2])];
  return found && to >= from ? { from, to } : undefined;
}

/** The area that a text such as `0-1000:0-3,7` is: a span, and numbers and spans of rows. */
function areaOf(text: string): Area | undefined {
  const [time = "", list = ""] = text.split(":");
  const span = spanOf(time);
  const rows: number[] = [];
  for (const part of list.split(",", MAX_ROWS)) {
    const found = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part);
    const first = Number(found?.[1]);
    for (let row = first; row <= Number(found?.[2] ?? first) && rows.length < MAX_ROWS; row += 1) {
      rows.push(row);
    }
  }
  return span && span.to > span.from && rows.length > 0 ? { ...span, rows } : undefined;
}

/** Numbers of rows as `areaOf` reads them; neighbors are one span. */
function rowsText(rows: readonly number[]): string {
  const sorted = [...rows].sort((a, b) => a - b);
  const spans: [number, number][] = [];
  for (const row of sorted) {
    const last = spans.at(-1);
    if (last && row <= last[1] + 1) {
      last[1] = row;
    } else {
      spans.push([row, row]);
    }
  }
  return spans.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}
