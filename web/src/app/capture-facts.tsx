/** What tells captures of one name apart. */

import * as format from "../view/format";
import type { HeldCapture } from "../workspace/captures";

export function CaptureFacts({ capture: { events, dropped } }: { capture: HeldCapture }) {
  const facts = [events === null ? "" : `${format.grouped(events)} events`, dropped ? "dropped" : ""];
  return <span class="faint">{facts.filter((fact) => fact !== "").join(", ")}</span>;
}
