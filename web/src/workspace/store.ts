/** Values that parts of the page watch. */

import { useLayoutEffect, useState } from "preact/hooks";

/** Something that changes and says so. */
export class Observable {
  private readonly watchers = new Set<() => void>();

  /** Calls `watcher` after every change; the result ends that. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => {
      this.watchers.delete(watcher);
    };
  }

  protected changed(): void {
    for (const watcher of [...this.watchers]) {
      watcher();
    }
  }
}

/** Tells its watchers that something changed. */
export class Signal extends Observable {
  fire(): void {
    this.changed();
  }
}

/** Renders the component again whenever `observable` changes. */
export function useObservable<T extends Observable>(observable: T): T {
  const [, again] = useState(0);
  // At once: what changed between the rendering and a later effect would be missed.
  useLayoutEffect(() => observable.watch(() => again((count) => count + 1)), [observable]);
  return observable;
}
