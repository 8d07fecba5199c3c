/** How much came in, and how much of what is asked for is on its way. */

/** Bytes that a request is to bring. */
export interface Expected {
  came(count: number): void;
  /** An answer came whole. */
  answered(): void;
  /** The request ended, with all of its bytes or, where it failed, with fewer. */
  end(): void;
}

/** Measures the time in which at least one of something is under way. */
export class Clock {
  private running = 0;
  private since = 0;
  private sum = 0;

  start(): void {
    this.since = this.running === 0 ? performance.now() : this.since;
    this.running += 1;
  }

  stop(): void {
    this.running -= 1;
    this.sum += this.running === 0 ? performance.now() - this.since : 0;
  }

  get ms(): number {
    return this.sum;
  }
}

/** Counts the bytes of a file's requests; `onChange` is called after each change. */
export class Meter {
  /** Bytes that came in. */
  bytes = 0;
  /** Answers that came whole. */
  requests = 0;
  /** The time in which requests were under way. */
  readonly clock = new Clock();
  private asked = 0;
  /** What had come in when nothing was on its way the last time. */
  private base = 0;

  constructor(private readonly onChange: () => void = () => {}) {}

  /** A request for so many bytes began. */
  expect(length: number): Expected {
    if (this.bytes >= this.asked) {
      this.base = this.bytes;
      this.asked = this.bytes;
    }
    this.asked += length;
    this.clock.start();
    this.onChange();
    let own = 0;
    let ended = false;
    return {
      came: (count) => {
        own += count;
        this.bytes += count;
        this.onChange();
      },
      answered: () => {
        this.requests += 1;
        this.onChange();
      },
      end: () => {
        if (!ended) {
          ended = true;
          this.clock.stop();
          this.asked += own - length;
          this.onChange();
        }
      },
    };
  }

  /** Bytes that are asked for and not there. */
  get missing(): number {
    return Math.max(0, this.asked - this.bytes);
  }

  /** The part that is there of what was asked for since nothing was on its way, from 0 to 1. */
  get share(): number {
    const whole = this.asked - this.base;
    return whole > 0 ? Math.min(1, (this.bytes - this.base) / whole) : 1;
  }
}
