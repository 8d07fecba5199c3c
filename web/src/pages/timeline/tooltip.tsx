/** What is under the pointer, in words. */

import { useEffect, useState } from "preact/hooks";
import { KIND } from "../../engine/instances";
import * as format from "../../view/format";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import type { Controller, Hover } from "./controller";

/** The tooltip of what is under the pointer, if anything is. */
export function Pointed({ workspace, controller }: { workspace: Workspace; controller: Controller }) {
  useObservable(controller.timeMoved);
  return controller.hover ? <Tooltip workspace={workspace} controller={controller} hover={controller.hover} /> : null;
}

function Tooltip({ workspace, controller, hover }: { workspace: Workspace; controller: Controller; hover: Hover }) {
  const { picker } = controller;
  const [fetched, setFetched] = useState<{ at: number; of: unknown; text: string }>();
  const known = picker ? controller.textOf(hover.at) : undefined;
  const kind = picker?.kind(hover.at);
  const index = picker?.view.events[hover.at] ?? 0;
  const category = picker?.category(hover.at) ?? 0;
  useEffect(() => {
    if ((known !== undefined && kind !== KIND.idle) || !picker) {
      return;
    }
    const tell = (text: string | undefined) => text !== undefined && setFetched({ at: hover.at, of: picker, text });
    // Not every place that the pointer passes over is asked for.
    const timer = setTimeout(() => {
      const { engine } = workspace;
      if (kind === KIND.counter) {
        const counter = hover.line.row - (controller.drawn?.rows.length ?? 0);
        const unit = controller.drawn?.counters[counter]?.unit ?? "";
        engine.call("sample", counter, index).then(
          (sample) => tell(sample && format.quantity(sample.value, unit)),
          () => {},
        );
      } else if (kind === KIND.idle) {
        engine.call("idleCause", { row: hover.line.row, from: picker.begin(hover.at), to: picker.end(hover.at) }).then(
          (cause) => tell(cause?.words),
          () => {},
        );
      } else {
        engine.call("event", { category, index }).then(
          (event) => tell(event.text),
          () => {},
        );
      }
    }, 60);
    return () => clearTimeout(timer);
  }, [hover.at, known, picker]);
  if (!picker) {
    return null;
  }
  const count = picker.view.counts[hover.at] ?? 1;
  const told = fetched?.at === hover.at && fetched.of === picker ? fetched.text : undefined;
  const length = picker.end(hover.at) - picker.begin(hover.at);
  const right = hover.x > controller.viewport.width / 2;
  return (
    <div class="tooltip" style={{
        top: `${Math.min(hover.y + 16, controller.height - (kind === KIND.idle ? 80 : 60))}px`,
        ...(right ? { right: `${controller.viewport.width - hover.x + 12}px` } : { left: `${hover.x + 12}px` }),
      }}>
      <strong>{known ?? told ?? "…"}</strong>
      <span>
        {kind === KIND.counter
          ? hover.line.title
          : kind !== KIND.idle && count > 1
            ? `longest of ${format.grouped(count)} events that start in ${format.duration(picker.view.step)}`
            : format.duration(length)}
      </span>
      {kind === KIND.idle && told !== undefined && <span>{told}</span>}
    </div>
  );
}
