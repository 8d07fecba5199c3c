/** Decoded chunks, kept while there is room. */

import type { CategoryData } from "../timeline/file";
import { type Block, blockOf, DRAWN } from "./block";

/** Events that are kept decoded; some 22 bytes each. */
const MOST_EVENTS = 4_000_000;

/** Blocks by category and chunk; what was used longest ago goes first. */
export class Blocks {
  private readonly kept = new Map<string, Promise<Block>>();
  private readonly ready = new Set<string>();
  private events = 0;

  constructor(private categories: readonly CategoryData[]) {}

  /** Takes a list that begins with the categories that there are; what is kept of them stays. */
  extend(categories: readonly CategoryData[]): void {
    this.categories = categories;
  }

  has(category: number, chunk: number): boolean {
    return this.ready.has(`${category}/${chunk}`);
  }

  /** The blocks of `chunks`, in their order. What is missing is fetched together. */
  async get(category: number, chunks: readonly number[]): Promise<Block[]> {
    const data = this.categories[category];
    if (!data) {
      throw new Error(`there is no category ${category}`);
    }
    const missing = chunks.filter((chunk) => !this.kept.has(`${category}/${chunk}`));
    if (missing.length > 0) {
      const columns = data.read(missing, DRAWN);
      missing.forEach((chunk, at) => {
        const key = `${category}/${chunk}`;
        const count = data.tiles.count[chunk] ?? 0;
        const block = columns.then((all) => blockOf(data.tiles.first[chunk] ?? 0, all[at] ?? new Map()));
        this.kept.set(key, block);
        this.events += count;
        block.then(
          () => this.ready.add(key),
          () => this.forget(key, count),
        );
      });
    }
    const wanted = chunks.map((chunk) => this.touch(`${category}/${chunk}`));
    const found = await Promise.all(wanted);
    this.shrink();
    return found.filter((block) => block !== undefined);
  }

  private touch(key: string): Promise<Block> | undefined {
    const block = this.kept.get(key);
    if (block) {
      this.kept.delete(key);
      this.kept.set(key, block);
    }
    return block;
  }

  private shrink(): void {
    for (const key of this.kept.keys()) {
      if (this.events <= MOST_EVENTS) {
        return;
      }
      const [category, chunk] = key.split("/").map(Number);
      this.forget(key, this.categories[category ?? 0]?.tiles.count[chunk ?? 0] ?? 0);
    }
  }

  private forget(key: string, count: number): void {
    if (this.kept.delete(key)) {
      this.ready.delete(key);
      this.events -= count;
    }
  }
}
