/** Chunks of columns: read together, and unpacked once for as long as the browser keeps them. */

import { readAll } from "../bytes/pages";
import type { ByteSource, Span } from "../bytes/source";
import { type Filter, unfilter } from "./filters";

/** A chunk as it lies in the file. */
export interface Chunk extends Span {
  readonly filters: readonly Filter[];
  /** The filters that were not applied to it, by their bits. */
  readonly skipped: number;
  /** Bytes of a value. */
  readonly width: number;
}

/** What the chunks were before their filters were applied. */
export async function unpackAll(source: ByteSource, chunks: readonly Chunk[]): Promise<Uint8Array<ArrayBuffer>[]> {
  const { kept } = source;
  const plain = await Promise.all(chunks.map((chunk) => kept?.get(nameOf(chunk))));
  const missing = chunks.flatMap((chunk, at) => (plain[at] ? [] : [{ chunk, at }]));
  const stored = await readAll(source, missing.map(({ chunk }) => chunk));
  await Promise.all(
    missing.map(async ({ chunk, at }, place) => {
      const bytes = await unfilter(stored[place] ?? new Uint8Array(0), chunk.filters, chunk.width, chunk.skipped);
      kept?.put(nameOf(chunk), bytes);
      plain[at] = bytes;
    }),
  );
  return plain.map((bytes) => bytes ?? new Uint8Array(0));
}

/** All that its plain bytes depend on, in a version of a file. */
function nameOf({ offset, length, filters, skipped, width }: Chunk): string {
  return `${offset}+${length}/${width}/${filters.map(({ id, values }) => [id, ...values].join(",")).join(";")}/${skipped}`;
}
