import type { PageFlame, Place } from "../generated/catalogue";

/** Where frames are: of each where it begins, the frame around it (-1 of all), and the frame behind the last one inside it. */
export interface Layout {
  readonly left: Float64Array;
  readonly parent: Int32Array;
  readonly behind: Int32Array;
  readonly deepest: number;
}

export function layout(data: Pick<PageFlame, "depth" | "value">): Layout;

export function search(data: Pick<PageFlame, "names" | "name" | "value">, places: Pick<Layout, "behind">, wanted: string): { readonly found: Uint8Array; readonly total: number; readonly count: number };

/** Draws into `root` what it then holds alone; gives what ends it. */
export function flame(root: HTMLElement, data: PageFlame, go?: (place: Place) => void): () => void;
