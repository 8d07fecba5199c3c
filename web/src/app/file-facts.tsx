/** What the frame says of the open file: its name, how much it holds, how much of it was read, and what is missing. */

import type { Drop } from "../timeline/header";
import * as format from "../view/format";
import type { Workspace } from "../workspace/workspace";

/** Fewer bytes are there before one could read how many are. */
const MANY_BYTES = 256 * 1024;

export function FileFacts({ workspace }: { workspace: Workspace }) {
  const { header, shown, prelude } = workspace;
  if (!header || !shown) {
    return null;
  }
  return (
    <span class="facts">
      <span class="file-name" title={`${workspace.fileName}, session ${header.sessionId || "without an id"}`}>
        {workspace.fileName}
      </span>
      {header.totalEvents > 0 && (
        <>
          <span class="count">{format.grouped(header.totalEvents)} events</span>
          <span class="length">{format.duration(header.durationNs)}</span>
        </>
      )}
      {workspace.loaded.missing > MANY_BYTES && (
        <span class="loading">
          <progress aria-label="Reading" max={1} value={workspace.loaded.share} /> {format.progress(workspace.loaded.share)}
        </span>
      )}
      <span class="bytes" title={`${format.grouped(workspace.requests)} requests`}>
        {workspace.bytes < shown.fileBytes && `${format.bytes(workspace.bytes)} of `}
        {format.bytes(shown.fileBytes)}
      </span>
      <Lost workspace={workspace} drops={header.drops} what="left out" more="or changed" />
      {prelude && <Lost workspace={workspace} drops={prelude.drops} what="gone" more="before the window" />}
    </span>
  );
}

/** Reasons by which nothing is missing: a part of the source holds nothing, or the reader decided what it does not say. */
const NOTHING_MISSING: ReadonlySet<string> = new Set(["idle", "inferred"]);

/** How many events are not in a file, or not as they were. */
function Lost({ workspace, drops, what, more }: { workspace: Workspace; drops: readonly Drop[]; what: string; more: string }) {
  const missing = drops.filter(({ reason }) => !NOTHING_MISSING.has(reason));
  const lost = missing.reduce((sum, drop) => sum + drop.count, 0);
  return lost === 0 ? null : (
    <button type="button" class="warn" onClick={() => workspace.show("overview")} title={missing.map((drop) => `${drop.count} × ${drop.what}: ${drop.reason}`).join("\n")}>
      {format.grouped(lost)} {what} <span class="long">{more}</span>
    </button>
  );
}
