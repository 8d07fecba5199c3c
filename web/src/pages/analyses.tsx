/** Every analysis of the catalogue: run by the agent or gateway that serves the capture, and shown as the page that it makes. */

import { useEffect, useState } from "preact/hooks";
import type { PageDocument, Place } from "../generated/catalogue";
import { Document } from "../ui/analyses/document";
import { Form } from "../ui/analyses/form";
import { type Analysis, analysisOf, type Asked, GROUPED, isComplete, NOTHING, otherHref, resultUrl } from "../ui/analyses/request";
import { made } from "../ui/made";
import type { Page } from "../ui/page";
import { useObservable } from "../ui/store";
import { keep } from "../ui/table";
import type { Workspace } from "../ui/workspace";

function Analyses({ workspace }: { workspace: Workspace }) {
  useObservable(workspace);
  const analysis = analysisOf(workspace.analysis);
  if (workspace.url === undefined || (analysis && resultUrl(workspace.url, analysis.name, NOTHING) === undefined)) {
    return <p class="waiting">No agent and no gateway serves this file: run `flopwatch-agent analyze` on it, or open it with `flopwatch-agent serve`.</p>;
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
        <Downloads analysis={analysis} asked={asked} file={file} enabled={complete} />
      </div>
      <p class="faint">{document?.page.about || analysis.about}</p>
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

/** The result as files: what programs read, and the page that opens from a disk. */
function Downloads({ analysis, asked, file, enabled }: { analysis: Analysis; asked: Asked; file: string; enabled: boolean }) {
  const [busy, setBusy] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const formats: readonly (readonly [string, string, string])[] = analysis.page
    ? [
        ["html", "HTML", `${analysis.name}.html`],
        ["json", "JSON", analysis.file_name],
        ["csv", "CSV", `${analysis.name}.csv`],
      ]
    : [["json", `Download ${analysis.file_name}`, analysis.file_name]];
  const download = async (format: string, name: string) => {
    const url = resultUrl(file, analysis.name, asked, format);
    if (url === undefined) {
      return;
    }
    setBusy(format);
    setFailure(undefined);
    try {
      keep(name, await (await made(url)).blob());
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <span class="downloads" role="group" aria-label="Download">
      {formats.map(([format, label, name]) => (
        <button key={format} type="button" disabled={!enabled || busy !== undefined} aria-busy={busy === format} title={`Keep ${name}`} onClick={() => void download(format, name)}>
          {label}
        </button>
      ))}
      {failure !== undefined && <span role="alert">{failure}</span>}
    </span>
  );
}

export const page: Page = { id: "analyses", title: "Analyses", order: 40, of: "file", View: Analyses };
