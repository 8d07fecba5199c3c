/** The session at a glance: busy and idle, what took the time, and what the capture does not hold. */

import { useEffect, useState } from "preact/hooks";
import { isDark } from "../ui/dark";
import { categoryCss } from "../gl/palette";
import * as format from "../view/format";
import type { Page } from "../ui/page";
import { type Summary, tablesOf } from "../ui/summary";
import type { Workspace } from "../ui/workspace";

/** Bars of a table. */
const MOST_BARS = 8;

function Overview({ workspace }: { workspace: Workspace }) {
  const [summary, setSummary] = useState<Summary>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    workspace.summary().then(setSummary, (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)));
  }, [workspace]);
  const { header } = workspace;
  if (failure !== undefined) {
    return (
      <p class="failure" role="alert">
        {failure}
      </p>
    );
  }
  if (!summary || !header) {
    return <p class="waiting">Reading the summary…</p>;
  }
  const missing = summary.categories.filter((category) => !category.captured);
  const options = header.source.details["capture_options"];
  return (
    <div class="overview">
      <section>
        <h2>Capture</h2>
        <dl class="fields">
          <Fact name="session" value={header.sessionId || "without an id"} />
          <Fact name="length" value={format.duration(header.durationNs)} />
          <Fact name="events" value={format.grouped(header.totalEvents)} />
          <Fact name="recorded by" value={`${header.source.profiler} ${header.source.version}`} />
          {Array.isArray(options) && options.length > 0 && <Fact name="asked for" value={options.join(", ")} />}
          {header.startUtcNs !== undefined && <Fact name="began" value={format.time(0, "utc", header.startUtcNs)} />}
          <Fact name="file" value={format.bytes(header.fileBytes)} />
        </dl>
      </section>
      <section>
        <h2>GPUs: busy and idle</h2>
        {summary.gpus.length === 0 && <p class="faint">No work of a GPU was captured.</p>}
        {summary.gpus.map((gpu) => (
          <div key={gpu.device} class="bar" title="Length of the union of kernels, copies and memsets, as a share of the window">
            <span>
              GPU {gpu.device} {gpu.name}
            </span>
            <span class="track">
              <i style={{ width: `${gpu.busy_ratio_of_window * 100}%`, background: categoryCss("cuda_kernel", isDark()) }} />
            </span>
            <span class="number">
              busy {format.percent(gpu.busy_ratio_of_window)}, idle {format.percent(1 - gpu.busy_ratio_of_window)}
            </span>
          </div>
        ))}
        <p class="faint">
          Of {format.grouped(summary.launches.matched + summary.launches.unmatched)} kernels, copies and memsets, {format.grouped(summary.launches.matched)} have their launching call in the capture.
        </p>
      </section>
      {tablesOf(summary)
        .filter(({ table }) => table.captured && table.rows.length > 0 && table.unit === "ns")
        .map(({ key, title, table, categories }) => (
          <section key={key}>
            <h2>{title}</h2>
            {table.rows.slice(0, MOST_BARS).map((row) => (
              <div key={`${row.style}/${row.name}`} class="bar">
                <span title={row.name}>{row.name}</span>
                <span class="track">
                  <i style={{ width: `${row.share_of_table * 100}%`, background: categoryCss(categories[0] ?? "other", isDark()) }} />
                </span>
                <span class="number">
                  {format.duration(row.total)}, {format.grouped(row.calls)} ×
                </span>
              </div>
            ))}
          </section>
        ))}
      <section>
        <h2>What is not here</h2>
        <p>
          {missing.length === 0
            ? "Every kind of event was captured."
            : `Not captured, which is not the same as none: ${missing.map((category) => category.category).join(", ")}.`}
        </p>
        {summary.drops.length > 0 && (
          <ul>
            {summary.drops.map((drop) => (
              <li key={drop.reason + drop.what}>
                {format.grouped(drop.count)} × {drop.what} ({drop.reason})
              </li>
            ))}
          </ul>
        )}
        {summary.redactions > 0 && <p>{format.grouped(summary.redactions)} secrets were replaced in names.</p>}
      </section>
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

export const page: Page = { id: "overview", title: "Overview", order: 20, View: Overview };
