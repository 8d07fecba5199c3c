/** An event's own columns, in words. */

import type { EventDetails } from "../../engine/protocol";
import * as format from "../../view/format";

/** Numbers that stand for "none". */
const NONE = new Set([0xffff_ffff, 2 ** 64]);

/** Columns that are shown joined, or elsewhere. */
const JOINED = new Set(["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "stream", "launch"]);

/** The fields of an event of `category`, in order. */
export function describe(category: string, event: EventDetails): [string, string][] {
  const fields = new Map(event.fields);
  const found: [string, string][] = [];
  const triple = (name: string) => {
    const parts = ["x", "y", "z"].map((axis) => fields.get(`${name}_${axis}`));
    return parts.every((part) => part !== undefined) ? `${parts.join(" × ")}` : undefined;
  };
  const grid = triple("grid");
  const block = triple("block");
  if (grid !== undefined && block !== undefined) {
    found.push(["grid", grid], ["block", block]);
  }
  for (const [name, value] of event.fields) {
    const label = name.replace(/_(ppm|milli)$/, "").replaceAll("_", " ");
    if (typeof value === "string") {
      if (value !== "") {
        found.push([label, value]);
      }
      continue;
    }
    if (JOINED.has(name) || NONE.has(value)) {
      continue;
    }
    const text = field(category, name, value, event.duration);
    if (text !== undefined) {
      found.push([label, text]);
    }
  }
  return found;
}

/** Kinds of memory by their numbers, from 1 on. */
const MEMORY_KINDS = ["pageable", "pinned", "device", "array", "managed", "device static", "managed static", "unknown"];

function field(category: string, name: string, value: number, duration: number): string | undefined {
  switch (name) {
    case "bytes": {
      const rate = duration > 0 && category !== "device_op" ? ` (${format.bytes((value / duration) * 1e9)}/s)` : "";
      return `${format.bytes(value)}${rate}`;
    }
    case "shared_static":
    case "shared_dynamic":
      return format.bytes(value);
    case "color":
      return value === 0 ? undefined : `#${(value & 0xff_ffff).toString(16).padStart(6, "0")}`;
    case "range_style":
      return value === 0 ? "push and pop" : "start and end";
    case "src_memory_kind":
    case "dst_memory_kind":
      return MEMORY_KINDS[value - 1];
    case "achieved_occupancy_ppm":
    case "theoretical_occupancy_ppm":
      return `${value / 10_000} %`;
    case "blocks_per_sm_milli":
    case "warps_per_sm_milli":
      return `${value / 1000}`;
    case "program_id":
    case "external_id":
    case "graph_node":
    case "cluster_x":
    case "cluster_y":
    case "cluster_z":
    case "call_stack":
    case "graph_id":
    case "graph_exec":
    case "wait_on_record":
    case "forward_thread":
    case "python_id":
    case "python_parent":
    case "correlation":
      return value === 0 ? undefined : format.grouped(value);
    default:
      return format.grouped(value);
  }
}
