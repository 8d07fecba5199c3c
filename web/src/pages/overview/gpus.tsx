/** How busy each GPU was. */

import { Fragment } from "preact";
import { isDark } from "../../app/dark";
import type { Summary } from "../../summary/summary";
import type { Header } from "../../timeline/header";
import * as format from "../../view/format";
import { categoryCss } from "../../view/palette";
import type { Workspace } from "../../workspace/workspace";
import { isMuchLonger } from "./facts";
import { Leading } from "./leading";

export function Gpus({ workspace, header, summary }: { workspace: Workspace; header: Header; summary: Summary }) {
  const { gpus, launches } = summary;
  // Where little happens outside of the events, one figure tells both.
  const hasTwo = isMuchLonger(header.durationNs, summary.events_span_ns ?? 0);
  return (
    <section>
      <h2>GPUs: busy and idle</h2>
      {gpus.length === 0 && <p class="faint">No work of a GPU was captured.</p>}
      {gpus.map((gpu) => (
        <Fragment key={gpu.device}>
          {hasTwo && gpu.busy_ratio_of_events_span !== undefined && (
            <Busy workspace={workspace} of={`GPU ${gpu.device}, the ${format.duration(summary.events_span_ns ?? 0)} that hold events`} ratio={gpu.busy_ratio_of_events_span} />
          )}
          <Busy workspace={workspace} of={`GPU ${gpu.device}${hasTwo ? `, window of ${format.duration(header.durationNs)}` : gpu.name && ` · ${gpu.name}`}`} ratio={gpu.busy_ratio_of_window} />
        </Fragment>
      ))}
      {launches.matched + launches.unmatched > 0 && (
        <p class="faint">
          Of {format.grouped(launches.matched + launches.unmatched)} kernels, graphs, copies and memsets, {format.grouped(launches.matched)} have their launching call in the capture.
        </p>
      )}
    </section>
  );
}

/** Share of a span in which a GPU is at work. */
function Busy({ workspace, of, ratio }: { workspace: Workspace; of: string; ratio: number }) {
  return (
    <div class="bar" title="Length of the union of kernels, graphs, copies and memsets, as a share of it">
      <Leading workspace={workspace} analysis="utilization">
        {of}
      </Leading>
      <span class="track">
        <i style={{ width: `${ratio * 100}%`, background: categoryCss("cuda_kernel", isDark()) }} />
      </span>
      <span class="number">
        busy {format.percent(ratio)}, idle {format.percent(1 - ratio)}
      </span>
    </div>
  );
}
