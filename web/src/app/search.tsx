/** Search by name, with the next hit and the one before. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Workspace } from "../workspace/workspace";
import { isTyping } from "./app";
import { hitCount } from "./hit-count";

/** Typing pauses before the search begins, ms. */
const PAUSE = 150;

export function Search({ workspace }: { workspace: Workspace }) {
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const [text, setText] = useState(workspace.search);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "/" && !isTyping(event.target)) {
        event.preventDefault();
        input.current?.focus();
        input.current?.select();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const search = (text: string) => {
    setText(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void workspace.find(text), PAUSE);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer.current);
      const forward = !event.shiftKey;
      const found = workspace.search === text && workspace.hits ? Promise.resolve() : workspace.find(text);
      void found.then(() => workspace.step(forward));
    } else if (event.key === "Escape") {
      search("");
      input.current?.blur();
    }
  };
  const { hit, hits, searchProblem } = workspace;
  return (
    <search>
      <input
        ref={input}
        type="search"
        placeholder="Search names ( / )"
        aria-label="Search names; /expression/ for a regular expression"
        aria-invalid={searchProblem !== undefined}
        value={text}
        onInput={(event) => search(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {searchProblem !== undefined && (
        <span class="note" role="alert" title={searchProblem}>
          {searchProblem}
        </span>
      )}
      {hits && (
        <>
          <span class="count">{hitCount(hits, hit)}</span>
          <button type="button" aria-label="Hit before" title="Hit before (Shift+Enter)" onClick={() => void workspace.step(false)}>
            ↑
          </button>
          <button type="button" aria-label="Next hit" title="Next hit (Enter)" onClick={() => void workspace.step(true)}>
            ↓
          </button>
        </>
      )}
    </search>
  );
}
