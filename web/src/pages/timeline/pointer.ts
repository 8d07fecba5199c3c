/** Pointer, wheel and touchpad. */

import { toTime, within } from "../../view/scale";
import { settings } from "../../workspace/settings";
import type { Controller, Stage } from "./controller";

/** A press that moves less is a click. */
export const CLICK_PIXELS = 4;

/** A second click within so long belongs to the first, ms. */
export const DOUBLE_CLICK_INTERVAL = 400;

/** How much a wheel's step zooms. */
const ZOOM_PER_PIXEL = 0.0025;

interface Drag {
  readonly kind: "pan" | "area" | "span" | "strip";
  readonly x: number;
  readonly y: number;
  lastX: number;
  lastY: number;
  moved: boolean;
}

/** Follows the pointer on the stage; the result ends that. */
export function attachPointer(controller: Controller, stage: Stage): () => void {
  const ending: (() => void)[] = [];
  const on = <K extends keyof HTMLElementEventMap>(
    element: HTMLElement,
    kind: K,
    handler: (event: HTMLElementEventMap[K]) => void,
    options?: AddEventListenerOptions,
  ) => {
    element.addEventListener(kind, handler, options);
    ending.push(() => element.removeEventListener(kind, handler, options));
  };
  let drag: Drag | undefined;
  /** The last click on the tracks. */
  let clicked: PointerEvent | undefined;
  const { overlay, ruler, strip, scroller } = stage;

  const begin = (kind: Drag["kind"], element: HTMLElement) => (event: PointerEvent) => {
    if (event.button !== 0) {
      return;
    }
    element.setPointerCapture(event.pointerId);
    // With Shift a drag does what it does not without.
    const area = kind === "pan" && event.shiftKey !== settings.dragSelects;
    drag = { kind: area ? "area" : kind, x: event.offsetX, y: event.offsetY, lastX: event.clientX, lastY: event.clientY, moved: false };
    if (kind === "strip") {
      centre(event.offsetX);
    }
  };
  const centre = (x: number) => {
    const { viewport, axis } = controller;
    const span = viewport.to - viewport.from;
    const [begin, end] = controller.workspace.shown?.extent ?? [axis.begin, axis.end];
    const time = begin + (x / viewport.width) * (end - begin);
    controller.set(within(time - span / 2, time + span / 2, viewport.width, axis));
  };
  const move = (event: PointerEvent) => {
    if (!drag) {
      if (event.currentTarget === overlay) {
        controller.hoverAt(event.offsetX, event.offsetY);
      } else {
        controller.pointer = event.offsetX;
        controller.schedule();
      }
      return;
    }
    drag.moved ||= Math.abs(event.offsetX - drag.x) > CLICK_PIXELS || Math.abs(event.offsetY - drag.y) > CLICK_PIXELS;
    if (!drag.moved) {
      return;
    }
    switch (drag.kind) {
      case "pan":
        controller.pan(drag.lastX - event.clientX);
        scroller.scrollTop += drag.lastY - event.clientY;
        break;
      case "strip":
        centre(event.offsetX);
        break;
      case "area":
      case "span":
        controller.draft = {
          from: toTime(controller.viewport, drag.x),
          to: toTime(controller.viewport, event.offsetX),
          top: drag.kind === "area" ? drag.y : 0,
          bottom: drag.kind === "area" ? event.offsetY : controller.height,
        };
        controller.schedule();
        break;
    }
    drag.lastX = event.clientX;
    drag.lastY = event.clientY;
  };
  const end = (event: PointerEvent) => {
    const ended = drag;
    drag = undefined;
    if (!ended || event.type === "pointercancel") {
      controller.draft = undefined;
      controller.schedule();
      return;
    }
    if (!ended.moved && (ended.kind === "pan" || ended.kind === "area")) {
      clicked = event;
      void controller.click(event.offsetX, event.offsetY);
    } else if (ended.kind === "area") {
      void controller.finishDraft();
    } else if (ended.kind === "span" && controller.draft) {
      const { from, to } = controller.draft;
      controller.draft = undefined;
      controller.set(within(Math.min(from, to), Math.max(from, to), controller.viewport.width, controller.axis));
    }
  };
  const wheel = (event: WheelEvent) => {
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      controller.zoom(Math.exp(event.deltaY * unit * ZOOM_PER_PIXEL), event.offsetX);
      return;
    }
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      controller.pan(sideways * unit);
    }
    // Anything else scrolls the rows, as the browser does it.
  };
  // The panel that the first click opens may come up where the second one lands.
  const onPanel = (event: PointerEvent) => {
    const at = clicked;
    clicked = undefined;
    const near = at && Math.abs(event.clientX - at.clientX) <= CLICK_PIXELS && Math.abs(event.clientY - at.clientY) <= CLICK_PIXELS;
    if (near && event.target !== overlay && event.timeStamp - at.timeStamp < DOUBLE_CLICK_INTERVAL) {
      void controller.zoomTo(at.offsetX, at.offsetY);
    }
  };
  for (const [element, kind] of [[overlay, "pan"], [ruler, "span"], [strip, "strip"]] as const) {
    on(element, "pointerdown", begin(kind, element));
    on(element, "pointermove", move);
    on(element, "pointerup", end);
    on(element, "pointercancel", end);
    on(element, "pointerleave", () => drag === undefined && controller.leave());
    on(element, "wheel", wheel, { passive: false });
  }
  on(scroller.parentElement ?? scroller, "pointerdown", onPanel);
  on(overlay, "dblclick", (event) => void controller.zoomTo(event.offsetX, event.offsetY));
  return () => {
    for (const one of ending) {
      one();
    }
  };
}
