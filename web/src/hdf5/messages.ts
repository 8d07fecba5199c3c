/** The messages of an object header: what an object is. */

import { Cursor, FormatError, UNDEFINED_ADDRESS } from "./cursor";
import type { Filter } from "./filters";

/** Kinds of messages that are read. */
export const MESSAGE = {
  dataspace: 0x01,
  linkInfo: 0x02,
  datatype: 0x03,
  link: 0x06,
  layout: 0x08,
  filters: 0x0b,
  attribute: 0x0c,
  continuation: 0x10,
  symbolTable: 0x11,
  attributeInfo: 0x15,
} as const;

/** What a value is. */
export type Datatype =
  | { readonly kind: "integer"; readonly bytes: number; readonly signed: boolean }
  | { readonly kind: "float"; readonly bytes: number }
  | { readonly kind: "text"; readonly bytes: number }
  | { readonly kind: "long-text"; readonly bytes: number };

/** Where a dataset's values lie. */
export type Layout =
  | { readonly kind: "compact"; readonly data: Uint8Array }
  | { readonly kind: "contiguous"; readonly offset: number; readonly length: number }
  | { readonly kind: "single-chunk"; readonly chunk: number; readonly offset: number; readonly stored: number | undefined; readonly skipped: number }
  | { readonly kind: "implicit"; readonly chunk: number; readonly offset: number }
  | { readonly kind: "fixed-array"; readonly chunk: number; readonly index: number };

/** A link of a group. */
export interface Link {
  readonly name: string;
  /** Address of the object's header. */
  readonly address: number;
}

/** Where a group's links or an object's attributes lie when they are many. */
export interface Dense {
  readonly heap: number;
  readonly names: number;
}

/** How many values a dataset has; a single one is 1. */
export function dataspace(cursor: Cursor): number {
  const version = cursor.u8();
  const rank = cursor.u8();
  cursor.u8();
  if (version === 1) {
    cursor.take(5);
  } else if (version === 2) {
    // 2 is the null dataspace: no values.
    if (cursor.u8() === 2) {
      return 0;
    }
  } else {
    throw new FormatError(`dataspace of version ${version}`);
  }
  let count = 1;
  for (let dimension = 0; dimension < rank; dimension += 1) {
    count *= cursor.u64();
  }
  return count;
}

export function datatype(cursor: Cursor): Datatype {
  const head = cursor.u8();
  const bits = cursor.uint(3);
  const bytes = cursor.u32();
  switch (head & 0x0f) {
    case 0:
      if ((bits & 1) === 1) {
        throw new FormatError("numbers with the highest byte first are not read here");
      }
      return { kind: "integer", bytes, signed: (bits & 8) !== 0 };
    case 1:
      return { kind: "float", bytes };
    case 3:
      return { kind: "text", bytes };
    case 9:
      if ((bits & 0x0f) !== 1) {
        throw new FormatError("lists of varying length are not read here");
      }
      return { kind: "long-text", bytes };
    default:
      throw new FormatError(`values of class ${head & 0x0f} are not read here`);
  }
}

export function layout(cursor: Cursor): Layout {
  const version = cursor.u8();
  if (version !== 3 && version !== 4) {
    throw new FormatError(`layout of version ${version}`);
  }
  const kind = cursor.u8();
  if (kind === 0) {
    return { kind: "compact", data: cursor.slice(cursor.u16()) };
  }
  if (kind === 1) {
    return { kind: "contiguous", offset: cursor.u64(), length: cursor.u64() };
  }
  if (kind !== 2 || version !== 4) {
    throw new FormatError(`layout ${kind} of version ${version} is not read here`);
  }
  const flags = cursor.u8();
  const dimensions = cursor.u8();
  const width = cursor.u8();
  // The last dimension is the width of a value.
  if (dimensions !== 2) {
    throw new FormatError("a dataset of more than one dimension");
  }
  const chunk = cursor.uint(width);
  cursor.uint(width);
  const index = cursor.u8();
  switch (index) {
    case 1: {
      const filtered = (flags & 2) !== 0;
      const stored = filtered ? cursor.u64() : undefined;
      const skipped = filtered ? cursor.u32() : 0;
      return { kind: "single-chunk", chunk, offset: cursor.u64(), stored, skipped };
    }
    case 2:
      return { kind: "implicit", chunk, offset: cursor.u64() };
    case 3:
      cursor.u8();
      return { kind: "fixed-array", chunk, index: cursor.u64() };
    default:
      throw new FormatError(`an index of chunks of kind ${index} is not read here`);
  }
}

export function filterPipeline(cursor: Cursor): Filter[] {
  const version = cursor.u8();
  const count = cursor.u8();
  if (version !== 2) {
    throw new FormatError(`filter pipeline of version ${version}`);
  }
  const filters: Filter[] = [];
  for (let at = 0; at < count; at += 1) {
    const id = cursor.u16();
    const nameBytes = id >= 256 ? cursor.u16() : 0;
    cursor.u16();
    const values = cursor.u16();
    cursor.take(nameBytes);
    filters.push({ id, values: Array.from({ length: values }, () => cursor.u32()) });
  }
  return filters;
}

export function link(cursor: Cursor): Link | undefined {
  cursor.u8();
  const flags = cursor.u8();
  const kind = (flags & 8) !== 0 ? cursor.u8() : 0;
  if ((flags & 4) !== 0) {
    cursor.take(8);
  }
  if ((flags & 16) !== 0) {
    cursor.u8();
  }
  const name = cursor.text(cursor.uint(1 << (flags & 3)));
  // Soft and external links lead elsewhere and are not followed.
  return kind === 0 ? { name, address: cursor.u64() } : undefined;
}

export function linkInfo(cursor: Cursor): Dense | undefined {
  cursor.u8();
  const flags = cursor.u8();
  if ((flags & 1) !== 0) {
    cursor.take(8);
  }
  return dense(cursor);
}

export function attributeInfo(cursor: Cursor): Dense | undefined {
  cursor.u8();
  const flags = cursor.u8();
  if ((flags & 1) !== 0) {
    cursor.take(2);
  }
  return dense(cursor);
}

function dense(cursor: Cursor): Dense | undefined {
  const heap = cursor.u64();
  const names = cursor.u64();
  return heap === UNDEFINED_ADDRESS ? undefined : { heap, names };
}

/** An attribute: its name, type, how many values, and their bytes. */
export interface RawAttribute {
  readonly name: string;
  readonly type: Datatype;
  readonly count: number;
  readonly data: Uint8Array;
}

export function attribute(cursor: Cursor): RawAttribute {
  const version = cursor.u8();
  const flags = cursor.u8();
  if (version !== 3 || flags !== 0) {
    throw new FormatError(`attribute of version ${version}`);
  }
  const nameBytes = cursor.u16();
  const typeBytes = cursor.u16();
  const spaceBytes = cursor.u16();
  cursor.u8();
  const name = cursor.text(nameBytes).replace(/\0+$/, "");
  const type = datatype(new Cursor(cursor.slice(typeBytes)));
  const count = dataspace(new Cursor(cursor.slice(spaceBytes)));
  return { name, type, count, data: cursor.slice(Math.min(cursor.left, type.bytes * count)) };
}
