/** Performance over intensity below roofs, both logarithmic, as SVG. */

import type { PageRoof, PageRoofline, PageRooflinePoint } from "../generated/catalogue";
import { shortName } from "../view/names";
import { figure, printable, shortened } from "./figure";
import { COLOURS, Legend } from "./legend";

/** Most points that are drawn, and most with their names beside them. */
const [MOST_POINTS, MOST_NAMES] = [2000, 12];
const NAME_CHARACTERS = 32;
const [WIDTH, LEFT, RIGHT, TOP, BOTTOM] = [1000, 110, 980, 14, 440];

/** Decades from the first to the last. */
type Decades = readonly [number, number];

/** Where values lie on the chart. */
interface Plane {
  readonly across: Decades;
  readonly up: Decades;
  readonly x: (intensity: number) => number;
  readonly y: (performance: number) => number;
}

export function Roofline({ chart }: { chart: PageRoofline }) {
  const plane = planeOf(chart);
  const series = [...new Set(chart.points.map((point) => point.series))];
  return (
    <section class="block">
      {chart.title !== "" && <h3>{chart.title}</h3>}
      {chart.about !== "" && <p class="faint">{chart.about}</p>}
      {plane === null ? (
        <p class="faint">No values.</p>
      ) : (
        <>
          <Legend names={series} />
          <svg class="chart" viewBox={`0 0 ${WIDTH} ${BOTTOM + 50}`} role="img" aria-label={chart.title}>
            <Grid chart={chart} plane={plane} />
            <Roofs chart={chart} plane={plane} />
            {chart.arrows.slice(0, MOST_POINTS).map(({ from, to }, at) => (
              <path key={at} class="l6" d={arrow(chart.points[from], chart.points[to], plane)} />
            ))}
            <Points chart={chart} plane={plane} series={series} />
          </svg>
        </>
      )}
      {chart.points.length > MOST_POINTS && <p class="faint">{chart.points.length - MOST_POINTS} more points are in the JSON.</p>}
    </section>
  );
}

const isPlace = (value: number) => Number.isFinite(value) && value > 0;
const isDrawn = ({ intensity, performance }: PageRooflinePoint) => isPlace(intensity) && isPlace(performance);
const valuesOf = (roofs: readonly PageRoof[]) => roofs.map(({ value }) => value).filter(isPlace);

/** Whole decades around the values, with some room. */
function around(values: readonly number[], room: number): Decades | null {
  const logs = values.filter(isPlace).map(Math.log10);
  if (logs.length === 0) {
    return null;
  }
  const low = Math.floor(logs.reduce((a, b) => Math.min(a, b)) - room);
  return [low, Math.max(low + 1, Math.ceil(logs.reduce((a, b) => Math.max(a, b)) + room))];
}

export function planeOf({ points, peaks, bandwidths }: PageRoofline): Plane | null {
  const drawn = points.filter(isDrawn).slice(0, MOST_POINTS);
  const ridges = valuesOf(peaks).flatMap((peak) => valuesOf(bandwidths).map((bandwidth) => peak / bandwidth));
  const across = around([...drawn.map(({ intensity }) => intensity), ...ridges], 0.3);
  const upwards = around([...drawn.map(({ performance }) => performance), ...valuesOf(peaks)], 0.2);
  if (across === null || upwards === null) {
    return null;
  }
  // Some of the slope is to be seen even where every point is close to its roof.
  const up: Decades = [Math.min(upwards[0], upwards[1] - 3), upwards[1]];
  const part = (value: number, [low, high]: Decades) => (Math.log10(value) - low) / (high - low);
  return { across, up, x: (intensity) => LEFT + part(intensity, across) * (RIGHT - LEFT), y: (performance) => BOTTOM - part(performance, up) * (BOTTOM - TOP) };
}

const decades = ([low, high]: Decades) => Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));

function Grid({ chart, plane }: { chart: PageRoofline; plane: Plane }) {
  return (
    <>
      {decades(plane.across).map((value) => (
        <g key={value}>
          <line x1={plane.x(value)} x2={plane.x(value)} y1={TOP} y2={BOTTOM} />
          <text class="f h" x={plane.x(value)} y={BOTTOM + 18} text-anchor="middle">
            {figure(value, "none")}
          </text>
        </g>
      ))}
      {decades(plane.up).map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={RIGHT} y1={plane.y(value)} y2={plane.y(value)} />
          <text class="f h" x={LEFT - 8} y={plane.y(value) + 4} text-anchor="end">
            {figure(value, chart.unit)}
          </text>
        </g>
      ))}
      <text class="f h" x={(LEFT + RIGHT) / 2} y={BOTTOM + 40} text-anchor="middle">
        {printable(chart.intensity)}
      </text>
    </>
  );
}

/** Flat roofs from the steepest slope to the right, and slopes up to the highest flat one. */
function Roofs({ chart, plane }: { chart: PageRoofline; plane: Plane }) {
  const highest = Math.max(0, ...valuesOf(chart.peaks));
  const steepest = Math.max(0, ...valuesOf(chart.bandwidths));
  const [least, last, lowest] = [10 ** plane.across[0], 10 ** plane.across[1], 10 ** plane.up[0]];
  return (
    <>
      {chart.peaks
        .filter(({ value }) => isPlace(value))
        .map(({ name, value }) => (
          <g key={name}>
            <path class="roof" d={`M${plane.x(steepest > 0 ? Math.max(least, value / steepest) : least)} ${plane.y(value)}H${RIGHT}`} />
            <text class="f h" x={RIGHT - 4} y={plane.y(value) - 5} text-anchor="end">
              {printable(name)}: {figure(value, chart.unit)}
            </text>
          </g>
        ))}
      {chart.bandwidths
        .filter(({ value }) => isPlace(value))
        .map(({ name, value }) => {
          const from = Math.max(least, lowest / value);
          const to = Math.min(last, highest > 0 ? highest / value : last);
          const [x, y, right, top] = [plane.x(from), plane.y(from * value), plane.x(to), plane.y(to * value)];
          const [atX, atY] = [x + 0.08 * (right - x), y + 0.08 * (top - y)];
          return (
            from < to && (
              <g key={name}>
                <path class="roof" d={`M${x} ${y}L${right} ${top}`} />
                <text class="f h" x={atX} y={atY - 5} transform={`rotate(${(Math.atan2(top - y, right - x) * 180) / Math.PI} ${atX} ${atY})`}>
                  {printable(name)}: {figure(value, "bytes_per_second")}
                </text>
              </g>
            )
          );
        })}
    </>
  );
}

/** A line with a head that ends at the second point's edge; nothing where the points are too close, or not drawn. */
function arrow(from: PageRooflinePoint | undefined, to: PageRooflinePoint | undefined, plane: Plane): string {
  if (from === undefined || to === undefined || !isDrawn(from) || !isDrawn(to)) {
    return "";
  }
  const [x, y, endX, endY] = [plane.x(from.intensity), plane.y(from.performance), plane.x(to.intensity), plane.y(to.performance)];
  const length = Math.hypot(endX - x, endY - y);
  if (length < 14) {
    return "";
  }
  const [across, down] = [(endX - x) / length, (endY - y) / length];
  const [tipX, tipY] = [endX - 6 * across, endY - 6 * down];
  const [footX, footY] = [tipX - 8 * across, tipY - 8 * down];
  return `M${x} ${y}L${tipX} ${tipY}M${footX - 4 * down} ${footY + 4 * across}L${tipX} ${tipY}L${footX + 4 * down} ${footY - 4 * across}`;
}

function Points({ chart, plane, series }: { chart: PageRoofline; plane: Plane; series: readonly string[] }) {
  return (
    <>
      {chart.points
        .slice(0, MOST_POINTS)
        .filter(isDrawn)
        .map((point, at) => {
          const [x, y] = [plane.x(point.intensity), plane.y(point.performance)];
          // A name goes towards the middle, so that it ends within the chart.
          const isRight = x > (LEFT + RIGHT) / 2;
          return (
            <g key={at}>
              <circle class={`s${series.indexOf(point.series) % COLOURS}`} cx={x} cy={y} r={5}>
                <title>
                  {printable(point.name)} · {printable(point.series)}: {figure(point.performance, chart.unit)} at {figure(point.intensity, "none")} {printable(chart.intensity)}
                </title>
              </circle>
              {chart.points.length <= MOST_NAMES && (
                <text class="h" x={isRight ? x - 9 : x + 9} y={y + 15} text-anchor={isRight ? "end" : "start"}>
                  {shortened(shortName(point.name), NAME_CHARACTERS)}
                </text>
              )}
            </g>
          );
        })}
    </>
  );
}
