/** How long a step takes: figures, and a bar for each on one scale. */

import type { IterationRow, IterationsResult } from "../../generated/catalogue";
import * as format from "../../view/format";
import type { Workspace } from "../../workspace/workspace";
import { Leading } from "./leading";
import { Pending } from "./pending";
import type { Result } from "./result";
import { Sentence } from "./sentence";
import { barsOf, longestOf, unitOf } from "./step-times";

export function Steps({ workspace, result }: { workspace: Workspace; result: Result<IterationsResult> }) {
  // What is missing is said once, by the findings.
  if (result.state === "nowhere") {
    return null;
  }
  return (
    <section>
      <h2>How long a step takes</h2>
      {result.state === "made" ? <Found workspace={workspace} steps={result.value} /> : <Pending result={result} />}
    </section>
  );
}

function Found({ workspace, steps }: { workspace: Workspace; steps: IterationsResult }) {
  const { time, rows, iterations, warm_up_iterations: warmUp, left_out: leftOut, cautions } = steps;
  if (!time || rows.length === 0) {
    return <p class="faint">{steps.not_captured[0]?.reason ?? "Nothing repeats clearly enough to be a step."}</p>;
  }
  const [one, many] = unitOf(steps);
  const steady = iterations - warmUp;
  const longest = longestOf(rows);
  const show = ({ start_ns, end_ns, row }: IterationRow) => void workspace.goToPlace({ input: 0, start_ns, end_ns, row });
  return (
    <>
      <p>
        <strong class="headline">{format.duration(time.median_ns)}</strong> is the median of {format.grouped(steady)} {steady === 1 ? one : many}, 95 of 100 take at most {format.duration(time.p95_ns)}
        {longest && (
          <>
            , the longest took{" "}
            <button type="button" class="link" title="Show in the timeline" onClick={() => show(longest)}>
              {format.duration(longest.time_ns)}
            </button>
          </>
        )}
        .
      </p>
      <Plot rows={rows} unit={one} onShow={show} />
      <p class="faint">
        {warmUp > 0 && `Warm-up, which no figure holds: ${format.grouped(warmUp)}. `}
        {leftOut > 0 && `The first ${format.grouped(rows.length)} of ${format.grouped(iterations)} are drawn. `}
        <Sentence text={cautions.join(" ")} /> <Leading workspace={workspace} analysis="iterations">All of them</Leading>
      </p>
    </>
  );
}

function Plot({ rows, unit, onShow }: { rows: readonly IterationRow[]; unit: string; onShow: (row: IterationRow) => void }) {
  const bars = barsOf(rows);
  const most = rows.reduce((most, { time_ns }) => Math.max(most, time_ns), 0);
  const outliers = bars.filter(({ kind }) => kind === "outlier").length;
  return (
    <div class="plot">
      <p class="scale" aria-hidden="true">
        <span>{format.duration(most)}</span>
        <span>0</span>
      </p>
      <svg class="lengths" viewBox={`0 0 ${bars.length} 100`} preserveAspectRatio="none" role="img" aria-label={`Lengths in their order, at most ${format.duration(most)}; much longer than the others: ${outliers}`}>
        {bars.map(({ row, height, kind }, at) => (
          <rect key={at} class={`step ${kind}`} x={at + 0.08} width="0.84" y={100 - 100 * height} height={100 * height} onClick={() => onShow(row)}>
            <title>
              {unit} {row.number}: {format.duration(row.time_ns)}
              {kind === "usual" ? "" : `, ${kind}`}
            </title>
          </rect>
        ))}
      </svg>
    </div>
  );
}
