/** The tables of the summary as bars: what took the time, each row a way into the timeline. A full bar is the whole table. */

import { isDark } from "../../app/dark";
import { showRow } from "../../summary/lead";
import type { Summary } from "../../summary/summary";
import { tablesOf } from "../../summary/tables";
import * as format from "../../view/format";
import { categoryCss } from "../../view/palette";
import { settings } from "../../workspace/settings";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import { merged, plain } from "./merged";

/** Bars of a table. */
const MOST_BARS = 8;

/** Tables whose names hold numbers that tell one call from another: of kernels they tell one kernel from another. */
const NUMBERED: ReadonlySet<string> = new Set(["nvtx", "annotations"]);

export function Tables({ workspace, summary }: { workspace: Workspace; summary: Summary }) {
  useObservable(settings);
  const tables = tablesOf(summary).filter(({ table }) => table.captured && table.rows.length > 0 && table.unit === "ns");
  return (
    <>
      {tables.map((one) => (
        <section key={one.key}>
          <h2>{one.title}</h2>
          {(NUMBERED.has(one.key) ? merged : plain)(one.table.rows).slice(0, MOST_BARS).map((row, at) => (
            <div key={at} class="bar">
              <button type="button" class="link" title={row.label} onClick={() => void showRow(workspace, one, row.first)}>
                {settings.named(row.label)}
              </button>
              <span class="track" aria-hidden="true">
                <i style={{ width: `${100 * row.share}%`, background: categoryCss(one.categories[0] ?? "other", isDark()) }} />
              </span>
              <span class="number">
                {format.percent(row.share)}, {format.duration(row.total)}, {format.grouped(row.calls)} ×
              </span>
            </div>
          ))}
          {one.table.rows.length > MOST_BARS && (
            <p class="faint">
              <button type="button" class="link" onClick={() => workspace.show("tables")}>
                All {format.grouped(one.table.rows.length)} names
              </button>
            </p>
          )}
        </section>
      ))}
    </>
  );
}
