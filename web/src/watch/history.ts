// The watched kernels in order: which commit leads to each, in which release, and what was found there.

import type { Finding, WatchAnswer } from "./types.js";
import { size } from "./words.js";

/** Kernels of one release, without a gap. */
export interface ReleaseSpan {
  readonly release: string;
  readonly from: number;
  readonly to: number;
}

/** A row of the matrix: a kernel with changes, or a stretch of kernels without. */
export type HistoryRow = { readonly at: number; readonly changes: ReadonlyMap<string, readonly Finding[]> } | { readonly from: number; readonly to: number };

/** The release that each kernel's commit came with; what is not known is that of the kernel before, or empty. */
export function releases(answer: WatchAnswer): string[] {
  const first = answer.kernels[0]?.name ?? "";
  let last: string = /^v\d+\.\d+$/.test(first) ? first : "";
  return answer.kernels.map((kernel) => (last = kernel.step?.release ?? last));
}

export function releaseSpans(answer: WatchAnswer): ReleaseSpan[] {
  const spans: { release: string; from: number; to: number }[] = [];
  releases(answer).forEach((release, at) => {
    const last = spans[spans.length - 1];
    if (last !== undefined && last.release === release) last.to = at;
    else spans.push({ release, from: at, to: at });
  });
  return spans;
}

/** Confirmed changes at each kernel by case, each case's largest first. */
function changesAt(answer: WatchAnswer): Map<number, Map<string, Finding[]>> {
  const all = new Map<number, Map<string, Finding[]>>();
  for (const finding of answer.findings) {
    if (!finding.confirmed) continue;
    const at = all.get(finding.positions[1]) ?? new Map<string, Finding[]>();
    all.set(finding.positions[1], at.set(finding.case, [...(at.get(finding.case) ?? []), finding]));
  }
  for (const at of all.values()) for (const findings of at.values()) findings.sort((one, other) => size(other) - size(one));
  return all;
}

/** All kernels behind the first, those without changes together. */
export function historyRows(answer: WatchAnswer): HistoryRow[] {
  const changes = changesAt(answer);
  const rows: HistoryRow[] = [];
  let from = 1;
  const fold = (to: number): void => {
    if (from <= to) rows.push({ from, to });
  };
  for (let at = 1; at < answer.kernels.length; at += 1) {
    const here = changes.get(at);
    if (here === undefined) continue;
    fold(at - 1);
    rows.push({ at, changes: here });
    from = at + 1;
  }
  fold(answer.kernels.length - 1);
  return rows;
}
