/** What an open window has recorded so far. */

import type { Live, LiveKernel } from "../../gateway/messages";
import * as format from "../../view/format";

export function LiveFigures({ live }: { readonly live: Live }) {
  const events = Object.entries(live.events).filter(([, count]) => count > 0);
  events.sort(([, one], [, other]) => other - one);
  const counts = events.map(([category, count]) => `${category} ${format.grouped(count)}`);
  return (
    <div class="live">
      <p>So far: {counts.length > 0 ? counts.join(", ") : "no event"}</p>
      {live.latest_kernels.length > 0 && (
        <ol aria-label="Longest kernels of the latest second">
          {live.latest_kernels.map((kernel, place) => (
            <li key={place}>{told(kernel)}</li>
          ))}
        </ol>
      )}
    </div>
  );
}

function told({ name, calls, total_ns }: LiveKernel): string {
  const launches = calls === 1 ? "launch" : "launches";
  return `${name}: ${format.duration(total_ns)} in ${format.grouped(calls)} ${launches}`;
}
