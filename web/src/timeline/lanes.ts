/** Lanes for files that bring none: events of a row that overlap are drawn side by side. */

/** The lane of each event; events are sorted by start. The lowest lane that is free is taken, so nested ranges go downwards. */
export function assignLanes(start: Float64Array, duration: Float64Array, row: Uint32Array): Uint16Array {
  const lane = new Uint16Array(start.length);
  const ends = new Map<number, number[]>();
  for (let at = 0; at < start.length; at += 1) {
    const begin = start[at] as number;
    const free = ends.get(row[at] as number) ?? [];
    ends.set(row[at] as number, free);
    let found = free.findIndex((end) => end <= begin);
    if (found < 0) {
      found = Math.min(free.length, 0xffff);
    }
    free[found] = begin + (duration[at] as number);
    lane[at] = found;
  }
  return lane;
}
