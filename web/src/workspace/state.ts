/** What a workspace holds beside the file: how far opening is, and where the timeline is to go. */

import type { PageDocument } from "../generated/catalogue";

/** A point in time that the user marked, or a span between two. */
export interface Mark {
  readonly from: number;
  readonly to: number;
}

/** How far opening a file is. */
export type Status =
  | { readonly kind: "empty" }
  | { readonly kind: "opening"; readonly what: string }
  | { readonly kind: "converting"; readonly what: string; readonly sent: number; readonly size: number; readonly cancel: () => void }
  | { readonly kind: "failed"; readonly what: string; readonly why: string }
  /** The dashboard of a profile of operations, which is no timeline. */
  | { readonly kind: "dashboard"; readonly what: string; readonly file: File | undefined; readonly document: PageDocument }
  | { readonly kind: "open"; readonly what: string };

/** Where the timeline is to go next: a time span, which is to fill it or only to be seen, and a row to be brought into sight. */
export interface Goal {
  readonly from: number;
  readonly to: number;
  readonly row: number | undefined;
  readonly fills?: boolean;
  /** So many pixels wide it is to be at least. */
  readonly leastPixels?: number;
  /** The event whose flow leads there: the scale stays, and both are seen where they fit. */
  readonly followed?: Mark;
}
