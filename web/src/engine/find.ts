/** Search: which names match, how their events are spread, and the next one from a time on. */

import { chunkOf, chunksWithin } from "../timeline/tiles";
import { shortName } from "../view/names";
import { lowerBound } from "./draw";
import { matcher } from "./names";
import { type EventPlace, type EventValue, type Hit, type Hits, STRIP } from "./protocol";
import type { Session, Stale } from "./session";

/** More events are not counted one by one. */
const MOST_COUNTED = 4_000_000;

export class Finder {
  private names: readonly Uint8Array[] = [];
  /** How many events match in each chunk of the categories that have any; undefined where they were too many to count. */
  private counts: ReadonlyMap<number, Uint32Array> | undefined;

  constructor(private readonly session: Session) {}

  async search(text: string, stale: Stale): Promise<Hits | undefined> {
    const matchesText = matcher(text);
    // What is shown is found, too.
    const matches = (name: string) => matchesText(name) || matchesText(shortName(name));
    const lists = await Promise.all(this.session.file.categories.map((category) => category.names()));
    const names = lists.map((list) => Uint8Array.from(list, (name) => (text !== "" && matches(name) ? 1 : 0)));
    this.names = names;
    this.counts = undefined;
    const matchingNames = names.reduce((sum, flags) => sum + count(flags), 0);
    const strip = new Uint32Array(STRIP);
    const wanted = this.categories();
    const sum = wanted.reduce((sum, at) => sum + (this.session.file.categories[at]?.count ?? 0), 0);
    if (sum > MOST_COUNTED) {
      return { names, matchingNames, events: undefined, strip };
    }
    const counts = new Map<number, Uint32Array>();
    let events = 0;
    const [begin, end] = this.session.file.header.extent;
    const width = Math.max(1, end - begin) / STRIP;
    for (const category of wanted) {
      const flags = names[category] as Uint8Array;
      const chunks = this.session.category(category).tiles.first.length;
      const ofChunks = new Uint32Array(chunks);
      counts.set(category, ofChunks);
      for (let chunk = 0; chunk < chunks; chunk += 1) {
        const [block] = await this.session.blocks.get(category, [chunk]);
        if (stale()) {
          return undefined;
        }
        for (let at = 0; block && at < block.start.length; at += 1) {
          if (flags[block.name[at] as number] === 1) {
            events += 1;
            ofChunks[chunk] = (ofChunks[chunk] as number) + 1;
            const bin = Math.min(STRIP - 1, Math.floor(((block.start[at] as number) - begin) / width));
            strip[bin] = (strip[bin] as number) + 1;
          }
        }
      }
    }
    if (this.names === names) {
      this.counts = counts;
    }
    return { names, matchingNames, events, strip };
  }

  /** The matching event that starts next after `from`, or after `time` where there is no such event yet; or the one before. */
  async next(from: EventPlace | undefined, time: number, forward: boolean): Promise<Hit | undefined> {
    const start = from?.start ?? time;
    let best: EventPlace | undefined;
    for (const category of this.categories()) {
      const found = await this.nextIn(category, from, start, forward, best?.start);
      if (found && (!best || (forward ? before(found, best) : before(best, found)))) {
        best = found;
      }
    }
    return best && { ...best, rank: await this.rank(best) };
  }

  /** The place of a matching event among all that match, from 1 on; undefined where they were too many to count. */
  private async rank(event: EventPlace): Promise<number | undefined> {
    const { counts, names } = this;
    if (!counts) {
      return undefined;
    }
    let rank = 1;
    for (const [category, ofChunks] of counts) {
      const { tiles } = this.session.category(category);
      const isOwn = category === event.category;
      // Times are whole ns. Of events that start together those of an earlier category come first.
      const until = category < event.category ? event.start + 1 : event.start;
      const last = isOwn ? chunkOf(tiles, event.index) : tiles.tMin.findLastIndex((time) => time < until);
      if (last < 0) {
        continue;
      }
      rank += ofChunks.subarray(0, last).reduce((sum, one) => sum + one, 0);
      const [block] = await this.session.blocks.get(category, [last]);
      const flags = names[category];
      const end = block ? (isOwn ? event.index - block.first : lowerBound(block.start, until)) : 0;
      for (let at = 0; block && flags && at < end; at += 1) {
        rank += flags[block.name[at] as number] as number;
      }
    }
    return rank;
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
