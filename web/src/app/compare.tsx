/** The button that compares the open capture with another one that this page's server holds, and the list that it opens. */

import { useEffect, useRef, useState } from "preact/hooks";
import { CaptureFile } from "../controls/capture-file";
import * as format from "../view/format";
import type { HeldCapture } from "../workspace/captures";
import type { Workspace } from "../workspace/workspace";

export function Compare({ workspace }: { workspace: Workspace }) {
  const [shown, setShown] = useState(false);
  const others = workspace.captures.besides(workspace.url);
  if (!others) {
    return null;
  }
  const open = () => {
    setShown(true);
    void workspace.captures.look();
  };
  return (
    <>
      <button type="button" onClick={open} title="Compare this capture with another one">
        Compare…
      </button>
      {shown && <Choice workspace={workspace} others={others} onClose={() => setShown(false)} />}
    </>
  );
}

interface Props {
  readonly workspace: Workspace;
  readonly others: readonly HeldCapture[];
  readonly onClose: () => void;
}

function Choice({ workspace, others, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const choose = (capture: HeldCapture) => {
    dialog.current?.close();
    workspace.compareWith(capture);
  };
  return (
    <dialog ref={dialog} class="compare" onClose={onClose} aria-label="Compare">
      <h2>Compare {workspace.fileName} with</h2>
      <ul class="captures">
        {others.map((capture) => (
          <li key={capture.capture}>
            <button type="button" class="link" onClick={() => choose(capture)}>
              {capture.file}
            </button>{" "}
            <Facts capture={capture} />
          </li>
        ))}
      </ul>
      {others.length === 0 && <p class="faint">No other capture is here yet.</p>}
      <p>
        <CaptureFile captures={workspace.captures} onAdd={choose} />
      </p>
      <p class="faint">The open capture is the one before, the chosen one that after.</p>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

/** What tells captures of one name apart. */
export function Facts({ capture: { events, dropped } }: { capture: HeldCapture }) {
  const facts = [events === null ? "" : `${format.grouped(events)} events`, dropped ? "dropped" : ""];
  return <span class="faint">{facts.filter((fact) => fact !== "").join(", ")}</span>;
}
