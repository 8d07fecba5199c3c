/** What the keys do, for the pointer; and what this level of detail leaves out. */

import { categoryCss, type Coloring } from "../../gl/palette";
import * as format from "../../view/format";
import { isDark } from "../dark";
import { useObservable } from "../store";
import type { Workspace } from "../workspace";
import type { Controller } from "./controller";

export function Toolbar({ workspace, controller }: { workspace: Workspace; controller: Controller | undefined }) {
  const { shown, prelude } = workspace;
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
        Colour
        <select value={workspace.coloring} onChange={(event) => workspace.setColoring(event.currentTarget.value as Coloring)}>
          <option value="category">by category</option>
          <option value="classic">by category, classic</option>
          <option value="name">by name</option>
        </select>
      </label>
      <button type="button" onClick={() => workspace.nextTimeFormat()} title="Write times in another way (T)">
        Times: {workspace.timeFormat}
      </button>
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
      </span>
    </div>
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
