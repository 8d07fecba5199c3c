/** What is not in the capture, and, closed, what could not be looked at for that. */

import type { Advice } from "../../generated/catalogue";
import type { Summary } from "../../summary/summary";
import type { Drop } from "../../timeline/header";
import * as format from "../../view/format";
import type { Workspace } from "../../workspace/workspace";
import { topicsOf } from "./topics";

interface Props {
  readonly workspace: Workspace;
  readonly summary: Summary;
  readonly advice: Advice | undefined;
}

export function Absent({ workspace: { prelude, shown }, summary, advice }: Props) {
  const topics = topicsOf(advice, summary);
  const gone = prelude && shown && prelude.drops.length > 0 ? { drops: prelude.drops, ns: -shown.beginNs } : undefined;
  if (summary.drops.length + summary.redactions + topics.length === 0 && !gone) {
    return null;
  }
  return (
    <section class="whole">
      <h2>What is not here</h2>
      <Drops drops={summary.drops} />
      {gone && (
        <>
          <h3>Before the window</h3>
          <p class="faint">Not in the {format.duration(gone.ns)} before the window that the timeline shows. Of a ring that wrapped, the older events are gone.</p>
          <Drops drops={gone.drops} />
        </>
      )}
      {summary.redactions > 0 && <p>{format.grouped(summary.redactions)} secrets were replaced in names.</p>}
      {topics.length > 0 && (
        <details>
          <summary>Not checked ({topics.length})</summary>
          <dl>
            {topics.map(({ what, why }) => (
              <div key={what}>
                <dt>{what}:</dt> <dd>{why}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </section>
  );
}

function Drops({ drops }: { drops: readonly Drop[] }) {
  return drops.length === 0 ? null : (
    <ul>
      {drops.map((drop) => (
        <li key={drop.reason + drop.what}>
          {format.grouped(drop.count)} × {drop.what} ({drop.reason})
        </li>
      ))}
    </ul>
  );
}
