/** The table of sessions. */

import type { Session, SessionState } from "../../gateway/messages";

export function State({ status }: { status: SessionState }) {
  return <span class={`state ${status}`}>{status}</span>;
}

interface Props {
  readonly sessions: readonly Session[];
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
}

export function List({ sessions, chosen, onChoose }: Props) {
  return (
    <table>
      <thead>
        <tr>
          {["Session", "Namespace", "Status", "Mode", "Made", "By"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sessions.map((session) => (
          <tr key={session.session_id} class={session.session_id === chosen ? "chosen" : ""}>
            <td>
              <button type="button" class="link" aria-current={session.session_id === chosen ? "true" : undefined} onClick={() => onChoose(session.session_id)}>
                {session.name}
              </button>
            </td>
            <td>{session.namespace}</td>
            <td>
              <State status={session.status} />
              {session.status === "failed" && session.reason !== null && <span class="faint"> {session.reason}</span>}
            </td>
            <td>{session.mode}</td>
            <td class="when">{session.created === null ? "" : new Date(session.created).toLocaleString()}</td>
            <td>{session.requested_by ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
