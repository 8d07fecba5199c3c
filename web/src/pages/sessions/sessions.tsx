/** The cluster's sessions: those that there are, where they stand, and a way to start one. */

import { useEffect, useState } from "preact/hooks";
import type { Filter, Gateway } from "../../gateway/client";
import { type Mode, type Session, SESSION_STATES } from "../../gateway/messages";
import type { Workspace } from "../../workspace/workspace";
import { Detail } from "./detail";
import { List } from "./list";
import { Start } from "./start";

/** Time between two looks at the list, in ms: while something is under way, and otherwise. */
const [SOON, LATER] = [5_000, 30_000];

export function View({ workspace }: { workspace: Workspace }) {
  return workspace.gateway ? <Of gateway={workspace.gateway} workspace={workspace} /> : null;
}

function Of({ gateway, workspace }: { gateway: Gateway; workspace: Workspace }) {
  const [filter, setFilter] = useState<Filter>({ namespace: "", status: "", mode: "" });
  const [pages, setPages] = useState<readonly (string | undefined)[]>([undefined]);
  const [found, setFound] = useState<{ readonly sessions: readonly Session[]; readonly total: number; readonly next: string | undefined }>();
  const [problem, setProblem] = useState<string>();
  const [modes, setModes] = useState<readonly Mode[]>([]);
  const [starting, setStarting] = useState(false);
  const [looks, setLooks] = useState(0);
  const look = () => setLooks((looks) => looks + 1);
  const after = pages.at(-1);
  useEffect(() => void gateway.modes().then(setModes, () => setModes([])), [gateway]);
  useEffect(() => {
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      let wait = LATER;
      // What nobody sees is not kept up to date.
      if (document.visibilityState === "visible") {
        try {
          const { sessions, total, next } = await gateway.sessions(filter, after);
          if (over) {
            return;
          }
          setFound({ sessions, total, next });
          setProblem(undefined);
          wait = sessions.some(({ status }) => status === "pending" || status === "running") ? SOON : LATER;
        } catch (error) {
          if (over) {
            return;
          }
          setProblem(error instanceof Error ? error.message : String(error));
        }
      }
      timer = setTimeout(() => void ask(), wait);
    };
    void ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [gateway, filter, after, looks]);
  const narrow = (change: Partial<Filter>) => {
    setFilter((filter) => ({ ...filter, ...change }));
    setPages([undefined]);
  };
  const namespaces = [...new Set([filter.namespace, ...(found?.sessions ?? []).map(({ namespace }) => namespace)])].filter((name) => name !== "").sort();
  return (
    <div class="sessions">
      <div class="toolbar" role="group" aria-label="Which sessions">
        <input
          type="search"
          placeholder="Namespace"
          aria-label="Namespace"
          list="namespaces"
          value={filter.namespace}
          maxLength={63}
          onChange={(event) => narrow({ namespace: event.currentTarget.value.trim() })}
        />
        <datalist id="namespaces">
          {namespaces.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <select aria-label="Status" value={filter.status} onChange={(event) => narrow({ status: event.currentTarget.value })}>
          <option value="">every status</option>
          {SESSION_STATES.map((status) => (
            <option key={status} value={status}>
              {status}
            </option>
          ))}
        </select>
        <select aria-label="Mode" value={filter.mode} onChange={(event) => narrow({ mode: event.currentTarget.value })}>
          <option value="">every mode</option>
          {modes.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
        <button type="button" aria-expanded={starting} onClick={() => setStarting(!starting)}>
          New session
        </button>
        <span class="space" />
        <span class="faint">{gateway.user}</span>
        <button type="button" onClick={() => void workspace.signOut()}>
          Sign out
        </button>
      </div>
      {starting && (
        <Start
          gateway={gateway}
          namespaces={namespaces}
          onClose={() => setStarting(false)}
          onStarted={(id) => {
            setStarting(false);
            workspace.chooseSession(id);
            look();
          }}
        />
      )}
      {problem !== undefined && (
        <p class="failure note" role="alert">
          {problem}
        </p>
      )}
      <div class="halves">
        <div class="table">
          {found && found.sessions.length > 0 && <List sessions={found.sessions} chosen={workspace.session} onChoose={(id) => workspace.chooseSession(id)} />}
          {found && found.sessions.length === 0 && <p class="waiting">No session matches.</p>}
          {!found && problem === undefined && <p class="waiting">Reading the sessions…</p>}
          {found && (pages.length > 1 || found.next !== undefined) && (
            <p class="pages">
              <button type="button" disabled={pages.length === 1} onClick={() => setPages(pages.slice(0, -1))}>
                Newer
              </button>
              <button type="button" disabled={found.next === undefined} onClick={() => setPages([...pages, found.next])}>
                Older
              </button>
              <span class="faint">{found.total} in all</span>
            </p>
          )}
        </div>
        {workspace.session !== undefined && (
          <Detail
            key={workspace.session}
            gateway={gateway}
            id={workspace.session}
            onChange={look}
            onClose={() => workspace.chooseSession(undefined)}
          />
        )}
      </div>
    </div>
  );
}
