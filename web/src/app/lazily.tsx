/** Parts of the page whose scripts are not needed for the first picture: they come when they are shown, or when there is time. */

import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** So long after the page is there, what is left is fetched: it can then be shown when the network is gone. */
const AHEAD_MS = 1500;

const parts: (() => Promise<unknown>)[] = [];

/** A component of a module that is imported when it is first shown; `meanwhile` stands in its place until then. */
export function lazily<Props extends object>(
  load: () => Promise<{ readonly View: ComponentType<Props> }>,
  meanwhile: ComponentChildren = <p class="waiting">Loading…</p>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  const once = async () => {
    loaded ??= (await load()).View;
  };
  parts.push(once);
  return function Lazy(props: Props) {
    const [failure, setFailure] = useState<string>();
    const [, again] = useState(false);
    useEffect(() => {
      if (!loaded) {
        once().then(
          () => again(true),
          (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)),
        );
      }
    }, []);
    const View = loaded;
    if (View) {
      return <View {...props} />;
    }
    return failure === undefined ? (
      <>{meanwhile}</>
    ) : (
      <p class="failure" role="alert">
        {failure}
      </p>
    );
  };
}

/** Fetches what is left when the page has nothing else to do, and `others`, which no component is of. */
export function fetchAhead(...others: readonly (() => Promise<unknown>)[]): void {
  setTimeout(() => {
    // Scripts that are asked for from here on are not needed for the first picture.
    performance.mark("flopwatch-ahead");
    [...parts, ...others].forEach((part) => part().catch(() => {}));
  }, AHEAD_MS);
}
