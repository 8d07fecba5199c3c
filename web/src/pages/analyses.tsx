/** Analyses of the catalogue whose results are tables: run by the agent or gateway that serves the capture. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { analysisUrl, type Column, filtered, type Parameter, type Row, shown, sorted, TABLE_ANALYSES, type TableAnalysis, type TableResult, titleOf, wantsAnother } from "../ui/analysis";
import { Heads, type Order } from "../ui/heads";
import { made } from "../ui/made";
import type { Page } from "../ui/page";
import { csvOfRows, save } from "../ui/table";
import type { Workspace } from "../ui/workspace";

/** So many rows are rendered at first, and more on demand. */
const STEP_ROWS = 200;

function Analyses({ workspace }: { workspace: Workspace }) {
  const [chosen, setChosen] = useState(TABLE_ANALYSES[0]?.name);
  const analysis = TABLE_ANALYSES.find(({ name }) => name === chosen);
  if (workspace.url === undefined || (analysis && analysisUrl(workspace.url, analysis.name, {}, "") === undefined)) {
    return <p class="waiting">No agent and no gateway serves this file: run `flopwatch-agent analyze` on it, or open it with `flopwatch-agent serve`.</p>;
  }
  return (
    <div class="tables">
      <ul class="choices" aria-label="Analyses">
        {TABLE_ANALYSES.map(({ name, about }) => (
          <li key={name}>
            <button type="button" title={about} aria-current={name === chosen} onClick={() => setChosen(name)}>
              {name}
            </button>
          </li>
        ))}
      </ul>
      {analysis && <OneAnalysis key={analysis.name} analysis={analysis} file={workspace.url} />}
    </div>
  );
}

/** What is asked for: an analysis as it is at first, or with what the user gave. */
interface Asked {
  readonly values: Readonly<Record<string, string>>;
  readonly other: string;
}

function OneAnalysis({ analysis, file }: { analysis: TableAnalysis; file: string }) {
  const [asked, setAsked] = useState<Asked>({ values: {}, other: "" });
  const [result, setResult] = useState<TableResult>();
  const [failure, setFailure] = useState<string>();
  const complete = !wantsAnother(analysis) || asked.other !== "";
  useEffect(() => {
    setResult(undefined);
    setFailure(undefined);
    const url = complete ? analysisUrl(file, analysis.name, asked.values, asked.other) : undefined;
    if (url === undefined) {
      return;
    }
    const ended = new AbortController();
    const run = async () => setResult((await (await made(url, ended.signal)).json()) as TableResult);
    run().catch((error: unknown) => ended.signal.aborted || setFailure(error instanceof Error ? error.message : String(error)));
    return () => ended.abort();
  }, [analysis, file, asked, complete]);
  return (
    <section aria-label={analysis.name}>
      <div class="toolbar">
        <h2>{analysis.name}</h2>
        <span class="faint">{analysis.about}</span>
      </div>
      <Parameters analysis={analysis} onAsk={setAsked} />
      {failure !== undefined ? (
        <p class="failure" role="alert">
          {failure}
        </p>
      ) : !complete ? (
        <p class="waiting">Name the capture to compare with.</p>
      ) : result ? (
        <Result name={analysis.name} columns={analysis.columns} result={result} />
      ) : (
        <p class="waiting">Analyzing…</p>
      )}
    </section>
  );
}

function Parameters({ analysis, onAsk }: { analysis: TableAnalysis; onAsk: (asked: Asked) => void }) {
  const parameters = Object.entries(analysis.parameters);
  if (parameters.length === 0 && !wantsAnother(analysis)) {
    return null;
  }
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const value = (name: string) => String(given.get(name) ?? "").trim();
    onAsk({ values: Object.fromEntries(parameters.map(([name]) => [name, value(`parameter ${name}`)])), other: value("other") });
  };
  return (
    <form class="toolbar" onSubmit={ask}>
      {wantsAnother(analysis) && (
        <label title="The second capture: its session's id, and its name where the session has several">
          with <input name="other" placeholder="session, or session/capture" required />
        </label>
      )}
      {parameters.map(([name, parameter]) => (
        <label key={name} title={parameter.description ?? name}>
          {name.replaceAll("_", " ")}{" "}
          <Field name={`parameter ${name}`} parameter={parameter} />
        </label>
      ))}
      <button type="submit">Run</button>
    </form>
  );
}

function Field({ name, parameter }: { name: string; parameter: Parameter }) {
  const { type, minimum, maximum } = parameter;
  const usual = String(parameter.default ?? "");
  if (type === "integer" || type === "number") {
    return <input name={name} type="number" step={type === "number" ? "any" : 1} min={minimum ?? ""} max={maximum ?? ""} placeholder={usual} />;
  }
  return <input name={name} placeholder={usual} />;
}

function Result({ name, columns, result }: { name: string; columns: readonly Column[]; result: TableResult }) {
  const words = columns.find(({ cells }) => cells === "text")?.name ?? "";
  const [order, setOrder] = useState<Order<string>>();
  const [filter, setFilter] = useState("");
  const [count, setCount] = useState(STEP_ROWS);
  const { rows } = result;
  // Until the user chooses, the order is the analysis's own.
  const found = useMemo(() => (order ? sorted(filtered(rows, filter), order.by, order.up) : filtered(rows, filter)), [rows, filter, order]);
  if (result.captured === false) {
    return <p class="waiting">Not captured: the profiler did not record such events. That says nothing about whether they happened.</p>;
  }
  if (rows.length === 0) {
    return <p class="waiting">Captured, and nothing happened.</p>;
  }
  return (
    <>
      <div class="toolbar">
        <input type="search" placeholder="Filter" aria-label="Filter rows of the table" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="faint">
          {found.length} of {rows.length}
        </span>
        <button type="button" onClick={() => save(`${name}.csv`, csvOfRows(columns.map((column) => column.name), found))}>
          CSV
        </button>
      </div>
      <div class="table">
        <table>
          <Heads columns={columns.map((column) => [column.name, titleOf(column)] as const)} words={words} order={order ?? { by: "", up: false }} onOrder={setOrder} />
          <tbody>
            {found.slice(0, count).map((row, at) => (
              <tr key={at}>
                {columns.map((column) => (
                  <td key={column.name} class={column.cells === "text" ? "name" : "number"} title={exact(row, column)}>
                    {shown(column, row[column.name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {found.length > count && (
          <button type="button" onClick={() => setCount(count + STEP_ROWS * 5)}>
            More rows ({found.length - count})
          </button>
        )}
      </div>
    </>
  );
}

function exact(row: Row, column: Column): string {
  return String(row[column.name] ?? "");
}

export const page: Page = { id: "analyses", title: "Analyses", order: 40, of: "file", View: Analyses };
