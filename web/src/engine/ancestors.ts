/** What an event happened in: the ranges, operators and functions of its thread that enclose it. */

import type { Row } from "../timeline/header";
import { chunksWithin } from "../timeline/tiles";
import { firstEndingAfter } from "./block";
import type { EventPlace } from "./protocol";
import type { Session } from "./session";

/** Categories whose events enclose others, in the order in which they do where they are as long. */
const ENCLOSING = ["step", "annotation", "nvtx_range", "python_function", "cpu_op", "cudnn_api", "cublas_api", "cuda_api"];

/** More chunks of a category are not looked through: those that are nearest are. */
const MAX_CHUNKS = 64;

/** The events that enclose one of the same thread, from the outermost to the innermost. */
export async function ancestorsOf(session: Session, event: EventPlace): Promise<EventPlace[]> {
  const { rows } = session.file.header;
  const own = rows[event.row];
  if (own?.thread === undefined) {
    return [];
  }
  const end = event.start + event.duration;
  const found: EventPlace[] = [];
  for (const [category, { name, tiles }] of session.file.categories.entries()) {
    const chunks = ENCLOSING.includes(name) ? chunksWithin(tiles, event.start, event.start).slice(-MAX_CHUNKS) : [];
    for (const chunk of chunks) {
      const [block] = await session.blocks.get(category, [chunk]);
      for (const { row, lane, members } of block?.lanes ?? []) {
        // Of a lane one event at most runs at a time.
        const at = block && isSameThread(own, rows[row]) ? members[firstEndingAfter(block, members, event.start)] : undefined;
        if (!block || at === undefined) {
          continue;
        }
        const start = block.start[at] as number;
        const duration = block.duration[at] as number;
        const index = block.first + at;
        const isDeeper = row === event.row && lane >= event.lane;
        if (start <= event.start && start + duration >= end && !isDeeper) {
          found.push({ category, index, start, duration, row, lane, name: block.name[at] as number });
        }
      }
    }
  }
  const rank = ({ category }: EventPlace) => ENCLOSING.indexOf(session.category(category).name);
  return found.sort((a, b) => b.duration - a.duration || rank(a) - rank(b) || a.lane - b.lane);
}

/** Whether two rows are of one thread. */
export function isSameThread(one: Row, other: Row | undefined): boolean {
  return other !== undefined && one.capture === other.capture && one.machine === other.machine && one.process === other.process && one.thread === other.thread;
}
