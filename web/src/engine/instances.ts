/** What the renderer draws: rectangles of 20 bytes each, written by the worker and uploaded as they are. */

/** Bytes of a rectangle: begin and end (float32, ns from the window's base), place, name, look. */
export const INSTANCE_BYTES = 20;

/** What a rectangle stands for; the shader knows these numbers. */
export const KIND = {
  /** One event in its lane. */
  event: 0,
  /** Several events of one lane that start within a pixel; its level is the busy share. */
  merged: 1,
  /** An entry of a level of detail: all lanes of its row. */
  level: 2,
  /** A counter's sample; its level is the height. */
  counter: 3,
  /** Time in which a device does nothing. */
  idle: 4,
} as const;

/** Stands for a name that is not known at this level of detail. */
export const NO_NAME = 0xffff_ffff;

/** Stands for all lanes of a row. Lanes from here on are drawn in the one before. */
export const MOST_LANES = 255;

/** Rows have numbers of 20 bits. */
export const MOST_ROWS = 0xf_ffff;

/** A list of rectangles that grows. */
export class InstanceWriter {
  private buffer = new ArrayBuffer(INSTANCE_BYTES * 4096);
  private floats = new Float32Array(this.buffer);
  private words = new Uint32Array(this.buffer);
  private members = new Uint32Array(4096);
  private counts = new Uint32Array(4096);
  length = 0;

  /**
   * Adds a rectangle. `level` is 0 to 1; `event` is what is under it, the longest of `count` events.
   * Times are ns from the window's base.
   */
  push(
    begin: number,
    end: number,
    row: number,
    lane: number,
    kind: number,
    name: number,
    category: number,
    slot: number,
    level: number,
    event: number,
    count: number,
  ): void {
    if (this.length === this.members.length) {
      this.grow();
    }
    const word = this.length * 5;
    this.floats[word] = begin;
    this.floats[word + 1] = end;
    this.words[word + 2] = (row & MOST_ROWS) | (Math.min(lane, MOST_LANES) << 20) | (kind << 28);
    this.words[word + 3] = name;
    this.words[word + 4] = category | (slot << 8) | (Math.round(Math.min(1, Math.max(0, level)) * 255) << 16);
    this.members[this.length] = event;
    this.counts[this.length] = count;
    this.length += 1;
  }

  begin(at: number): number {
    return this.floats[at * 5] as number;
  }

  end(at: number): number {
    return this.floats[at * 5 + 1] as number;
  }

  /** The rectangles, the event under each, of how many each is, and which are at least `wide` ns: those may get a text. */
  finish(wide: number): { instances: ArrayBuffer; events: Uint32Array; counts: Uint32Array; wide: Uint32Array } {
    const found: number[] = [];
    for (let at = 0; at < this.length; at += 1) {
      if (this.end(at) - this.begin(at) >= wide && (this.words[at * 5 + 2] as number) >>> 28 <= KIND.level) {
        found.push(at);
      }
    }
    return {
      wide: Uint32Array.from(found),
      instances: this.buffer.slice(0, this.length * INSTANCE_BYTES),
      events: this.members.slice(0, this.length),
      counts: this.counts.slice(0, this.length),
    };
  }

  private grow(): void {
    const capacity = this.members.length * 2;
    const buffer = new ArrayBuffer(INSTANCE_BYTES * capacity);
    const words = new Uint32Array(buffer);
    words.set(this.words);
    this.buffer = buffer;
    this.words = words;
    this.floats = new Float32Array(buffer);
    const members = new Uint32Array(capacity);
    members.set(this.members);
    this.members = members;
    const counts = new Uint32Array(capacity);
    counts.set(this.counts);
    this.counts = counts;
  }
}
