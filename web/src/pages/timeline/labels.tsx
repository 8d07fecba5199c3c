/** The rows' names: a tree that is rendered only as far as it is seen. */

import * as format from "../../view/format";
import { type Line, moved } from "../../view/layout";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import type { Controller } from "./controller";

/** Kind of data of a label that is dragged. */
const DRAGGED = "application/x-flopwatch-row";

/** Lines are rendered a little beyond what is seen. */
const ROOM = 200;

export function Labels({ workspace, controller }: { workspace: Workspace; controller: Controller }) {
  useObservable(controller.rowsMoved);
  const { layout, height } = controller;
  const scroller = controller.scroll;
  const seen = layout.lines.filter((line) => line.y + line.height > scroller - ROOM && line.y < scroller + height + ROOM);
  return (
    <div class="labels" role="tree" aria-label="Rows">
      <div class="scrolling" style={{ transform: `translateY(${layout.pinnedHeight - scroller}px)` }}>
        {seen.map((line) => (
          <Label key={line.key} line={line} workspace={workspace} controller={controller} />
        ))}
      </div>
      {layout.pinned.length > 0 && (
        <div class="pinned" style={{ height: `${layout.pinnedHeight}px` }}>
          {layout.pinned.map((line) => (
            <Label key={line.key} line={line} workspace={workspace} controller={controller} />
          ))}
        </div>
      )}
    </div>
  );
}

function Label({ line, workspace, controller }: { line: Line; workspace: Workspace; controller: Controller }) {
  const foldable = line.kind === "group" || line.lanes > 1;
  const focused = controller.focusKey === line.key;
  const held = line.kind === "row" ? workspace.held.find(({ row }) => row === line.row) : undefined;
  return (
    <div
      class={`label ${line.kind}${focused ? " focused" : ""}`}
      role="treeitem"
      aria-level={line.depth + 1}
      aria-selected={focused}
      {...(foldable ? { "aria-expanded": !line.folded } : {})}
      style={{ top: `${line.y}px`, height: `${line.height}px`, paddingLeft: `${6 + line.depth * 12}px` }}
      title={held ? `${line.title}; not known before ${format.time(held.from, workspace.timeFormat, workspace.header?.startUtcNs)}, since the ring wrapped` : line.title}
      draggable={!line.pinned}
      onDragStart={(event) => event.dataTransfer?.setData(DRAGGED, line.key)}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes(DRAGGED)) {
          event.preventDefault();
        }
      }}
      onDrop={(event) => {
        const key = event.dataTransfer?.getData(DRAGGED);
        if (key) {
          event.preventDefault();
          moveBeside(workspace, controller.layout.lines, key, line);
        }
      }}
      onClick={() => {
        controller.focusKey = line.key;
        if (line.kind === "group") {
          workspace.fold(line.key);
        } else {
          controller.rowsMoved.fire();
        }
      }}
    >
      {foldable ? (
        <button
          type="button"
          class="twist"
          aria-label={`${line.folded ? "Unfold" : "Fold"} ${line.title}`}
          onClick={(event) => {
            event.stopPropagation();
            workspace.fold(line.key);
          }}
        >
          {line.folded ? "▸" : "▾"}
        </button>
      ) : (
        <span class="twist" />
      )}
      <span class="text">{line.label}</span>
      {line.kind === "row" && (
        <button
          type="button"
          class="pin"
          aria-pressed={line.pinned}
          aria-label={`${line.pinned ? "Let go of" : "Keep at the top:"} ${line.title}`}
          title={line.pinned ? "Let it scroll" : "Keep it at the top (P)"}
          onClick={(event) => {
            event.stopPropagation();
            workspace.pin(line.key);
          }}
        >
          ⊤
        </button>
      )}
    </div>
  );
}

/** Moves a line to where another one of the same group is. */
function moveBeside(workspace: Workspace, lines: readonly Line[], key: string, to: Line): void {
  const order = moved(lines, key, to.key);
  if (order) {
    workspace.arrange({ order: new Map(workspace.arrangement.order).set(to.parent, order) });
  }
}
