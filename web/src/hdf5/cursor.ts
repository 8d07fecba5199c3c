/** Reads little-endian numbers one behind the other. Beyond the end it throws a {@link FormatError}. */

/** The file is not as the format has it, or uses a part of the format that is not read here. */
export class FormatError extends Error {
  override name = "FormatError";
}

/** A sound file of a layout that only HDF5's own library reads. */
export class OtherLayout extends FormatError {
  override name = "OtherLayout";
}

/** A file that is no timeline; it may be a capture that can be made into one. */
export class NotTimeline extends FormatError {
  override name = "NotTimeline";
}

/** Stands for an address that is not set. */
export const UNDEFINED_ADDRESS = Number.MAX_SAFE_INTEGER;

/** A place in some bytes. Addresses and lengths of HDF5 have 8 bytes here; other sizes are refused by the superblock. */
export class Cursor {
  private readonly view: DataView;
  at: number;

  constructor(
    readonly bytes: Uint8Array,
    at = 0,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
  }

  get left(): number {
    return this.bytes.byteLength - this.at;
  }

  u8(): number {
    return this.view.getUint8(this.take(1));
  }

  u16(): number {
    return this.view.getUint16(this.take(2), true);
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  /** An unsigned number of 8 bytes; all ones, which HDF5 writes for "not set", is {@link UNDEFINED_ADDRESS}. */
  u64(): number {
    const low = this.u32();
    const high = this.u32();
    if (high === 0xffff_ffff && low === 0xffff_ffff) {
      return UNDEFINED_ADDRESS;
    }
    if (high >= 1 << 21) {
      throw new FormatError("a length or address is larger than a file can be");
    }
    return high * 2 ** 32 + low;
  }

  /** An unsigned number of `width` bytes, at most 8. */
  uint(width: number): number {
    let value = 0;
    for (let byte = 0; byte < width; byte += 1) {
      value += this.u8() * 2 ** (8 * byte);
    }
    return value;
  }

  take(count: number): number {
    const from = this.at;
    if (count < 0 || from + count > this.bytes.byteLength) {
      throw new FormatError("a structure ends before it should");
    }
    this.at = from + count;
    return from;
  }

  slice(count: number): Uint8Array {
    const from = this.take(count);
    return this.bytes.subarray(from, from + count);
  }

  text(count: number): string {
    return new TextDecoder().decode(this.slice(count));
  }

  /** Refuses what does not begin with the four letters of `signature`. */
  expect(signature: string): void {
    if (this.text(4) !== signature) {
      throw new FormatError(`there is no ${signature} block where the file says so: it is damaged`);
    }
  }
}
