/** Charts of a page, as SVG. */

import type { PageBars, PageLines } from "../generated/catalogue";
import { shortName } from "../view/names";
import { figure, printable, shortened } from "./figure";
import { COLOURS, Legend } from "./legend";

/** Most bars in a chart. */
const MOST_BARS = 100;
/** Most points of a line: more than a screen has columns. */
const MOST_POINTS = 1000;
const LABEL_CHARACTERS = 38;

const [WIDTH, LABELS, FIGURES, BAR, GAP, PLOT] = [1000, 290, 110, 16, 8, 200];

export function Bars({ bars }: { bars: PageBars }) {
  const labels = bars.labels.slice(0, MOST_BARS);
  const [least, most] = span(bars, labels.length);
  const at = (value: number) => LABELS + ((value - least) / (most - least)) * (WIDTH - LABELS - FIGURES);
  const row = (bars.stacked ? 1 : Math.max(1, bars.series.length)) * BAR + GAP;
  const height = labels.length * row + GAP;
  return (
    <section class="block">
      {bars.title !== "" && <h3>{bars.title}</h3>}
      <Legend names={bars.series.map(({ name }) => name)} />
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={bars.title}>
        {labels.map((label, place) => (
          <g key={place}>
            <text x={LABELS - 8} y={place * row + GAP + 12} text-anchor="end">
              {shortened(shortName(label), LABEL_CHARACTERS)}
            </text>
            {(bars.stacked ? stack(bars, place) : sideBySide(bars, place)).map(({ which, from, to, line, shown, told }) => {
              const top = place * row + GAP + line * BAR;
              return (
                <g key={`${which}`}>
                  {which >= 0 && (
                    <rect class={`s${which % COLOURS}`} x={at(from)} y={top} width={at(to) - at(from)} height={BAR - 2}>
                      <title>
                        {printable(bars.series[which]?.name ?? "")}: {shown}
                      </title>
                    </rect>
                  )}
                  {told && (
                    <text class="f" x={at(to) + 5} y={top + 12}>
                      {shown}
                    </text>
                  )}
                </g>
              );
            })}
          </g>
        ))}
        <line x1={at(0)} x2={at(0)} y1={0} y2={height} />
      </svg>
      {bars.labels.length > labels.length && <p class="faint">{bars.labels.length - labels.length} more bars are in the JSON.</p>}
    </section>
  );
}

/** A bar, or the figure behind a stack of them. */
interface Bar {
  /** Which series; -1 is their sum. */
  readonly which: number;
  readonly from: number;
  readonly to: number;
  /** The line below the label's first. */
  readonly line: number;
  readonly shown: string;
  /** Whether the figure stands behind the bar. */
  readonly told: boolean;
}

function stack({ series, unit }: PageBars, place: number): Bar[] {
  let sum = 0;
  const bars: Bar[] = series.map(({ values }, which) => {
    const value = Math.max(0, values[place] ?? 0);
    const from = sum;
    sum += value;
    return { which, from, to: sum, line: 0, shown: figure(value, unit), told: false };
  });
  return [...bars, { which: -1, from: sum, to: sum, line: 0, shown: figure(sum, unit), told: true }];
}

function sideBySide({ series, unit }: PageBars, place: number): Bar[] {
  return series.map(({ values }, which) => {
    const value = values[place] ?? null;
    if (value === null) {
      return { which, from: 0, to: 0, line: which, shown: "not known", told: true };
    }
    return { which, from: Math.min(0, value), to: Math.max(0, value), line: which, shown: figure(value, unit), told: true };
  });
}

/** The least and the most value that bars reach; zero lies between them. */
function span({ series, stacked }: PageBars, labels: number): readonly [number, number] {
  const known = (place: number) => series.map(({ values }) => values[place] ?? 0);
  const places = Array.from({ length: labels }, (_, place) => known(place));
  const least = stacked ? 0 : Math.min(0, ...places.flat());
  const most = stacked ? Math.max(0, ...places.map((values) => values.reduce((sum, value) => sum + Math.max(0, value), 0))) : Math.max(0, ...places.flat());
  return most > least ? [least, most] : [0, 1];
}

/** Steps: a value holds until the next. */
export function Lines({ lines }: { lines: PageLines }) {
  const { times_ns: times, series, unit } = lines;
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined) {
    return (
      <section class="block">
        <h3>{lines.title}</h3>
        <p class="faint">No values.</p>
      </section>
    );
  }
  let [low, high] = [0, 0];
  for (const value of series.flatMap(({ values }) => values)) {
    low = Math.min(low, value ?? 0);
    high = Math.max(high, value ?? 0);
  }
  high = high > low ? high : low + 1;
  const [left, right, top] = [90, WIDTH - 10, 10];
  const x = (ns: number) => left + ((ns - first) / Math.max(1, last - first)) * (right - left);
  const y = (value: number) => top + ((high - value) / (high - low)) * PLOT;
  return (
    <section class="block">
      {lines.title !== "" && <h3>{lines.title}</h3>}
      <Legend names={series.map(({ name }) => name)} />
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${PLOT + 40}`} role="img" aria-label={lines.title}>
        {[low, (low + high) / 2, high].map((value) => (
          <g key={value}>
            <line x1={left} x2={right} y1={y(value)} y2={y(value)} />
            <text class="f" x={left - 8} y={y(value) + 4} text-anchor="end">
              {figure(value, unit)}
            </text>
          </g>
        ))}
        {([[first, "start"], [first + (last - first) / 2, "middle"], [last, "end"]] as const).map(([ns, anchor]) => (
          <text key={anchor} class="f" x={x(ns)} y={PLOT + 30} text-anchor={anchor}>
            {figure(ns, "ns")}
          </text>
        ))}
        {series.map(({ name, values }, which) => (
          <path key={which} class={`l${which % COLOURS}`} d={steps(thinned(times, values), x, y)}>
            <title>{printable(name)}</title>
          </path>
        ))}
      </svg>
    </section>
  );
}

type Point = readonly [number, number | null];

function steps(points: readonly Point[], x: (ns: number) => number, y: (value: number) => number): string {
  let path = "";
  let isOpen = false;
  for (const [ns, value] of points) {
    const at = x(ns).toFixed(1);
    if (value === null) {
      path += isOpen ? `H${at}` : "";
    } else {
      path += isOpen ? `H${at}V${y(value).toFixed(1)}` : `M${at} ${y(value).toFixed(1)}`;
    }
    isOpen = value !== null;
  }
  return path;
}

/** At most so many points: of each stretch its least, its most and what is not known, where they are. */
export function thinned(times: readonly number[], values: readonly (number | null)[], most = MOST_POINTS): Point[] {
  const points = times.map((time, at): Point => [time, values[at] ?? null]);
  if (points.length <= most) {
    return points;
  }
  const stretch = Math.ceil((points.length * 3) / most);
  const kept: Point[] = [];
  for (let from = 0; from < points.length; from += stretch) {
    const chunk = points.slice(from, from + stretch);
    const known = chunk.filter(([, value]) => value !== null);
    const by = (better: (a: number, b: number) => boolean) => known.reduce<Point | undefined>((best, point) => (best === undefined || better(point[1] ?? 0, best[1] ?? 0) ? point : best), undefined);
    const chosen = new Set([by((a, b) => a < b), by((a, b) => a > b), chunk.find(([, value]) => value === null)]);
    kept.push(...chunk.filter((point) => chosen.has(point)));
  }
  return kept;
}
