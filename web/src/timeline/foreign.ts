/**
 * Timeline files of other layouts of HDF5, and of services that publish the same columns without rows, lanes and an index: read
 * whole, by HDF5's own library in WebAssembly. It is large, and fetched only when such a file is opened.
 */

import * as h5wasm from "h5wasm";
import type { ByteSource } from "../bytes/source";
import { FormatError, NotTimeline } from "../hdf5/cursor";
import { captureSource, type CategoryData, extentOf, type TimelineFile, wideToFloats } from "./file";
import { type Header, PARTS, type Row } from "./header";
import { assignLanes } from "./lanes";
import type { ColumnValues, Tiles } from "./tiles";

/** Larger files do not fit into the library's memory together with what is made of them. */
const MOST_BYTES = 1024 ** 3;

const CHUNK = 1 << 16;

const PATH = "/timeline.h5";

export async function openForeign(source: ByteSource): Promise<TimelineFile> {
  if (source.size > MOST_BYTES) {
    throw new NotTimeline("a file of an old layout that is too large to be read whole");
  }
  const { FS } = await h5wasm.ready;
  FS.writeFile(PATH, await source.read({ offset: 0, length: source.size }));
  const file = new h5wasm.File(PATH, "r");
  try {
    return timelineOf(file, source.size);
  } finally {
    file.close();
    FS.unlink(PATH);
  }
}

function timelineOf(file: h5wasm.File, fileBytes: number): TimelineFile {
  const meta = file.get("meta");
  if (!(meta instanceof h5wasm.Group)) {
    throw new NotTimeline("an HDF5 file, but no timeline: it has no /meta");
  }
  const attribute = (name: string) => meta.attrs[name]?.value;
  const rows: Row[] = [];
  const data = texts(file, "meta/categories").map((name) => categoryOf(file, name, rows));
  const summary = file.get("summary");
  const value = summary instanceof h5wasm.Dataset ? summary.value : undefined;
  const summaryText = value instanceof Uint8Array ? new TextDecoder().decode(value) : value === undefined ? undefined : String(value);
  const said = attribute("source");
  const header: Header = {
    sessionId: String(attribute("session_id") ?? ""),
    beginNs: 0,
    durationNs: Number(attribute("total_duration_ns") ?? 0),
    totalEvents: data.reduce((sum, category) => sum + category.count, 0),
    startUtcNs: attribute("session_start_utc_ns")?.toString(),
    source: captureSource(typeof said === "string" ? said : "{}"),
    drops: [],
    redactions: Number(attribute("redactions") ?? 0),
    devices: [],
    rows,
    categories: data.map(({ name, count, tiles }) => ({ name, count, columns: tiles.columns })),
    counters: [],
    parts: PARTS.filter((part) => file.keys().includes(part)),
    fileBytes,
    extent: extentOf(data),
  };
  return {
    header,
    categories: data,
    samples: () => Promise.reject(new FormatError("there is no such counter")),
    summary: () =>
      summaryText === undefined ? Promise.reject(new FormatError("the file holds no tables: only the timeline can be shown")) : Promise.resolve(summaryText),
  };
}

function categoryOf(file: h5wasm.File, name: string, rows: Row[]): CategoryData {
  const group = file.get(name);
  if (!(group instanceof h5wasm.Group)) {
    throw new FormatError(`the file has no /${name}`);
  }
  const all = new Map<string, ColumnValues>();
  for (const column of group.keys()) {
    const found = group.get(column);
    const values = found instanceof h5wasm.Dataset ? numbers(found) : undefined;
    if (values) {
      all.set(column, values);
    }
  }
  const [unsortedStart, unsortedDuration] = [asFloats(all.get("start_ns")), asFloats(all.get("duration_ns"))];
  if (unsortedStart.length !== unsortedDuration.length) {
    throw new FormatError(`/${name} has not as many starts as durations`);
  }
  // By start; of those that start together the longest first, so that ranges nest.
  const order = Uint32Array.from(unsortedStart.keys()).sort(
    (a, b) => (unsortedStart[a] as number) - (unsortedStart[b] as number) || (unsortedDuration[b] as number) - (unsortedDuration[a] as number),
  );
  const columns = new Map<string, ColumnValues>();
  for (const [column, values] of all) {
    if (values.length === order.length) {
      columns.set(column, inOrder(values, order));
    }
  }
  const start = inOrder(unsortedStart, order);
  const duration = inOrder(unsortedDuration, order);
  columns.set("start_ns", start);
  columns.set("duration_ns", duration);
  // A row per stream; rows of the CPU have stream 0 and nothing that would tell threads apart.
  const streams = columns.get("stream") ?? new Uint8Array(start.length);
  const row = new Uint32Array(start.length);
  const known = new Map<number, number>();
  for (let at = 0; at < row.length; at += 1) {
    const stream = streams[at] as number;
    let of = known.get(stream);
    if (of === undefined) {
      of = rowFor(name, stream, rows);
      known.set(stream, of);
    }
    row[at] = of;
  }
  columns.set("row", row);
  columns.set("lane", assignLanes(start, duration, row));
  const tiles = tilesOf(columns, start, duration);
  const names = texts(file, `names/${name}`);
  return {
    name,
    count: start.length,
    tiles,
    levels: undefined,
    nameCount: names.length,
    names: () => Promise.resolve(names),
    texts: () => Promise.resolve(undefined),
    read: (chunks, wanted) =>
      Promise.resolve(
        chunks.map((chunk) => {
          const [from, to] = [chunk * CHUNK, Math.min((chunk + 1) * CHUNK, start.length)];
          const part = new Map<string, ColumnValues>();
          for (const column of wanted) {
            const values = columns.get(column);
            if (values) {
              part.set(column, values.slice(from, to));
            }
          }
          return part;
        }),
      ),
  };
}

/** The row of a category's stream: shared by the categories of a GPU, one of its own for each category of the CPU. */
function rowFor(category: string, stream: number, rows: Row[]): number {
  const gpu = /^cuda_(kernel|graph|memcpy|memset|migration)/.test(category);
  const label = gpu ? `GPU stream ${stream}` : category.replaceAll("_", " ");
  const track = gpu ? "gpu_stream" : category === "nvtx_range" ? "nvtx" : "other";
  const found = rows.findIndex((row) => row.label === label);
  if (found >= 0) {
    return found;
  }
  const place = gpu ? { device: 0, stream } : { device: undefined, stream: undefined };
  rows.push({ ...place, capture: 0, machine: 0, process: 0, track, context: undefined, thread: undefined, lanes: 1, label });
  return rows.length - 1;
}

function tilesOf(columns: ReadonlyMap<string, ColumnValues>, start: Float64Array, duration: Float64Array): Tiles {
  const chunks = Math.ceil(start.length / CHUNK);
  const first = Float64Array.from({ length: chunks }, (_, at) => at * CHUNK);
  const tMax = new Float64Array(chunks);
  for (let at = 0; at < start.length; at += 1) {
    const chunk = Math.floor(at / CHUNK);
    tMax[chunk] = Math.max(tMax[chunk] as number, (start[at] as number) + (duration[at] as number));
  }
  const names = [...columns.keys()];
  return {
    events: start.length,
    chunkEvents: CHUNK,
    columns: names,
    widths: names.map(() => 4),
    first,
    count: Uint32Array.from(first, (from) => Math.min(CHUNK, start.length - from)),
    tMin: first.map((from) => start[from] as number),
    tMax,
    // They are in memory already.
    offset: new Float64Array(chunks * names.length),
    bytes: new Float64Array(chunks * names.length),
  };
}

function texts(file: h5wasm.File, path: string): string[] {
  const found = file.get(path);
  if (!(found instanceof h5wasm.Dataset)) {
    throw new FormatError(`the file has no /${path}`);
  }
  const value = found.value;
  return Array.isArray(value) ? value.map(String) : [];
}

/** A column's values; undefined where they are no numbers. */
function numbers(dataset: h5wasm.Dataset): ColumnValues | undefined {
  const value = dataset.value;
  if (value instanceof BigUint64Array) {
    return wideToFloats(value);
  }
  if (value instanceof BigInt64Array) {
    return Float64Array.from(value, Number);
  }
  if (value instanceof Uint8Array || value instanceof Uint16Array || value instanceof Uint32Array || value instanceof Float64Array) {
    return value;
  }
  return ArrayBuffer.isView(value) && !(value instanceof DataView) ? Float64Array.from(value as unknown as ArrayLike<number>) : undefined;
}

function asFloats(values: ColumnValues | undefined): Float64Array {
  return values instanceof Float64Array ? values : Float64Array.from(values ?? []);
}

function inOrder<T extends ColumnValues>(values: T, order: Uint32Array): T {
  const sorted = values.slice() as T;
  for (let at = 0; at < order.length; at += 1) {
    sorted[at] = values[order[at] as number] as number;
  }
  return sorted;
}
