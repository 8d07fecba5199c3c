/** Names and their colours. */

/** How many colours names have. */
export const SLOTS = 32;

/** The colour of each name: the same name has the same colour in every capture. */
export function slotsOf(names: readonly string[]): Uint8Array {
  return Uint8Array.from(names, (name) => hash(stem(name)) % SLOTS);
}

/** A name without what differs from call to call: its numbers. */
export function stem(name: string): string {
  return name.replace(/\d+/g, "#");
}

/** A hash of 32 bits (FNV-1a). */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  }
  // The low bits alone are weak.
  return (value ^ (value >>> 15)) >>> 0;
}

/** The regular expression that a query has between slashes; undefined for plain text. Throws where it is none. */
function expressionOf(query: string): RegExp | undefined {
  const found = /^\/(.+)\/(i?)$/.exec(query);
  return found?.[1] === undefined ? undefined : new RegExp(found[1], found[2]);
}

/** What is wrong with the regular expression of a query; undefined where nothing is. */
export function patternProblem(query: string): string | undefined {
  try {
    expressionOf(query);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A test of names: plain text in any case, or a regular expression between slashes. */
export function matcher(query: string): (name: string) => boolean {
  const expression = expressionOf(query);
  if (expression) {
    return (name) => expression.test(name);
  }
  const wanted = query.toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}
