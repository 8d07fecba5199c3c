/** How the timeline looks, as the user set it: marks, rows, colors, how times are written. */

import type { TimeFormat } from "../view/format";
import type { Arrangement } from "../view/layout";
import type { Coloring } from "../view/palette";
import type { Address } from "./address";
import type { Mark } from "./state";
import { Observable } from "./store";

const PLAIN: Arrangement = { folded: new Set(), pinned: [], order: new Map(), filter: "" };

export abstract class Appearance extends Observable {
  marks: readonly Mark[] = [];
  arrangement: Arrangement = PLAIN;
  coloring: Coloring;
  /** Categories that are not drawn. */
  hidden: ReadonlySet<string>;
  timeFormat: TimeFormat;

  constructor({ coloring, hidden, timeFormat }: Pick<Address, "coloring" | "hidden" | "timeFormat">) {
    super();
    this.coloring = coloring;
    this.hidden = new Set(hidden);
    this.timeFormat = timeFormat;
  }

  /** Has the address and all who watch follow a change. */
  protected abstract altered(): void;

  /** Takes over how a link has all captures look. */
  protected colorAs({ coloring, hidden, timeFormat }: Pick<Address, "coloring" | "hidden" | "timeFormat">): void {
    this.coloring = coloring;
    this.hidden = new Set(hidden);
    this.timeFormat = timeFormat;
  }

  /** Takes over what a link says of the rows and times of its file. */
  protected arrangeAs(link: Pick<Address, "marks" | "pinned" | "filter"> | undefined): void {
    if (link) {
      this.marks = link.marks;
      this.arrangement = { ...this.arrangement, pinned: link.pinned, filter: link.filter };
    }
  }

  /** Forgets what was set for a file. */
  protected arrangePlainly(): void {
    this.marks = [];
    this.arrangement = PLAIN;
  }

  /** What a link holds of it. */
  protected get linked(): Pick<Address, "coloring" | "hidden" | "timeFormat" | "marks" | "pinned" | "filter"> {
    const { coloring, hidden, timeFormat, marks } = this;
    const { pinned, filter } = this.arrangement;
    return { coloring, hidden: [...hidden], timeFormat, marks, pinned, filter };
  }

  get byName(): boolean {
    return this.coloring === "name";
  }

  arrange(change: Partial<Arrangement>): void {
    this.arrangement = { ...this.arrangement, ...change };
    this.altered();
  }

  fold(key: string): void {
    const folded = new Set(this.arrangement.folded);
    if (!folded.delete(key)) {
      folded.add(key);
    }
    this.arrange({ folded });
  }

  pin(key: string): void {
    const { pinned } = this.arrangement;
    this.arrange({ pinned: pinned.includes(key) ? pinned.filter((other) => other !== key) : [...pinned, key] });
  }

  /** Marks a time or a span; the same one again is marked no longer. */
  mark(mark: Mark): void {
    const same = (other: Mark) => other.from === mark.from && other.to === mark.to;
    this.marks = this.marks.some(same) ? this.marks.filter((other) => !same(other)) : [...this.marks, mark];
    this.altered();
  }

  clearMarks(): void {
    this.marks = [];
    this.altered();
  }

  setColoring(coloring: Coloring): void {
    this.coloring = coloring;
    this.altered();
  }

  /** Hides a category, or shows it again. */
  toggleCategory(name: string): void {
    const hidden = new Set(this.hidden);
    if (!hidden.delete(name)) {
      hidden.add(name);
    }
    this.hidden = hidden;
    this.altered();
  }
}
