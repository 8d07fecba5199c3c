/** Rows in groups: processes, their devices and their threads. */

import type { Header, Row } from "../timeline/header";

/** What a row shows, for people. */
const TRACKS: Readonly<Record<string, string>> = {
  gpu_stream: "",
  cuda_sync: "synchronization",
  cuda_api: "CUDA API",
  nvtx: "NVTX",
  library: "libraries",
  os_runtime: "OS runtime",
  cpu_op: "operators",
  annotation: "annotations",
  python: "Python",
  cpu_sample: "samples",
  cpu_running: "on a CPU",
  overhead: "profiler overhead",
  device: "operations",
  gpu_annotation: "annotations on the GPU",
  derived: "derived",
  other: "other",
};

/** Keys of groups of counters begin so. */
const COUNTERS = "counters/";

/** The order of a thread's rows: what is outermost first. */
const ORDER = ["annotation", "nvtx", "python", "cpu_op", "library", "cuda_api", "os_runtime", "cpu_sample", "cpu_running"];

/** A group of rows, or of groups. */
export interface Branch {
  readonly kind: "group";
  /** The same for the same group of the same file. */
  readonly key: string;
  readonly label: string;
  readonly children: readonly Node[];
}

/** A row. */
export interface Leaf {
  readonly kind: "row";
  readonly key: string;
  /** Place in the header's rows; counters follow them. */
  readonly row: number;
  readonly label: string;
  /** The whole of what it is, for where there is no group around it. */
  readonly full: string;
  readonly counter: boolean;
}

export type Node = Branch | Leaf;

/** The rows of a file as people look for them. */
export function treeOf(header: Header): Branch[] {
  const groups = new Map<string, { label: string; devices: Map<string, Group>; threads: Map<string, Group> }>();
  header.rows.forEach((row, at) => {
    const key = `${row.capture}/${row.machine}/${row.process}`;
    let group = groups.get(key);
    if (!group) {
      group = { label: processLabel(row), devices: new Map(), threads: new Map() };
      groups.set(key, group);
    }
    if (row.device !== undefined) {
      add(group.devices, `${key}/gpu${row.device}`, deviceLabel(row.device, header), at, row, header);
    } else {
      add(group.threads, `${key}/thread${row.thread ?? row.label}`, threadLabel(row), at, row, header);
    }
  });
  const ofDevice = new Map<number, Branch[]>();
  const others: Branch[] = [];
  for (const { device, branch } of counterBranches(header)) {
    if (device !== undefined && isOne(header, device)) {
      ofDevice.set(device, [...(ofDevice.get(device) ?? []), branch]);
    } else {
      others.push(branch);
    }
  }
  /** The counters of a device, once: below its rows in the first process that has any. */
  const countersOf = (device: number) => {
    const found = ofDevice.get(device) ?? [];
    ofDevice.delete(device);
    return found;
  };
  const branches = [...groups].map(([key, { label, devices, threads }]): Branch => {
    const gpus = [...devices]
      .sort(([, a], [, b]) => a.device - b.device)
      .map(([key, group]) => {
        const rows = branch(key, group);
        // Whose they are is said by the group around them.
        const counters = countersOf(group.device).map((own) => ({ ...own, label: `counters (${own.key.slice(COUNTERS.length).split("/")[0]})` }));
        return { ...rows, children: [...rows.children, ...counters] };
      });
    const cpus = [...threads].map(([key, group]) => (group.rows.length === 1 ? lone(group) : branch(key, group)));
    return { kind: "group", key: `process/${key}`, label, children: [...gpus, ...cpus] };
  });
  return [...branches, ...others];
}

/** Keys of the groups of counters. */
export function counterGroups(nodes: readonly Node[]): string[] {
  return nodes.flatMap((node) => (node.kind === "row" ? [] : node.key.startsWith(COUNTERS) ? [node.key] : counterGroups(node.children)));
}

interface Group {
  readonly label: string;
  /** Number of its device; -1 of a thread's. */
  readonly device: number;
  readonly rows: Leaf[];
}

function add(groups: Map<string, Group>, key: string, label: string, at: number, row: Row, header: Header): void {
  const group = groups.get(key) ?? { label, device: row.device ?? -1, rows: [] };
  groups.set(key, group);
  group.rows.push({ kind: "row", key: `row/${at}`, row: at, label: rowLabel(row), full: fullLabel(row, header), counter: false });
}

function branch(key: string, group: Group): Branch {
  const place = (leaf: Leaf) => ORDER.findIndex((track) => TRACKS[track] === leaf.label);
  const rows = group.rows.some((leaf) => place(leaf) >= 0) ? [...group.rows].sort((a, b) => place(a) - place(b)) : group.rows;
  return { kind: "group", key, label: group.label, children: rows };
}

function lone(group: Group): Leaf {
  const [leaf] = group.rows;
  return { ...(leaf as Leaf), label: `${group.label}: ${leaf?.label}` };
}

/**
 * Labels begin with the process: `python (4711) GPU 0 stream 7`, and of a rank that was merged with
 * others `python ([TP01] 4711)` or `[TP01] 4711`.
 */
function processPart(row: Row): string {
  return /^(.*? \((?:\[[^\]]*\] )?\d+\)|\[[^\]]*\] \d+)/.exec(row.label)?.[1] ?? "";
}

function processLabel(row: Row): string {
  return processPart(row) || (row.process > 0 ? `process ${row.process}` : "capture");
}

/** How the flight recorder calls threads: `worker (process 4711) thread 4712`, or `process 4711 thread 4712`. */
const RECORDED = /^(?:(.+) \(process \d+\)|process \d+) thread (\d+)$/;

function threadLabel(row: Row): string {
  const recorded = RECORDED.exec(row.label);
  if (recorded) {
    return recorded[1] === undefined ? `thread ${recorded[2]}` : `thread ${recorded[1]} (${recorded[2]})`;
  }
  const rest = row.label.slice(processPart(row).length).trim() || row.label;
  return row.thread === undefined || rest.startsWith("thread") ? rest : `thread ${rest}`;
}

function deviceLabel(device: number, header: Header): string {
  const known = header.devices.find((known) => known.id === device);
  const name = known && [known.name, known.part].filter((part) => part !== "").join(", ");
  const kind = header.rows.some((row) => row.device === device && row.track === "device") ? "device" : "GPU";
  return name ? `${kind} ${device} · ${name}` : `${kind} ${device}`;
}

function rowLabel(row: Row): string {
  const track = TRACKS[row.track] ?? row.track;
  if (row.device === undefined) {
    return track;
  }
  if (row.track === "device" || row.track === "derived") {
    // Lines of accelerators without streams have names of their own.
    return row.label.slice(processPart(row).length).trim() || track;
  }
  const stream = row.stream === undefined ? "any stream" : `stream ${row.stream}`;
  return track === "" ? stream : `${track}, ${stream}`;
}

function fullLabel(row: Row, header: Header): string {
  const track = TRACKS[row.track] ?? row.track;
  const several = header.rows.filter((other) => other.label === row.label).length > 1;
  return several && track !== "" ? `${row.label}, ${track}` : row.label;
}

/** Whether one device alone has that number: merged captures of several machines have several. */
function isOne(header: Header, device: number): boolean {
  const machines = header.rows.flatMap((row) => (row.device === device ? [`${row.capture}/${row.machine}`] : []));
  return new Set(machines).size === 1;
}

/** A group for each source and device of counters, in the order of the devices, with the number that the device's name ends with. */
function counterBranches(header: Header): { readonly device: number | undefined; readonly branch: Branch }[] {
  const groups = new Map<string, Leaf[]>();
  header.counters.forEach((counter, at) => {
    const key = `${counter.source}/${counter.device}`;
    const leaves = groups.get(key) ?? [];
    const row = header.rows.length + at;
    const unit = counter.unit === "" || counter.unit === "ratio" ? "" : ` (${counter.unit})`;
    const label = `${counter.metric}${unit}`;
    leaves.push({ kind: "row", key: `counter/${key}/${counter.metric}`, row, label, full: `${counter.device} ${label}`, counter: true });
    groups.set(key, leaves);
  });
  const inOrder = [...groups].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  return inOrder.map(([key, children]) => {
    const device = /^[a-z]+[ :]?(\d+)$/i.exec(key.slice(key.indexOf("/") + 1))?.[1];
    return { device: device === undefined ? undefined : Number(device), branch: { kind: "group", key: `${COUNTERS}${key}`, label: `counters, ${key.replace("/", ": ")}`, children } };
  });
}
