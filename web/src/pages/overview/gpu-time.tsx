/** Where the GPUs' time went: one bar whose parts add up, and each part with its analysis. */

import type { GpuTimes } from "../../generated/catalogue";
import * as format from "../../view/format";
import type { Workspace } from "../../workspace/workspace";
import { Leading } from "./leading";
import { partsOf } from "./parts";
import { Pending } from "./pending";
import type { Result } from "./result";

export function GpuTime({ workspace, result }: { workspace: Workspace; result: Result<GpuTimes> }) {
  // What is missing is said once, by the findings.
  if (result.state === "nowhere") {
    return null;
  }
  return (
    <section>
      <h2>Where the GPUs' time goes</h2>
      {result.state === "made" ? <Found workspace={workspace} times={result.value} /> : <Pending result={result} />}
    </section>
  );
}

function Found({ workspace, times: { all, gpus, not_captured: missing } }: { workspace: Workspace; times: GpuTimes }) {
  const parts = partsOf(all);
  if (parts.length === 0) {
    return <p class="faint">{missing[0]?.reason ?? "No work of a GPU is in the capture."}</p>;
  }
  return (
    <>
      <p class="track parts" aria-hidden="true">
        {parts.map(({ title, share, colour }) => (
          <i key={title} style={{ width: `${100 * share}%`, background: `var(--s${colour})` }} />
        ))}
      </p>
      {parts.map(({ title, ns, share, analysis, colour }) => (
        <div key={title} class="bar part">
          <span>
            <i style={{ background: `var(--s${colour})` }} aria-hidden="true" />
            <Leading workspace={workspace} analysis={analysis}>
              {title}
            </Leading>
          </span>
          <span class="number">
            {format.percent(share)}, {format.duration(ns)}
          </span>
        </div>
      ))}
      <p class="faint">
        Each moment is counted once, from the first GPU work to the last{gpus.length > 1 && `, summed over ${gpus.length} GPUs`}: {format.duration(all.window_ns)} in all.{" "}
        <Leading workspace={workspace} analysis="gpu-time">
          Each GPU
        </Leading>
      </p>
    </>
  );
}
