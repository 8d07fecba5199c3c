/** An object's header: its messages, wherever their blocks lie. */

import type { ByteSource } from "../bytes/source";
import { Cursor, FormatError, OtherLayout } from "./cursor";
import { MESSAGE } from "./messages";

/** A message of a header. */
export interface Message {
  readonly kind: number;
  readonly body: Uint8Array;
}

/** Headers are short; a damaged one must not lead through the whole file. */
const MOST_BLOCKS = 256;

/** Bytes of a header that are read at once, before its length is known. */
const GUESS = 512;

/** The messages of the object whose header is at `address`. */
export async function messagesAt(source: ByteSource, address: number): Promise<Message[]> {
  const guess = await source.read({ offset: address, length: Math.min(GUESS, source.size - address) });
  const cursor = new Cursor(guess);
  if (guess[0] === 1) {
    throw new OtherLayout("an object header of the old layout");
  }
  cursor.expect("OHDR");
  const version = cursor.u8();
  if (version !== 2) {
    throw new FormatError(`object header of version ${version}`);
  }
  const flags = cursor.u8();
  if ((flags & 0x20) !== 0) {
    cursor.take(16);
  }
  if ((flags & 0x10) !== 0) {
    cursor.take(4);
  }
  const length = cursor.uint(1 << (flags & 3));
  const ordered = (flags & 4) !== 0;
  const first =
    cursor.left >= length
      ? cursor.slice(length)
      : await source.read({ offset: address + cursor.at, length });
  const found: Message[] = [];
  const more: { offset: number; length: number }[] = [];
  parse(first, ordered, found, more);
  for (let block = 0; block < more.length; block += 1) {
    const span = more[block];
    if (!span || block >= MOST_BLOCKS) {
      throw new FormatError("an object header goes on without end: the file is damaged");
    }
    const bytes = await source.read(span);
    const inner = new Cursor(bytes);
    inner.expect("OCHK");
    // A checksum of four bytes ends the block.
    parse(bytes.subarray(4, bytes.byteLength - 4), ordered, found, more);
  }
  return found;
}

function parse(
  bytes: Uint8Array,
  ordered: boolean,
  found: Message[],
  more: { offset: number; length: number }[],
): void {
  const cursor = new Cursor(bytes);
  const head = ordered ? 6 : 4;
  // What is left at the end and shorter than a message's head is a gap.
  while (cursor.left >= head) {
    const kind = cursor.u8();
    const length = cursor.u16();
    const flags = cursor.u8();
    if (ordered) {
      cursor.u16();
    }
    const body = cursor.slice(length);
    if (kind === MESSAGE.continuation) {
      const span = new Cursor(body);
      more.push({ offset: span.u64(), length: span.u64() });
    } else {
      if ((flags & 2) !== 0 && kind !== 0) {
        throw new FormatError("a shared message is not read here");
      }
      found.push({ kind, body });
    }
  }
}
