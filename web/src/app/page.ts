/**
 * Pages. A folder of `pages/` whose `page.tsx` exports a `page` is one.
 * That is all it takes to add one.
 */

import type { ComponentType } from "preact";
import type { Workspace } from "../workspace/workspace";

/** A page of the viewer. */
export interface Page {
  /** Its name in links. */
  readonly id: string;
  readonly title: string;
  /** Pages stand in this order. */
  readonly order: number;
  /** What it shows: the open file, or what the gateway has. */
  readonly of: "file" | "gateway";
  readonly View: ComponentType<{ workspace: Workspace }>;
}

/** All pages, in order. */
export function pagesOf(modules: Readonly<Record<string, unknown>>): Page[] {
  return Object.values(modules)
    .flatMap((module) => (isPage((module as { page?: unknown }).page) ? [(module as { page: Page }).page] : []))
    .sort((a, b) => a.order - b.order);
}

function isPage(value: unknown): value is Page {
  return typeof value === "object" && value !== null && "id" in value && "View" in value;
}
