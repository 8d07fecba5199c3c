/** What was read and unpacked of a version of a file in an earlier opening, and what is kept of this one. */

import type { Crate, Shelf } from "./shelf";
import type { ByteSource, Span } from "./source";

/** Parts are kept together up to so many bytes: reading many small ones takes longer than unpacking them. */
const CRATE_BYTES = 8 * 1024 * 1024;
/** Crates that stay in memory. */
const MOST_CRATES = 4;
/** More bytes do not wait to be kept. */
const MOST_WAITING = 64 * 1024 * 1024;
/** What was read is kept once nothing more came for so long: not beside the first picture. */
const QUIET_MS = 500;

/** Parts of one version of a file, by name. Whatever fails here, the part is read from the file. */
export class Kept {
  private readonly directory: Promise<Map<string, number>>;
  private readonly crates = new Map<number, Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>>>();
  private readonly waiting = new Map<string, Uint8Array<ArrayBuffer>>();
  private waitingBytes = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private refused = false;

  /** `allowed` rejects when the server no longer gives this version of the file to whoever reads it. */
  constructor(
    private readonly shelf: Shelf,
    private readonly file: string,
    private readonly allowed: () => Promise<void>,
  ) {
    this.directory = shelf.directory(file).then(
      (directory) => new Map(directory),
      () => {
        this.refused = true;
        return new Map();
      },
    );
  }

  /** Whether something is kept of an earlier opening. */
  async isKnown(): Promise<boolean> {
    return (await this.directory).size > 0;
  }

  /** A part, as a copy of its own; undefined where it is not kept. Rejects when it may not be read. */
  async get(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const number = (await this.directory).get(name);
    if (number === undefined) {
      return undefined;
    }
    await this.allowed();
    try {
      return (await this.crate(number)).get(name)?.slice();
    } catch {
      // Storage that is damaged, or was emptied by another window.
      (await this.directory).clear();
      this.crates.clear();
      this.shelf.drop(this.file).catch(() => {});
      return undefined;
    }
  }

  /** Keeps a part, which must not change any more. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): void {
    if (this.refused || this.waiting.has(name) || this.waitingBytes + bytes.byteLength > MOST_WAITING) {
      return;
    }
    this.waiting.set(name, bytes);
    this.waitingBytes += bytes.byteLength;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.keep(), QUIET_MS);
  }

  private async keep(): Promise<void> {
    const directory = await this.directory;
    for (let crate = this.packed(); crate.names.length > 0 && !this.refused; crate = this.packed()) {
      try {
        const number = await this.shelf.put(this.file, crate);
        this.refused = number === undefined;
        crate.names.forEach((name) => number !== undefined && directory.set(name, number));
      } catch {
        this.refused = true;
      }
    }
  }

  /** The next parts that wait, as a crate. */
  private packed(): Crate {
    const names: string[] = [];
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    for (const [name, part] of this.waiting) {
      if (length > 0 && length + part.byteLength > CRATE_BYTES) {
        break;
      }
      this.waiting.delete(name);
      names.push(name);
      parts.push(part);
      length += part.byteLength;
    }
    this.waitingBytes -= length;
    const bytes = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.byteLength;
    }
    const lengths = parts.map((part) => part.byteLength);
    return { names, lengths, bytes, sum: sumOf(names, lengths, bytes) };
  }

  private crate(number: number): Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>> {
    const known = this.crates.get(number);
    const crate = known ?? this.shelf.crate(this.file, number).then(unpacked);
    this.crates.delete(number);
    this.crates.set(number, crate);
    for (const oldest of this.crates.keys()) {
      if (this.crates.size <= MOST_CRATES) {
        break;
      }
      this.crates.delete(oldest);
    }
    return crate;
  }
}

/** The parts of a crate; throws when it is not as it was kept. */
function unpacked(crate: Crate | undefined): ReadonlyMap<string, Uint8Array<ArrayBuffer>> {
  if (!crate || crate.sum !== sumOf(crate.names, crate.lengths, crate.bytes)) {
    throw new Error("what was kept is damaged");
  }
  const parts = new Map<string, Uint8Array<ArrayBuffer>>();
  let at = 0;
  crate.names.forEach((name, part) => {
    const length = crate.lengths[part] ?? 0;
    parts.set(name, crate.bytes.subarray(at, at + length));
    at += length;
  });
  return parts;
}

/** A sum over all of a crate (FNV-1a by words): it tells damage, not forgery, which only this page's own scripts could do. */
export function sumOf(names: readonly string[], lengths: readonly number[], bytes: Uint8Array<ArrayBuffer>): number {
  let sum = 0x811c9dc5;
  const text = new TextEncoder().encode(JSON.stringify([names, lengths, bytes.byteLength]));
  for (const byte of text) {
    sum = Math.imul(sum ^ byte, 0x01000193);
  }
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
  for (let at = 0; at < words.length; at += 1) {
    sum = Math.imul(sum ^ (words[at] as number), 0x01000193);
  }
  for (const byte of bytes.subarray(words.byteLength)) {
    sum = Math.imul(sum ^ byte, 0x01000193);
  }
  return sum >>> 0;
}

/** `source`, whose bytes are kept as they are where its parts are kept: structures and texts, which nothing packed. */
export function keeping(source: ByteSource): ByteSource {
  const { kept, size } = source;
  if (!kept) {
    return source;
  }
  const read = async (span: Span) => {
    const name = `${span.offset}+${span.length}`;
    const known = await kept.get(name);
    if (known?.byteLength === span.length) {
      return known;
    }
    const bytes = await source.read(span);
    kept.put(name, bytes);
    return bytes;
  };
  return { size, kept, read };
}
