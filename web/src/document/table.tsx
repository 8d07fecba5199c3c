/** A table of a page: sorted by its heads, filtered, kept as CSV; a row that has a place leads there. One that is folded is closed. */

import { useMemo, useState } from "preact/hooks";
import { FullNames } from "../controls/full-names";
import { Heads, type Order } from "../controls/heads";
import { byRow } from "../controls/row";
import { csvOfRows } from "../downloads/csv";
import { save } from "../downloads/keep";
import type { PageCell, PageColumn, PageRow, PageTable, Place } from "../generated/catalogue";
import { shortName } from "../view/names";
import { settings } from "../workspace/settings";
import { useObservable } from "../workspace/store";
import { csvHead, inCell, printable, shown, titleOf } from "./figure";
import { filtered, lookOf, sorted } from "./rows";

/** So many rows are rendered at first, and more on demand. */
const STEP_ROWS = 200;
/** A table of fewer rows is seen whole: there is nothing to look for. */
const FEW_ROWS = 8;

/** A table of more columns has a page across the paper. */
const WIDE_COLUMNS = 7;
/** A table of more columns is printed smaller, too. */
const WIDEST_COLUMNS = 15;

/** Leads to places: by a link where they are in another capture. */
export interface Guide {
  readonly go: (place: Place) => void;
  readonly href: (place: Place) => string | undefined;
}

export function Table({ name, table, guide }: { name: string; table: PageTable; guide: Guide }) {
  const { columns, rows } = table;
  useObservable(settings);
  const hasShorter = useMemo(() => rows.some(({ cells }) => cells.some((cell) => typeof cell === "string" && shortName(cell) !== cell)), [rows]);
  const [order, setOrder] = useState<Order<string>>();
  const [filter, setFilter] = useState("");
  const [count, setCount] = useState(STEP_ROWS);
  const looks = useMemo(() => columns.map((_, at) => lookOf(table, at)), [table]);
  const numeric = looks.map((look) => look === "number");
  // Until the user chooses, the order is the analysis's own.
  const found = useMemo(() => {
    const few = filtered(rows, filter);
    return order ? sorted(few, Number(order.by), order.up) : few;
  }, [rows, filter, order]);
  const words = numeric.findIndex((is) => !is);
  const title = table.title || name;
  const csv = () => {
    const heads = columns.map(csvHead);
    const keyed = found.map(({ cells }) => Object.fromEntries(cells.map((cell, at) => [String(at), cell])));
    save(`${name}${table.title === "" ? "" : ` ${table.title}`}.csv`, csvOfRows(columns.map((_, at) => String(at)), keyed, heads));
  };
  const whole = (
    <>
      <div class="toolbar">
        {table.title !== "" && !table.folded && <h3>{table.title}</h3>}
        {rows.length > FEW_ROWS && (
          <input type="search" placeholder="Filter" aria-label={`Filter rows of ${title}`} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        )}
        <span class="faint">
          {found.length === rows.length ? (rows.length === 1 ? "1 row" : `${rows.length} rows`) : `${found.length} of ${rows.length} rows`}
          {table.left_out > 0 && `, and ${table.left_out} more that are not in this page`}
        </span>
        {rows.length > 0 && (
          <button type="button" onClick={csv} aria-label={`CSV of ${title}`}>
            CSV
          </button>
        )}
        {hasShorter && <FullNames />}
      </div>
      {table.about !== "" && <p class="faint">{table.about}</p>}
      {rows.length > 0 && (
        <div class="table">
          <table>
            <Heads
              columns={columns.map((column, at) => [String(at), titleOf(column)] as const)}
              numbers={numeric}
              abouts={columns.map(({ about }) => about)}
              words={String(words)}
              order={order ?? { by: "", up: false }}
              onOrder={setOrder}
            />
            <tbody>
              {found.slice(0, count).map((row, at) => (
                <Row key={at} row={row} columns={columns} looks={looks} lead={Math.max(words, 0)} guide={guide} />
              ))}
            </tbody>
          </table>
          {found.length > count && (
            <button type="button" onClick={() => setCount(count + STEP_ROWS * 5)}>
              More rows ({found.length - count})
            </button>
          )}
        </div>
      )}
    </>
  );
  return (
    <section class={`block${columns.length > WIDE_COLUMNS ? " wide" : ""}${columns.length > WIDEST_COLUMNS ? " widest" : ""}`} aria-label={title}>
      {table.folded ? (
        <details>
          <summary>
            {title} ({rows.length + table.left_out})
          </summary>
          {whole}
        </details>
      ) : (
        whole
      )}
    </section>
  );
}

interface RowProps {
  readonly row: PageRow;
  readonly columns: readonly PageColumn[];
  readonly looks: readonly string[];
  /** The cell that leads to the row's place. */
  readonly lead: number;
  readonly guide: Guide;
}

function Row({ row, columns, looks, lead, guide }: RowProps) {
  const { place } = row;
  return (
    <tr {...(place?.input === 0 && { class: "leads", onClick: byRow(() => guide.go(place)) })}>
      {columns.map((column, at) => {
        const cell = row.cells[at] ?? null;
        const text = cell === null ? "–" : inCell(shown(cell, column.unit, column.decimals));
        return (
          <td key={at} class={looks[at]} title={exact(cell)}>
            {at === lead && place ? <Lead place={place} text={text} guide={guide} /> : text}
          </td>
        );
      })}
    </tr>
  );
}

function Lead({ place, text, guide }: { place: Place; text: string; guide: Guide }) {
  if (place.input > 0) {
    const href = guide.href(place);
    return href === undefined ? <>{text}</> : <a href={href}>{text || "show"}</a>;
  }
  return (
    <button type="button" class="link" title="Show in the timeline" onClick={() => guide.go(place)}>
      {text || "show"}
    </button>
  );
}

function exact(cell: PageCell): string {
  return cell === null ? "not known" : printable(String(cell));
}
