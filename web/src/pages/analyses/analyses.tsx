/** Every analysis of the catalogue: run by the agent or gateway that serves the capture, and shown as the page that it makes. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { FileButton } from "../../controls/file-button";
import { Document } from "../../document/document";
import { Downloads, type FileFormat, pageFormats } from "../../document/downloads";
import { made } from "../../gateway/made";
import type { PageDocument, Place } from "../../generated/catalogue";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import { Form } from "./form";
import { List } from "./list";
import { type Analysis, analysisOf, type Asked, compares, isComplete, NOTHING, otherHref, othersOf, resultUrl, valuesOf } from "./request";

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
      <List workspace={workspace} chosen={analysis} />
      {analysis && <OneAnalysis key={`${analysis.name}?${new URLSearchParams(workspace.parameters)}`} analysis={analysis} file={workspace.url} workspace={workspace} />}
    </div>
  );
}

interface Props {
  readonly analysis: Analysis;
  readonly file: string;
  readonly workspace: Workspace;
}

function OneAnalysis({ analysis, file, workspace }: Props) {
  const [values, setValues] = useState(valuesOf(analysis, workspace.parameters));
  const [own, setOwn] = useState<readonly string[]>([]);
  const choose = (others: readonly string[]) => (compares(analysis) ? workspace.chooseOthers(others) : setOwn(others));
  const chosen = compares(analysis) ? workspace.others : own;
  // The text is the same for as long as they are.
  const named = (analysis.inputs === "two" ? chosen.slice(0, 1) : chosen).join(" ");
  const asked = useMemo<Asked>(() => ({ values, others: othersOf(named) }), [values, named]);
  const ask = ({ values, others }: Asked) => {
    setValues(values);
    choose(others);
  };
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
  const { captures } = workspace;
  const names = captures.held && [workspace.fileName, ...asked.others.map((one) => captures.nameOf(one) ?? one)];
  const title = document?.page.title || analysis.title;
  return (
    <section class="analysis" aria-label={analysis.title} data-analysis={analysis.name} aria-busy={complete && analysis.page && !document && failure === undefined}>
      <div class="title">
        <h2>{title}</h2>
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
      <Form analysis={analysis} workspace={workspace} values={asked.values} others={asked.others} onAsk={ask} onOthers={choose} />
      {failure !== undefined ? (
        <p class="failure" role="alert">
          {failure}
        </p>
      ) : !complete ? (
        <p class="waiting">{captures.held ? "Choose the capture to compare with." : "Name the capture to compare with."}</p>
      ) : document ? (
        <Document document={document} guide={guide} names={names} />
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
