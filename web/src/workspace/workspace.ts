/** The open file and what the user chose: shared by all pages. */

import { emptyShelf } from "../bytes/shelf";
import { ForeignFile } from "../engine/client";
import type { Place } from "../engine/protocol";
import type { Gateway } from "../gateway/client";
import type { PageDocument } from "../generated/catalogue";
import type { Header } from "../timeline/header";
import { duration, TIME_FORMATS } from "../view/format";
import { type Address, landingPage } from "./address";
import { Captures, type HeldCapture, urlOf } from "./captures";
import { firstPage, fits } from "./first-page";
import { firstNumbers } from "./names";
import { Navigation } from "./navigation";
import { message, spanOf } from "./open-file";
import { goalBefore, listUrl, preludeOf } from "./prelude";
import { nameOfUrl } from "./title";

/** Pixels of the rows' names beside the tracks; see `--labels` in style.css. */
const LABELS_WIDTH = 260;

export class Workspace extends Navigation {
  /** What the program of this machine holds that serves this page. */
  readonly captures = new Captures();
  /** The opening whose prelude was looked for. */
  private looked = 0;
  private naming: Promise<void> = Promise.resolve();
  /** Ends the conversion of a file that was dropped. */
  private converting: AbortController | undefined;
  /** The file that is shown until another one is open, as it was. */
  private before: { readonly looked: boolean; readonly state: object } | undefined;
  /** What the address says of the file that is opened; undefined for one that no address named. */
  private link: Address | undefined;

  /** `gateway` is the one that serves this page, if one does. */
  constructor(
    initial: Address,
    readonly gateway?: Gateway,
  ) {
    super(initial, gateway && initial.file === undefined ? "sessions" : landingPage(initial));
    this.link = initial;
    gateway?.watch(() => {
      // What could not be read before one signed in.
      if (gateway.state === "in" && this.status.kind === "failed" && this.place) {
        this.opening = 0;
        void this.open(this.place);
      }
      this.changed();
    });
    this.captures.watch(() => this.changed());
  }

  /** Opens a file. One of this machine that is no timeline is converted, where that is done; it is then called as it was. */
  async open(place: Place, what = "url" in place ? place.url : place.file.name, prelude?: File, link?: Address): Promise<void> {
    this.converting?.abort();
    if (this.status.kind === "open") {
      this.before = { looked: this.looked === this.opening, state: this.stateOfFile() };
      if (!link) {
        this.bar.leave();
      }
    }
    this.problem = undefined;
    this.opening += 1;
    this.place = place;
    this.given = prelude;
    if (this.opening > 1) {
      // What the address says is of the file that it names.
      this.link = link;
      this.viewport = spanOf(link);
      this.others = link?.others ?? [];
    }
    if ("file" in place) {
      // A link leads nowhere else than to what is seen.
      this.query = "";
    } else if (link) {
      this.query = location.search;
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
      this.arrangeAs(this.link);
      this.status = { kind: "open", what };
      this.before = undefined;
      this.showFirstPage(header);
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

  /** Shows the page that was chosen, where it has anything of the file, else the one that the file's content tells. */
  private showFirstPage(header: Header): void {
    const isKept = this.pageIsChosen && (this.opening === 1 || fits(this.page, header));
    if (!isKept) {
      const { page, analysis } = firstPage(header, this.url !== undefined && listUrl(this.url) !== undefined);
      this.page = page;
      this.pageIsChosen = false;
      this.analysis = analysis ?? this.analysis;
    }
    if (!isKept || this.opening > 1) {
      this.bar.update();
    }
  }

  /** What the open file is called: as it came, else by its address. */
  get fileName(): string {
    const { status, url } = this;
    const what = "what" in status ? status.what : "";
    if (url === undefined || what !== url) {
      return what;
    }
    return this.captures.nameAt(url) ?? nameOfUrl(url, this.header?.sessionId ?? "");
  }

  /** Compares the open capture, as the one before, with another. */
  compareWith({ capture }: HeldCapture): void {
    // A profile of memory has no events that could be compared.
    const ofMemory = this.header && firstPage(this.header, true).analysis === "memory-profile";
    this.others = [capture];
    this.chooseAnalysis(ofMemory ? "memory-profile-changes" : "compare");
  }

  /** Leaves the gateway's pages for the one of the next file. */
  leaveGateway(): void {
    this.page = "overview";
    this.pageIsChosen = false;
    this.changed();
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
      const { convert } = await import("./dropped");
      const made = await convert(file, why, told, controller.signal);
      if (opening !== this.opening) {
        return;
      }
      if ("dashboard" in made) {
        this.status = { kind: "dashboard", what, file, document: made.dashboard };
        this.before = undefined;
        this.bar.update();
        this.changed();
        return;
      }
      const url = urlOf(made.capture.path);
      this.query = `?${new URLSearchParams({ file: new URL(url).pathname })}`;
      void this.captures.look();
      await this.open({ url }, what, this.given);
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

  /** Tells that a file cannot be shown. The one that was open is shown again. */
  private fail(what: string, error: unknown): void {
    const { before } = this;
    if (!before) {
      this.status = { kind: "failed", what, why: message(error) };
      this.changed();
      return;
    }
    this.before = undefined;
    Object.assign(this, before.state);
    if (before.looked) {
      // The prelude is there, or there is none.
      this.looked = this.opening;
    }
    this.report(new Error(`${what} cannot be shown: ${message(error)}`));
    this.bar.arrive(this.address());
    this.bar.update();
    if (this.shown) {
      // It may not have had all of them yet.
      this.naming = this.loadNames(this.shown, this.opening);
    }
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
      this.goal = this.link && goalBefore(this.link, added.both.durationNs);
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

  private async loadNames(header: Header, opening: number): Promise<void> {
    const known = this.names.length;
    const names = await Promise.all(header.categories.slice(known).map((_, at) => this.engine.call("names", known + at)));
    if (opening !== this.opening) {
      return;
    }
    this.names = [...this.names, ...names];
    this.firstNames = firstNumbers(this.names);
    await this.chooseLinked(known);
    if (this.search !== "") {
      await this.find(this.search);
    }
    this.changed();
  }

  /** Selects the event and the area that the link names, where they are of the categories from `known` on, or of their rows. */
  private async chooseLinked(known: number): Promise<void> {
    const { header, shown, link } = this;
    const [selected, area] = [link?.selected, link?.area];
    const category = shown?.categories.findIndex((_, at) => this.keyOf(at) === selected?.category) ?? -1;
    if (selected && category >= known && !this.selected) {
      await this.select({ category, index: selected.index });
    }
    const last = Math.max(...(area?.rows ?? []));
    const added = known === 0 || last >= (header?.rows.length ?? 0);
    if (area && added && last < (shown?.rows.length ?? 0) && !this.area) {
      void this.choose(area);
    }
  }

  /** Shows what the address says, which changed: by Back or Forward, or by a link, which says how all looks too. */
  async arrive(address: Address, isLink: boolean): Promise<void> {
    this.bar.arrive(location.pathname + location.search + location.hash);
    if (address.file === undefined && location.search !== this.query) {
      this.report(new Error("The file that was open here has no address, since it is of this machine: open it again."));
      return;
    }
    this.page = address.page ?? this.page;
    this.session = address.session;
    this.analysis = address.analysis ?? this.analysis;
    this.table = address.table ?? this.table;
    this.parameters = address.parameters;
    if (this.page === "analyses") {
      this.others = address.others;
    }
    if (isLink) {
      this.search = address.search;
      this.colorAs(address);
    }
    if (address.file !== undefined && location.search !== this.query) {
      await this.open({ url: new URL(address.file, location.href).href }, undefined, undefined, address);
      return;
    }
    if (isLink) {
      this.arrangeAs(address);
    }
    const span = spanOf(address);
    this.viewport = span ?? this.viewport;
    this.goal = span && { ...span, row: undefined, fills: true };
    this.deselect();
    this.link = address;
    this.changed();
    await this.chooseLinked(0);
    this.goal = span && { ...span, row: this.selected?.row, fills: true };
    this.changed();
    if (isLink) {
      await this.find(address.search);
    }
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

  nextTimeFormat(): void {
    const formats = TIME_FORMATS.filter((format) => format !== "utc" || this.header?.startUtcNs !== undefined);
    this.timeFormat = formats[(formats.indexOf(this.timeFormat) + 1) % formats.length] ?? "auto";
    this.altered();
  }
}
