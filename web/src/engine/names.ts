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

/** A test of names: plain text in any case, or a regular expression between slashes; text that is none matches as it is. */
export function matcher(query: string): (name: string) => boolean {
  const expression = /^\/(.+)\/(i?)$/.exec(query);
  if (expression?.[1]) {
    try {
      const test = new RegExp(expression[1], expression[2]);
      return (name) => test.test(name);
    } catch {
      // Half-typed expressions are searched for as text.
    }
  }
  const wanted = query.toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}
