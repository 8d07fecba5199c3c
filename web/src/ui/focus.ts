/** The focus of what comes up: keys go on where the eyes do. */

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Gives the focus, once, to the element that it is the `ref` of. */
export function useFocus<T extends HTMLElement>(): RefObject<T | null> {
  const element = useRef<T>(null);
  useEffect(() => element.current?.focus(), []);
  return element;
}
