// What a comparison's answer says: docs/schemas/compare-1.json, causes-1.json and attribute-1.json, and what its page has besides.

import type { Picture } from "../base/bars.js";
import type { PageLink } from "../base/dom.js";
import type { Packed } from "../base/packed.js";
import type { Provenance } from "../base/page.js";
import type { Waiting } from "./blame.js";
import type { Excerpt } from "./excerpt.js";
import type { KernelChange, Queried } from "./sweep.js";
import type { Directions } from "./words.js";

export type Verdict = string;

export interface Modes {
  readonly runs: number;
  readonly mean: number;
}

export interface Metric {
  readonly name: string;
  readonly kernel: string;
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly verdict: Verdict;
  readonly more_runs: number | string | null;
  readonly p: number | null;
  readonly q: number | null;
  readonly method: string | null;
  readonly pairing: "paired" | "unpaired";
  readonly baseline_mean: number;
  readonly mean: number;
  readonly baseline_values: readonly number[];
  readonly values: readonly number[];
  readonly baseline_modes: readonly [Modes, Modes] | null;
  readonly modes: readonly [Modes, Modes] | null;
}

export interface Amount {
  readonly ns_per_s: number;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Named {
  readonly name: string;
  readonly baseline_ns_per_s: number;
  readonly ns_per_s: number;
}

export interface Ended {
  readonly words: string;
  readonly baseline_ns_per_s: number;
  readonly ns_per_s: number;
}

export interface Cause {
  readonly words: string;
  readonly baseline_ns_per_s: number;
  readonly ns_per_s: number;
  readonly added: Amount;
  readonly share: number | null;
  readonly sure: boolean;
  readonly waiters: readonly Named[];
  readonly runners: readonly Named[];
  readonly ended: readonly Ended[];
  readonly baseline_beside_idle: number | null;
  readonly beside_idle: number | null;
}

export interface WaitScope {
  readonly waits: "all" | "woken" | "long_woken" | "named";
  /** Whose, where they are those of one name. */
  readonly waiter?: string | null;
  readonly least_ns: number;
  readonly baseline_waits_per_s: number;
  readonly waits_per_s: number;
  readonly baseline_ns_per_s: number;
  readonly ns_per_s: number;
  readonly added: Amount;
  readonly sure: boolean;
  readonly causes: readonly Cause[];
  readonly sentences: readonly string[];
}

export interface Tally {
  readonly words: string;
  readonly baseline_per_s: number;
  readonly per_s: number;
}

/** Work of the scheduler itself. */
export interface Work {
  readonly words: string;
  readonly unit: string;
  readonly baseline_units_per_s: number;
  readonly units_per_s: number;
  readonly baseline_ns_per_s: number;
  readonly ns_per_s: number;
}

export interface Held {
  readonly member: string;
  readonly baseline: string;
  readonly kernel: string;
}

export interface Parting {
  readonly seed: number;
  readonly time_ns: number;
  readonly cpu: number;
  readonly baseline: string;
  readonly kernel: string;
  /** Nothing where decisions are not told of. */
  readonly baseline_decisions: readonly string[] | null;
  readonly decisions: readonly string[] | null;
  readonly state: readonly Held[];
  readonly command: string;
}

export interface Causes {
  readonly baseline: string;
  readonly kernel: string;
  readonly baseline_runs: number;
  readonly runs: number;
  readonly scopes: readonly WaitScope[];
  readonly placements: readonly Tally[];
  readonly balancing: readonly Tally[];
  readonly work?: readonly Work[];
  readonly difference: Parting | null;
  readonly notices: readonly string[];
}

export interface Effect {
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Contribution {
  readonly commit: string;
  readonly subject: string;
  readonly matters: boolean;
  readonly share: number | null;
  readonly in_turn: Effect;
  readonly alone: Effect | null;
  readonly last: Effect | null;
  readonly causes?: Causes | null;
}

export interface Interaction {
  readonly commits: readonly [string, string];
  readonly beyond: Effect;
  readonly real?: boolean;
}

export interface Attribution {
  readonly metric: string;
  readonly baseline: string;
  readonly kernel: string;
  readonly verdict: Verdict;
  readonly whole: Effect;
  readonly changes: number;
  readonly contributions: readonly Contribution[];
  readonly rest: number | null;
  readonly interactions: readonly Interaction[];
  readonly runs: number;
}

/** Times of one side, as counts by size. */
export interface SideTimes {
  readonly name: string;
  readonly total: number;
  readonly min: number;
  readonly max: number;
  /** The greatest value of each class of sizes, ns, ascending. */
  readonly at: Packed;
  readonly counts: Packed;
}

/** Times of all sides, the baseline's first. */
export interface Distribution {
  readonly words: string;
  readonly sides: readonly SideTimes[];
}

export interface RunRow {
  readonly kernel: string;
  readonly machine: string;
  readonly seed: number | null;
  readonly digest: string;
}

/** What the page has besides the answer. */
export interface PageParts {
  readonly distributions?: readonly Distribution[];
  readonly runs?: readonly RunRow[];
  readonly workload?: string;
  /** Of a scenario: published values beside measured ones. */
  readonly pictures?: readonly Picture[];
  /** Of an attribution: how the two kernels differ in all metrics. */
  readonly comparison?: Comparison;
  /** Of runs: the longest wait of the first of each kernel. */
  readonly excerpts?: readonly Excerpt[];
  /** Which way metrics are better, of those that have one. */
  readonly directions?: Directions;
  /** What it is called, where the answer's schema does not say it. */
  readonly kind?: string;
  /** Of a sweep: values by the settings of its file. */
  readonly settings?: Queried;
  /** Of a sweep of several kernels: how each compares with the first, setting by setting. */
  readonly changes?: readonly KernelChange[];
  /** Of a trace: what its waits come to, and who ran instead. */
  readonly blame?: readonly Waiting[];
  /** In a folder of pages: the page that leads here, those that this one leads to, those of a sweep's settings. */
  readonly up?: PageLink;
  readonly links?: readonly PageLink[];
  readonly pages?: readonly { readonly group: Readonly<Record<string, string>>; readonly page: string }[];
  readonly notices?: readonly string[];
  /** The answer as the program prints it. */
  readonly text?: string;
}

export interface Comparison {
  readonly schema: string;
  readonly provenance: Provenance;
  readonly baseline: string;
  readonly margin: number;
  readonly headline: string;
  readonly partial: { readonly runs: number; readonly wanted: number } | null;
  readonly metrics: readonly Metric[];
  readonly notices: readonly string[];
  readonly causes?: readonly Causes[];
  readonly gate?: Gate;
  readonly page?: PageParts;
}

/** A rule of a gate, of one kernel. */
export interface Rule {
  readonly rule: string;
  readonly metric: string;
  readonly kernel: string;
  readonly outcome: string;
  readonly change: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly bound: number;
  /** Changes are shares of the baseline; of the metric's unit otherwise. */
  readonly is_share: boolean;
  readonly runs: readonly [number, number];
  readonly more_runs: number | string | null;
  readonly why: string | null;
}

export interface Gate {
  readonly outcome: string;
  readonly rules: readonly Rule[];
}

export interface Attributed {
  readonly schema: string;
  readonly provenance: Provenance;
  readonly partial: boolean;
  readonly unsearched: number;
  readonly runs: number;
  readonly metrics: readonly Attribution[];
  readonly page?: PageParts;
}
