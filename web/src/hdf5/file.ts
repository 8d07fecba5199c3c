/**
 * Reads the part of HDF5 that timeline files use: groups and one-dimensional datasets of the layout of HDF5 1.10, shuffled and
 * deflated. It needs ranges of the file only. What it does not know it refuses with a {@link FormatError}.
 */

import type { ByteSource, Span } from "../bytes/source";
import { unpackAll } from "./chunks";
import { Cursor, FormatError, NotTimeline, OtherLayout, UNDEFINED_ADDRESS } from "./cursor";
import type { Filter } from "./filters";
import { type Message, messagesAt } from "./header";
import { FractalHeap, GlobalHeap, recordsOf } from "./heaps";
import * as messages from "./messages";
import { MESSAGE } from "./messages";

/** Numbers of a dataset. */
export type Numbers = Uint8Array | Uint16Array | Uint32Array | BigUint64Array | Float32Array | Float64Array;

/** An attribute's value: of text or of a number. */
export type Value = string | number | bigint;

/** No dataset that is read whole has more values; a forged count must not take the memory. */
const MOST_VALUES = 1 << 27;

const SIGNATURE = [0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a];

/** Opens the file: `structure` gives small parts, `bulk` large ones. */
export async function openHdf5(structure: ByteSource, bulk: ByteSource): Promise<Group> {
  const bytes = await structure.read({ offset: 0, length: Math.min(96, structure.size) });
  if (!SIGNATURE.every((byte, at) => bytes[at] === byte)) {
    throw new NotTimeline("this is no HDF5 file");
  }
  const cursor = new Cursor(bytes, 8);
  const version = cursor.u8();
  if (version !== 2 && version !== 3) {
    throw new OtherLayout(`HDF5 of the old layout (superblock ${version})`);
  }
  if (cursor.u8() !== 8 || cursor.u8() !== 8) {
    throw new FormatError("addresses that are not of 8 bytes");
  }
  cursor.take(1 + 8 + 8);
  const end = cursor.u64();
  if (end > structure.size) {
    throw new FormatError(`the file should have ${end} bytes and has ${structure.size}: it is truncated`);
  }
  const context = { structure, bulk, heap: new GlobalHeap(bulk) };
  return Group.at(context, cursor.u64(), "/");
}

interface Context {
  readonly structure: ByteSource;
  readonly bulk: ByteSource;
  readonly heap: GlobalHeap;
}

/** A group: names, each of a group or dataset. */
export class Group {
  private constructor(
    private readonly context: Context,
    private readonly header: readonly Message[],
    private readonly links: ReadonlyMap<string, number>,
    readonly path: string,
  ) {}

  static async at(context: Context, address: number, path: string): Promise<Group> {
    const header = await messagesAt(context.structure, address);
    return new Group(context, header, await linksOf(context, header), path);
  }

  names(): string[] {
    return [...this.links.keys()];
  }

  has(name: string): boolean {
    return this.links.has(name);
  }

  async group(name: string): Promise<Group> {
    return Group.at(this.context, this.address(name), this.inner(name));
  }

  async dataset(name: string): Promise<Dataset> {
    const header = await messagesAt(this.context.structure, this.address(name));
    return new Dataset(this.context, header, this.inner(name));
  }

  async attributes(): Promise<Map<string, Value>> {
    const raw = this.header
      .filter((message) => message.kind === MESSAGE.attribute)
      .map((message) => messages.attribute(new Cursor(message.body)));
    const info = this.header.find((message) => message.kind === MESSAGE.attributeInfo);
    const dense = info && messages.attributeInfo(new Cursor(info.body));
    if (dense) {
      const heap = await FractalHeap.open(this.context.structure, dense.heap);
      for (const record of await recordsOf(this.context.structure, dense.names)) {
        raw.push(messages.attribute(new Cursor(await heap.object(record.subarray(0, 8)))));
      }
    }
    const values = new Map<string, Value>();
    for (const attribute of raw) {
      const value = (await decode(this.context, attribute.type, attribute.data.slice(), attribute.count))[0];
      if (value !== undefined) {
        values.set(attribute.name, value);
      }
    }
    return values;
  }

  private inner(name: string): string {
    return `${this.path === "/" ? "" : this.path}/${name}`;
  }

  private address(name: string): number {
    const address = this.links.get(name);
    if (address === undefined) {
      throw new FormatError(`the file has no ${this.inner(name)}`);
    }
    return address;
  }
}

async function linksOf(context: Context, header: readonly Message[]): Promise<Map<string, number>> {
  const links = new Map<string, number>();
  const add = (body: Uint8Array) => {
    const link = messages.link(new Cursor(body));
    if (link) {
      links.set(link.name, link.address);
    }
  };
  for (const message of header) {
    if (message.kind === MESSAGE.symbolTable) {
      throw new OtherLayout("a group of the old layout");
    }
    if (message.kind === MESSAGE.link) {
      add(message.body);
    }
  }
  const info = header.find((message) => message.kind === MESSAGE.linkInfo);
  const dense = info && messages.linkInfo(new Cursor(info.body));
  if (dense) {
    const heap = await FractalHeap.open(context.structure, dense.heap);
    const records = await recordsOf(context.structure, dense.names);
    // A record is the name's hash and the id in the heap.
    for (const body of await Promise.all(records.map((record) => heap.object(record.subarray(4))))) {
      add(body);
    }
  }
  return links;
}

/** Where a chunk lies, and which filters were not applied to it. */
interface ChunkSpan extends Span {
  readonly skipped: number;
}

/** A column. */
export class Dataset {
  readonly length: number;
  readonly type: messages.Datatype;
  private readonly layout: messages.Layout;
  private readonly filters: readonly Filter[];

  constructor(
    private readonly context: Context,
    header: readonly Message[],
    readonly path: string,
  ) {
    const find = (kind: number): Cursor => {
      const found = header.find((message) => message.kind === kind);
      if (!found) {
        throw new FormatError(`${path} is no dataset`);
      }
      return new Cursor(found.body);
    };
    this.length = messages.dataspace(find(MESSAGE.dataspace));
    this.type = messages.datatype(find(MESSAGE.datatype));
    this.layout = messages.layout(find(MESSAGE.layout));
    const pipeline = header.find((message) => message.kind === MESSAGE.filters);
    this.filters = pipeline ? messages.filterPipeline(new Cursor(pipeline.body)) : [];
  }

  /** How many values are read at once: those of a chunk, or all. */
  get chunkLength(): number {
    return "chunk" in this.layout ? this.layout.chunk : Math.max(1, this.length);
  }

  /** All values as numbers. */
  async numbers(): Promise<Numbers> {
    return this.range(0, this.length);
  }

  /** The values from `first` on, `count` of them, as numbers; only the chunks that hold them are read. */
  async range(first: number, count: number): Promise<Numbers> {
    return numbersOf(this.type, await this.bytes(first, count), this.path);
  }

  /** All values as texts. */
  async texts(): Promise<string[]> {
    const bytes = await this.bytes(0, this.length);
    const values = await decode(this.context, this.type, bytes, this.length);
    return values.map(String);
  }

  /** The one text that it is: a string, or the bytes of one. */
  async text(): Promise<string> {
    const bytes = this.type.kind === "integer" && this.type.bytes === 1;
    return bytes ? new TextDecoder().decode(await this.bytes(0, this.length)) : ((await this.texts())[0] ?? "");
  }

  private async bytes(first: number, count: number): Promise<Uint8Array<ArrayBuffer>> {
    const width = this.type.bytes;
    if (count > MOST_VALUES || first < 0 || first + count > this.length) {
      throw new FormatError(`${this.path}: values ${first} to ${first + count} of ${this.length}`);
    }
    const { layout } = this;
    const { structure, bulk } = this.context;
    if (count === 0) {
      return new Uint8Array(0);
    }
    if (layout.kind === "compact") {
      return layout.data.slice(first * width, (first + count) * width);
    }
    if (layout.kind === "contiguous") {
      if (layout.offset === UNDEFINED_ADDRESS) {
        return new Uint8Array(count * width);
      }
      const span = { offset: layout.offset + first * width, length: count * width };
      return (await structure.read(span)).slice();
    }
    const { chunk } = layout;
    if (chunk < 1) {
      throw new FormatError(`${this.path}: chunks of no values`);
    }
    const from = Math.floor(first / chunk);
    const to = Math.floor((first + count - 1) / chunk);
    const spans = await this.chunks(from, to);
    const whole = chunk * width;
    const source = spans.every((span) => span.length <= 65536) ? structure : bulk;
    const plain = await unpackAll(source, spans.map((span) => ({ ...span, filters: this.filters, width })));
    const out = new Uint8Array(count * width);
    plain.forEach((bytes, at) => {
      const begin = (from + at) * whole;
      const low = Math.max(begin, first * width);
      const high = Math.min(begin + whole, (first + count) * width);
      if (bytes.byteLength < high - begin) {
        throw new FormatError(`${this.path}: a chunk is shorter than it should be`);
      }
      out.set(bytes.subarray(low - begin, high - begin), low - first * width);
    });
    return out;
  }

  /** Where the chunks `from` to `to` lie. */
  private async chunks(from: number, to: number): Promise<ChunkSpan[]> {
    const { layout } = this;
    switch (layout.kind) {
      case "single-chunk":
        return [{ offset: layout.offset, length: layout.stored ?? layout.chunk * this.type.bytes, skipped: layout.skipped }];
      case "implicit": {
        const length = layout.chunk * this.type.bytes;
        return Array.from({ length: to - from + 1 }, (_, at) => ({
          offset: layout.offset + (from + at) * length,
          length,
          skipped: 0,
        }));
      }
      case "fixed-array":
        return this.fixedArray(layout.index, layout.chunk, from, to);
      default:
        throw new FormatError(`${this.path} has no chunks`);
    }
  }

  private async fixedArray(address: number, chunk: number, from: number, to: number): Promise<ChunkSpan[]> {
    const { structure } = this.context;
    const head = new Cursor(await structure.read({ offset: address, length: 28 }));
    head.expect("FAHD");
    head.u8();
    const filtered = head.u8() === 1;
    const entry = head.u8();
    const pageBits = head.u8();
    const most = head.u64();
    const block = head.u64();
    const perPage = 2 ** pageBits;
    const prefix = 14;
    const entryAt = (at: number): number => {
      if (most <= perPage) {
        return block + prefix + at * entry;
      }
      const pages = Math.ceil(most / perPage);
      const page = Math.floor(at / perPage);
      // Each page ends with a checksum; so does the head with the bits that tell which pages were filled.
      return block + prefix + Math.ceil(pages / 8) + 4 + page * (perPage * entry + 4) + (at % perPage) * entry;
    };
    const spans: ChunkSpan[] = [];
    for (let at = from; at <= to; at += 1) {
      const cursor = new Cursor(await structure.read({ offset: entryAt(at), length: entry }));
      const offset = cursor.u64();
      const length = filtered ? cursor.uint(entry - 12) : chunk * this.type.bytes;
      if (offset === UNDEFINED_ADDRESS) {
        throw new FormatError(`${this.path}: a chunk was never written`);
      }
      spans.push({ offset, length, skipped: filtered ? cursor.u32() : 0 });
    }
    return spans;
  }
}

/** The numbers in `bytes`, which begins where an array may begin. */
export function numbersOf(type: messages.Datatype, bytes: Uint8Array<ArrayBuffer>, path: string): Numbers {
  const { buffer } = bytes;
  if (type.kind === "float") {
    return type.bytes === 4 ? new Float32Array(buffer) : new Float64Array(buffer);
  }
  if (type.kind === "integer") {
    switch (type.bytes) {
      case 1:
        return new Uint8Array(buffer);
      case 2:
        return new Uint16Array(buffer);
      case 4:
        return new Uint32Array(buffer);
      case 8:
        return new BigUint64Array(buffer);
    }
  }
  throw new FormatError(`${path} holds no numbers`);
}

async function decode(
  context: Context,
  type: messages.Datatype,
  bytes: Uint8Array<ArrayBuffer>,
  count: number,
): Promise<Value[]> {
  switch (type.kind) {
    case "integer":
    case "float":
      return Array.from<Value>(numbersOf(type, bytes, "an attribute"));
    case "text": {
      const cursor = new Cursor(bytes);
      return Array.from({ length: count }, () => cursor.text(type.bytes).replace(/\0+$/, ""));
    }
    case "long-text": {
      const cursor = new Cursor(bytes);
      const places = Array.from({ length: count }, () => ({ length: cursor.u32(), address: cursor.u64(), index: cursor.u32() }));
      const decoder = new TextDecoder();
      context.heap.prefetch(places.filter((place) => place.length > 0).map((place) => place.address));
      return Promise.all(
        places.map(async ({ length, address, index }) => {
          if (length === 0) {
            return "";
          }
          const object = await context.heap.object(address, index);
          return decoder.decode(object.subarray(0, length)).replace(/\0+$/, "");
        }),
      );
    }
  }
}
