/** How busy the GPUs are from the first event to the last: what the strip above the axis shows. */

import { INSTANCE_BYTES } from "./instances";
import { STRIP, type View } from "./protocol";
import type { Session } from "./session";

const WORDS = INSTANCE_BYTES / 4;

/** Time of GPU work in each part of the strip, summed over rows, as a share of the busiest part's; of all events where there is no GPU work. */
export async function densityOf(session: Session): Promise<Float32Array> {
  const [begin, end] = session.file.header.extent;
  const width = Math.max(1, end - begin) / STRIP;
  const view = await session.view({ from: begin, to: end, nsPerPixel: width, named: false }, () => false);
  const isGpuWork = (category: number) => session.isGpuWork(category);
  const categories = session.file.categories.map((_, at) => at);
  const wanted = categories.filter((at) => isGpuWork(at) && session.category(at).count > 0);
  return view ? sharesOf(view, begin, width, new Set(wanted.length > 0 ? wanted : categories)) : new Float32Array(STRIP);
}

/** The shares of a view's rectangles of `categories`, in parts of `width` ns from `begin` on. */
export function sharesOf(view: Pick<View, "from" | "instances" | "runs">, begin: number, width: number, categories: ReadonlySet<number>): Float32Array {
  const floats = new Float32Array(view.instances);
  const words = new Uint32Array(view.instances);
  const sums = new Float32Array(STRIP);
  for (const { category, first, count } of view.runs) {
    for (let at = first; categories.has(category) && at < first + count; at += 1) {
      const from = (view.from + (floats[at * WORDS] as number) - begin) / width;
      const to = (view.from + (floats[at * WORDS + 1] as number) - begin) / width;
      const level = (((words[at * WORDS + 4] as number) >>> 16) & 0xff) / 255;
      for (let part = Math.max(0, Math.floor(from)); part < Math.min(STRIP, to); part += 1) {
        sums[part] = (sums[part] as number) + level * (Math.min(to, part + 1) - Math.max(from, part));
      }
    }
  }
  const most = sums.reduce((most, sum) => Math.max(most, sum), 0);
  return most > 0 ? sums.map((sum) => sum / most) : sums;
}
