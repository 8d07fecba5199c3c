/** What an event happened in, as the details tell it. */

import type { EventPlace } from "../../engine/protocol";

/** How the details call what encloses an event, by its category and in their order. */
const WORDS: readonly (readonly [string, string])[] = [
  ["step", "in step"],
  ["annotation", "in annotation"],
  ["nvtx_range", "in range"],
  ["cpu_op", "in operator"],
  ["python_function", "in Python"],
  ["cudnn_api", "in call of cuDNN"],
  ["cublas_api", "in call of cuBLAS"],
  ["cuda_api", "in call"],
];

/** Stacks of functions are deep: of each category so many are told. */
const MAX_TOLD = 4;

/** Events of one category that enclose an event. */
export interface Enclosing {
  readonly words: string;
  /** The innermost ones, from the outermost of them on. */
  readonly places: readonly EventPlace[];
  /** How many are further out. */
  readonly outer: number;
}

/** The events that enclose one by their categories; `ancestors` are from the outermost to the innermost. */
export function enclosingBy(ancestors: readonly EventPlace[], categoryOf: (category: number) => string): Enclosing[] {
  return WORDS.flatMap(([category, words]) => {
    const found = ancestors.filter((place) => categoryOf(place.category) === category);
    return found.length === 0 ? [] : [{ words, places: found.slice(-MAX_TOLD), outer: Math.max(0, found.length - MAX_TOLD) }];
  });
}
