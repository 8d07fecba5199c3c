/** The way from idle time of a GPU to what it waited for. */

import { KIND } from "../../engine/instances";
import type { IdleTime } from "../../engine/protocol";
import { nsPerPixel } from "../../view/scale";
import type { Workspace } from "../../workspace/workspace";
import type { Controller } from "./controller";
import type { Picker } from "./picking";
import { CLICK_PIXELS, DOUBLE_CLICK_INTERVAL } from "./pointer";

/** Idle time that was asked about, and where and when it was clicked. */
interface Asked extends IdleTime {
  readonly x: number;
  readonly y: number;
  readonly began: number;
}

/** Leads to causes, and knows the second click of a double-click: the first one moves what is there. */
export class IdleLead {
  private asked: Asked | undefined;

  constructor(private readonly workspace: Workspace) {}

  /** Leads from the idle time `at` in what `picker` knows to its cause; `x` and `y` are where it was clicked. */
  async begin(picker: Picker, at: number, x = Number.NaN, y = Number.NaN): Promise<void> {
    const asked = { row: picker.row(at), from: picker.begin(at), to: picker.end(at), x, y, began: performance.now() };
    this.asked = asked;
    await this.workspace.explain(asked, () => this.asked === asked);
  }

  /** The idle time that a click at a place just asked about. */
  askedAt(x: number, y: number): IdleTime | undefined {
    const { asked } = this;
    const isThere = asked && Math.abs(asked.x - x) <= CLICK_PIXELS && Math.abs(asked.y - y) <= CLICK_PIXELS;
    return isThere && performance.now() - asked.began < DOUBLE_CLICK_INTERVAL ? asked : undefined;
  }

  /** Something else is done: what was asked about leads nowhere any more. */
  forget(): void {
    this.asked = undefined;
  }
}

/** Leads from the idle time under the pointer to its cause; whether there is some. */
export function explainPointed({ hover, picker, lead }: Controller): boolean {
  if (!hover || picker?.kind(hover.at) !== KIND.idle) {
    return false;
  }
  void lead.begin(picker, hover.at);
  return true;
}

/** Leads from the idle time before the selected GPU work to its cause. */
export function explainBefore({ picker, viewport, lead, workspace: { selected } }: Controller): void {
  const at = selected && picker?.pickIdle(selected.row, selected.start - nsPerPixel(viewport));
  if (picker && at !== undefined) {
    void lead.begin(picker, at);
  }
}
