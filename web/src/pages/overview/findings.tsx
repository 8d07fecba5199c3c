/** The findings that are worth most, each with what to do first. */

import type { Advice, Finding } from "../../generated/catalogue";
import * as format from "../../view/format";
import type { Workspace } from "../../workspace/workspace";
import { Leading } from "./leading";
import { Pending } from "./pending";
import type { Result } from "./result";
import { Sentence } from "./sentence";

/** Findings that are told here. */
const MOST_FINDINGS = 3;

export function Findings({ workspace, result }: { workspace: Workspace; result: Result<Advice> }) {
  return (
    <section class="whole">
      <h2>What is worth mending</h2>
      {result.state === "made" ? <Found workspace={workspace} advice={result.value} /> : <Pending result={result} />}
    </section>
  );
}

function Found({ workspace, advice: { findings, findings_left_out: leftOut, not_captured: unchecked } }: { workspace: Workspace; advice: Advice }) {
  const all = findings.length + leftOut;
  if (all === 0) {
    return (
      <p>
        Nothing that was checked is worth mending.{" "}
        <Leading workspace={workspace} analysis="advice">
          {unchecked.length > 0 ? `What was checked, and ${unchecked.length === 1 ? "a topic that was" : `${unchecked.length} topics that were`} not` : "What was checked"}
        </Leading>
      </p>
    );
  }
  return (
    <>
      <ol class="findings">
        {findings.slice(0, MOST_FINDINGS).map((finding) => (
          <One key={finding.rule} workspace={workspace} finding={finding} />
        ))}
      </ol>
      <p>
        <Leading workspace={workspace} analysis="advice">
          {all > MOST_FINDINGS ? `All ${all} findings, with their evidence` : "Their evidence, and what was checked"}
        </Leading>
      </p>
    </>
  );
}

function One({ workspace, finding: { title, severity, confidence, sentence, gain, actions, evidence } }: { workspace: Workspace; finding: Finding }) {
  const place = evidence.find((one) => one.place)?.place;
  return (
    <li class={severity}>
      <h3>
        {place ? (
          <button type="button" class="link" title="Show in the timeline" onClick={() => void workspace.goToPlace(place)}>
            {title}
          </button>
        ) : (
          <Leading workspace={workspace} analysis="advice">
            {title}
          </Leading>
        )}{" "}
        <span class="worth">
          {gain && `worth up to ${format.duration(gain.gain_ns)} (${format.percent(gain.window_share_ratio)}), `}
          {severity} severity, {confidence} confidence
        </span>
      </h3>
      <p>
        <Sentence text={sentence} />
      </p>
      {actions[0] !== undefined && (
        <p>
          <strong>Do this first:</strong> <Sentence text={actions[0]} />
        </p>
      )}
    </li>
  );
}
