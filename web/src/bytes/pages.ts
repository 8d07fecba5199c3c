/** Few requests out of many small reads: a cache of pages, and the joining of neighbouring spans. */

import { keeping } from "./kept";
import type { ByteSource, Span } from "./source";

/** Bytes of a page. Structures of HDF5 are small and lie close to those that lead to them. */
const PAGE = 16 * 1024;

/** Spans with less between them are fetched as one. */
const GAP = 16 * 1024;

/** One request fetches at most so much, so that several run side by side and none is wasted for long. */
const MOST = 4 * 1024 * 1024;

/** Pages of a source, each fetched once. For the structure of a file; bulk data goes by {@link readAll}. */
export class Pages implements ByteSource {
  readonly size: number;
  readonly kept: ByteSource["kept"];
  private readonly source: ByteSource;
  private readonly pages = new Map<number, Promise<Uint8Array<ArrayBuffer>>>();

  constructor(source: ByteSource) {
    this.source = keeping(source);
    this.size = source.size;
    this.kept = source.kept;
  }

  async read(span: Span): Promise<Uint8Array<ArrayBuffer>> {
    if (span.length > 4 * PAGE || span.offset + span.length > this.size) {
      return this.source.read(span);
    }
    const first = Math.floor(span.offset / PAGE);
    const last = Math.floor((span.offset + Math.max(span.length, 1) - 1) / PAGE);
    const parts = [];
    for (let page = first; page <= last; page += 1) {
      parts.push(this.pages.get(page) ?? this.fetch(page, last));
    }
    const whole = await Promise.all(parts);
    const from = span.offset - first * PAGE;
    if (whole.length === 1 && whole[0]) {
      return whole[0].subarray(from, from + span.length);
    }
    const joined = new Uint8Array(whole.reduce((sum, part) => sum + part.byteLength, 0));
    let at = 0;
    for (const part of whole) {
      joined.set(part, at);
      at += part.byteLength;
    }
    return joined.subarray(from, from + span.length);
  }

  /** Fetches the page, and with it those behind it up to `last` that are not there either; returns the first. */
  private fetch(page: number, last: number): Promise<Uint8Array<ArrayBuffer>> {
    let end = page + 1;
    while (end <= last && !this.pages.has(end)) {
      end += 1;
    }
    const offset = page * PAGE;
    const fetched = this.source.read({ offset, length: Math.min(end * PAGE, this.size) - offset });
    for (let at = end - 1; at >= page; at -= 1) {
      const part = fetched.then((bytes) => bytes.subarray((at - page) * PAGE, (at + 1 - page) * PAGE));
      this.pages.set(at, part);
      // A page that failed may be asked for again.
      part.catch(() => this.pages.delete(at));
    }
    return this.pages.get(page) ?? fetched;
  }
}

/** A request, and which of the wanted spans it brings. */
export interface Batch extends Span {
  readonly members: readonly number[];
}

/** Joins `spans` into requests: neighbours together, unless the bytes between them or the sum would be too many. */
export function batches(spans: readonly Span[]): Batch[] {
  const order = spans.map((_, at) => at).sort((a, b) => (spans[a]?.offset ?? 0) - (spans[b]?.offset ?? 0));
  const joined: { offset: number; length: number; members: number[] }[] = [];
  for (const at of order) {
    const span = spans[at];
    if (!span) {
      continue;
    }
    const open = joined.at(-1);
    const end = span.offset + span.length;
    if (open && span.offset - (open.offset + open.length) <= GAP && end - open.offset <= MOST) {
      open.length = Math.max(open.length, end - open.offset);
      open.members.push(at);
    } else {
      joined.push({ offset: span.offset, length: span.length, members: [at] });
    }
  }
  return joined;
}

/** The bytes of each of `spans`, in few requests. */
export async function readAll(source: ByteSource, spans: readonly Span[]): Promise<Uint8Array<ArrayBuffer>[]> {
  const found: Uint8Array<ArrayBuffer>[] = new Array(spans.length);
  await Promise.all(
    batches(spans).map(async (batch) => {
      const bytes = await source.read(batch);
      for (const at of batch.members) {
        const span = spans[at];
        if (span) {
          const from = span.offset - batch.offset;
          found[at] = bytes.subarray(from, from + span.length);
        }
      }
    }),
  );
  return found;
}
