/** The session at a glance: busy and idle, what took the time, and what the capture does not hold. */

import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isDark } from "../ui/dark";
import { categoryCss } from "../gl/palette";
import type { Distribution } from "../engine/protocol";
import * as format from "../view/format";
import type { Summary } from "../ui/summary";
import { tablesOf } from "../ui/tables";
import type { Workspace } from "../ui/workspace";

/** Categories whose lengths are charted. */
const CHARTED = new Set(["cuda_kernel", "cuda_graph", "device_op"]);

/** Points of a line. */
const POINTS = 400;

/** Bars of a table. */
const MOST_BARS = 8;

export function View({ workspace }: { workspace: Workspace }) {
  const [summary, setSummary] = useState<Summary>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    const failed = (error: unknown) => setFailure(error instanceof Error ? error.message : String(error));
    void workspace
      .summary()
      .then(setSummary, failed)
      .then(() => workspace.addPrelude());
  }, [workspace]);
  const { header, prelude, shown } = workspace;
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
          <Fragment key={gpu.device}>
            <Busy of={`GPU ${gpu.device}${gpu.name && ` ${gpu.name}`}, window of ${format.duration(header.durationNs)}`} ratio={gpu.busy_ratio_of_window} />
            {gpu.busy_ratio_of_events_span !== undefined && (
              <Busy of={`GPU ${gpu.device}, the ${format.duration(summary.events_span_ns ?? 0)} that hold events`} ratio={gpu.busy_ratio_of_events_span} />
            )}
          </Fragment>
        ))}
        <p class="faint">
          Of {format.grouped(summary.launches.matched + summary.launches.unmatched)} kernels, graphs, copies and memsets, {format.grouped(summary.launches.matched)} have their launching call in the capture.
        </p>
      </section>
      {header.categories.map((category, at) =>
        category.count > 0 && CHARTED.has(category.name) ? <Lengths key={category.name} workspace={workspace} category={at} /> : null,
      )}
      {header.counters.length > 0 && (
        <section>
          <h2>Metrics</h2>
          {header.counters.map((counter, at) => (
            <Line key={`${counter.source}/${counter.device}/${counter.metric}`} workspace={workspace} counter={at} />
          ))}
        </section>
      )}
      {tablesOf(summary)
        .filter(({ table }) => table.captured && table.rows.length > 0 && table.unit === "ns")
        .map(({ key, title, table, categories }) => (
          <section key={key}>
            <h2>{title}</h2>
            {table.rows.slice(0, MOST_BARS).map((row, _, [longest]) => (
              <div key={`${row.style}/${row.name}`} class="bar">
                <span title={row.name}>{row.name}</span>
                <span class="track" aria-hidden="true">
                  <i style={{ width: `${(100 * row.total) / Math.max(1, longest?.total ?? row.total)}%`, background: categoryCss(categories[0] ?? "other", isDark()) }} />
                </span>
                <span class="number">
                  {format.percent(row.share_of_table)}, {format.duration(row.total)}, {format.grouped(row.calls)} ×
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
        {prelude && shown && prelude.drops.length > 0 && (
          <>
            <h3>Before the window</h3>
            <p class="faint">
              Not in the {format.duration(-shown.beginNs)} before the window that the timeline shows. Of a ring that wrapped, the older events are gone.
            </p>
            <ul>
              {prelude.drops.map((drop) => (
                <li key={drop.reason + drop.what}>
                  {format.grouped(drop.count)} × {drop.what} ({drop.reason})
                </li>
              ))}
            </ul>
          </>
        )}
        {summary.redactions > 0 && <p>{format.grouped(summary.redactions)} secrets were replaced in names.</p>}
      </section>
    </div>
  );
}

/** How long the events of a category take. */
function Lengths({ workspace, category }: { workspace: Workspace; category: number }) {
  const [found, setFound] = useState<Distribution>();
  useEffect(() => {
    workspace.engine.call("distribution", category).then(setFound, (error: unknown) => workspace.report(error));
  }, [workspace, category]);
  const name = workspace.header?.categories[category]?.name ?? "";
  if (!found || found.counts.length === 0) {
    return null;
  }
  const most = Math.max(...found.counts);
  const text = found.counts.map((count, at) => `${format.grouped(count)} from ${format.duration(found.from[at] ?? 0)}`).join(", ");
  return (
    <section>
      <h2>Lengths of {name === "cuda_kernel" ? "kernels" : name.replaceAll("_", " ")}</h2>
      <svg class="lengths" viewBox={`0 0 ${found.counts.length} 100`} preserveAspectRatio="none" role="img" aria-label={text}>
        {found.counts.map((count, at) => (
          <rect key={at} x={at + 0.05} width="0.9" y={100 - (100 * count) / most} height={(100 * count) / most} fill={categoryCss(name, isDark())}>
            <title>
              {format.grouped(count)} from {format.duration(found.from[at] ?? 0)} on
            </title>
          </rect>
        ))}
      </svg>
      <p class="ends">
        <span>{format.duration(found.from[0] ?? 0)}</span>
        <span>{format.duration(found.from.at(-1) ?? 0)}</span>
      </p>
    </section>
  );
}

/** A counter as a line. */
function Line({ workspace, counter }: { workspace: Workspace; counter: number }) {
  const [found, setFound] = useState<{ readonly t: readonly number[]; readonly value: readonly number[] }>();
  useEffect(() => {
    workspace.engine.call("series", counter, POINTS).then(setFound, (error: unknown) => workspace.report(error));
  }, [workspace, counter]);
  const of = workspace.header?.counters[counter];
  if (!of || !found || found.t.length === 0) {
    return null;
  }
  const most = Math.max(...found.value, Number.MIN_VALUE);
  const end = Math.max(workspace.header?.durationNs ?? 1, found.t.at(-1) ?? 1);
  const points = found.t.map((t, at) => `${((t / end) * POINTS).toFixed(2)},${(40 - ((found.value[at] ?? 0) / most) * 38).toFixed(2)}`).join(" ");
  return (
    <div class="bar metric">
      <span title={`${of.device} ${of.metric}`}>
        {of.device} {of.metric}
      </span>
      <svg class="line" viewBox={`0 0 ${POINTS} 40`} preserveAspectRatio="none" role="img" aria-label={`${of.metric}, at most ${format.quantity(most, of.unit)}`}>
        <polyline points={points} fill="none" stroke={categoryCss("counter", isDark())} vector-effect="non-scaling-stroke" />
      </svg>
      <span class="number">at most {format.quantity(most, of.unit)}</span>
    </div>
  );
}

/** Share of a span in which a GPU is at work. */
function Busy({ of, ratio }: { of: string; ratio: number }) {
  return (
    <div class="bar" title="Length of the union of kernels, graphs, copies and memsets, as a share of it">
      <span title={of}>{of}</span>
      <span class="track">
        <i style={{ width: `${ratio * 100}%`, background: categoryCss("cuda_kernel", isDark()) }} />
      </span>
      <span class="number">
        busy {format.percent(ratio)}, idle {format.percent(1 - ratio)}
      </span>
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
