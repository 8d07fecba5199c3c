/** Keys. Those that move and zoom work as long as they are held. */

import { isTyping } from "../../app/app";
import { moved } from "../../view/layout";
import { COLORINGS } from "../../view/palette";
import { toTime } from "../../view/scale";
import type { Controller } from "./controller";
import { explainBefore, explainPointed } from "./idle-lead";

/** Pixels per second while a key is held. */
const PAN_SPEED = 900;

/** Zoom per second while a key is held. */
const ZOOM_SPEED = 4;

const HELD = new Set(["w", "a", "s", "d"]);

/** Listens for keys; the result ends that. */
export function attachKeys(controller: Controller): () => void {
  const held = new Set<string>();
  let fast = false;
  let frame = 0;
  let last = 0;
  const run = (now: number) => {
    const seconds = Math.min(0.1, (now - last) / 1000);
    last = now;
    const speed = fast ? 3 : 1;
    if (held.has("a")) {
      controller.pan(-PAN_SPEED * seconds * speed);
    }
    if (held.has("d")) {
      controller.pan(PAN_SPEED * seconds * speed);
    }
    if (held.has("w")) {
      controller.zoom(ZOOM_SPEED ** (-seconds * speed));
    }
    if (held.has("s")) {
      controller.zoom(ZOOM_SPEED ** (seconds * speed));
    }
    frame = held.size > 0 ? requestAnimationFrame(run) : 0;
  };
  const down = (event: KeyboardEvent) => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) {
      return;
    }
    const key = event.key.toLowerCase();
    fast = event.shiftKey;
    if (HELD.has(key)) {
      event.preventDefault();
      if (!held.has(key)) {
        held.add(key);
        // One press is a visible step even when it is short.
        last = performance.now() - 40;
        if (frame === 0) {
          frame = requestAnimationFrame(run);
        }
      }
      return;
    }
    if (act(controller, event, key)) {
      event.preventDefault();
    }
  };
  const up = (event: KeyboardEvent) => held.delete(event.key.toLowerCase());
  const blur = () => held.clear();
  addEventListener("keydown", down);
  addEventListener("keyup", up);
  addEventListener("blur", blur);
  return () => {
    cancelAnimationFrame(frame);
    removeEventListener("keydown", down);
    removeEventListener("keyup", up);
    removeEventListener("blur", blur);
  };
}

/** Does what a key says; whether it says something. */
function act(controller: Controller, event: KeyboardEvent, key: string): boolean {
  const { workspace } = controller;
  const { selected, flow, area } = workspace;
  const onButton = event.target instanceof HTMLButtonElement;
  switch (key) {
    case "0":
      controller.fit();
      return true;
    case "b":
      if (workspace.prelude) {
        controller.showBefore();
      }
      return true;
    case "f":
      controller.focusSelection();
      return true;
    case "n":
      void workspace.step(!event.shiftKey);
      return true;
    case "l":
      void workspace.stepByLength(!event.shiftKey);
      return true;
    case "arrowleft":
      void controller.selectBeside(false);
      return true;
    case "arrowright":
      void controller.selectBeside(true);
      return true;
    case "[":
    case "]": {
      const to = key === "[" ? flow?.launch : flow?.launched[0];
      if (to) {
        void workspace.follow(to);
      }
      return true;
    }
    case "arrowup":
    case "arrowdown":
      if (event.altKey) {
        moveLine(controller, key === "arrowup" ? -1 : 1);
      } else {
        focusLine(controller, key === "arrowup" ? -1 : 1);
      }
      return true;
    case "enter":
      if (onButton) {
        return false;
      }
      return explainPointed(controller) || foldFocus(controller);
    case "i":
      explainBefore(controller);
      return true;
    case "c":
      return foldFocus(controller);
    case "p": {
      const line = controller.layout.lines.find((line) => line.key === controller.focusKey && line.kind === "row");
      if (line) {
        workspace.pin(line.key);
      }
      return line !== undefined;
    }
    case "m":
      if (event.shiftKey) {
        workspace.clearMarks();
      } else if (area) {
        workspace.mark({ from: area.from, to: area.to });
      } else if (selected) {
        workspace.mark({ from: selected.start, to: selected.start + selected.duration });
      } else {
        const time = toTime(controller.viewport, controller.pointer ?? controller.viewport.width / 2);
        workspace.mark({ from: time, to: time });
      }
      return true;
    case "t":
      workspace.nextTimeFormat();
      return true;
    case "k":
      workspace.setColoring(COLORINGS[(COLORINGS.indexOf(workspace.coloring) + 1) % COLORINGS.length] ?? "category");
      return true;
    case "escape":
      void workspace.choose(undefined);
      void workspace.select(undefined);
      return true;
    default:
      return false;
  }
}

function foldFocus(controller: Controller): boolean {
  if (controller.focusKey !== undefined) {
    controller.workspace.fold(controller.focusKey);
    return true;
  }
  return false;
}

function focusLine(controller: Controller, by: number): void {
  const { lines } = controller.layout;
  const now = lines.findIndex((line) => line.key === controller.focusKey);
  const next = lines[Math.max(0, Math.min(lines.length - 1, now + by))];
  if (next) {
    controller.focusKey = next.key;
    if (next.row >= 0) {
      controller.showRow(next.row);
    }
    controller.rowsMoved.fire();
    controller.workspace.say(next.title);
  }
}

/** Moves the line that has the focus among its siblings. */
function moveLine(controller: Controller, by: number): void {
  const { layout, workspace, focusKey } = controller;
  const line = layout.lines.find((line) => line.key === focusKey);
  if (!line) {
    return;
  }
  const siblings = layout.lines.filter((other) => other.parent === line.parent);
  const target = siblings[siblings.indexOf(line) + by];
  const order = target && moved(layout.lines, line.key, target.key);
  if (order) {
    workspace.arrange({ order: new Map(workspace.arrangement.order).set(line.parent, order) });
  }
}
