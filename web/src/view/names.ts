/** Short names of functions: those of C++ kernels without return type, arguments and namespaces. */

/** More short names are not kept. */
const MAX_KEPT = 50_000;

const kept = new Map<string, string>();

/**
 * The short name of a demangled function: `gemm<float, 4>` of `void lib::gemm<float, 4>(float*)`.
 * Template arguments stay, since they tell kernels of one function apart. A text that is no
 * function's stays as it is.
 */
export function shortName(text: string): string {
  const known = kept.get(text);
  if (known !== undefined) {
    return known;
  }
  if (kept.size >= MAX_KEPT) {
    kept.clear();
  }
  const short = shortened(text);
  kept.set(text, short);
  return short;
}

function shortened(text: string): string {
  const named = unnamedLeftOut(text);
  const end = argumentsOf(named);
  const signature = end === undefined ? named : named.slice(0, end);
  // Without arguments only this return type, which kernels have, tells a function.
  if (end === undefined && !named.startsWith("void ")) {
    return text;
  }
  const begin = returnTypeEnd(signature);
  const name = signature.slice(begin);
  const isFunction = begin > 0 || /::|>$/.test(name) || hasTypes(named.slice(end));
  return isFunction ? tidied(name) || text : text;
}

/** What compilers write for namespaces without a name. */
function unnamedLeftOut(text: string): string {
  return text.replace(/(\(anonymous namespace\)|\{anonymous\}|<unnamed>)::/g, "");
}

/** Where the arguments of a whole signature begin; undefined for any other text. */
function argumentsOf(text: string): number | undefined {
  const closed = /\)(?: const)?(?: \[[^\]]*\])*$/.exec(text);
  if (!closed) {
    return undefined;
  }
  let depth = 0;
  for (let at = closed.index; at >= 0; at -= 1) {
    depth += text[at] === ")" ? 1 : text[at] === "(" ? -1 : 0;
    if (depth === 0) {
      return /[\w>}]/.test(text[at - 1] ?? "") ? at : undefined;
    }
  }
  return undefined;
}

/** Where the name behind the return type begins; 0 where there is none. */
function returnTypeEnd(signature: string): number {
  if (!/^((void|auto|static|unsigned|signed|int|long|float|double|bool|char)\b|std::|c10::|at::)/.test(signature)) {
    return 0;
  }
  let depth = 0;
  let begin = 0;
  for (let at = 0; at < signature.length; at += 1) {
    const letter = signature[at] as string;
    if ("<([{".includes(letter)) {
      depth += 1;
    } else if (")]}".includes(letter) || (letter === ">" && signature[at - 1] !== "-")) {
      depth -= 1;
    } else if (letter === " " && depth === 0) {
      begin = at + 1;
    }
  }
  return begin;
}

/** Whether a list of arguments is one of types, not of values such as `step(3)`. */
function hasTypes(list: string): boolean {
  return /[*&]|\w<|\b(void|bool|char|short|int|unsigned|long|float|double|size_t|__half)\b/.test(list);
}

/** A function's name without namespaces, and without the arguments of functions in its template arguments. */
function tidied(name: string): string {
  let tidy = name.replace(/::operator\(\)\(\)(?: const)?/g, "");
  for (let before = ""; before !== tidy; ) {
    before = tidy;
    // Lambdas keep theirs: often nothing else tells their types.
    tidy = tidy.replace(/(?<!\blambda|\boperator)(?<=[\w>])\([^()]*\)(?: const)?(?=::|[,>\s]|$)/g, "");
  }
  return tidy
    .replace(/\b(?:[A-Za-z_]\w*::)+(?=[A-Za-z_~])/g, "")
    .replace(/>\s+(?=>)/g, ">")
    .trim();
}
