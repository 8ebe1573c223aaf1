// What an answer of `fairlab watch` says: docs/schemas/watch-1.json.

import type { Parting, Verdict } from "../compare/types.js";
import type { Provenance } from "../base/page.js";

export interface Step {
  readonly commit: string;
  readonly subject: string;
  readonly release: string | null;
  readonly date: string | null;
}

export interface WatchedKernel {
  /** None where it contradicts itself, or was not built. */
  readonly name: string | null;
  /** None of the first one. */
  readonly step: Step | null;
}

export interface Mean {
  readonly mean: number;
  /** Half of the interval of 95 %; none where runs are equal. */
  readonly half: number | null;
}

/** Kernels whose runs are equal, event by event. */
export interface KernelClass {
  readonly kernel: string;
  readonly runs: number;
  /** By the case's metrics. */
  readonly metrics: readonly Mean[];
}

export interface WatchedCase {
  readonly name: string;
  readonly title: string;
  readonly source: string;
  readonly machine: string;
  readonly workload: string;
  readonly margin: number;
  readonly metrics: readonly string[];
  /** Each kernel's class. */
  readonly line: readonly (number | null)[];
  readonly classes: readonly KernelClass[];
}

export interface Found {
  readonly runs: number;
  readonly means: readonly [number, number];
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly p: number | null;
  readonly q: number | null;
}

export interface Finding {
  readonly case: string;
  readonly metric: string;
  /** Of the kernels before and after it. */
  readonly positions: readonly [number, number];
  readonly steps: readonly Step[];
  readonly kernels: readonly [string, string];
  readonly verdict: Verdict;
  readonly found: Found;
  readonly fresh: Found | null;
  readonly confirmed: boolean;
  readonly taken_back_by: number | null;
  readonly parting: Parting | null;
  readonly command: string;
}

export interface WatchAnswer {
  readonly schema: string;
  readonly provenance?: Provenance;
  readonly range: string;
  readonly kernels: readonly WatchedKernel[];
  readonly runs: number;
  readonly questions: number;
  readonly false_discovery_rate: number;
  readonly cases: readonly WatchedCase[];
  readonly findings: readonly Finding[];
  readonly skipped: readonly { readonly case: string; readonly why: string }[];
  readonly partial: boolean;
}
