/** One session: where it stands, what it published, and what may be done with it. */

import { useEffect, useState } from "preact/hooks";
import { Fact } from "../../controls/fact";
import { useFocus } from "../../controls/focus";
import type { Gateway } from "../../gateway/client";
import type { Capture, Progress, SessionDetail } from "../../gateway/messages";
import * as format from "../../view/format";
import { State } from "./list";
import { LiveFigures } from "./live";

const TIMELINE = "timeline.h5";
/** Time until one who was not heard tries again, in ms. */
const AGAIN = 5_000;
/** Pages of the viewer that show a capture. */
const PAGES = [
  ["timeline", "Timeline"],
  ["overview", "Overview"],
  ["tables", "Tables"],
] as const;

interface Props {
  readonly gateway: Gateway;
  readonly id: string;
  /** It is not as it was. */
  readonly onChange: () => void;
  readonly onClose: () => void;
}

export function Detail({ gateway, id, onChange, onClose }: Props) {
  const [session, setSession] = useState<SessionDetail>();
  const [progress, setProgress] = useState<Progress>();
  const [problem, setProblem] = useState<string>();
  const [asking, setAsking] = useState(false);
  const [tries, setTries] = useState(0);
  const failed = (error: unknown) => setProblem(error instanceof Error ? error.message : String(error));
  const look = () => gateway.session(id).then(setSession, failed);
  const live = session?.status === "pending" || session?.status === "running";
  useEffect(() => void look(), [gateway, id]);
  useEffect(() => {
    if (!live) {
      return undefined;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = gateway.listen(id, {
      onProgress: (progress) => {
        setProgress(progress);
        void look();
      },
      onEnd: () => {
        setProgress(undefined);
        void look();
        onChange();
      },
      onLost: () => {
        timer = setTimeout(() => {
          void look();
          setTries(tries + 1);
        }, AGAIN);
      },
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [gateway, id, live, tries]);
  const act = async (action: Promise<void>, after: () => void) => {
    setProblem(undefined);
    try {
      await action;
      after();
      onChange();
    } catch (error) {
      failed(error);
    }
  };
  return (
    <section class="session" aria-label="Session">
      <h2>
        <span class="name">{session ? `${session.namespace}/${session.name}` : id}</span>
        {live && (
          <>
            <button type="button" onClick={() => void act(gateway.stop(id, "keep"), look)}>
              Stop and keep
            </button>
            <button type="button" onClick={() => void act(gateway.stop(id, "discard"), look)}>
              Stop and discard
            </button>
          </>
        )}
        <button type="button" onClick={() => setAsking(true)}>
          Delete…
        </button>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </h2>
      {asking && <Ask onDelete={() => void act(gateway.delete(id), onClose)} onKeep={() => setAsking(false)} />}
      {problem !== undefined && (
        <p class="note" role="alert">
          {problem}
        </p>
      )}
      {session && (
        <>
          <p>
            <State status={session.status} />
          </p>
          {session.message !== null && session.message !== "" && (
            <p class={session.status === "failed" ? "note" : "faint"}>
              {session.status === "failed" && `${session.reason}: `}
              {session.message}
            </p>
          )}
          {progress && (
            <p class="progress" role="status">
              <progress max={100} value={progress.percent} aria-label="Progress" /> {progress.stage}
              {progress.message !== "" && `: ${progress.message}`}
            </p>
          )}
          <dl class="fields">
            <Fact name="id" value={session.session_id} />
            <Fact name="mode" value={session.mode} />
            <Fact name="asked for by" value={session.requested_by ?? "unknown"} />
            {session.created !== null && <Fact name="made" value={new Date(session.created).toLocaleString()} />}
            {Object.entries(session.request).map(([name, value]) => (
              <Fact key={name} name={name} value={value} />
            ))}
          </dl>
          {session.captures.length === 0 && <p class="faint">There is no capture yet.</p>}
          {session.captures.map((capture) => (
            <Published key={capture.name} gateway={gateway} id={id} capture={capture} />
          ))}
        </>
      )}
    </section>
  );
}

function Ask({ onDelete, onKeep }: { onDelete: () => void; onKeep: () => void }) {
  const keep = useFocus<HTMLButtonElement>();
  return (
    <p class="ask" role="alertdialog" aria-label="Delete the session?">
      This deletes the session and everything it published.
      <button type="button" ref={keep} onClick={onKeep}>
        Keep it
      </button>
      <button type="button" onClick={onDelete}>
        Delete it
      </button>
    </p>
  );
}

function Published({ gateway, id, capture }: { gateway: Gateway; id: string; capture: Capture }) {
  const readable = capture.artifacts.some(({ name }) => name === TIMELINE);
  return (
    <div class="capture">
      <h3>
        {capture.pod}, container {capture.container}
      </h3>
      {capture.stage !== null && capture.stage !== "Done" && (
        <p class="faint">
          {capture.stage}, {capture.percent ?? 0} %{capture.message !== null && capture.message !== "" && `: ${capture.message}`}
        </p>
      )}
      {capture.live && <LiveFigures live={capture.live} />}
      {readable && (
        <p class="links">
          {PAGES.map(([page, title]) => (
            <a key={page} href={gateway.timelineHref(id, capture.name, page)}>
              {title}
            </a>
          ))}
        </p>
      )}
      {capture.artifacts.length > 0 && (
        <ul>
          {capture.artifacts.map((artifact) => (
            <li key={artifact.name}>
              <a href={gateway.artifactUrl(id, capture.name, artifact.name)} download={artifact.name}>
                {artifact.name}
              </a>{" "}
              <span class="faint">{format.bytes(artifact.bytes)}</span>
              {artifact.sensitive && <span class="note"> holds environments of processes; needs a right of its own</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
