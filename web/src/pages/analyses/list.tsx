/** The list of analyses: by question, searched from the key `/` on, with what the capture cannot have in grey. */

import { useEffect, useRef, useState } from "preact/hooks";
import { isTyping } from "../../app/app";
import type { Workspace } from "../../workspace/workspace";
import { found, lacking } from "./catalogue";
import { type Analysis, GROUPED } from "./request";

export function List({ workspace, chosen }: { workspace: Workspace; chosen: Analysis | undefined }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "/" && !isTyping(event.target)) {
        event.preventDefault();
        // Elsewhere the key searches names of events: here it is this search's, so it is taken before it arrives there.
        event.stopPropagation();
        input.current?.focus();
        input.current?.select();
      }
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, []);
  const groups = found(GROUPED, text);
  const onKeyDown = (event: KeyboardEvent) => {
    const first = groups[0]?.analyses[0];
    if (event.key === "Enter" && first) {
      event.preventDefault();
      workspace.chooseAnalysis(first.name);
    } else if (event.key === "Escape") {
      setText("");
      input.current?.blur();
    }
  };
  return (
    <nav class="choices" aria-label="Analyses">
      <input
        ref={input}
        type="search"
        placeholder="Search analyses ( / )"
        aria-label="Search analyses"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {groups.length === 0 && <p class="faint">No analysis is called so.</p>}
      {groups.map(({ name: group, question, analyses }) => (
        <section key={group} aria-label={question}>
          <h2>{question}</h2>
          <ul>
            {analyses.map((analysis) => (
              <li key={analysis.name}>
                <Choice workspace={workspace} analysis={analysis} isChosen={analysis.name === chosen?.name} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function Choice({ workspace, analysis, isChosen }: { workspace: Workspace; analysis: Analysis; isChosen: boolean }) {
  const { name, title, about } = analysis;
  const lack = workspace.header && lacking(analysis, workspace.header);
  return (
    <button
      type="button"
      class={lack === undefined ? "" : "lacking"}
      data-analysis={name}
      title={lack === undefined ? `${name}: ${about}` : `${name} needs ${lack}, which this capture does not hold`}
      aria-current={isChosen}
      onClick={() => workspace.chooseAnalysis(name)}
    >
      {title}
      {lack !== undefined && <span class="reason"> needs {lack}</span>}
    </button>
  );
}
