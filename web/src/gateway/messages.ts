/** What the gateway says; its OpenAPI document is the reference. */

export type SessionState = "pending" | "running" | "completed" | "failed";

export const SESSION_STATES: readonly SessionState[] = ["pending", "running", "completed", "failed"];

export interface Session {
  readonly session_id: string;
  readonly namespace: string;
  readonly name: string;
  readonly mode: string;
  readonly status: SessionState;
  readonly reason: string | null;
  readonly message: string | null;
  /** RFC 3339. */
  readonly created: string | null;
  readonly requested_by: string | null;
  readonly request: Readonly<Record<string, string>>;
}

export interface SessionList {
  readonly sessions: readonly Session[];
  readonly total: number;
  readonly next?: string;
}

export interface Artifact {
  readonly name: string;
  readonly type: "Timeline" | "Summary" | "Raw";
  readonly bytes: number;
  readonly sensitive: boolean;
}

/** What an open window has recorded so far. */
export interface Live {
  /** Events of each category since the window began. */
  readonly events: Readonly<Record<string, number>>;
  /** Kernels of the latest second that had any, the longest in all first. */
  readonly latest_kernels: readonly LiveKernel[];
}

export interface LiveKernel {
  readonly name: string;
  readonly calls: number;
  readonly total_ns: number;
}

export interface Capture {
  readonly name: string;
  readonly pod: string;
  readonly container: string;
  readonly stage: string | null;
  readonly percent: number | null;
  readonly message: string | null;
  /** Only while its window is open, of a profiler that knows it then. */
  readonly live?: Live;
  readonly artifacts: readonly Artifact[];
}

export interface SessionDetail extends Session {
  readonly captures: readonly Capture[];
}

export interface Mode {
  readonly id: string;
  readonly description: string;
}

export interface TargetContainer {
  readonly name: string;
  readonly gpu: boolean;
  readonly prepared: boolean;
}

export interface Target {
  readonly pod: string;
  readonly node: string | null;
  readonly containers: readonly TargetContainer[];
}

export interface TargetList {
  readonly targets: readonly Target[];
  readonly more: boolean;
}

/** A pod to make. */
export interface Template {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: object;
}

/** A request to profile. What is left out is as in a ProfilingSession. */
export interface Run {
  readonly mode: string;
  /** Pods by one of name, labels, the pod to copy, and template; by none of them the namespace's default is meant. */
  readonly target: {
    readonly namespace: string;
    readonly containers: readonly string[];
    readonly pod?: string;
    readonly selector?: Readonly<Record<string, string>>;
    readonly max_pods?: number;
    readonly replica_of?: string;
    readonly template?: Template;
  };
  readonly options: {
    readonly start?: string;
    readonly duration_seconds: number;
    readonly start_deadline_seconds?: number;
    readonly require?: readonly string[];
    readonly outputs?: readonly string[];
    readonly ttl_seconds_after_finished?: number;
  };
}

/** Where a running session stands, as its events tell. */
export interface Progress {
  readonly stage: string;
  readonly percent: number;
  readonly message: string;
}
