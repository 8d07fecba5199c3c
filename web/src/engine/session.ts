/** An open file and what answers about it: the worker's heart. */

import type { Numbers } from "../hdf5/file";
import type { CategoryData, Samples, TimelineFile } from "../timeline/file";
import type { Counter } from "../timeline/header";
import { type Entries, LAST_LANE, type Level, type LevelStrip } from "../timeline/levels";
import { chunkOf } from "../timeline/tiles";
import { Blocks } from "./blocks";
import { chooseDetails, type Detail, mergeStep } from "./detail";
import { drawEntries, drawLane, drawSamples, gapsBetween, type Look, type Window } from "./draw";
import { InstanceWriter, KIND, MOST_LANES, NO_NAME } from "./instances";
import { slotsOf } from "./names";
import type { EventDetails, EventPlace, EventRef, Run, View, ViewRequest } from "./protocol";

/** Categories whose events keep a GPU busy. */
const GPU_WORK = /^cuda_(kernel|graph|memcpy|memset)|^device_op$/;

/** Rectangles of fewer steps get no text. */
const TEXT_STEPS = 12;

/** Told whether a newer request made this one useless. */
export type Stale = () => boolean;

/** A counter with the largest value of its metric, which its heights are shares of. */
interface Series extends Samples {
  readonly most: number;
}

export class Session {
  readonly blocks: Blocks;
  private looks: readonly Look[];
  private named = false;
  private naming: Promise<void> | undefined;
  private readonly lanes: Uint16Array;
  private series: Promise<readonly Series[]> | undefined;

  /** `before` is the session of the part of the file that was shown until now. */
  constructor(
    readonly file: TimelineFile,
    before?: Session,
  ) {
    this.blocks = before?.blocks ?? new Blocks(file.categories);
    this.blocks.extend(file.categories);
    this.lanes = new Uint16Array(file.header.rows.length + file.header.counters.length).fill(1);
    // Where the file tells it, rows keep their height whatever is in view.
    file.header.rows.forEach(({ lanes }, row) => (this.lanes[row] = Math.min(MOST_LANES, Math.max(1, lanes))));
    let firstName = 0;
    this.looks = file.categories.map(({ nameCount }, category) => {
      const look = { category, firstName, slots: new Uint8Array(nameCount) };
      firstName += nameCount;
      return look;
    });
  }

  /** Reads the names, and gives them colours. */
  private async name(): Promise<void> {
    const lists = await Promise.all(this.file.categories.map((category) => category.names()));
    this.looks = this.looks.map((look, at) => ({ ...look, slots: slotsOf(lists[at] ?? []) }));
    this.named = true;
  }

  /** Whether the category's events are GPU work. */
  isGpuWork(category: number): boolean {
    return GPU_WORK.test(this.file.categories[category]?.name ?? "");
  }

  category(at: number): CategoryData {
    const found = this.file.categories[at];
    if (!found) {
      throw new Error(`there is no category ${at}`);
    }
    return found;
  }

  /** Reads what a view needs, and keeps it: a request for that view or one beside it then waits for nothing. */
  async ahead(request: ViewRequest): Promise<void> {
    await this.load(this.windowOf(request));
  }

  private windowOf(request: ViewRequest): Window {
    const step = mergeStep(request.nsPerPixel);
    // Whole steps, so that rectangles begin at the same places when the view is moved.
    const { beginNs, durationNs } = this.file.header;
    const from = Math.max(beginNs, Math.floor(request.from / step) * step);
    return { from, to: Math.min(request.to, Math.max(1, durationNs)), step };
  }

  /** What is drawn of a window: of each category its events or the entries of a level, and the counters. */
  private load(window: Window) {
    const details = chooseDetails(this.file.categories, window, (category, chunk) => this.blocks.has(category, chunk));
    const loading = Promise.all(
      this.file.categories.map(async (category, at) => {
        const detail = details[at] as Detail;
        if (detail.kind === "events") {
          return { at, detail, blocks: detail.chunks.length > 0 ? await this.blocks.get(at, detail.chunks) : [], entries: [] as StripEntries[] };
        }
        return { at, detail, blocks: [], entries: await levelEntries(category, detail.level, window, this.file.header.beginNs) };
      }),
    );
    return Promise.all([loading, (this.series ??= this.allSeries())]);
  }

  /** What to draw; undefined when a newer request came meanwhile. */
  async view(request: ViewRequest, stale: Stale): Promise<View | undefined> {
    const window = this.windowOf(request);
    const { step } = window;
    if (request.named) {
      await (this.naming ??= this.name());
    }
    if (stale()) {
      return undefined;
    }
    const { looks, named } = this;
    const [loaded, series] = await this.load(window);
    if (stale()) {
      return undefined;
    }
    const began = performance.now();
    const out = new InstanceWriter();
    const runs: Run[] = [];
    const coarse: number[] = [];
    const busy = new Map<string, number[]>();
    const record = (row: number, lane: number, category: number, first: number) => {
      if (out.length === first) {
        return;
      }
      runs.push({ row, lane, category, first, count: out.length - first });
      if (this.isGpuWork(category)) {
        this.collectBusy(busy, row, out, first);
      }
    };
    for (const { at, detail, blocks, entries } of loaded) {
      const look = looks[at] as Look;
      for (const block of blocks) {
        for (const { row, lane, members } of block.lanes) {
          const drawn = Math.min(lane, MOST_LANES - 1);
          this.lanes[row] = Math.max(this.lanes[row] ?? 1, drawn + 1);
          const first = out.length;
          drawLane(out, block, { row, lane: drawn, members }, window, look);
          record(row, drawn, at, first);
        }
      }
      if (detail.kind === "level") {
        coarse.push(at);
        for (const { row, lane, shift, list } of entries) {
          const first = out.length;
          drawEntries(out, list, row, lane, shift, window, look);
          record(row, lane, at, first);
        }
      }
    }
    series.forEach(({ t, value, most }, at) => {
      const first = out.length;
      const row = this.file.header.rows.length + at;
      drawSamples(out, t, value, most, row, this.file.categories.length, window);
      record(row, 0, -1, first);
    });
    const idle = this.drawIdle(out, busy, window);
    const { instances, events, counts, wide } = out.finish(step * TEXT_STEPS);
    return {
      from: window.from,
      to: window.to,
      step,
      instances,
      events,
      counts,
      wide,
      runs,
      idle,
      peaks: series.map(({ most }) => most),
      lanes: this.lanes.slice(),
      coarse,
      named,
      tookMs: performance.now() - began,
    };
  }

  /** Notes the spans of the rectangles from `first` on with the device that `row` belongs to. */
  private collectBusy(busy: Map<string, number[]>, row: number, out: InstanceWriter, first: number): void {
    const of = this.file.header.rows[row];
    if (of?.device === undefined) {
      return;
    }
    const key = `${of.capture}/${of.machine}/${of.device}`;
    const spans = busy.get(key) ?? [];
    for (let at = first; at < out.length; at += 1) {
      spans.push(out.begin(at), out.end(at));
    }
    busy.set(key, spans);
  }

  /** Shades the gaps in which nothing runs on a device, in each of its streams; the runs of them. */
  private drawIdle(out: InstanceWriter, busy: ReadonlyMap<string, number[]>, window: Window): Run[] {
    const runs: Run[] = [];
    const rows = this.file.header.rows;
    for (const [key, spans] of busy) {
      const gaps = gapsBetween(spans, window.step * 3);
      rows.forEach((row, at) => {
        if (row.track === "gpu_stream" && `${row.capture}/${row.machine}/${row.device}` === key) {
          runs.push({ row: at, lane: MOST_LANES, category: -1, first: out.length, count: gaps.length });
          for (const [begin, end] of gaps) {
            out.push(begin, end, at, MOST_LANES, KIND.idle, NO_NAME, 0, 0, 1, 0, 0);
          }
        }
      });
    }
    return runs;
  }

  private async allSeries(): Promise<Series[]> {
    const { counters } = this.file.header;
    const samples = await Promise.all(counters.map((_, at) => this.file.samples(at)));
    const largest = samples.map(({ value }) => value.reduce((most, one) => Math.max(most, one), 0));
    // Devices are compared by one scale.
    const alike = (one: Counter, other: Counter | undefined) => one.source === other?.source && one.metric === other.metric && one.unit === other.unit;
    const peak = (counter: Counter) => Math.max(...largest.filter((_, at) => alike(counter, counters[at])));
    return samples.map(({ t, value }, at) => ({ t, value, most: peak(counters[at] as Counter) }));
  }

  /** A sample of a counter. */
  async sample(counter: number, at: number): Promise<{ t: number; value: number } | undefined> {
    const series = (await (this.series ??= this.allSeries()))[counter];
    const t = series?.t[at];
    const value = series?.value[at];
    return t === undefined || value === undefined ? undefined : { t, value };
  }

  /** All samples of a counter. */
  async samples(counter: number): Promise<Samples> {
    return (await (this.series ??= this.allSeries()))[counter] ?? { t: new Float64Array(0), value: new Float64Array(0) };
  }

  /** Where an event is. */
  async place(ref: EventRef): Promise<EventPlace> {
    const { tiles } = this.category(ref.category);
    const [block] = await this.blocks.get(ref.category, [chunkOf(tiles, ref.index)]);
    const at = ref.index - (block?.first ?? 0);
    const start = block?.start[at];
    if (!block || start === undefined) {
      throw new Error(`there is no event ${ref.index}`);
    }
    return {
      category: ref.category,
      index: ref.index,
      start,
      duration: block.duration[at] as number,
      row: block.row[at] as number,
      lane: block.lane[at] as number,
      name: block.name[at] as number,
    };
  }

  async event(ref: EventRef): Promise<EventDetails> {
    const { tiles, names, read, texts } = this.category(ref.category);
    const place = await this.place(ref);
    const chunk = chunkOf(tiles, ref.index);
    const drawn = ["start_ns", "duration_ns", "name_idx", "row", "lane"];
    const own = tiles.columns.filter((name) => !drawn.includes(name));
    const [columns] = await read([chunk], own);
    const at = ref.index - (tiles.first[chunk] as number);
    const field = async (name: string) => {
      const value = Number(columns?.get(name)?.[at] ?? 0);
      const list = await texts(name);
      return [name, list ? (list[value] ?? "") : value] as const;
    };
    const fields = await Promise.all(own.map(field));
    return { ...place, text: (await names())[place.name] ?? "", fields };
  }

  /** The values of a column of a chunk; undefined where the category lacks it. */
  async column(category: number, chunk: number, name: string): Promise<ArrayLike<number> | undefined> {
    const [columns] = await this.category(category).read([chunk], [name]);
    return columns?.get(name);
  }
}

/** Entries of a lane, of buckets of 2^shift ns; MOST_LANES stands for all lanes of the row. */
interface StripEntries {
  readonly row: number;
  readonly lane: number;
  readonly shift: number;
  readonly list: Entries;
}

/** Levels between the one that is drawn and the one that tells what began long before the window where events of an entry overlap. */
const ABOVE = 3;

/** Whether the events of the strip's entries may overlap, so that the last one before a window does not tell what runs into it. */
function overlaps({ lane }: LevelStrip): boolean {
  return lane === undefined || lane >= LAST_LANE;
}

/** The entries of a level in the window with what reaches into it from before; the axis begins at `begin`. */
async function levelEntries(category: CategoryData, level: Level, window: Window, begin: number): Promise<StripEntries[]> {
  const { levels } = category;
  if (!levels) {
    return [];
  }
  const of = ({ shift }: Level, strips: readonly LevelStrip[], from: number, to: number) =>
    strips.map(async (strip) => ({ row: strip.row, lane: strip.lane ?? MOST_LANES, shift, list: await levels.within(strip, shift, from, to) }));
  const coarser = levels.levels[Math.min(levels.levels.length - 1, levels.levels.indexOf(level) + ABOVE)];
  const long = coarser && coarser !== level && window.from > begin ? of(coarser, coarser.strips.filter(overlaps), begin, window.from) : [];
  const reaching = (await Promise.all(long)).map((entries) => ({ ...entries, list: reachingPast(entries, window.from) }));
  return [...reaching, ...(await Promise.all(of(level, level.strips, window.from, window.to)))];
}

/** Of `entries`, those whose longest event ends after `time` and began before it. */
function reachingPast({ shift, list }: StripEntries, time: number): Entries {
  const places: number[] = [];
  for (let at = 0; at < list.bucket.length; at += 1) {
    const begin = Number(list.bucket[at]) * 2 ** shift;
    if (begin < time && begin + Number(list.duration[at]) > time) {
      places.push(at);
    }
  }
  const pick = (column: Numbers) => Float64Array.from(places, (at) => Number(column[at]));
  return {
    bucket: pick(list.bucket),
    event: pick(list.event),
    duration: pick(list.duration),
    count: pick(list.count),
    busy: pick(list.busy),
    name: list.name && pick(list.name),
  };
}
