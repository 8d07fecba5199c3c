/** Numbers for people. */

/** How times are written. */
export const TIME_FORMATS = ["auto", "seconds", "ns", "utc"] as const;
export type TimeFormat = (typeof TIME_FORMATS)[number];

const UNITS: readonly (readonly [string, number])[] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

/** A length of time in the unit that suits it, with up to four digits. */
export function duration(ns: number): string {
  const [unit, size] = UNITS.find(([, size]) => Math.abs(ns) >= size) ?? ["ns", 1];
  const value = ns / size;
  return `${unit === "ns" ? Math.round(value) : trim(value.toPrecision(4))} ${unit}`;
}

/** A point in time, to the ns where it matters. */
export function time(ns: number, format: TimeFormat, startUtcNs: string | undefined): string {
  const whole = Math.round(ns);
  switch (format) {
    case "seconds":
      return `${(whole / 1e9).toFixed(9)} s`;
    case "ns":
      return `${grouped(whole)} ns`;
    case "utc":
      return startUtcNs === undefined ? time(ns, "auto", undefined) : utc(whole, startUtcNs);
    case "auto":
      return exact(whole);
  }
}

/** The same for the marks of an axis: no more digits than the distance between marks needs. */
export function tick(ns: number, step: number, format: TimeFormat, startUtcNs: string | undefined): string {
  const whole = Math.round(ns);
  if (format === "ns") {
    return grouped(whole);
  }
  if (format === "utc" && startUtcNs !== undefined) {
    return utc(whole, startUtcNs).slice(11, 11 + 9 + digits(step, 1e9)).replace(/[.Z]$/, "");
  }
  if (format === "seconds") {
    return `${(whole / 1e9).toFixed(digits(step, 1e9))} s`;
  }
  const [unit, size] = UNITS.find(([, size]) => Math.max(Math.abs(whole), step) >= size) ?? ["ns", 1];
  return `${(whole / size).toFixed(digits(step, size))} ${unit}`;
}

function digits(step: number, size: number): number {
  return Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
}

/** All digits of a time, grouped: `1.234 567 890 s`. */
function exact(ns: number): string {
  const sign = ns < 0 ? "-" : "";
  const whole = Math.abs(ns);
  const seconds = Math.floor(whole / 1e9);
  const rest = String(whole % 1e9).padStart(9, "0");
  return `${sign}${seconds}.${rest.slice(0, 3)} ${rest.slice(3, 6)} ${rest.slice(6)} s`;
}

/** Time of day; `startUtcNs` are digits, since a double would lose the last ones. */
function utc(ns: number, startUtcNs: string): string {
  const at = BigInt(startUtcNs) + BigInt(ns);
  const iso = new Date(Number(at / 1_000_000n)).toISOString();
  return `${iso.slice(0, 19)}.${String(at % 1_000_000_000n).padStart(9, "0")}Z`;
}

/** An integer with its thousands apart. */
export function grouped(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, " ");
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  return `${power === 0 ? Math.round(count) : trim((count / 2 ** (10 * power)).toPrecision(4))} ${units[power]}`;
}

export function percent(share: number): string {
  return `${trim((share * 100).toFixed(share < 0.1 ? 2 : 1))} %`;
}

/** How far something is: whole percent, all of it only when it is there. */
export function progress(share: number): string {
  return `${Math.floor(Math.max(0, Math.min(1, share)) * 100)} %`;
}

/** A sample with its unit. */
export function quantity(value: number, unit: string): string {
  if (unit === "bytes") {
    return bytes(value);
  }
  if (unit === "ratio") {
    return percent(value);
  }
  return `${trim(value.toPrecision(6))} ${unit}`.trimEnd();
}

function trim(text: string): string {
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}
