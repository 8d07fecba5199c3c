/** Where the user is: the page, what is selected and searched there, the ways from one to the other, and the address of it all. */

import { patternProblem } from "../engine/names";
import type { Area, EventDetails, EventPlace, EventRef, EventValue, IdleTime } from "../engine/protocol";
import type { Place as PagePlace } from "../generated/catalogue";
import { shortName } from "../view/names";
import { type Address, hashOf, landingPage } from "./address";
import { AddressBar } from "./address-bar";
import { joined } from "./names";
import { OpenFile } from "./open-file";
import { listUrl } from "./prelude";
import type { Goal, Mark } from "./state";

/** A place that an analysis names is to be so many pixels wide at least. */
const PLACE_PIXELS = 24;

export abstract class Navigation extends OpenFile {
  page: string;
  /** Whether the address or the user named the page; otherwise the next file's content does. */
  protected pageIsChosen: boolean;
  /** Id of the session that is looked at among others. */
  session: string | undefined;
  /** Name of the analysis that is shown. */
  analysis: string | undefined;
  /** Field of the summary's table that is shown. */
  table: string | undefined;
  /** What a link asks the analysis with. */
  parameters: Readonly<Record<string, string>>;
  search: string;
  /** What is wrong with the regular expression that is searched for. */
  searchProblem: string | undefined;
  /** The place by length among the events of its name that a walk led to. */
  ranked: { readonly event: EventDetails; readonly rank: number; readonly count: number } | undefined;
  protected goal: Goal | undefined;
  protected readonly bar = new AddressBar(history, () => this.address());

  /** `page` is the one that is shown where the address names none. */
  constructor(initial: Address, page: string) {
    super(initial);
    this.page = initial.page ?? page;
    this.pageIsChosen = initial.page !== undefined || landingPage(initial) === "timeline";
    this.session = initial.session;
    this.analysis = initial.analysis;
    this.table = initial.table;
    this.parameters = initial.parameters;
    this.search = initial.search;
  }

  async select(ref: EventRef | undefined): Promise<void> {
    if (!ref) {
      this.selected = undefined;
      this.flow = undefined;
      this.bar.update();
      this.changed();
      return;
    }
    try {
      const selected = await this.engine.call("event", ref);
      this.selected = selected;
      this.flow = undefined;
      this.announcement = `${shortName(selected.text)}, ${this.rowTitle(selected.row)}${this.isBefore(selected.category) ? ", before the window" : ""}`;
      this.bar.update();
      this.changed();
      void this.findFlow(selected);
    } catch (error) {
      this.report(error);
    }
  }

  /** Finds what belongs to the selected event. */
  private async findFlow(selected: EventDetails): Promise<void> {
    try {
      const flow = await this.engine.call("flow", selected);
      if (this.selected === selected) {
        this.flow = flow;
        this.changed();
      }
    } catch (error) {
      this.report(error);
    }
  }

  async choose(area: Area | undefined): Promise<void> {
    this.area = area;
    this.areaStats = undefined;
    this.bar.update();
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
    this.searchProblem = patternProblem(text);
    this.bar.update();
    if (text === "" || this.searchProblem !== undefined) {
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
        // The way back leads to where the search began, not over each of its hits.
        if (!this.hit) {
          this.bar.leave();
        }
        this.hit = found;
        this.turnTo(found);
        await this.select(found);
      } else {
        this.announcement = "no event matches";
        this.changed();
      }
    } catch (error) {
      this.report(error);
    }
  }

  /** Goes to the event of the selected one's name that is next longer, or next shorter. */
  async stepByLength(longer: boolean): Promise<void> {
    const from = this.selected;
    if (!from) {
      return;
    }
    try {
      const found = await this.engine.call("besideByLength", from, longer);
      if (!found || this.selected !== from) {
        return;
      }
      const { place, rank, count } = found;
      if (place) {
        // The way back leads to where the walk began, not over each of its events.
        if (this.ranked?.event !== from) {
          this.bar.leave();
        }
        this.turnTo(place);
        await this.select(place);
      }
      this.ranked = this.selected && { event: this.selected, rank, count };
      this.say(place ? `${rank} of ${count} by length` : `This is the ${longer ? "longest" : "shortest"} of ${count}`);
    } catch (error) {
      this.report(error);
    }
  }

  /** Goes to an event; from a time that leads there, at the same scale. */
  private async goTo(place: EventPlace, followed?: Mark): Promise<void> {
    this.bar.leave();
    this.turnTo(place, followed);
    await this.select(place);
  }

  /** Follows a flow from the selected event to `place`, and selects that. */
  async follow(place: EventPlace): Promise<void> {
    const { selected } = this;
    await this.goTo(place, selected && { from: selected.start, to: selected.start + selected.duration });
  }

  /**
   * Leads from a time in which a GPU did nothing to what it waited for. Where that is not known the time becomes the area, and
   * the analysis of idle time is shown. `isWanted` says whether that is still wanted when the cause is found.
   */
  async explain(idle: IdleTime, isWanted: () => boolean): Promise<void> {
    const { row, from, to } = idle;
    try {
      const cause = await this.engine.call("idleCause", { row, from, to });
      if (!isWanted()) {
        return;
      }
      if (cause?.place) {
        await this.goTo(cause.place, { from, to });
        return;
      }
      const chosen = this.choose({ from, to, rows: [row] });
      if (this.url !== undefined && listUrl(this.url) !== undefined) {
        this.chooseAnalysis("idle");
      }
      await chosen;
    } catch (error) {
      this.report(error);
    }
  }

  /** Shows an event in the timeline. */
  private turnTo(place: EventPlace, followed?: Mark): void {
    this.choosePage("timeline");
    this.area = undefined;
    this.areaStats = undefined;
    this.goal = { from: place.start, to: place.start + place.duration, row: place.row, ...(followed && { followed }) };
    this.altered();
  }

  /** Shows a place that an analysis names, and chooses its span: of its row, or of all. */
  async goToPlace({ start_ns: from, end_ns: end, row }: PagePlace): Promise<void> {
    const to = Math.max(end, from + 1);
    this.bar.leave();
    this.choosePage("timeline");
    this.goal = { from, to, row: row ?? undefined, leastPixels: PLACE_PIXELS };
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

  /** Goes to the first event of a name, or to the first that has a value too; whether there is one. */
  async goToName(category: number, text: string, value?: EventValue): Promise<boolean> {
    try {
      const place = await this.engine.call("instanceOf", category, text, value);
      if (place) {
        await this.goTo(place);
      }
      return place !== undefined;
    } catch (error) {
      this.report(error);
      return true;
    }
  }

  /** Goes to an event, and selects it. */
  async goToEvent(ref: EventRef): Promise<void> {
    try {
      await this.goTo(await this.engine.call("event", ref));
    } catch (error) {
      this.report(error);
    }
  }

  show(page: string): void {
    if (page !== this.page) {
      this.bar.leave();
    }
    this.choosePage(page);
    this.altered();
  }

  private choosePage(page: string): void {
    this.page = page;
    this.pageIsChosen = true;
  }

  /** Looks at a session among others. */
  chooseSession(id: string | undefined): void {
    if (id !== this.session) {
      this.bar.leave();
    }
    this.session = id;
    this.altered();
  }

  /** Shows another table of the summary. */
  chooseTable(field: string): void {
    this.table = field;
    this.altered();
  }

  /** Shows another analysis, asked with `parameters`. */
  chooseAnalysis(name: string, parameters: Readonly<Record<string, string>> = {}): void {
    if (this.page !== "analyses" || name !== this.analysis) {
      this.bar.leave();
    }
    this.choosePage("analyses");
    this.analysis = name;
    this.parameters = parameters;
    this.altered();
  }

  /** Chooses what the open capture is compared with. */
  chooseOthers(others: readonly string[]): void {
    this.others = others;
    this.altered();
  }

  /** Keeps what is seen for the address; nothing is drawn for it. */
  see(viewport: Mark): void {
    // What is drawn while another file is opened is the last of the one before.
    if (this.status.kind === "open") {
      this.viewport = viewport;
      this.bar.update();
    }
  }

  /** A link to what is seen now; undefined for a file of this machine, which has no address. */
  linkToHere(): string | undefined {
    this.bar.write();
    return this.query === "" ? undefined : location.href;
  }

  protected override altered(): void {
    this.bar.update();
    this.changed();
  }

  /** The address of what is seen now. */
  protected address(): string {
    const hash = hashOf({
      page: this.page,
      session: this.session,
      analysis: this.page === "analyses" ? this.analysis : undefined,
      table: this.page === "tables" ? this.table : undefined,
      parameters: this.page === "analyses" ? this.parameters : {},
      others: this.page === "analyses" ? this.others : [],
      from: this.viewport?.from,
      to: this.viewport?.to,
      selected: this.selected && { category: this.keyOf(this.selected.category), index: this.selected.index },
      search: this.search,
      area: this.area,
      ...this.linked,
    });
    return location.pathname + this.query + hash;
  }
}
