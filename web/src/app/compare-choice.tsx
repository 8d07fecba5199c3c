/** The dialog that says what the open capture can be compared with, and has the user choose. */

import { useEffect, useRef } from "preact/hooks";
import { CaptureFile } from "../controls/capture-file";
import type { HeldCapture } from "../workspace/captures";
import type { Workspace } from "../workspace/workspace";
import { CaptureFacts } from "./capture-facts";

interface Props {
  readonly workspace: Workspace;
  readonly others: readonly HeldCapture[];
  readonly onClose: () => void;
}

export function View({ workspace, others, onClose }: Props) {
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
            <CaptureFacts capture={capture} />
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
