/** Sampled series as lines. */

import { useEffect, useState } from "preact/hooks";
import { isDark } from "../../app/dark";
import type { Counter } from "../../timeline/header";
import * as format from "../../view/format";
import { categoryCss } from "../../view/palette";
import type { Workspace } from "../../workspace/workspace";

/** Points of a line. */
const POINTS = 400;

export function Metrics({ workspace, counters }: { workspace: Workspace; counters: readonly Counter[] }) {
  return (
    <section>
      <h2>Metrics</h2>
      {counters.map((counter, at) => (
        <Line key={`${counter.source}/${counter.device}/${counter.metric}`} workspace={workspace} of={counter} counter={at} />
      ))}
    </section>
  );
}

/** A counter as a line. */
function Line({ workspace, of, counter }: { workspace: Workspace; of: Counter; counter: number }) {
  const [found, setFound] = useState<{ readonly t: readonly number[]; readonly value: readonly number[] }>();
  useEffect(() => {
    workspace.engine.call("series", counter, POINTS).then(setFound, (error: unknown) => workspace.report(error));
  }, [workspace, counter]);
  if (!found || found.t.length === 0) {
    return null;
  }
  const most = Math.max(...found.value, Number.MIN_VALUE);
  const end = Math.max(workspace.header?.durationNs ?? 1, found.t.at(-1) ?? 1);
  const points = found.t.map((t, at) => `${((t / end) * POINTS).toFixed(2)},${(40 - ((found.value[at] ?? 0) / most) * 38).toFixed(2)}`).join(" ");
  return (
    <div class="bar metric">
      <button type="button" class="link" title={`${of.device} ${of.metric}: show the timeline`} onClick={() => workspace.show("timeline")}>
        {of.device} {of.metric}
      </button>
      <svg class="line" viewBox={`0 0 ${POINTS} 40`} preserveAspectRatio="none" role="img" aria-label={`${of.metric}, at most ${format.quantity(most, of.unit)}`}>
        <polyline points={points} fill="none" stroke={categoryCss("counter", isDark())} vector-effect="non-scaling-stroke" />
      </svg>
      <span class="number">at most {format.quantity(most, of.unit)}</span>
    </div>
  );
}
