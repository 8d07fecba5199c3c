/** Every analysis of the catalogue: run by the agent or gateway that serves the capture, and shown as the page that it makes. */

import { useEffect, useState } from "preact/hooks";
import type { PageDocument, Place } from "../generated/catalogue";
import { Document } from "../ui/analyses/document";
import { Downloads, type FileFormat, pageFormats } from "../ui/analyses/downloads";
import { Form } from "../ui/analyses/form";
import { type Analysis, analysisOf, type Asked, GROUPED, isComplete, NOTHING, otherHref, resultUrl } from "../ui/analyses/request";
import { FileButton } from "../ui/file-button";
import { made } from "../ui/made";
import { useObservable } from "../ui/store";
import type { Workspace } from "../ui/workspace";

/** Analyses whose dashboard is made of profiles too. */
const OF_PROFILES: ReadonlySet<string> = new Set(["operations", "operations-profile"]);

export function View({ workspace }: { workspace: Workspace }) {
  useObservable(workspace);
  const analysis = analysisOf(workspace.analysis);
  if (workspace.url === undefined || (analysis && resultUrl(workspace.url, analysis.name, NOTHING) === undefined)) {
    return <p class="waiting">No agent and no gateway serves this file: run `flopwatch analyze` on it, or open it with `flopwatch serve`.</p>;
  }
  return (
    <div class="tables">
      <nav class="choices" aria-label="Analyses">
        {GROUPED.map(({ name: group, title, analyses }) => (
          <section key={group} aria-label={title}>
            <h2>{title}</h2>
            <ul>
              {analyses.map(({ name, about }) => (
                <li key={name}>
                  <button type="button" title={about} aria-current={name === analysis?.name} onClick={() => workspace.chooseAnalysis(name)}>
                    {name}
                  </button>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      {analysis && <OneAnalysis key={analysis.name} analysis={analysis} file={workspace.url} workspace={workspace} />}
    </div>
  );
}

interface Props {
  readonly analysis: Analysis;
  readonly file: string;
  readonly workspace: Workspace;
}

function OneAnalysis({ analysis, file, workspace }: Props) {
  const [asked, setAsked] = useState<Asked>(NOTHING);
  const [document, setDocument] = useState<PageDocument>();
  const [failure, setFailure] = useState<string>();
  const complete = isComplete(analysis, asked);
  useEffect(() => {
    setDocument(undefined);
    setFailure(undefined);
    const url = complete && analysis.page ? resultUrl(file, analysis.name, asked, "page") : undefined;
    if (url === undefined) {
      return;
    }
    const ended = new AbortController();
    const run = async () => setDocument((await (await made(url, ended.signal)).json()) as PageDocument);
    run().catch((error: unknown) => ended.signal.aborted || setFailure(error instanceof Error ? error.message : String(error)));
    return () => ended.abort();
  }, [analysis, file, asked, complete]);
  const guide = {
    go: (place: Place) => void workspace.goToPlace(place),
    href: ({ input, ...rest }: Place) => {
      const other = asked.others[input - 1];
      return other === undefined ? undefined : otherHref(file, other, { input, ...rest });
    },
  };
  const title = document?.page.title || analysis.name;
  return (
    <section class="analysis" aria-label={analysis.name} aria-busy={complete && analysis.page && !document && failure === undefined}>
      <div class="title">
        <h1>{title}</h1>
        <Downloads formats={formatsOf(analysis)} enabled={complete} of={(format) => download(file, analysis, asked, format)} />
      </div>
      <p class="faint">{document?.page.about || analysis.about}</p>
      {OF_PROFILES.has(analysis.name) && (
        <p>
          <FileButton accept=".json" label="Open a profile" onFiles={([file]) => file && void workspace.open({ file })}>
            Show a profile…
          </FileButton>{" "}
          <span class="faint">The same of a profile of operations that a program wrote: JSON with entries, a summary or both.</span>
        </p>
      )}
      <Form analysis={analysis} gateway={workspace.gateway} onAsk={setAsked} />
      {failure !== undefined ? (
        <p class="failure" role="alert">
          {failure}
        </p>
      ) : !complete ? (
        <p class="waiting">Name the capture to compare with.</p>
      ) : document ? (
        <Document document={document} guide={guide} />
      ) : (
        analysis.page && <p class="waiting">Analyzing…</p>
      )}
    </section>
  );
}

const formatsOf = ({ name, file_name, page }: Analysis): readonly FileFormat[] => (page ? pageFormats(name, file_name) : [["json", `Download ${file_name}`, file_name]]);

async function download(file: string, analysis: Analysis, asked: Asked, format: string): Promise<Blob> {
  const url = resultUrl(file, analysis.name, asked, format);
  if (url === undefined) {
    throw new Error("No agent and no gateway serves this file.");
  }
  return (await made(url)).blob();
}
