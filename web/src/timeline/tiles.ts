/** The index of a category's chunks, and the chunks' columns. */

import type { ByteSource, Span } from "../bytes/source";
import { FormatError } from "../hdf5/cursor";
import { unpackAll } from "../hdf5/chunks";
import { DEFLATE, SHUFFLE } from "../hdf5/filters";
import type { Group } from "../hdf5/file";
import { asFloats, wideToFloats } from "./file";

/** A column's values in a chunk. Integers of 8 bytes come as doubles. */
export type ColumnValues = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Which events and times are in each chunk, and where its bytes lie. */
export interface Tiles {
  readonly events: number;
  readonly chunkEvents: number;
  readonly columns: readonly string[];
  readonly widths: readonly number[];
  readonly first: Float64Array;
  readonly count: Uint32Array;
  readonly tMin: Float64Array;
  readonly tMax: Float64Array;
  /** Chunk by chunk, within it column by column. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
}

/** The index of a category without events. */
export const NO_TILES: Tiles = {
  events: 0,
  chunkEvents: 0,
  columns: [],
  widths: [],
  first: new Float64Array(0),
  count: new Uint32Array(0),
  tMin: new Float64Array(0),
  tMax: new Float64Array(0),
  offset: new Float64Array(0),
  bytes: new Float64Array(0),
};

export async function openTiles(group: Group): Promise<Tiles> {
  const numbers = (name: string) => group.dataset(name).then((set) => set.numbers());
  const [attributes, first, count, tMin, tMax, columns, width, offset, bytes] = await Promise.all([
    group.attributes(),
    numbers("first"),
    numbers("count"),
    numbers("t_min"),
    numbers("t_max"),
    group.dataset("columns").then((set) => set.texts()),
    numbers("width"),
    numbers("offset"),
    numbers("bytes"),
  ]);
  const chunks = first.length;
  const places = chunks * columns.length;
  const lengths = [count.length, tMin.length, tMax.length].every((length) => length === chunks);
  if (!lengths || width.length !== columns.length || offset.length !== places || bytes.length !== places) {
    throw new FormatError(`${group.path}: the index of chunks contradicts itself`);
  }
  const counts = Uint32Array.from(asFloats(count));
  return {
    events: counts.reduce((sum, one) => sum + one, 0),
    chunkEvents: Number(attributes.get("chunk_events") ?? 0),
    columns,
    widths: Array.from(width, Number),
    first: asFloats(first),
    count: counts,
    tMin: asFloats(tMin),
    tMax: asFloats(tMax),
    offset: asFloats(offset),
    bytes: asFloats(bytes),
  };
}

/** The chunks in which something runs between `from` and `to`. */
export function chunksWithin(tiles: Tiles, from: number, to: number): number[] {
  const found: number[] = [];
  for (let chunk = 0; chunk < tiles.first.length && (tiles.tMin[chunk] as number) <= to; chunk += 1) {
    if ((tiles.tMax[chunk] as number) >= from) {
      found.push(chunk);
    }
  }
  return found;
}

/** The chunk that holds event `index`. */
export function chunkOf(tiles: Tiles, index: number): number {
  const chunk = Math.floor(index / Math.max(1, tiles.chunkEvents));
  if (!(chunk >= 0 && chunk < tiles.first.length && index < tiles.events)) {
    throw new FormatError(`there is no event ${index}`);
  }
  return chunk;
}

/** Bytes in the file of `columns` of `chunks`. */
export function bytesOf(tiles: Tiles, chunks: readonly number[], columns: readonly string[]): number {
  let sum = 0;
  for (const name of columns) {
    const column = tiles.columns.indexOf(name);
    for (const chunk of column < 0 ? [] : chunks) {
      sum += tiles.bytes[chunk * tiles.columns.length + column] as number;
    }
  }
  return sum;
}

/** The values of `columns` in each of `chunks`. A column that the category lacks is missing in the result. */
export async function readColumns(
  source: ByteSource,
  tiles: Tiles,
  chunks: readonly number[],
  columns: readonly string[],
): Promise<Map<string, ColumnValues>[]> {
  const wanted: { chunk: number; at: number; name: string; span: Span; width: number }[] = [];
  chunks.forEach((chunk, at) => {
    for (const name of columns) {
      const column = tiles.columns.indexOf(name);
      if (column >= 0) {
        const place = chunk * tiles.columns.length + column;
        const span = { offset: tiles.offset[place] as number, length: tiles.bytes[place] as number };
        wanted.push({ chunk, at, name, span, width: tiles.widths[column] ?? 1 });
      }
    }
  });
  const plain = await unpackAll(source, wanted.map(({ span, width }) => ({ ...span, filters: FILTERS, skipped: 0, width })));
  const found: Map<string, ColumnValues>[] = chunks.map(() => new Map());
  wanted.forEach(({ chunk, at, name, width }, place) => {
    found[at]?.set(name, decodeColumn(plain[place] ?? new Uint8Array(0), width, tiles.count[chunk] ?? 0));
  });
  return found;
}

const FILTERS = [
  { id: SHUFFLE, values: [] },
  { id: DEFLATE, values: [] },
];

/** The first `count` values, of `width` bytes each, of an unpacked chunk, which has its buffer alone. */
function decodeColumn(plain: Uint8Array<ArrayBuffer>, width: number, count: number): ColumnValues {
  if (plain.byteLength < count * width) {
    throw new FormatError("a chunk is shorter than its index says: the file is damaged");
  }
  switch (width) {
    case 1:
      return plain.subarray(0, count);
    case 2:
      return new Uint16Array(plain.buffer, 0, count);
    case 4:
      return new Uint32Array(plain.buffer, 0, count);
    case 8:
      return wideToFloats(new BigUint64Array(plain.buffer, 0, count));
    default:
      throw new FormatError(`a column of values of ${width} bytes`);
  }
}
