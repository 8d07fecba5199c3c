/** What the keys do, for the pointer; and what this level of detail leaves out. */

import { useState } from "preact/hooks";
import { isDark } from "../../app/dark";
import * as format from "../../view/format";
import { categoryCss, type Coloring, IDLE } from "../../view/palette";
import { settings } from "../../workspace/settings";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import type { Controller } from "./controller";

export function Toolbar({ workspace, controller }: { workspace: Workspace; controller: Controller | undefined }) {
  const { shown, prelude } = workspace;
  const { dragSelects } = useObservable(settings);
  const categories = shown?.categories.filter(({ name, count }, at, all) => count > 0 && at === all.findIndex((other) => other.name === name && other.count > 0));
  return (
    <div class="toolbar" role="toolbar" aria-label="Timeline">
      <button type="button" onClick={() => controller?.fit()} title="Fit all events; again: the whole capture window alone (0)">
        Fit
      </button>
      {prelude && controller && (
        <button type="button" onClick={() => controller.showBefore()} title="Show what was recorded before the window (B)">
          {format.duration(-controller.axis.begin)} before
        </button>
      )}
      <button type="button" onClick={() => controller?.zoom(0.5, controller.viewport.width / 2)} aria-label="Zoom in" title="Zoom in (W)">
        +
      </button>
      <button type="button" onClick={() => controller?.zoom(2, controller.viewport.width / 2)} aria-label="Zoom out" title="Zoom out (S)">
        −
      </button>
      <label>
        Color
        <select value={workspace.coloring} onChange={(event) => workspace.setColoring(event.currentTarget.value as Coloring)}>
          <option value="category">by category</option>
          <option value="classic">by category, classic</option>
          <option value="name">by name</option>
        </select>
      </label>
      <button type="button" onClick={() => workspace.nextTimeFormat()} title="Write times in another way (T)">
        Times: {workspace.timeFormat}
      </button>
      <button type="button" onClick={() => settings.set("dragSelects", !dragSelects)} title={`A drag ${dragSelects ? "selects an area; with Shift it moves the view" : "moves the view; with Shift it selects an area"}`}>
        Drag: {dragSelects ? "select" : "move"}
      </button>
      <CopyLink workspace={workspace} />
      {controller && <Sight controller={controller} />}
      <span class="legend">
        {categories?.map((category) => (
          <button
            type="button"
            key={category.name}
            aria-pressed={!workspace.hidden.has(category.name)}
            title={workspace.hidden.has(category.name) ? "Show these events" : "Hide these events"}
            onClick={() => workspace.toggleCategory(category.name)}
          >
            <i style={{ background: categoryCss(category.name, isDark(), workspace.coloring) }} />
            {category.name.replace(/^cuda_/, "").replaceAll("_", " ")}
          </button>
        ))}
        {shown?.rows.some(({ track }) => track === "gpu_stream") && (
          <button
            type="button"
            aria-pressed={!workspace.hidden.has(IDLE)}
            title={`Hatched: nothing runs on the GPU; a click there leads to the cause. ${workspace.hidden.has(IDLE) ? "Show" : "Hide"} these times`}
            onClick={() => workspace.toggleCategory(IDLE)}
          >
            <i class="idle" />
            GPU idle
          </button>
        )}
      </span>
    </div>
  );
}

/** Names of this machine for itself: links to them lead nowhere from another one. */
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;

/** The button says for so long that the link was copied, ms. */
const COPIED_INTERVAL = 1500;

/** Copies a link to what is seen. */
function CopyLink({ workspace }: { workspace: Workspace }) {
  const [copied, setCopied] = useState(false);
  const has = workspace.url !== undefined;
  const copy = async () => {
    const link = workspace.linkToHere();
    try {
      await navigator.clipboard.writeText(link ?? "");
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_INTERVAL);
    } catch {
      workspace.report(new Error("This browser gives the page no clipboard: copy the link from the address bar."));
    }
  };
  const where = LOOPBACK.test(location.hostname) ? " It works on this machine only." : "";
  return (
    <button
      type="button"
      disabled={!has}
      title={has ? `Copy a link to this view with its selection, area, marks and rows.${where}` : "This file is of this machine and has no address"}
      onClick={() => void copy()}
    >
      {copied ? "Copied" : "Copy link"}
    </button>
  );
}

/** How much time is seen, and how closely. */
function Sight({ controller }: { controller: Controller }) {
  useObservable(controller.timeMoved);
  const coarse = controller.coarse();
  return (
    <>
      <span class="span">{format.duration(controller.viewport.to - controller.viewport.from)} in view</span>
      {coarse.length > 0 && (
        <span class="note" title={`Shown by density: ${coarse.join(", ")}`}>
          overview: a bar stands for many events
        </span>
      )}
    </>
  );
}
