/** The open file: what the timeline shows of it, what is chosen in it, and what of it was read. */

import { ClosedFile, Engine } from "../engine/client";
import type { Added, Area, AreaStats, EventDetails, Flow, Held, Hit, Hits, Loaded, Place } from "../engine/protocol";
import { parseSummary, type Summary } from "../summary/summary";
import type { Header } from "../timeline/header";
import { type Branch, counterGroups, treeOf } from "../view/tree";
import type { Address } from "./address";
import { Appearance } from "./appearance";
import { nameOf } from "./names";
import type { Mark, Status } from "./state";

const NOTHING_LOADED: Loaded = { bytes: 0, requests: 0, fetchMs: 0, unpacked: 0, unpackMs: 0, missing: 0, share: 1 };

export abstract class OpenFile extends Appearance {
  status: Status = { kind: "empty" };
  /** Started with the page, so that a file can be opened when the network is gone. */
  readonly engine: Engine;
  protected opening = 0;
  /** Of the capture window, of which all figures are. */
  header: Header | undefined;
  /** What was before the window, on its own axis; undefined where nothing of it is shown. */
  prelude: Header | undefined;
  /** Rows of the prelude of which older events may be gone, and from when on they are there. */
  held: readonly Held[] = [];
  /** What the timeline shows: the window, and the prelude before it. */
  shown: Header | undefined;
  tree: readonly Branch[] = [];
  /** How busy the GPUs are in each part of the strip, from 0 to 1. */
  density: { readonly of: Header; readonly shares: Float32Array } | undefined;
  /** Names of each category; filled soon after opening. */
  names: (readonly string[])[] = [];
  /** Number of each category's first name, over all categories. */
  firstNames: number[] = [];
  loaded: Loaded = NOTHING_LOADED;
  /** Further captures that the open one is compared with, as analyses take them. */
  others: readonly string[];
  protected place: Place | undefined;
  /** A prelude that was given together with the file. */
  protected given: File | undefined;
  /** The query of the page's address: it names the open file, where that has an address. */
  protected query = location.search;
  selected: EventDetails | undefined;
  flow: Flow | undefined;
  area: Area | undefined;
  areaStats: AreaStats | undefined;
  hits: Hits | undefined;
  /** 1 for each name that matches the search, over all categories. */
  hitFlags: Uint8Array | undefined;
  /** The hit that a walk led to. */
  hit: Hit | undefined;
  /** What a screen reader says. */
  announcement = "";
  /** What is seen, for the address. */
  viewport: Mark | undefined;
  /** Something went wrong that does not end the session. */
  problem: string | undefined;
  private summaryLoading: Promise<Summary> | undefined;
  private bytesTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(initial: Address) {
    super(initial);
    this.others = initial.others;
    this.viewport = spanOf(initial);
    this.engine = new Engine((loaded) => {
      this.loaded = loaded;
      this.bytesTimer ??= setTimeout(() => {
        this.bytesTimer = undefined;
        this.changed();
      }, 100);
    });
  }

  protected reset(what: string): void {
    this.status = { kind: "opening", what };
    this.header = undefined;
    this.prelude = undefined;
    this.held = [];
    this.shown = undefined;
    this.tree = [];
    this.names = [];
    this.firstNames = [];
    this.loaded = NOTHING_LOADED;
    this.deselect();
    this.hits = undefined;
    this.hitFlags = undefined;
    this.hit = undefined;
    this.arrangePlainly();
    this.summaryLoading = undefined;
    this.changed();
  }

  protected deselect(): void {
    this.selected = undefined;
    this.flow = undefined;
    this.area = undefined;
    this.areaStats = undefined;
  }

  /** All that is of the open file. */
  protected stateOfFile(): object {
    const { status, place, given, query, header, prelude, held, shown, tree, names, firstNames, loaded, viewport } = this;
    const { selected, flow, area, areaStats, hits, hitFlags, hit, marks, arrangement, summaryLoading, others } = this;
    const file = { status, place, given, query, header, prelude, held, shown, tree, names, firstNames, loaded, viewport };
    return { ...file, selected, flow, area, areaStats, hits, hitFlags, hit, marks, arrangement, summaryLoading, others };
  }

  /** Takes over what the timeline shows. */
  protected display(shown: Header, added: Added | undefined): void {
    this.prelude = added?.prelude;
    this.held = added?.held ?? [];
    this.shown = shown;
    const known = counterGroups(this.tree);
    this.tree = treeOf(shown);
    if (shown.totalEvents > 0) {
      // Counters may be more than all other rows.
      const folded = counterGroups(this.tree).filter((key) => !known.includes(key));
      this.arrangement = { ...this.arrangement, folded: new Set([...this.arrangement.folded, ...folded]) };
    }
  }

  /** Finds how busy the GPUs are over the time of what is shown. */
  async findDensity(): Promise<void> {
    const { shown } = this;
    try {
      const shares = await this.engine.call("density");
      if (shown && shown === this.shown) {
        this.density = { of: shown, shares };
        this.changed();
      }
    } catch {
      // What cannot be read is told of the view; without it the strip is plain.
    }
  }

  /** Whether a category's events are from before the window. */
  isBefore(category: number): boolean {
    return category >= (this.header?.categories.length ?? 0);
  }

  /** What links call a category. */
  protected keyOf(category: number): string {
    const name = this.shown?.categories[category]?.name ?? "";
    return this.isBefore(category) ? `prelude.${name}` : name;
  }

  /** The text of a name by its number over all categories. */
  nameText(name: number): string | undefined {
    return nameOf(this.names, this.firstNames, name);
  }

  /** The tables of the summary artifact; large in some captures, so they are read when a page asks. */
  summary(): Promise<Summary> {
    this.summaryLoading ??= this.engine.call("summary").then(parseSummary);
    return this.summaryLoading;
  }

  get bytes(): number {
    return this.loaded.bytes;
  }

  get requests(): number {
    return this.loaded.requests;
  }

  /** Where the open file is; undefined for one of this machine. */
  get url(): string | undefined {
    return this.place && "url" in this.place ? this.place.url : undefined;
  }

  rowTitle(row: number): string {
    return this.shown?.rows[row]?.label ?? "";
  }

  /** Has a screen reader say something. */
  say(text: string): void {
    this.announcement = text;
    this.changed();
  }

  report(error: unknown): void {
    // What was asked of a file that was closed meanwhile is no problem of the one that is there now.
    this.problem = error instanceof ClosedFile ? this.problem : message(error);
    this.changed();
  }

  dismiss(): void {
    this.problem = undefined;
    this.changed();
  }
}


/** The time that a link shows. */
export function spanOf(link: Address | undefined): Mark | undefined {
  return link?.from !== undefined && link.to !== undefined ? { from: link.from, to: link.to } : undefined;
}

/** What an error says. */
export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
