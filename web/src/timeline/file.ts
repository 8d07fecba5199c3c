/** Opens a timeline file by its structure alone; events and levels of detail are read later, by parts. */

import { Pages } from "../bytes/pages";
import type { ByteSource } from "../bytes/source";
import { FormatError, NotTimeline, OtherLayout } from "../hdf5/cursor";
import { type Group, type Numbers, openHdf5, type Value } from "../hdf5/file";
import { type CaptureSource, type Counter, type Device, type Drop, type Header, NONE_U32, PARTS, type Row, SCHEMA_VERSION } from "./header";
import { openLevels, type Levels } from "./levels";
import { type ColumnValues, NO_TILES, openTiles, readColumns, type Tiles } from "./tiles";

/** More rows cannot be drawn. */
export const MOST_ROWS = 0xf_ffff;

/** A category and how its events are read. */
export interface CategoryData {
  readonly name: string;
  readonly count: number;
  readonly tiles: Tiles;
  /** The values of columns in each of some chunks; a column that the category lacks is missing. */
  read(chunks: readonly number[], columns: readonly string[]): Promise<ReadonlyMap<string, ColumnValues>[]>;
  /** Its levels of detail, where the file has some. */
  readonly levels: Levels | undefined;
  readonly nameCount: number;
  /** The names that `name_idx` refers to; read on the first call. */
  names(): Promise<readonly string[]>;
  /** The texts that the values of a column refer to; undefined where it is a column of numbers. */
  texts(column: string): Promise<readonly string[] | undefined>;
}

/** Samples of a counter. */
export interface Samples {
  readonly t: Float64Array;
  readonly value: Float64Array;
}

/** An open file. */
export interface TimelineFile {
  readonly header: Header;
  readonly categories: readonly CategoryData[];
  /** The samples of a counter of the header, by its place there. */
  samples(counter: number): Promise<Samples>;
  /** The summary artifact's text; it may be large, so it is read on demand. */
  summary(): Promise<string>;
}

export async function openTimeline(source: ByteSource): Promise<TimelineFile> {
  const root = await openHdf5(new Pages(source), source);
  if (!root.has("meta")) {
    throw new NotTimeline("an HDF5 file, but no timeline: it has no /meta");
  }
  const meta = await root.group("meta");
  const attributes = await meta.attributes();
  const version = Number(attributes.get("schema_version") ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new FormatError(`the file has layout ${version}, this viewer reads up to ${SCHEMA_VERSION}: use a newer viewer`);
  }
  if (!root.has("tiles")) {
    throw new OtherLayout("the file has no index of its events (/tiles)");
  }
  const [names, rows, devices, counters, categories] = await Promise.all([
    meta.dataset("categories").then((list) => list.texts()),
    root.group("rows").then(readRows),
    meta.group("devices").then(readDevices),
    listCounters(root),
    openCategories(root, meta, source),
  ]);
  if (rows.length + counters.length > MOST_ROWS) {
    throw new FormatError(`the file has ${rows.length} rows, the viewer shows up to ${MOST_ROWS}`);
  }
  const found = names.flatMap((name) => categories.get(name) ?? []);
  const header: Header = {
    sessionId: text(attributes, "session_id"),
    beginNs: 0,
    durationNs: Number(attributes.get("total_duration_ns") ?? 0),
    totalEvents: Number(attributes.get("total_events") ?? 0),
    startUtcNs: attributes.get("session_start_utc_ns")?.toString(),
    source: captureSource(text(attributes, "source")),
    drops: drops(text(attributes, "drops")),
    redactions: Number(attributes.get("redactions") ?? 0),
    devices,
    rows,
    categories: found.map(({ name, count, tiles }) => ({ name, count, columns: tiles.columns })),
    counters: counters.map(({ counter }) => counter),
    parts: PARTS.filter((part) => root.has(part)),
    fileBytes: source.size,
    extent: extentOf(found),
  };
  return {
    header,
    categories: found,
    samples: async (at) => {
      const place = counters[at]?.place;
      if (!place) {
        throw new FormatError(`there is no counter ${at}`);
      }
      const [t, value] = await Promise.all(["t_ns", "value"].map((name) => place.dataset(name).then((set) => set.numbers())));
      return { t: asFloats(t), value: asFloats(value) };
    },
    summary: async () => (await root.dataset("summary")).text(),
  };
}

async function openCategories(root: Group, meta: Group, source: ByteSource): Promise<Map<string, CategoryData>> {
  const [tiles, names, lods, list] = await Promise.all([
    root.group("tiles"),
    root.group("names"),
    root.has("lod") ? root.group("lod") : undefined,
    meta.dataset("categories").then((set) => set.texts()),
  ]);
  const opened = await Promise.all(
    list.map(async (name): Promise<CategoryData> => {
      const [index, levels, texts] = await Promise.all([
        // A category in which nothing happened has no index.
        tiles.has(name) ? tiles.group(name).then(openTiles) : NO_TILES,
        lods?.has(name) ? lods.group(name).then(openLevels) : undefined,
        names.dataset(name),
      ]);
      let read: Promise<readonly string[]> | undefined;
      return {
        name,
        count: index.events,
        tiles: index,
        read: (chunks, columns) => readColumns(source, index, chunks, columns),
        levels,
        nameCount: texts.length,
        names: () => (read ??= texts.texts()),
        texts: async (column) => {
          const list = `${name}.${column}`;
          return names.has(list) ? (await names.dataset(list)).texts() : undefined;
        },
      };
    }),
  );
  return new Map(opened.map((category) => [category.name, category]));
}

/** From the first start to the last end. */
export function extentOf(categories: readonly { readonly tiles: Tiles }[]): readonly [number, number] {
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { tiles } of categories) {
    from = Math.min(from, tiles.tMin[0] ?? from);
    to = tiles.tMax.reduce((most, one) => Math.max(most, one), to);
  }
  return from < to ? [from, to] : [0, 0];
}

async function readRows(group: Group): Promise<Row[]> {
  const numbers = async (name: string) => (await group.dataset(name)).numbers();
  const texts = async (name: string) => (await group.dataset(name)).texts();
  const [labels, tracks] = await Promise.all([texts("label"), texts("track")]);
  const [capture, machine, process, device, context, stream, thread] = await Promise.all(
    ["capture", "machine", "process", "device", "context", "stream", "thread"].map(numbers),
  );
  const lanes = group.has("lanes") ? await numbers("lanes") : undefined;
  return labels.map((label, at) => ({
    label,
    track: tracks[at] ?? "other",
    capture: Number(capture?.[at] ?? 0),
    machine: Number(machine?.[at] ?? 0),
    process: Number(process?.[at] ?? 0),
    device: present(device?.[at], NONE_U32),
    context: present(context?.[at]),
    stream: present(stream?.[at]),
    thread: present(thread?.[at]),
    lanes: Number(lanes?.[at] ?? 1),
  }));
}

/** The largest number of its type stands for a missing one. */
function present(value: number | bigint | undefined, none?: number): number | undefined {
  if (value === undefined || value === none || value === 0xffff_ffff_ffff_ffffn) {
    return undefined;
  }
  return Number(value);
}

async function readDevices(group: Group): Promise<Device[]> {
  const numbers = async (name: string) => (await group.dataset(name)).numbers();
  const texts = async (name: string) => (await group.dataset(name)).texts();
  const [names, from] = await Promise.all([texts("name"), texts("figures_from")]);
  const [id, major, minor, sms, memory, bandwidth] = await Promise.all(
    ["id", "compute_major", "compute_minor", "multiprocessors", "memory_bytes", "peak_bandwidth"].map(numbers),
  );
  const [isMig, gpuInstance, computeInstance] = group.has("mig")
    ? await Promise.all(["mig", "mig_gpu_instance", "mig_compute_instance"].map(numbers))
    : [];
  const known = (column: Numbers | undefined, at: number) => Number(column?.[at] ?? 0) || undefined;
  const part = (at: number) => (known(isMig, at) === undefined ? "" : migPart(present(gpuInstance?.[at], NONE_U32), present(computeInstance?.[at], NONE_U32)));
  return names.map((name, at) => ({
    id: Number(id?.[at] ?? at),
    name,
    computeCapability: known(major, at) === undefined ? undefined : `${known(major, at)}.${Number(minor?.[at] ?? 0)}`,
    multiprocessors: known(sms, at),
    memoryBytes: known(memory, at),
    peakBandwidth: known(bandwidth, at),
    figuresFrom: from[at] ?? "",
    part: part(at),
  }));
}

/** Which part of its GPU a MIG instance is, as far as it is known. */
export function migPart(gpu: number | undefined, compute: number | undefined): string {
  const parts = [gpu === undefined ? "" : `GPU instance ${gpu}`, compute === undefined ? "" : `compute instance ${compute}`];
  return parts.filter((part) => part !== "").join(", ");
}

async function listCounters(root: Group): Promise<{ counter: Counter; place: Group }[]> {
  if (!root.has("counters")) {
    return [];
  }
  const all: { counter: Counter; place: Group }[] = [];
  const counters = await root.group("counters");
  for (const source of counters.names()) {
    const ofSource = await counters.group(source);
    for (const device of ofSource.names()) {
      const ofDevice = await ofSource.group(device);
      const series = await Promise.all(
        ofDevice.names().map(async (metric) => {
          const place = await ofDevice.group(metric);
          const unit = text(await place.attributes(), "unit");
          return { counter: { source, device, metric, unit }, place };
        }),
      );
      all.push(...series);
    }
  }
  return all;
}

export function captureSource(json: string): CaptureSource {
  const said = parse(json);
  const details = typeof said === "object" && said !== null ? (said as Record<string, unknown>) : {};
  return { profiler: String(details["tool"] ?? "unknown"), version: String(details["tool_version"] ?? ""), details };
}

function drops(json: string): Drop[] {
  const said = parse(json);
  if (!Array.isArray(said)) {
    return [];
  }
  return said.map((drop: Record<string, unknown>) => ({
    reason: String(drop["reason"] ?? ""),
    what: String(drop["what"] ?? ""),
    count: Number(drop["count"] ?? 0),
  }));
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new FormatError("what /meta says is no JSON: the file is damaged");
  }
}

function text(attributes: ReadonlyMap<string, Value>, name: string): string {
  return String(attributes.get(name) ?? "");
}

/** Numbers as doubles: exact up to 2^53, which is 104 days of ns. */
export function asFloats(numbers: Numbers | undefined): Float64Array {
  if (numbers instanceof Float64Array) {
    return numbers;
  }
  if (numbers instanceof BigUint64Array) {
    return wideToFloats(numbers);
  }
  return Float64Array.from(numbers ?? []);
}

/** Integers of 8 bytes as doubles, by their halves: much faster than by way of BigInt. */
export function wideToFloats(wide: BigUint64Array): Float64Array {
  const halves = new Uint32Array(wide.buffer, wide.byteOffset, wide.length * 2);
  const floats = new Float64Array(wide.length);
  for (let at = 0; at < floats.length; at += 1) {
    floats[at] = (halves[2 * at] as number) + (halves[2 * at + 1] as number) * 2 ** 32;
  }
  return floats;
}
