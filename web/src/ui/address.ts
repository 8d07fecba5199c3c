/** What the address bar holds: the file, the page, the viewport and the selection, so that a link shows what you see. */

import { COLORINGS, type Coloring } from "../gl/palette";
import { TIME_FORMATS, type TimeFormat } from "../view/format";

/** The state that a link carries. */
export interface Address {
  /** URL of the timeline file. */
  readonly file: string | undefined;
  readonly page: string | undefined;
  /** Id of the session that is looked at among others. */
  readonly session: string | undefined;
  /** Name of the analysis that is shown. */
  readonly analysis: string | undefined;
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
}

/** Reads a query such as `?file=a.h5` and a hash such as `#page=timeline&t=0-1000&sel=cuda_kernel:5`. */
export function parseAddress(query: string, hash: string): Address {
  const file = new URLSearchParams(query).get("file") ?? undefined;
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const time = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/.exec(said.get("t") ?? "");
  const selected = /^((?:prelude\.)?[a-z0-9_]+):(\d+)$/.exec(said.get("sel") ?? "");
  const format = TIME_FORMATS.find((format) => format === said.get("time")) ?? "auto";
  const span = time && Number(time[2]) > Number(time[1]);
  return {
    file,
    page: said.get("page") ?? undefined,
    session: /^[0-9a-f]{8}$/.exec(said.get("session") ?? "")?.[0],
    analysis: /^[a-z0-9_-]{1,64}$/.exec(said.get("analysis") ?? "")?.[0],
    from: span ? Number(time[1]) : undefined,
    to: span ? Number(time[2]) : undefined,
    selected: selected ? { category: selected[1] as string, index: Number(selected[2]) } : undefined,
    search: said.get("q") ?? "",
    coloring: COLORINGS.find((coloring) => coloring === said.get("color")) ?? "category",
    hidden: (said.get("hide") ?? "").split(",").filter((name) => /^[a-z0-9_]+$/.test(name)),
    timeFormat: format,
  };
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
  return `#${parts.toString()}`;
}
