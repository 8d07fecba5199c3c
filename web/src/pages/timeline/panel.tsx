/** Below the rows: the selected event, or the figures of an area. */

import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { isDark } from "../../app/dark";
import { FullNames } from "../../controls/full-names";
import { Heads, type Order } from "../../controls/heads";
import { byRow } from "../../controls/row";
import type { AreaRow, EventDetails, EventPlace, Flow } from "../../engine/protocol";
import * as format from "../../view/format";
import { categoryCss } from "../../view/palette";
import { settings } from "../../workspace/settings";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import { AREA_ANALYSES, parametersOf } from "./area-analyses";
import { enclosingBy } from "./enclosing";
import { describe } from "./fields";
import { PANEL, Splitter } from "./splitter";

export function View({ workspace }: { workspace: Workspace }) {
  const { panelShare } = useObservable(settings);
  const { area, selected } = workspace;
  if (!area && !selected) {
    return null;
  }
  return (
    <>
      <Splitter />
      <section id={PANEL} class="panel" aria-label={area ? "Selected area" : "Selected event"} {...(panelShare !== undefined && { style: { flexBasis: `${panelShare}%` }, "data-sized": "" })}>
        {area ? <AreaPanel workspace={workspace} /> : selected && <EventPanel workspace={workspace} event={selected} />}
      </section>
    </>
  );
}

function EventPanel({ workspace, event }: { workspace: Workspace; event: EventDetails }) {
  const { header, shown, prelude, flow, ranked, timeFormat } = workspace;
  const category = shown?.categories[event.category]?.name ?? "";
  return (
    <>
      <h2>
        <i style={{ background: categoryCss(category, isDark(), workspace.coloring) }} />
        <span class="name" title={event.text}>
          {settings.named(event.text)}
        </span>
        <FullNames />
        <button type="button" onClick={() => void workspace.find(event.text)}>
          Find all
        </button>
        <button type="button" title="Show the next longer event of this name (L)" onClick={() => void workspace.stepByLength(true)}>
          Longer
        </button>
        <button type="button" title="Show the next shorter event of this name (Shift+L)" onClick={() => void workspace.stepByLength(false)}>
          Shorter
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
        {ranked?.event === event && <Field name="by length" value={`${format.grouped(ranked.rank)} of ${format.grouped(ranked.count)}, from the longest`} />}
        {describe(category, event).map(([name, value]) => (
          <Field key={name} name={name} value={value} />
        ))}
        {flow?.launch && (
          <Link name="launched by" workspace={workspace} place={flow.launch} note={waited(event.start - (flow.launch.start + flow.launch.duration))} />
        )}
        {flow && flow.launched.length > 1 && <Field name="on the GPU" value={onGpu(flow)} />}
        {flow?.launched.slice(0, MAX_LAUNCHED).map((place) => (
          <Link key={`${place.category}/${place.index}`} name="launched" workspace={workspace} place={place} note={format.duration(place.duration)} />
        ))}
        {flow && flow.launched.length > MAX_LAUNCHED && <Field name="" value={`and ${flow.launched.length - MAX_LAUNCHED}${flow.more ? " or more" : ""} others`} />}
        {enclosingBy(flow?.ancestors ?? [], (category) => shown?.categories[category]?.name ?? "").map(({ words, places, outer }) => (
          <Fragment key={words}>
            {outer > 0 && <Field name={words} value={`${outer} further out`} />}
            {places.map((place) => (
              <Link key={place.index} name={words} workspace={workspace} place={place} note={format.duration(place.duration)} />
            ))}
          </Fragment>
        ))}
      </dl>
    </>
  );
}

/** How much GPU work an event launched. */
function onGpu({ launched, more }: Flow): string {
  const sum = launched.reduce((sum, { duration }) => sum + duration, 0);
  return `${more ? "at least " : ""}${launched.length} launched, ${format.duration(sum)} in all`;
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
        <button type="button" class="link" title={text} onClick={() => void workspace.follow(place)}>
          {settings.named(text)}
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
  ["min", "Min"],
  ["max", "Max"],
];

/** More events that one launched are not listed. */
const MAX_LAUNCHED = 8;

/** More rows are not rendered. */
const MOST_ROWS = 500;

function AreaPanel({ workspace }: { workspace: Workspace }) {
  const [order, setOrder] = useState<Order<Column>>({ by: "inside", up: false });
  const { area, areaStats, header } = workspace;
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
        <FullNames />
        <button type="button" aria-label="Close" onClick={() => void workspace.choose(undefined)}>
          ×
        </button>
      </h2>
      {workspace.url !== undefined && area.to > 0 && (
        <p class="ways">
          Analyze this time:{" "}
          {AREA_ANALYSES.map(([name, title]) => (
            <button key={name} type="button" class="link" onClick={() => workspace.chooseAnalysis(name, parametersOf(area))}>
              {title}
            </button>
          ))}
        </p>
      )}
      {areaStats && (
        <div class="table">
          <table>
            <Heads columns={COLUMNS} words="text" order={order} onOrder={setOrder} />
            <tbody>
              {sorted.slice(0, MOST_ROWS).map((row) => (
                <Sum key={`${row.category}/${row.name}`} workspace={workspace} row={row} />
              ))}
            </tbody>
          </table>
          {sorted.length > MOST_ROWS && <p class="faint">and {sorted.length - MOST_ROWS} more names</p>}
        </div>
      )}
    </>
  );
}

/** The figures of a name in an area; they lead to its events. */
function Sum({ workspace, row }: { workspace: Workspace; row: AreaRow }) {
  const category = workspace.shown?.categories[row.category]?.name ?? "";
  const go = (index: number) => void workspace.goToEvent({ category: row.category, index });
  return (
    <tr class="leads" onClick={byRow(() => go(row.first))}>
      <td title={row.text}>
        <i style={{ background: categoryCss(category, isDark(), workspace.coloring) }} />
        <button type="button" class="link" onClick={() => go(row.first)}>
          {settings.named(row.text)}
        </button>
        {workspace.isBefore(row.category) && <span class="faint"> before the window</span>}
      </td>
      <td class="number">{format.grouped(row.count)}</td>
      <td class="number">{format.duration(row.inside)}</td>
      <td class="number">{format.duration(row.total)}</td>
      <td class="number">
        <button type="button" class="link" title="Show the shortest one" onClick={() => go(row.shortest)}>
          {format.duration(row.min)}
        </button>
      </td>
      <td class="number">
        <button type="button" class="link" title="Show the longest one" onClick={() => go(row.longest)}>
          {format.duration(row.max)}
        </button>
      </td>
    </tr>
  );
}

function compare(a: AreaRow, b: AreaRow, by: Column): number {
  return by === "text" ? a.text.localeCompare(b.text) : a[by] - b[by];
}
