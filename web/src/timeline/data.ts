// The data of a page of traces, as crates/page/src/timeline.rs writes them. Times are ns from the trace's beginning.

import type { PageLink } from "../base/dom.js";
import type { Provenance } from "../base/page.js";

/** Where a piece stands in the blob, in bytes; each begins on a boundary of base64. */
export interface Piece {
  readonly at: number;
  readonly length: number;
  readonly rows: number;
}

export interface Who {
  readonly comm: string;
  readonly pid: number;
  /** Its number among the trace's tasks. */
  readonly task: number | null;
}

/** One of the worst waits. */
export interface Wait {
  readonly who: Who;
  readonly from: number;
  readonly to: number;
  /** Where it ran in the end. */
  readonly cpu: number;
  readonly waker: { readonly who: Who; readonly cpu: number; readonly mode: "task" | "softirq" | "hardirq" } | null;
  /** Who ran instead: task, CPU, from, to. */
  readonly runs: readonly (readonly [number | null, number, number, number])[];
  /** When groups of its task had used up their quota where it waited: CPU, from, to. */
  readonly throttled?: readonly (readonly [number, number, number])[];
  /** Where it waited: CPU, from, to. */
  readonly stays: readonly (readonly [number, number, number])[];
  readonly story: string;
}

export interface StillWaiting {
  readonly who: Who;
  readonly from: number;
  readonly so_far: number;
  readonly cpu: number | null;
  readonly text: string;
}

export interface Tasks {
  readonly pid: readonly number[];
  readonly tgid: readonly number[];
  readonly comm: readonly string[];
  readonly prio: readonly number[];
  readonly set: readonly number[];
  readonly ran: readonly number[];
  readonly waited: readonly number[];
  readonly exited: readonly (number | null)[];
  readonly left: readonly (number | null)[];
}

/** From, to, switches, place and length of its columns, place and length of its virtual times. */
export type StretchRow = readonly [number, number, number, number, number, number, number];

export interface TraceData {
  readonly label: string;
  readonly provenance: Provenance;
  readonly release: string;
  readonly node: string;
  /** The trace clock at its beginning, ns. */
  readonly origin: string;
  readonly length: number;
  readonly events: number;
  readonly switches: number;
  readonly kept: {
    readonly unit: number;
    readonly facts: boolean;
    readonly stretches: readonly (readonly [number, number])[];
    readonly switches: readonly [number, number];
    readonly text: string | null;
  };
  readonly notices: readonly string[];
  readonly trouble: readonly string[];
  readonly machine: {
    readonly cpus: number | null;
    /** CPU, core, last-level cache, node. */
    readonly places: readonly (readonly [number, number, number, number])[];
    readonly domains: readonly { readonly name: string; readonly cpus: readonly number[] }[];
    readonly domains_of: string;
  };
  readonly tasks: Tasks;
  readonly sets: { readonly name: readonly string[]; readonly group: readonly boolean[] };
  readonly courses: { readonly cpus: Piece; readonly tasks: Piece; readonly sets: Piece };
  readonly frequencies: Piece;
  /** When tasks were throttled, one row a span; crates/page/src/timeline/courses.rs has the columns. */
  readonly throttled: Piece;
  readonly stretches: readonly StretchRow[];
  readonly marks: readonly (readonly [number, string])[];
  readonly mark_count: number;
  readonly waits: readonly Wait[];
  readonly measured: number;
  readonly crossed: number;
  readonly still: readonly StillWaiting[];
  readonly still_count: number;
  /** The tasks whose rows are shown; null: all. */
  readonly only: readonly number[] | null;
  readonly blob: string;
}

export interface TimelineData {
  readonly traces: readonly TraceData[];
  /** What is subtracted from each trace's times so that they are aligned. */
  readonly align: readonly number[];
  /** By what they are aligned. */
  readonly aligned: string | null;
  /** In a folder of pages: the page that leads here. */
  readonly up?: PageLink;
}

/** What a CPU does: below this nothing that is a task. */
export const IDLE = 0;
export const UNKNOWN = 1;
export const FIRST_TASK = 2;

/** How what ran before left a CPU; crates/analysis/src/lanes/stretch.rs has the list. */
export const LEFT = [
  "it is not in the trace",
  "the CPU idled",
  "preempted inside the kernel (R+)",
  "preempted on the way to user mode (R)",
  "yielded",
  "runnable (R), the trace does not tell why",
  "slept (S)",
  "blocked, uninterruptible (D)",
  "idle kernel thread (I)",
  "stopped, traced or parked",
  "exited",
] as const;

export const BLOCKED = 7;

/** Why a wait began, from 1. */
export const BEGAN = ["", "woken", "new", "preempted", "yielded", "left runnable"] as const;

export const MODES = ["", "by a soft interrupt on top of ", "by an interrupt on top of "] as const;
