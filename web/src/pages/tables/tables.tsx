/** The tables of the summary: sorted and filtered as you like, as CSV, each row a way into the timeline. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { FullNames } from "../../controls/full-names";
import { Heads, type Order } from "../../controls/heads";
import { byRow } from "../../controls/row";
import { save } from "../../downloads/keep";
import { showRow } from "../../summary/lead";
import type { SummaryRow } from "../../summary/summary";
import { type NamedTable, tablesOf } from "../../summary/tables";
import { settings } from "../../workspace/settings";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import { csvOf, figure, filtered, FIGURES, type Figure, sorted } from "./rows";

/** So many rows are rendered at first, and more on demand. */
const STEP_ROWS = 200;
const HEADS = FIGURES.map(({ key, title }) => [key, title] as const);

export function View({ workspace }: { workspace: Workspace }) {
  const [tables, setTables] = useState<readonly NamedTable[]>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    workspace.summary().then(
      (summary) => setTables(tablesOf(summary)),
      (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)),
    );
  }, [workspace]);
  if (failure !== undefined) {
    return (
      <p class="failure" role="alert">
        {failure}
      </p>
    );
  }
  if (!tables) {
    return <p class="waiting">Reading the tables…</p>;
  }
  const table = tables.find((table) => table.key === workspace.table) ?? tables.find((table) => table.table.rows.length > 0) ?? tables[0];
  return (
    <div class="tables">
      <ul class="choices" aria-label="Tables">
        {tables.map((one) => (
          <li key={one.key}>
            <button type="button" aria-current={one.key === table?.key} onClick={() => workspace.chooseTable(one.key)}>
              {one.title} <span class="faint">{one.table.captured ? one.table.rows.length : "not captured"}</span>
            </button>
          </li>
        ))}
      </ul>
      {table && <OneTable key={table.key} workspace={workspace} table={table} />}
    </div>
  );
}

function OneTable({ workspace, table }: { workspace: Workspace; table: NamedTable }) {
  useObservable(settings);
  const [order, setOrder] = useState<Order<Figure>>({ by: "total", up: false });
  const [filter, setFilter] = useState("");
  const [shown, setShown] = useState(STEP_ROWS);
  const { captured, rows, unit, unknown: unsaid = 0 } = table.table;
  const found = useMemo(() => sorted(filtered(rows, filter), order.by, order.up), [rows, filter, order]);
  if (!captured) {
    return <p class="waiting">Not captured: the profiler did not record such events. That says nothing about whether they happened.</p>;
  }
  if (rows.length === 0) {
    return <p class="waiting">{unsaid > 0 ? `Captured: ${unsaid} of unknown size.` : "Captured, and nothing happened."}</p>;
  }
  const show = (row: SummaryRow, extreme?: "min" | "max") => {
    const value = extreme && { column: unit === "ns" ? ("duration_ns" as const) : ("bytes" as const), value: row[extreme] };
    void showRow(workspace, table, row.name, value);
  };
  return (
    <section aria-label={table.title}>
      <div class="toolbar">
        <h2>{table.title}</h2>
        <input type="search" placeholder="Filter" aria-label="Filter rows of the table" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="faint">
          {found.length} of {rows.length}
          {unsaid > 0 && `, and ${unsaid} events of unknown size in none`}
        </span>
        <button type="button" onClick={() => save(`${table.key}.csv`, csvOf(found, unit))}>
          CSV
        </button>
        <FullNames />
        <span class="faint">shares are of this table's total, not of the time; a row leads to the first one in the timeline, Min and Max to those very ones</span>
      </div>
      <div class="table">
        <table>
          <Heads columns={HEADS} words="name" order={order} onOrder={setOrder} />
          <tbody>
            {found.slice(0, shown).map((row) => (
              <tr key={`${row.style}/${row.name}`} class="leads" onClick={byRow(() => show(row))}>
                {FIGURES.map(({ key }) =>
                  key === "name" ? (
                    <td key={key} class="name">
                      <button type="button" class="link" data-testid="row-name" title={row.name} onClick={() => show(row)}>
                        {settings.named(row.name)}
                      </button>
                    </td>
                  ) : (
                    <td key={key} class="number" title={String(row[key])}>
                      {(key === "min" || key === "max") && table.categories.length > 0 ? (
                        <button type="button" class="link" title={`${row[key]}: show this one in the timeline`} onClick={() => show(row, key)}>
                          {figure(row, key, unit)}
                        </button>
                      ) : (
                        figure(row, key, unit)
                      )}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
        {found.length > shown && (
          <button type="button" onClick={() => setShown(shown + STEP_ROWS * 5)}>
            More rows ({found.length - shown})
          </button>
        )}
      </div>
    </section>
  );
}
