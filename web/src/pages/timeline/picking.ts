/** Which rectangle is under the pointer, found by searching what was drawn. */

import { INSTANCE_BYTES, KIND, MOST_LANES, MOST_ROWS } from "../../engine/instances";
import type { Run, View } from "../../engine/protocol";

const WORDS = INSTANCE_BYTES / 4;

/** A view with its runs by row, for quick search. */
export class Picker {
  private readonly floats: Float32Array;
  private readonly words: Uint32Array;
  private readonly byRow = new Map<number, Run[]>();

  constructor(readonly view: View) {
    this.floats = new Float32Array(view.instances);
    this.words = new Uint32Array(view.instances);
    for (const run of view.runs) {
      const runs = this.byRow.get(run.row);
      if (runs) {
        runs.push(run);
      } else {
        this.byRow.set(run.row, [run]);
      }
    }
  }

  /** Begin of rectangle `at` in ns of the session. */
  begin(at: number): number {
    return this.view.from + (this.floats[at * WORDS] as number);
  }

  end(at: number): number {
    return this.view.from + (this.floats[at * WORDS + 1] as number);
  }

  row(at: number): number {
    return (this.words[at * WORDS + 2] as number) & MOST_ROWS;
  }

  lane(at: number): number {
    return ((this.words[at * WORDS + 2] as number) >>> 20) & 0xff;
  }

  kind(at: number): number {
    return (this.words[at * WORDS + 2] as number) >>> 28;
  }

  /** The name's number over all categories. */
  name(at: number): number {
    return this.words[at * WORDS + 3] as number;
  }

  category(at: number): number {
    return (this.words[at * WORDS + 4] as number) & 0xff;
  }

  /** The color of the rectangle's name. */
  slot(at: number): number {
    return ((this.words[at * WORDS + 4] as number) >>> 8) & 0xff;
  }

  /** How opaque the rectangle is before anything is searched or selected, 0 to 1; the shader does the same. */
  opacity(at: number): number {
    const level = (((this.words[at * WORDS + 4] as number) >>> 16) & 0xff) / 255;
    return this.kind(at) === KIND.event ? 1 : 0.35 + 0.65 * level;
  }

  /**
   * The rectangle of `row` and `lane` at `time`, or the nearest one within `slack` ns: rectangles are drawn at least a pixel wide.
   */
  pick(row: number, lane: number, time: number, slack: number): number | undefined {
    let best: number | undefined;
    let distance = Number.POSITIVE_INFINITY;
    for (const run of this.byRow.get(row) ?? []) {
      if (run.lane !== lane && run.lane !== MOST_LANES) {
        continue;
      }
      const found = this.nearest(run, time);
      if (found === undefined) {
        continue;
      }
      const off = Math.max(this.begin(found) - time, time - this.end(found), 0);
      // Of several, the shortest is on top: it lies within the others.
      const length = this.end(found) - this.begin(found);
      const closer = off < distance || (off === distance && best !== undefined && length < this.end(best) - this.begin(best));
      if (off <= slack && closer) {
        best = found;
        distance = off;
      }
    }
    return best;
  }

  /** The time at `time` in which the device of `row` does nothing. */
  pickIdle(row: number, time: number): number | undefined {
    const run = this.view.idle.find((run) => run.row === row);
    const found = run && this.nearest(run, time);
    return found !== undefined && this.begin(found) <= time && this.end(found) >= time ? found : undefined;
  }

  private nearest(run: Run, time: number): number | undefined {
    const relative = time - this.view.from;
    let low = run.first;
    let high = run.first + run.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.floats[middle * WORDS] as number) <= relative) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    // The last that begins before, or the first that begins behind.
    const before = low - 1;
    if (before >= run.first && this.end(before) >= time) {
      return before;
    }
    const behind = low < run.first + run.count ? low : undefined;
    if (before < run.first) {
      return behind;
    }
    if (behind === undefined) {
      return before;
    }
    return time - this.end(before) <= this.begin(behind) - time ? before : behind;
  }
}

