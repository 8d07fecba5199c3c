/** Where bytes come from: a file behind HTTP ranges, or a file that was dropped. */

import type { Kept } from "./kept";
import { Meter } from "./meter";

/** A span of a file, in bytes. */
export interface Span {
  readonly offset: number;
  readonly length: number;
}

/** A file of which parts can be read. */
export interface ByteSource {
  /** Length of the file in bytes. */
  readonly size: number;
  /** Where parts of it are kept for the next time; undefined where none are. */
  readonly kept?: Kept | undefined;
  /** The bytes of `span`; rejects with a {@link SourceError} when they cannot be had whole. */
  read(span: Span): Promise<Uint8Array<ArrayBuffer>>;
}

/** Why bytes could not be had. The message says what to do. */
export class SourceError extends Error {
  override name = "SourceError";
}

/** A file that the user gave, read in place. */
export class BlobSource implements ByteSource {
  readonly size: number;

  constructor(
    private readonly blob: Blob,
    private readonly meter = new Meter(),
  ) {
    this.size = blob.size;
  }

  async read(span: Span): Promise<Uint8Array<ArrayBuffer>> {
    checkInside(span, this.size);
    const expected = this.meter.expect(span.length);
    try {
      const buffer = await this.blob.slice(span.offset, span.offset + span.length).arrayBuffer();
      expected.came(buffer.byteLength);
      expected.answered();
      return new Uint8Array(buffer);
    } finally {
      expected.end();
    }
  }
}

/** Bytes that are in memory. */
export class MemorySource implements ByteSource {
  readonly size: number;

  constructor(private readonly bytes: Uint8Array<ArrayBuffer>) {
    this.size = bytes.byteLength;
  }

  async read(span: Span): Promise<Uint8Array<ArrayBuffer>> {
    checkInside(span, this.size);
    return this.bytes.subarray(span.offset, span.offset + span.length);
  }
}

/** Refuses a span that is not wholly within `size` bytes: a truncated or damaged file says so here. */
export function checkInside(span: Span, size: number): void {
  const { offset, length } = span;
  if (!(offset >= 0 && length >= 0 && offset + length <= size)) {
    throw new SourceError(
      `the file ends at byte ${size}, but bytes ${offset} to ${offset + length} are needed: it is truncated or damaged`,
    );
  }
}
