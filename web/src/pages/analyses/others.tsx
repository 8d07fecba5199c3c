/** The further captures of an analysis: chosen among those that this page's server holds or, of a cluster, named by their sessions. */

import { useEffect, useState } from "preact/hooks";
import { CaptureFile } from "../../controls/capture-file";
import type { Gateway } from "../../gateway/client";
import type { Captures, HeldCapture } from "../../workspace/captures";
import type { Workspace } from "../../workspace/workspace";
import type { Analysis } from "./request";

interface Props {
  readonly analysis: Analysis;
  readonly workspace: Workspace;
  /** The captures that are asked for now. */
  readonly chosen: readonly string[];
  /** Told of captures that are to be asked for at once. */
  readonly onChoose: (others: readonly string[]) => void;
}

export function Others({ analysis: { inputs }, workspace, chosen, onChoose }: Props) {
  const held = workspace.captures.besides(workspace.url);
  if (!held) {
    return <Named inputs={inputs} gateway={workspace.gateway} chosen={chosen} />;
  }
  const Choice = inputs === "two" ? One : Some;
  return <Choice held={held} captures={workspace.captures} chosen={chosen} onChoose={onChoose} />;
}

interface ChoiceProps {
  readonly held: readonly HeldCapture[];
  readonly captures: Captures;
  readonly chosen: readonly string[];
  readonly onChoose: (others: readonly string[]) => void;
}

/** One of the captures; it is asked for as soon as it is chosen. */
function One({ held, captures, chosen: [chosen = ""], onChoose }: ChoiceProps) {
  return (
    <span>
      <label>
        with{" "}
        <select name="others" required onChange={(event) => event.currentTarget.form?.requestSubmit()}>
          <option value="" selected={chosen === ""}>
            choose a capture
          </option>
          {held.map(({ capture, file }) => (
            <option key={capture} value={capture} selected={capture === chosen}>
              {file}
            </option>
          ))}
        </select>
      </label>{" "}
      <CaptureFile captures={captures} onAdd={({ capture }) => onChoose([capture])} />
    </span>
  );
}

/** Any of the captures. */
function Some({ held, captures, chosen, onChoose }: ChoiceProps) {
  return (
    <fieldset>
      <legend>with further captures</legend>
      {held.map(({ capture, file }) => (
        <label key={capture}>
          <input type="checkbox" name="others" value={capture} defaultChecked={chosen.includes(capture)} /> {file}
        </label>
      ))}
      <CaptureFile captures={captures} onAdd={({ capture }) => onChoose([...chosen, capture])} />
    </fieldset>
  );
}

interface NamedProps {
  readonly inputs: Analysis["inputs"];
  readonly gateway: Gateway | undefined;
  readonly chosen: readonly string[];
}

/** Captures of a cluster, by their sessions. */
function Named({ inputs, gateway, chosen }: NamedProps) {
  const [known, setKnown] = useState<readonly string[]>([]);
  useEffect(() => {
    const found = gateway?.sessions({ namespace: "", status: "", mode: "" });
    found?.then(({ sessions }) => setKnown(sessions.map(({ session_id }) => session_id))).catch(() => setKnown([]));
  }, [gateway]);
  const [what, more] = inputs === "two" ? ["with", ""] : ["with further captures", ", several apart by spaces"];
  return (
    <label title={`Further captures: each a session's id, with /CAPTURE where the session has several${more}`}>
      {what}{" "}
      <input name="others" list="known-sessions" size={inputs === "two" ? 22 : 36} placeholder="session, or session/capture" defaultValue={chosen.join(" ")} required={inputs === "two"} />
      <datalist id="known-sessions">
        {known.map((id) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </label>
  );
}
