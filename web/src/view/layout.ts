/** Where rows lie from top to bottom: a pure function of the tree and of what the user folded, pinned, moved and filtered. */

import type { Leaf, Node } from "./tree";

/** Heights in CSS pixels. */
export const GROUP_HEIGHT = 22;
export const LANE_HEIGHT = 18;
export const FOLDED_HEIGHT = 18;
export const COUNTER_HEIGHT = 36;
export const ROW_GAP = 3;

/** What the user did to the rows. */
export interface Arrangement {
  /** Keys of groups whose rows are hidden, and of rows whose lanes share one height. */
  readonly folded: ReadonlySet<string>;
  /** Keys of rows that stay at the top, in order. */
  readonly pinned: readonly string[];
  /** Keys of children that were moved, in their new order, by the key of the group. */
  readonly order: ReadonlyMap<string, readonly string[]>;
  /** Rows are shown whose label holds this text. */
  readonly filter: string;
}

/** A line of the timeline. */
export interface Line {
  readonly key: string;
  readonly kind: "group" | "row";
  readonly label: string;
  readonly title: string;
  readonly depth: number;
  readonly y: number;
  readonly height: number;
  readonly folded: boolean;
  readonly pinned: boolean;
  /** Key of the group around it. */
  readonly parent: string;
  /** Of a row: its number, how many lanes are drawn, and how high each is. */
  readonly row: number;
  readonly lanes: number;
  readonly laneHeight: number;
  readonly counter: boolean;
}

/** All lines: those that stay at the top, and those that scroll below them. */
export interface Layout {
  readonly pinned: readonly Line[];
  readonly lines: readonly Line[];
  readonly pinnedHeight: number;
  readonly height: number;
}

export function layoutOf(tree: readonly Node[], lanes: ArrayLike<number>, arrangement: Arrangement): Layout {
  const wanted = arrangement.filter.trim().toLowerCase();
  const lines: Line[] = [];
  let y = 0;
  const place = (node: Node, depth: number, parent: string, into: Line[]): void => {
    const folded = arrangement.folded.has(node.key);
    const pinned = arrangement.pinned.includes(node.key);
    if (node.kind === "group") {
      into.push({
        key: node.key, kind: "group", label: node.label, title: node.label, depth, y, height: GROUP_HEIGHT, folded, pinned, parent,
        row: -1, lanes: 0, laneHeight: 0, counter: false,
      });
      y += GROUP_HEIGHT;
      if (!folded || wanted !== "") {
        for (const child of ordered(node.children, arrangement.order.get(node.key))) {
          if (matches(child, wanted)) {
            place(child, depth + 1, node.key, into);
          }
        }
      }
      return;
    }
    // Rows that stay at the top are there alone.
    if (!pinned) {
      const line = rowLine(node, lanes, folded, depth, parent, false, y);
      into.push(line);
      y += line.height;
    }
  };
  const top = ordered(tree, arrangement.order.get(""));
  const pinnedLines: Line[] = [];
  const leaves = new Map(leavesOf(tree).map((leaf) => [leaf.key, leaf]));
  for (const key of arrangement.pinned) {
    const leaf = leaves.get(key);
    if (leaf) {
      const line = rowLine({ ...leaf, label: leaf.full }, lanes, arrangement.folded.has(key), 0, "", true, y);
      pinnedLines.push(line);
      y += line.height;
    }
  }
  const pinnedHeight = y;
  y = 0;
  for (const node of top) {
    if (matches(node, wanted)) {
      place(node, 0, "", lines);
    }
  }
  return { pinned: pinnedLines, lines, pinnedHeight, height: y };
}

function rowLine(leaf: Leaf, lanes: ArrayLike<number>, folded: boolean, depth: number, parent: string, pinned: boolean, y: number): Line {
  const count = leaf.counter ? 1 : Math.max(1, lanes[leaf.row] ?? 1);
  const full = leaf.counter ? COUNTER_HEIGHT : LANE_HEIGHT;
  const laneHeight = folded ? FOLDED_HEIGHT / (leaf.counter ? 1 : count) : full;
  return {
    key: leaf.key, kind: "row", label: leaf.label, title: leaf.full, depth, y, height: laneHeight * count + ROW_GAP, folded, pinned, parent,
    row: leaf.row, lanes: count, laneHeight, counter: leaf.counter,
  };
}

/** `children` with those of `order` first, in that order. */
export function ordered<T extends { readonly key: string }>(children: readonly T[], order: readonly string[] | undefined): readonly T[] {
  if (!order) {
    return children;
  }
  const places = new Map(order.map((key, at) => [key, at]));
  return [...children].sort((a, b) => (places.get(a.key) ?? order.length) - (places.get(b.key) ?? order.length));
}

/** The rows of a tree. */
export function leavesOf(nodes: readonly Node[]): Leaf[] {
  return nodes.flatMap((node) => (node.kind === "row" ? [node] : leavesOf(node.children)));
}

function matches(node: Node, wanted: string): boolean {
  if (wanted === "") {
    return true;
  }
  if (node.kind === "row") {
    return node.full.toLowerCase().includes(wanted) || node.label.toLowerCase().includes(wanted);
  }
  return node.label.toLowerCase().includes(wanted) || node.children.some((child) => matches(child, wanted));
}

/** The line at `y` of a list that goes from top to bottom, or undefined. */
export function lineAt(lines: readonly Line[], y: number): Line | undefined {
  let low = 0;
  let high = lines.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const line = lines[middle] as Line;
    if (y < line.y) {
      high = middle - 1;
    } else if (y >= line.y + line.height) {
      low = middle + 1;
    } else {
      return line;
    }
  }
  return undefined;
}

/** The lane of a row at `y`. */
export function laneAt(line: Line, y: number): number {
  return Math.max(0, Math.min(line.lanes - 1, Math.floor((y - line.y) / line.laneHeight)));
}

/** The keys of a group's children when the one of `key` is moved to the place of `to`; undefined when they are of different groups. */
export function moved(lines: readonly Line[], key: string, to: string): string[] | undefined {
  const line = lines.find((line) => line.key === key);
  const target = lines.find((line) => line.key === to);
  if (!line || !target || line === target || line.parent !== target.parent) {
    return undefined;
  }
  const keys = lines.filter((other) => other.parent === line.parent).map((other) => other.key);
  const place = keys.indexOf(to);
  keys.splice(keys.indexOf(key), 1);
  keys.splice(place, 0, key);
  return keys;
}
