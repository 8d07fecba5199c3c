/** What stands in the place of a page while no file is open: what can be opened, how far a conversion is, or why there is no file. */

import demo from "../../tests/data/synthetic.h5?url";
import type { PageDocument } from "../generated/catalogue";
import * as format from "../view/format";
import { hrefOf, type HeldCapture } from "../workspace/captures";
import type { Status } from "../workspace/state";
import type { Workspace } from "../workspace/workspace";
import { CaptureFacts } from "./capture-facts";

export function View({ workspace }: { workspace: Workspace }) {
  const { status } = workspace;
  switch (status.kind) {
    case "converting":
      return <Converting status={status} />;
    case "failed":
      return (
        <section class="opening" role="alert">
          <h1>{status.what} cannot be shown</h1>
          <p>{status.why}</p>
        </section>
      );
    default:
      return (
        <section class="opening">
          {workspace.captures.held?.length ? <HeldList held={workspace.captures.held} /> : <h1>No capture is open</h1>}
          <p>Drop a capture here, or choose one with Open. It stays on this machine.</p>
          {workspace.captures.held === undefined ? (
            <p>
              Timeline files (.h5) are shown, together with their prelude (prelude.h5) where there is one. <code>flopwatch open FILE</code> converts and opens
              captures of Nsight Systems, Nsight Compute, PyTorch and JAX.
            </p>
          ) : (
            <ul>
              <li>Nsight Systems: .nsys-rep, .qdrep, .sqlite</li>
              <li>Nsight Compute: .ncu-rep</li>
              <li>PyTorch: traces (.json, .json.gz)</li>
              <li>JAX: .xplane.pb, memory profiles (.prof), HLO dumps (.pb)</li>
              <li>Flopwatch: timeline files (.h5), with their prelude (prelude.h5)</li>
              <li>profiles of operations (.json, .csv), shown as a dashboard</li>
            </ul>
          )}
          <p>
            <a href={`?file=${encodeURIComponent(new URL(demo, location.href).pathname)}`}>Show the demo</a>: 7 000 made-up events of a GPU. Or{" "}
            <button type="button" class="link" onClick={() => void showDemoDashboard(workspace)}>
              the dashboard of a made-up profile
            </button>
            .
          </p>
        </section>
      );
  }
}

async function showDemoDashboard(workspace: Workspace): Promise<void> {
  try {
    const { default: document } = await import("../../tests/data/operations.page.json");
    workspace.showDashboard("demo", document as unknown as PageDocument);
  } catch (error) {
    workspace.report(error);
  }
}

function Converting({ status: { what, sent, size, cancel } }: { status: Extract<Status, { kind: "converting" }> }) {
  const there = sent >= size;
  return (
    <section class="opening" aria-busy="true">
      <h1>Converting {what}</h1>
      <p role="status">
        {there ? `${format.bytes(size)} sent; the program that serves this page makes a timeline of it…` : `${format.progress(sent / Math.max(1, size))}: ${format.bytes(sent)} of ${format.bytes(size)} sent`}
      </p>
      {there ? <progress aria-label="Converting" /> : <progress aria-label="Sending" max={size} value={sent} />}
      <p>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </p>
    </section>
  );
}

/** What this page's server holds. */
function HeldList({ held }: { held: readonly HeldCapture[] }) {
  return (
    <>
      <h1>Captures</h1>
      <ul class="captures">
        {held.map((capture) => (
          <li key={capture.capture}>
            <a href={hrefOf(capture)}>{capture.file}</a> <CaptureFacts capture={capture} />
          </li>
        ))}
      </ul>
    </>
  );
}
