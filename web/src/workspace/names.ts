/** Names by their numbers over all categories. */

/** The number of each category's first name. */
export function firstNumbers(lists: readonly (readonly string[])[]): number[] {
  let first = 0;
  return lists.map((list) => {
    const own = first;
    first += list.length;
    return own;
  });
}

/** The text of the name of a number; undefined where it is not read yet. */
export function nameOf(lists: readonly (readonly string[])[], firsts: readonly number[], number: number): string | undefined {
  const category = firsts.findLastIndex((first) => first <= number);
  return lists[category]?.[number - (firsts[category] ?? 0)];
}

/** Flags of each category's names as one list. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
