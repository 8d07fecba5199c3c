/** Analyses of the catalogue: what they are asked with, and where. */

import { ANALYSES, GROUPS, type Place } from "../../generated/catalogue";
import { hashOf, USUAL } from "../../workspace/address";

/** The schema of a parameter, as much as a form needs of it. */
export interface Parameter {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly default?: string | number | boolean | null;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly enum?: readonly string[];
  readonly oneOf?: readonly { readonly const?: string; readonly description?: string }[];
}

/** An analysis. */
export interface Analysis {
  readonly name: string;
  /** What people call it. */
  readonly title: string;
  readonly about: string;
  readonly group: string;
  /** What a capture has to hold one of: categories of events (null are all), parts beside them, and both in words. */
  readonly subject: { readonly categories: readonly string[] | null; readonly parts: readonly string[]; readonly words: string };
  readonly inputs: "one" | "two" | "many";
  readonly file_name: string;
  /** Whether it has a page; others are files for other programs. */
  readonly page: boolean;
  readonly parameters: Readonly<Record<string, Parameter>>;
}

/** The question that analyses answer, with them in the catalogue's order. */
export interface AnalysisGroup {
  readonly name: string;
  readonly question: string;
  readonly analyses: readonly Analysis[];
}

const ALL = ANALYSES as unknown as readonly Analysis[];

/** The groups that have any. */
export const GROUPED: readonly AnalysisGroup[] = GROUPS.map(({ name, question }) => ({ name, question, analyses: ALL.filter(({ group }) => group === name) })).filter(
  ({ analyses }) => analyses.length > 0,
);

/** The analysis of that name; the first one where there is none. */
export function analysisOf(name: string | undefined): Analysis | undefined {
  return ALL.find((analysis) => analysis.name === name) ?? GROUPED[0]?.analyses[0];
}

/** What is asked for. */
export interface Asked {
  /** Parameters by name; an empty one has its default. */
  readonly values: Readonly<Record<string, string>>;
  /** Further captures, in order: each a session's id, with its capture's name behind a slash where it has several. */
  readonly others: readonly string[];
}

export const NOTHING: Asked = { values: {}, others: [] };

/** Whether as many captures are named as the analysis is made of. */
export function isComplete({ inputs }: Analysis, { others }: Asked): boolean {
  return inputs === "many" || others.length === (inputs === "two" ? 1 : 0);
}

/** The values that a link gives to parameters of an analysis; it may name others, which are none of it. */
export function valuesOf({ parameters }: Pick<Analysis, "parameters">, given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(parameters, name)));
}

/** Groups whose analyses say nothing of one capture alone, or little. */
const OF_SEVERAL: ReadonlySet<string> = new Set(["comparison", "ranks", "tensor_cores"]);

/** Whether an analysis compares: what one of these is made of, the next one is too. */
export function compares({ inputs, group }: Analysis): boolean {
  return inputs === "two" || (inputs === "many" && OF_SEVERAL.has(group));
}

/** Further captures, as a user names them: parted by spaces or commas. */
export function othersOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((one) => one !== "");
}

/** Where the result of an analysis of the capture at `file` is; undefined for files that no gateway and no agent serves. */
export function resultUrl(file: string, name: string, { values, others }: Asked, format = "json"): string | undefined {
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
  for (const other of others) {
    url.searchParams.append("with", other);
  }
  if (format !== "json") {
    url.searchParams.set("format", format);
  }
  return url.href;
}

/** The address under which the viewer shows a place of another capture than that at `file`; undefined where none is known. */
export function otherHref(file: string, other: string, place: Place): string | undefined {
  const url = new URL(file);
  const [first, second, third] = other.split("/");
  if (/\/profiling\/timeline\/[^/]+\.h5$/.test(url.pathname) && first !== undefined) {
    url.pathname = url.pathname.replace(/[^/]+\.h5$/, `${encodeURIComponent(first)}.h5`);
    url.search = second === undefined ? "" : `?${new URLSearchParams({ capture: second })}`;
  } else if (first !== undefined && second !== undefined && third !== undefined && /\/captures\/[^/]+\/artifacts\//.test(url.pathname)) {
    url.pathname = url.pathname.replace(/\/namespaces\/[^/]+\/captures\/[^/]+\//, `/namespaces/${encodeURIComponent(first)}/captures/${encodeURIComponent(second)}/`);
  } else {
    return undefined;
  }
  const hash = hashOf({ ...USUAL, page: "timeline", from: place.start_ns, to: Math.max(place.end_ns, place.start_ns + 1) });
  return `?${new URLSearchParams({ file: url.pathname + url.search })}${hash}`;
}
