/** Below the rows: the selected event, or the figures of an area. */

import { useState } from "preact/hooks";
import { isDark } from "../dark";
import type { AreaRow, EventDetails, EventPlace } from "../../engine/protocol";
import { categoryCss } from "../../gl/palette";
import * as format from "../../view/format";
import { describe } from "../fields";
import { Heads, type Order } from "../heads";
import type { Workspace } from "../workspace";

export function Panel({ workspace }: { workspace: Workspace }) {
  const { area, selected } = workspace;
  if (!area && !selected) {
    return null;
  }
  return (
    <section class="panel" aria-label={area ? "Selected area" : "Selected event"}>
      {area ? <AreaPanel workspace={workspace} /> : selected && <EventPanel workspace={workspace} event={selected} />}
    </section>
  );
}

function EventPanel({ workspace, event }: { workspace: Workspace; event: EventDetails }) {
  const { header, shown, prelude, flow, timeFormat } = workspace;
  const category = shown?.categories[event.category]?.name ?? "";
  return (
    <>
      <h2>
        <i style={{ background: categoryCss(category, isDark(), workspace.coloring) }} />
        <span class="name">{event.text}</span>
        <button type="button" onClick={() => void workspace.find(event.text)}>
          Find all
        </button>
        <button type="button" aria-label="Close" onClick={() => void workspace.select(undefined)}>
          ×
        </button>
      </h2>
      <dl class="fields">
        {prelude && workspace.isBefore(event.category) && (
          <Field name="recorded" value={`before the window (${prelude.source.profiler})`} />
        )}
        <Field name="category" value={category} />
        <Field name="row" value={workspace.rowTitle(event.row)} />
        <Field name="start" value={format.time(event.start, timeFormat, header?.startUtcNs)} />
        <Field name="duration" value={`${format.duration(event.duration)} (${format.grouped(event.duration)} ns)`} />
        {describe(category, event).map(([name, value]) => (
          <Field key={name} name={name} value={value} />
        ))}
        {flow?.launch && (
          <Link name="launched by" workspace={workspace} place={flow.launch} note={waited(event.start - (flow.launch.start + flow.launch.duration))} />
        )}
        {flow?.launched.slice(0, 8).map((place) => (
          <Link key={`${place.category}/${place.index}`} name="launched" workspace={workspace} place={place} note={format.duration(place.duration)} />
        ))}
        {flow && flow.launched.length > 8 && <Field name="" value={`and ${flow.launched.length - 8}${flow.more ? " or more" : ""} others`} />}
      </dl>
    </>
  );
}

/** How long work waited behind its call. */
function waited(ns: number): string {
  return ns >= 0 ? `waited ${format.duration(ns)}` : "began before the call returned";
}

function Field({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Link({ name, workspace, place, note }: { name: string; workspace: Workspace; place: EventPlace; note: string }) {
  const text = workspace.names[place.category]?.[place.name] ?? "";
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <button
          type="button"
          class="link"
          title={text}
          onClick={() => {
            workspace.goTo(place);
            void workspace.select(place);
          }}
        >
          {text}
        </button>{" "}
        <span class="faint">{note}</span>
      </dd>
    </div>
  );
}

type Column = "text" | "count" | "inside" | "total" | "min" | "max";

const COLUMNS: readonly (readonly [Column, string])[] = [
  ["text", "Name"],
  ["count", "Count"],
  ["inside", "Time in area"],
  ["total", "Total"],
  ["min", "Shortest"],
  ["max", "Longest"],
];

/** More rows are not rendered. */
const MOST_ROWS = 500;

function AreaPanel({ workspace }: { workspace: Workspace }) {
  const [order, setOrder] = useState<Order<Column>>({ by: "inside", up: false });
  const { area, areaStats, header, shown } = workspace;
  if (!area) {
    return null;
  }
  const length = area.to - area.from;
  const sorted = areaStats ? [...areaStats.rows].sort((a, b) => (order.up ? 1 : -1) * compare(a, b, order.by)) : [];
  return (
    <>
      <h2>
        <span class="name">
          {format.duration(length)} from {format.time(area.from, workspace.timeFormat, header?.startUtcNs)}, {area.rows.length} rows
          {areaStats ? `, ${format.grouped(areaStats.events)} events` : ", counting…"}
          {areaStats?.busy !== undefined && `, GPU work in ${format.percent(areaStats.busy / (area.to - Math.max(0, area.from)))} of ${area.from < 0 ? "its part in the window" : "it"}`}
        </span>
        <button type="button" aria-label="Close" onClick={() => void workspace.choose(undefined)}>
          ×
        </button>
      </h2>
      {areaStats && (
        <div class="table">
          <table>
            <Heads columns={COLUMNS} words="text" order={order} onOrder={setOrder} />
            <tbody>
              {sorted.slice(0, MOST_ROWS).map((row) => (
                <tr key={`${row.category}/${row.name}`}>
                  <td>
                    <i style={{ background: categoryCss(shown?.categories[row.category]?.name ?? "", isDark(), workspace.coloring) }} />
                    {row.text}
                    {workspace.isBefore(row.category) && <span class="faint"> before the window</span>}
                  </td>
                  <td class="number">{format.grouped(row.count)}</td>
                  <td class="number">{format.duration(row.inside)}</td>
                  <td class="number">{format.duration(row.total)}</td>
                  <td class="number">{format.duration(row.min)}</td>
                  <td class="number">{format.duration(row.max)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {sorted.length > MOST_ROWS && <p class="faint">and {sorted.length - MOST_ROWS} more names</p>}
        </div>
      )}
    </>
  );
}

function compare(a: AreaRow, b: AreaRow, by: Column): number {
  return by === "text" ? a.text.localeCompare(b.text) : a[by] - b[by];
}
