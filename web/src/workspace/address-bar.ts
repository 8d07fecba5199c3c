/** The address bar with the browser's history: each place that was gone to has an entry, and the newest follows what is seen. */

/** The address follows what is seen after so long a rest, ms: browsers refuse to have it set much more often. */
const UPDATE_INTERVAL = 200;

/** State of the entries that the viewer wrote; that of a link that the user pasted is null. */
const WRITTEN = "written";

export class AddressBar {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private leaving = false;
  private written: string | undefined;

  /** `address` tells the address of what is seen now. */
  constructor(
    private readonly entries: Pick<History, "pushState" | "replaceState">,
    private readonly address: () => string,
  ) {}

  /** Has the address follow what is seen: soon, and behind a jump at once, for Back may be next. */
  update(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), this.leaving ? 0 : UPDATE_INTERVAL);
  }

  /** Keeps an entry of what is seen now: what is seen next has its own. */
  leave(): void {
    this.write();
    this.leaving = true;
  }

  /** Takes over an entry that the user went to by Back, Forward or a link. */
  arrive(address: string): void {
    clearTimeout(this.timer);
    this.leaving = false;
    this.written = address;
  }

  /** Writes the address of what is seen now. */
  write(): void {
    clearTimeout(this.timer);
    const address = this.address();
    if (this.leaving && address !== this.written) {
      this.leaving = false;
      this.entries.pushState(WRITTEN, "", address);
    } else {
      this.entries.replaceState(WRITTEN, "", address);
    }
    this.written = address;
  }
}
