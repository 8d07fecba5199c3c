/** The filters that timeline files use: shuffle and deflate. */

import { Clock } from "../bytes/meter";
import { FormatError } from "./cursor";

/** Numbers of the filters in the format. */
export const DEFLATE = 1;
export const SHUFFLE = 2;
const FLETCHER32 = 3;

/** A filter of a dataset's chunks. */
export interface Filter {
  readonly id: number;
  readonly values: readonly number[];
}

/**
 * A chunk as it was before `filters` were applied; `elementBytes` is the width of a value. The bits of `skipped` tell the filters
 * that were not applied to this chunk: HDF5 leaves one out that makes a chunk no smaller.
 */
export async function unfilter(
  stored: Uint8Array<ArrayBuffer>,
  filters: readonly Filter[],
  elementBytes: number,
  skipped = 0,
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = stored;
  for (let at = filters.length - 1; at >= 0; at -= 1) {
    const filter = filters[at] as Filter;
    if ((skipped & (1 << at)) !== 0) {
      continue;
    }
    switch (filter.id) {
      case DEFLATE:
        bytes = await inflate(bytes);
        break;
      case SHUFFLE:
        bytes = unshuffle(bytes, filter.values[0] ?? elementBytes);
        break;
      case FLETCHER32:
        bytes = bytes.subarray(0, Math.max(0, bytes.byteLength - 4));
        break;
      default:
        throw new FormatError(`data are packed by filter ${filter.id}, which is not read here`);
    }
  }
  return bytes;
}

/** How many chunks this thread unpacked and in what time by the wall, for tests and measurements. */
export const unpacked = { chunks: 0, clock: new Clock() };

/** Unpacks a zlib stream. */
export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  unpacked.chunks += 1;
  unpacked.clock.start();
  const stream = new DecompressionStream("deflate");
  const plain = new Response(stream.readable).arrayBuffer();
  const writer = stream.writable.getWriter();
  // Errors come out at the readable end.
  writer.write(packed).catch(() => {});
  writer.close().catch(() => {});
  try {
    return new Uint8Array(await plain);
  } catch {
    throw new FormatError("packed data are damaged: they are no zlib stream");
  } finally {
    unpacked.clock.stop();
  }
}

/** Undoes HDF5's shuffle: the lowest bytes of all values come first, then the next ones. What is left over stays at the end. */
export function unshuffle(shuffled: Uint8Array<ArrayBuffer>, width: number): Uint8Array<ArrayBuffer> {
  if (width <= 1) {
    return shuffled;
  }
  const count = Math.floor(shuffled.byteLength / width);
  const plain = new Uint8Array(shuffled.byteLength);
  for (let byte = 0; byte < width; byte += 1) {
    const plane = byte * count;
    for (let at = 0, to = byte; at < count; at += 1, to += width) {
      plain[to] = shuffled[plane + at] as number;
    }
  }
  plain.set(shuffled.subarray(count * width), count * width);
  return plain;
}
