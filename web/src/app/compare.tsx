/** The button that compares the open capture with another one that this page's server holds. */

import { useState } from "preact/hooks";
import type { Workspace } from "../workspace/workspace";
import { lazily } from "./lazily";

const Choice = lazily(() => import("./compare-choice"), null);

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
