/** Search: which names match, how their events are spread, and the next one from a time on. */

import { chunksWithin } from "../timeline/tiles";
import { shortName } from "../view/names";
import { lowerBound } from "./draw";
import { matcher } from "./names";
import { type EventPlace, type EventValue, type Hits, STRIP } from "./protocol";
import type { Session, Stale } from "./session";

/** More events are not counted one by one. */
const MOST_COUNTED = 4_000_000;

export class Finder {
  private names: readonly Uint8Array[] = [];

  constructor(private readonly session: Session) {}

  async search(text: string, stale: Stale): Promise<Hits | undefined> {
    const matchesText = matcher(text);
    // What is shown is found, too.
    const matches = (name: string) => matchesText(name) || matchesText(shortName(name));
    const lists = await Promise.all(this.session.file.categories.map((category) => category.names()));
    this.names = lists.map((list) => Uint8Array.from(list, (name) => (text !== "" && matches(name) ? 1 : 0)));
    const matchingNames = this.names.reduce((sum, flags) => sum + count(flags), 0);
    const strip = new Uint32Array(STRIP);
    const wanted = this.categories();
    const sum = wanted.reduce((sum, at) => sum + (this.session.file.categories[at]?.count ?? 0), 0);
    if (sum > MOST_COUNTED) {
      return { names: this.names, matchingNames, events: undefined, strip };
    }
    let events = 0;
    const [begin, end] = this.session.file.header.extent;
    const width = Math.max(1, end - begin) / STRIP;
    for (const category of wanted) {
      const flags = this.names[category] as Uint8Array;
      const chunks = this.session.category(category).tiles.first.length;
      for (let chunk = 0; chunk < chunks; chunk += 1) {
        const [block] = await this.session.blocks.get(category, [chunk]);
        if (stale()) {
          return undefined;
        }
        for (let at = 0; block && at < block.start.length; at += 1) {
          if (flags[block.name[at] as number] === 1) {
            events += 1;
            const bin = Math.min(STRIP - 1, Math.floor(((block.start[at] as number) - begin) / width));
            strip[bin] = (strip[bin] as number) + 1;
          }
        }
      }
    }
    return { names: this.names, matchingNames, events, strip };
  }

  /** The matching event that starts next after `from`, or after `time` where there is no such event yet; or the one before. */
  async next(from: EventPlace | undefined, time: number, forward: boolean): Promise<EventPlace | undefined> {
    const start = from?.start ?? time;
    let best: EventPlace | undefined;
    for (const category of this.categories()) {
      const found = await this.nextIn(category, from, start, forward, best?.start);
      if (found && (!best || (forward ? before(found, best) : before(best, found)))) {
        best = found;
      }
    }
    return best;
  }

  /** The first event of a name; with a value, the first that has it. */
  async instanceOf(category: number, text: string, value: EventValue | undefined): Promise<EventPlace | undefined> {
    const name = (await this.session.category(category).names()).indexOf(text);
    const chunks = name < 0 ? 0 : this.session.category(category).tiles.first.length;
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      const [block] = await this.session.blocks.get(category, [chunk]);
      if (!block?.name.includes(name)) {
        continue;
      }
      const values = value?.column === "bytes" ? await this.session.column(category, chunk, "bytes") : block.duration;
      for (let at = 0; at < block.name.length; at += 1) {
        if (block.name[at] === name && (!value || values?.[at] === value.value)) {
          return this.session.place({ category, index: block.first + at });
        }
      }
    }
    return undefined;
  }

  private categories(): number[] {
    return this.names.flatMap((flags, at) => (flags.includes(1) ? [at] : []));
  }

  private async nextIn(
    category: number,
    from: EventPlace | undefined,
    start: number,
    forward: boolean,
    limit: number | undefined,
  ): Promise<EventPlace | undefined> {
    const { tiles } = this.session.category(category);
    const flags = this.names[category] as Uint8Array;
    const chunks = forward ? chunksWithin(tiles, start, Number.MAX_SAFE_INTEGER) : chunksWithin(tiles, Number.MIN_SAFE_INTEGER, start).reverse();
    for (const chunk of chunks) {
      // Nothing from here on can be nearer than what another category has.
      if (forward && limit !== undefined && (tiles.tMin[chunk] as number) > limit) {
        return undefined;
      }
      const [block] = await this.session.blocks.get(category, [chunk]);
      if (!block) {
        continue;
      }
      const place = (at: number) => this.session.place({ category, index: block.first + at });
      const follows = (at: number): boolean => {
        const key = { start: block.start[at] as number, category, index: block.first + at };
        if (!from) {
          return forward ? key.start >= start : key.start <= start;
        }
        return forward ? before(from, key) : before(key, from);
      };
      if (forward) {
        for (let at = lowerBound(block.start, start); at < block.start.length; at += 1) {
          if (flags[block.name[at] as number] === 1 && follows(at)) {
            return place(at);
          }
        }
      } else {
        for (let at = lowerBound(block.start, start + 1) - 1; at >= 0; at -= 1) {
          if (flags[block.name[at] as number] === 1 && follows(at)) {
            return place(at);
          }
        }
      }
    }
    return undefined;
  }
}

interface Key {
  readonly start: number;
  readonly category: number;
  readonly index: number;
}

/** Whether `a` comes before `b`: by start, then category, then place. */
function before(a: Key, b: Key): boolean {
  return a.start - b.start < 0 || (a.start === b.start && (a.category - b.category < 0 || (a.category === b.category && a.index < b.index)));
}

function count(flags: Uint8Array): number {
  return flags.reduce((sum, flag) => sum + flag, 0);
}
