/** Heaps: where long texts lie, and the links of groups that have many. */

import { keeping } from "../bytes/kept";
import { readAll } from "../bytes/pages";
import type { ByteSource } from "../bytes/source";
import { Cursor, FormatError, UNDEFINED_ADDRESS } from "./cursor";

/** Collections of the global heap are at least so long. */
const COLLECTION = 4096;

/** Objects of the global heap, by collection; each collection is read once. */
export class GlobalHeap {
  private readonly collections = new Map<number, Promise<Map<number, Uint8Array>>>();

  private readonly source: ByteSource;

  constructor(source: ByteSource) {
    this.source = keeping(source);
  }

  /** Reads the collections at `addresses`, of which a list of texts has many, in few requests. */
  prefetch(addresses: readonly number[]): void {
    const wanted = [...new Set(addresses)].filter((address) => !this.collections.has(address));
    const spans = wanted.map((offset) => ({ offset, length: Math.min(COLLECTION, this.source.size - offset) }));
    const read = readAll(this.source, spans);
    read.catch(() => {});
    wanted.forEach((address, at) => {
      const collection = read.then((heads) => this.collection(address, heads[at] ?? new Uint8Array(0)));
      collection.catch(() => {});
      this.collections.set(address, collection);
    });
  }

  async object(address: number, index: number): Promise<Uint8Array> {
    let collection = this.collections.get(address);
    if (!collection) {
      this.prefetch([address]);
      collection = this.collections.get(address);
    }
    const found = (await collection)?.get(index);
    if (!found) {
      throw new FormatError("a text is not in the heap that the file names: it is damaged");
    }
    return found;
  }

  private async collection(address: number, start: Uint8Array): Promise<Map<number, Uint8Array>> {
    const head = new Cursor(start);
    head.expect("GCOL");
    head.take(4);
    const length = head.u64();
    const bytes = length <= head.bytes.byteLength ? head.bytes : await this.source.read({ offset: address, length });
    const cursor = new Cursor(bytes.subarray(0, length), 16);
    const objects = new Map<number, Uint8Array>();
    while (cursor.left >= 16) {
      const index = cursor.u16();
      cursor.take(6);
      const size = cursor.u64();
      if (index === 0) {
        break;
      }
      objects.set(index, cursor.slice(size));
      cursor.at = Math.min(cursor.bytes.byteLength, cursor.at + ((8 - (size % 8)) % 8));
    }
    return objects;
  }
}

/** A fractal heap: gives objects by the ids that a B-tree holds. */
export class FractalHeap {
  private constructor(
    private readonly source: ByteSource,
    private readonly shape: HeapShape,
  ) {}

  static async open(source: ByteSource, address: number): Promise<FractalHeap> {
    const cursor = new Cursor(await source.read({ offset: address, length: 146 }));
    cursor.expect("FRHP");
    cursor.u8();
    cursor.u16();
    if (cursor.u16() !== 0) {
      throw new FormatError("a packed heap of links");
    }
    cursor.u8();
    const mostManaged = cursor.u32();
    cursor.take(8 * 12);
    const width = cursor.u16();
    const starting = cursor.u64();
    const mostDirect = cursor.u64();
    const heapBits = cursor.u16();
    cursor.u16();
    const root = cursor.u64();
    const rows = cursor.u16();
    const offsetBytes = Math.ceil(heapBits / 8);
    const lengthBytes = Math.ceil((Math.floor(Math.log2(Math.min(mostDirect, mostManaged))) + 1) / 8);
    return new FractalHeap(source, { width, starting, mostDirect, offsetBytes, lengthBytes, root, rows });
  }

  async object(id: Uint8Array): Promise<Uint8Array> {
    const cursor = new Cursor(id);
    const kind = (cursor.u8() >> 4) & 3;
    if (kind === 2) {
      throw new FormatError("a tiny object of a heap");
    }
    if (kind !== 0) {
      throw new FormatError("a huge object of a heap");
    }
    const offset = cursor.uint(this.shape.offsetBytes);
    const length = cursor.uint(this.shape.lengthBytes);
    const block = await this.block(this.shape.root, this.shape.rows, 0, offset, 0);
    return this.source.read({ offset: block.address + (offset - block.start), length });
  }

  /** The direct block that holds `offset`: its address and the offset that it starts at. */
  private async block(
    address: number,
    rows: number,
    start: number,
    offset: number,
    depth: number,
  ): Promise<{ address: number; start: number }> {
    if (rows === 0) {
      return { address, start };
    }
    if (depth > 16 || address === UNDEFINED_ADDRESS) {
      throw new FormatError("a heap's blocks lead nowhere: the file is damaged");
    }
    const { width, starting, mostDirect, offsetBytes } = this.shape;
    const directRows = Math.log2(mostDirect) - Math.log2(starting) + 2;
    const bytes = await this.source.read({ offset: address, length: 13 + offsetBytes + rows * width * 8 });
    const cursor = new Cursor(bytes);
    cursor.expect("FHIB");
    cursor.take(9 + offsetBytes);
    let at = start;
    for (let row = 0; row < rows; row += 1) {
      const size = starting * 2 ** Math.max(0, row - 1);
      for (let column = 0; column < width; column += 1) {
        const child = cursor.u64();
        if (offset < at + size) {
          const innerRows = row < directRows ? 0 : Math.log2(size) - Math.log2(starting * width) + 1;
          return this.block(child, innerRows, at, offset, depth + 1);
        }
        at += size;
      }
    }
    throw new FormatError("an object lies outside its heap: the file is damaged");
  }
}

interface HeapShape {
  readonly width: number;
  readonly starting: number;
  readonly mostDirect: number;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  readonly root: number;
  readonly rows: number;
}

/** The records of the B-tree (version 2) at `address`, in order. */
export async function recordsOf(source: ByteSource, address: number): Promise<Uint8Array[]> {
  const cursor = new Cursor(await source.read({ offset: address, length: 38 }));
  cursor.expect("BTHD");
  cursor.take(2);
  const nodeBytes = cursor.u32();
  const recordBytes = cursor.u16();
  const depth = cursor.u16();
  cursor.u16();
  const root = cursor.u64();
  const inRoot = cursor.u16();
  if (nodeBytes < 64 || recordBytes < 1 || depth > 8) {
    throw new FormatError("a B-tree that cannot be: the file is damaged");
  }
  // Counts of children are as wide as the most that a node can hold.
  const inLeaf = Math.floor((nodeBytes - 10) / recordBytes);
  const countBytes = [bytesFor(inLeaf)];
  const totalBytes = [0];
  let total = inLeaf;
  for (let level = 1; level <= depth; level += 1) {
    const pointer = 8 + (countBytes[0] ?? 1) + (totalBytes[level - 1] ?? 0);
    const here = Math.floor((nodeBytes - (10 + pointer)) / (recordBytes + pointer));
    total = (here + 1) * total + here;
    totalBytes.push(bytesFor(total));
  }
  const records: Uint8Array[] = [];
  const walk = async (node: number, count: number, level: number): Promise<void> => {
    const inner = new Cursor(await source.read({ offset: node, length: nodeBytes }));
    inner.expect(level === 0 ? "BTLF" : "BTIN");
    inner.take(2);
    const own = Array.from({ length: count }, () => inner.slice(recordBytes));
    if (level === 0) {
      records.push(...own);
      return;
    }
    for (let child = 0; child <= count; child += 1) {
      const at = inner.u64();
      const inChild = inner.uint(countBytes[0] ?? 1);
      if (level > 1) {
        inner.uint(totalBytes[level - 1] ?? 0);
      }
      await walk(at, inChild, level - 1);
      const record = own[child];
      if (record) {
        records.push(record);
      }
    }
  };
  if (root !== UNDEFINED_ADDRESS) {
    await walk(root, inRoot, depth);
  }
  return records;
}

function bytesFor(most: number): number {
  return Math.ceil((Math.floor(Math.log2(Math.max(1, most))) + 1) / 8);
}
