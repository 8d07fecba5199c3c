/** The open file and what the user chose: shared by all pages. */

import { emptyShelf } from "../bytes/shelf";
import { ClosedFile, Engine, ForeignFile } from "../engine/client";
import type { Added, Area, AreaStats, EventDetails, EventPlace, EventRef, Flow, Held, Hits, Loaded, Place } from "../engine/protocol";
import type { Gateway } from "../gateway/client";
import type { PageDocument, Place as PagePlace } from "../generated/catalogue";
import type { Coloring } from "../gl/palette";
import type { Header } from "../timeline/header";
import { duration, TIME_FORMATS, type TimeFormat } from "../view/format";
import type { Arrangement } from "../view/layout";
import { type Branch, treeOf } from "../view/tree";
import { type Address, hashOf } from "./address";
import { convert } from "./dropped";
import { firstNumbers, joined, nameOf } from "./names";
import { goalBefore, preludeOf } from "./prelude";
import type { Goal, Mark, Status } from "./state";
import { Observable } from "./store";
import { parseSummary, type Summary } from "./summary";

/** Pixels of the rows' names beside the tracks; see `--labels` in style.css. */
const LABELS_WIDTH = 260;

const NOTHING_LOADED: Loaded = { bytes: 0, requests: 0, fetchMs: 0, unpacked: 0, unpackMs: 0, missing: 0, share: 1 };

export class Workspace extends Observable {
  status: Status = { kind: "empty" };
  /** Started with the page, so that a file can be opened when the network is gone. */
  readonly engine: Engine;
  private opening = 0;
  /** Of the capture window, of which all figures are. */
  header: Header | undefined;
  /** What was before the window, on its own axis; undefined where nothing of it is shown. */
  prelude: Header | undefined;
  /** Rows of the prelude of which older events may be gone, and from when on they are there. */
  held: readonly Held[] = [];
  /** What the timeline shows: the window, and the prelude before it. */
  shown: Header | undefined;
  tree: readonly Branch[] = [];
  /** Names of each category; filled soon after opening. */
  names: (readonly string[])[] = [];
  /** Number of each category's first name, over all categories. */
  firstNames: number[] = [];
  loaded: Loaded = NOTHING_LOADED;
  page: string;
  /** Id of the session that is looked at among others. */
  session: string | undefined;
  /** Name of the analysis that is shown. */
  analysis: string | undefined;
  private place: Place | undefined;
  /** A prelude that was given together with the file. */
  private given: File | undefined;
  /** The opening whose prelude was looked for. */
  private looked = 0;
  private naming: Promise<void> = Promise.resolve();
  /** The query of the page's address: it names the open file, where that has an address. */
  private query = location.search;
  /** Ends the conversion of a file that was dropped. */
  private converting: AbortController | undefined;
  selected: EventDetails | undefined;
  flow: Flow | undefined;
  area: Area | undefined;
  areaStats: AreaStats | undefined;
  search: string;
  hits: Hits | undefined;
  /** 1 for each name that matches the search, over all categories. */
  hitFlags: Uint8Array | undefined;
  hit: EventPlace | undefined;
  marks: readonly Mark[] = [];
  arrangement: Arrangement = { folded: new Set(), pinned: [], order: new Map(), filter: "" };
  coloring: Coloring;
  /** Categories that are not drawn. */
  hidden: ReadonlySet<string>;
  timeFormat: TimeFormat;
  /** What a screen reader says. */
  announcement = "";
  /** What is seen, for the address. */
  viewport: Mark | undefined;
  /** Something went wrong that does not end the session. */
  problem: string | undefined;
  private goal: Goal | undefined;
  private summaryLoading: Promise<Summary> | undefined;
  private bytesTimer: ReturnType<typeof setTimeout> | undefined;
  private addressTimer: ReturnType<typeof setTimeout> | undefined;

  /** `gateway` is the one that serves this page, if one does. */
  constructor(
    private readonly initial: Address,
    readonly gateway?: Gateway,
  ) {
    super();
    this.page = initial.page ?? (gateway && initial.file === undefined ? "sessions" : "timeline");
    this.session = initial.session;
    this.analysis = initial.analysis;
    gateway?.watch(() => {
      // What could not be read before one signed in.
      if (gateway.state === "in" && this.status.kind === "failed" && this.place) {
        this.opening = 0;
        void this.open(this.place);
      }
      this.changed();
    });
    this.search = initial.search;
    this.coloring = initial.coloring;
    this.hidden = new Set(initial.hidden);
    this.timeFormat = initial.timeFormat;
    this.engine = new Engine((loaded) => {
      this.loaded = loaded;
      this.bytesTimer ??= setTimeout(() => {
        this.bytesTimer = undefined;
        this.changed();
      }, 100);
    });
    if (initial.from !== undefined && initial.to !== undefined) {
      this.viewport = { from: initial.from, to: initial.to };
    }
  }

  /** Opens a file. One of this machine that is no timeline is converted, where that is done; it is then called as it was. */
  async open(place: Place, what = "url" in place ? place.url : place.file.name, prelude?: File): Promise<void> {
    this.converting?.abort();
    this.opening += 1;
    this.place = place;
    this.given = prelude;
    if (this.opening > 1) {
      // What the address says is of the file that it names.
      this.viewport = undefined;
    }
    if ("file" in place) {
      // A link leads nowhere else than to what is seen.
      this.query = "";
    }
    performance.mark("flopwatch-open");
    const { opening } = this;
    this.reset(what);
    try {
      const header = await this.engine.call("open", place, this.page === "timeline" ? { width: innerWidth - LABELS_WIDTH, span: this.viewport } : undefined);
      if (!header || opening !== this.opening) {
        return;
      }
      this.header = header;
      this.display(header, undefined);
      this.status = { kind: "open", what };
      document.title = `${header.sessionId || what.replace(/^.*\//, "")} - Flopwatch`;
      this.changed();
      this.naming = this.loadNames(header, opening);
      await this.naming;
    } catch (error) {
      if (opening !== this.opening) {
        return;
      }
      if (error instanceof ForeignFile && "file" in place) {
        await this.convert(place.file, error.message);
        return;
      }
      this.fail(what, error);
    }
  }

  /** Has a capture converted, and opens its timeline. */
  private async convert(file: File, why: string): Promise<void> {
    const what = file.name;
    const controller = new AbortController();
    this.converting = controller;
    const cancel = () => controller.abort(new Error("It was cancelled."));
    const told = (sent: number) => {
      if (!controller.signal.aborted) {
        this.status = { kind: "converting", what, sent, size: file.size, cancel };
        this.changed();
      }
    };
    const { opening } = this;
    try {
      const made = await convert(file, why, told, controller.signal);
      if (opening !== this.opening) {
        return;
      }
      if ("dashboard" in made) {
        this.status = { kind: "dashboard", what, file, document: made.dashboard };
        document.title = `${what} - Flopwatch`;
        this.keepAddress();
        this.changed();
        return;
      }
      this.query = `?${new URLSearchParams({ file: new URL(made.url).pathname })}`;
      await this.open({ url: made.url }, what, this.given);
    } catch (error) {
      if (opening === this.opening) {
        this.fail(what, error);
      }
    }
  }

  /** Shows a dashboard that is there already. */
  showDashboard(what: string, document: PageDocument): void {
    this.opening += 1;
    this.reset(what);
    this.status = { kind: "dashboard", what, file: undefined, document };
    this.changed();
  }

  private fail(what: string, error: unknown): void {
    this.status = { kind: "failed", what, why: message(error) };
    this.changed();
  }

  private reset(what: string): void {
    this.status = { kind: "opening", what };
    this.header = undefined;
    this.prelude = undefined;
    this.held = [];
    this.shown = undefined;
    this.tree = [];
    this.names = [];
    this.firstNames = [];
    this.loaded = NOTHING_LOADED;
    this.selected = undefined;
    this.flow = undefined;
    this.area = undefined;
    this.areaStats = undefined;
    this.hits = undefined;
    this.hitFlags = undefined;
    this.hit = undefined;
    this.marks = [];
    this.arrangement = { folded: new Set(), pinned: [], order: new Map(), filter: "" };
    this.summaryLoading = undefined;
    this.changed();
  }

  /** Takes over what the timeline shows. */
  private display(shown: Header, added: Added | undefined): void {
    this.prelude = added?.prelude;
    this.held = added?.held ?? [];
    this.shown = shown;
    this.tree = treeOf(shown);
  }

  /** Adds what was before the window, where something of it was kept. Pages ask when what they show of the window is there. */
  async addPrelude(): Promise<void> {
    const { opening, place, given } = this;
    if (!place || this.looked === opening) {
      return;
    }
    this.looked = opening;
    try {
      await this.naming;
      const prelude = given ? { file: given } : await preludeOf(place);
      const added = prelude && opening === this.opening ? await this.engine.call("prelude", prelude) : undefined;
      if (!added || opening !== this.opening) {
        return;
      }
      this.display(added.both, added);
      this.announcement = `${duration(-added.both.beginNs)} before the window are shown too`;
      this.goal = opening === 1 ? goalBefore(this.initial, added.both.durationNs) : undefined;
      this.changed();
      this.naming = this.loadNames(added.both, opening);
      await this.naming;
    } catch (error) {
      if (opening === this.opening) {
        this.report(new Error(`What was before the window cannot be shown: ${message(error)}`));
      }
    }
  }

  /** What is to be drawn could not be read. Where the prelude may be at fault, the window is shown without it. */
  async notDrawn(error: unknown): Promise<void> {
    const { header, prelude } = this;
    if (!header || !prelude) {
      this.report(error);
      return;
    }
    const selected = this.selected && this.isBefore(this.selected.category) ? undefined : this.selected;
    await this.engine.call("withoutPrelude");
    this.display(header, undefined);
    this.names = this.names.slice(0, header.categories.length);
    this.firstNames = this.firstNames.slice(0, header.categories.length);
    this.selected = selected;
    this.hit = undefined;
    this.report(new Error(`What was before the window is no longer shown: ${message(error)}`));
    await this.find(this.search);
  }

  /** Whether a category's events are from before the window. */
  isBefore(category: number): boolean {
    return category >= (this.header?.categories.length ?? 0);
  }

  /** What links call a category. */
  private keyOf(category: number): string {
    const name = this.shown?.categories[category]?.name ?? "";
    return this.isBefore(category) ? `prelude.${name}` : name;
  }

  private async loadNames(header: Header, opening: number): Promise<void> {
    const known = this.names.length;
    const names = await Promise.all(header.categories.slice(known).map((_, at) => this.engine.call("names", known + at)));
    if (opening !== this.opening) {
      return;
    }
    this.names = [...this.names, ...names];
    this.firstNames = firstNumbers(this.names);
    // What the address says is of the file that it names.
    const selected = opening === 1 ? this.initial.selected : undefined;
    const category = header.categories.findIndex((_, at) => this.keyOf(at) === selected?.category);
    if (selected && category >= known && !this.selected) {
      await this.select({ category, index: selected.index });
    }
    if (this.search !== "") {
      await this.find(this.search);
    }
    this.changed();
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

  async select(ref: EventRef | undefined): Promise<void> {
    if (!ref) {
      this.selected = undefined;
      this.flow = undefined;
      this.keepAddress();
      this.changed();
      return;
    }
    try {
      const selected = await this.engine.call("event", ref);
      this.selected = selected;
      this.flow = undefined;
      this.announcement = `${selected.text}, ${this.rowTitle(selected.row)}${this.isBefore(selected.category) ? ", before the window" : ""}`;
      this.keepAddress();
      this.changed();
      const flow = await this.engine.call("flow", ref);
      if (this.selected === selected) {
        this.flow = flow;
        this.changed();
      }
    } catch (error) {
      this.report(error);
    }
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

  async choose(area: Area | undefined): Promise<void> {
    this.area = area;
    this.areaStats = undefined;
    this.changed();
    if (area) {
      try {
        const stats = await this.engine.call("area", area);
        if (stats && this.area === area) {
          this.areaStats = stats;
          this.changed();
        }
      } catch (error) {
        this.report(error);
      }
    }
  }

  async find(text: string): Promise<void> {
    this.search = text;
    this.hit = undefined;
    this.keepAddress();
    if (text === "") {
      this.hits = undefined;
      this.hitFlags = undefined;
      this.changed();
      return;
    }
    try {
      const hits = await this.engine.call("search", { text });
      if (hits && this.search === text) {
        this.hits = hits;
        this.hitFlags = joined(hits.names);
        this.announcement = `${hits.events ?? "many"} events match`;
        this.changed();
      }
    } catch (error) {
      this.report(error);
    }
  }

  /** Goes to the next event that matches the search, or the one before. */
  async step(forward: boolean): Promise<void> {
    if (!this.hits) {
      return;
    }
    const edge = forward ? (this.viewport?.from ?? Number.MIN_SAFE_INTEGER) : (this.viewport?.to ?? this.header?.durationNs ?? 0);
    try {
      const found =
        (await this.engine.call("next", this.hit, edge, forward)) ??
        // From the end to the beginning, and the other way round.
        (await this.engine.call("next", undefined, forward ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER, forward));
      if (found) {
        this.hit = found;
        this.goTo(found);
        await this.select(found);
      } else {
        this.announcement = "no event matches";
        this.changed();
      }
    } catch (error) {
      this.report(error);
    }
  }

  /** Shows an event in the timeline. */
  goTo(place: EventPlace): void {
    this.page = "timeline";
    this.goal = { from: place.start, to: place.start + place.duration, row: place.row };
    this.changed();
  }

  /** Shows a place that an analysis names, and chooses its span: of its row, or of all. */
  async goToPlace({ start_ns: from, end_ns: end, row }: PagePlace): Promise<void> {
    const to = Math.max(end, from + 1);
    this.page = "timeline";
    this.goal = { from, to, row: row ?? undefined };
    this.changed();
    const rows = row === null || row === undefined ? (this.header?.rows.map((_, at) => at) ?? []) : [row];
    await this.choose({ from, to, rows });
  }

  /** Where the timeline is to go, told once. */
  takeGoal(): Goal | undefined {
    const { goal } = this;
    this.goal = undefined;
    return goal;
  }

  /** Shows the first event of a name. */
  async goToName(category: number, text: string): Promise<boolean> {
    const place = await this.engine.call("firstOf", category, text);
    if (!place) {
      return false;
    }
    this.goTo(place);
    await this.select(place);
    return true;
  }

  arrange(change: Partial<Arrangement>): void {
    this.arrangement = { ...this.arrangement, ...change };
    this.changed();
  }

  fold(key: string): void {
    const folded = new Set(this.arrangement.folded);
    if (!folded.delete(key)) {
      folded.add(key);
    }
    this.arrange({ folded });
  }

  pin(key: string): void {
    const { pinned } = this.arrangement;
    this.arrange({ pinned: pinned.includes(key) ? pinned.filter((other) => other !== key) : [...pinned, key] });
  }

  /** Has a screen reader say something. */
  say(text: string): void {
    this.announcement = text;
    this.changed();
  }

  mark(mark: Mark): void {
    const same = (other: Mark) => other.from === mark.from && other.to === mark.to;
    this.marks = this.marks.some(same) ? this.marks.filter((other) => !same(other)) : [...this.marks, mark];
    this.changed();
  }

  clearMarks(): void {
    this.marks = [];
    this.changed();
  }

  show(page: string): void {
    this.page = page;
    this.keepAddress();
    this.changed();
  }

  /** Looks at a session among others. */
  chooseSession(id: string | undefined): void {
    this.session = id;
    this.keepAddress();
    this.changed();
  }

  /** Shows another analysis. */
  chooseAnalysis(name: string): void {
    this.analysis = name;
    this.keepAddress();
    this.changed();
  }

  /** Signs out, and leaves nothing of what was read: not in the browser's storage, nor in this page. */
  async signOut(): Promise<void> {
    try {
      await this.gateway?.signOut();
      await emptyShelf();
      sessionStorage.clear();
      location.replace(location.pathname);
    } catch (error) {
      this.report(error);
    }
  }

  get byName(): boolean {
    return this.coloring === "name";
  }

  setColoring(coloring: Coloring): void {
    this.coloring = coloring;
    this.keepAddress();
    this.changed();
  }

  /** Hides a category, or shows it again. */
  toggleCategory(name: string): void {
    const hidden = new Set(this.hidden);
    if (!hidden.delete(name)) {
      hidden.add(name);
    }
    this.hidden = hidden;
    this.keepAddress();
    this.changed();
  }

  nextTimeFormat(): void {
    const formats = TIME_FORMATS.filter((format) => format !== "utc" || this.header?.startUtcNs !== undefined);
    this.timeFormat = formats[(formats.indexOf(this.timeFormat) + 1) % formats.length] ?? "auto";
    this.keepAddress();
    this.changed();
  }

  /** Keeps what is seen for the address; nothing is drawn for it. */
  see(viewport: Mark): void {
    // What is drawn while another file is opened is the last of the one before.
    if (this.status.kind === "open") {
      this.viewport = viewport;
      this.keepAddress();
    }
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

  private keepAddress(): void {
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => {
      const hash = hashOf({
        page: this.page,
        session: this.session,
        analysis: this.page === "analyses" ? this.analysis : undefined,
        from: this.viewport?.from,
        to: this.viewport?.to,
        selected: this.selected && { category: this.keyOf(this.selected.category), index: this.selected.index },
        search: this.search,
        coloring: this.coloring,
        hidden: [...this.hidden],
        timeFormat: this.timeFormat,
      });
      history.replaceState(null, "", location.pathname + this.query + hash);
    }, 200);
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
