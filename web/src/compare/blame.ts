// Who makes tasks wait, in all: what had the CPU as bars, by its share of the waiting and of the longest waits.

import { h, shown, type Child } from "../base/dom.js";
import { count, difference, duration } from "../base/format.js";
import { shareBar } from "../base/share.js";
import { table, type Cell, type Column } from "../base/table.js";
import { finding, section, type Drawn } from "./drawn.js";
import type { PageParts } from "./types.js";

interface Shared {
  readonly share: number;
}

interface Culprit extends Shared {
  readonly stretches: number;
  readonly time_ns: number;
  readonly longest_ns: number;
  readonly beside_idle_ns: number;
  readonly tail_ns: number;
  readonly tail_share: number;
}

interface Worded extends Shared {
  readonly words: string;
  readonly time_ns?: number;
  readonly wait_ns?: number;
}

interface Waiter extends Shared {
  readonly waiter: string;
  readonly tasks: number;
  readonly waits: number;
  readonly wait_ns: number;
  readonly longest_ns: number;
  readonly ran_ns: number;
}

interface Waker extends Shared {
  readonly waker: string;
  readonly wakee: string;
  readonly waits: number;
  readonly wait_ns: number;
  readonly longest_ns: number;
}

interface Place extends Shared {
  readonly slept_in: string;
  readonly woken_in: string;
  readonly waits: number;
  readonly wait_ns: number;
  readonly longest_ns: number;
}

/** The sums of one trace, with their words (crates/cli/src/export/traced.rs). */
export interface Waiting {
  readonly trace: string;
  readonly headline: string;
  /** Culprits in words, in their order. */
  readonly who: readonly string[];
  /** What time for a quota is, where some of it is told. */
  readonly quota: string | null;
  /** As `docs/schemas/blame-1.json` has it. */
  readonly waiting: {
    readonly waits: number;
    readonly tail: { readonly waits: number; readonly above_ns: number };
    readonly culprits: readonly Culprit[];
    readonly rules: readonly Worded[];
    readonly ends: readonly Worded[];
    readonly begun: readonly Worded[];
    readonly wakers: readonly Waker[];
    readonly waiters: readonly Waiter[];
    /** Where tasks slept and were woken, as far as call stacks show it. */
    readonly places?: readonly Place[];
  };
}

interface ChangeRow {
  readonly words: string;
  readonly before_ns_per_s: number | null;
  readonly after_ns_per_s: number | null;
  readonly before_ns_per_wait: number | null;
  readonly after_ns_per_wait: number | null;
  readonly added_ns: number;
}

interface Blamed {
  readonly change: {
    readonly by_run_time: boolean;
    readonly total: ChangeRow;
    readonly culprits: readonly ChangeRow[];
    readonly rules: readonly ChangeRow[];
    readonly ends: readonly ChangeRow[];
  } | null;
}

/** So many rows are there before somebody asks for more. */
const FIRST = 10;

function time(nanoseconds: number): Cell {
  return { show: duration(nanoseconds), by: nanoseconds };
}

function part(share: number): Cell {
  return { show: shareBar(share), by: share };
}

function number(value: number): Cell {
  return { show: count(value), by: value };
}

/** What time for a quota is, behind another sentence, where some of it is told. */
function quotaWords(sides: readonly Waiting[]): string {
  const told = sides.find((side) => side.quota !== null)?.quota ?? "";
  return told === "" ? "" : ` ${shown(told)}`;
}

const figures = (head: string): Column => ({ head, figures: true });

/** What had the CPU. */
export function culprits(from: Waiting): HTMLElement {
  const { tail, culprits: rows } = from.waiting;
  const hasTail = tail.waits * 10 <= from.waiting.waits;
  return table({
    caption: `What had the CPU while tasks waited, by its share of all waiting${hasTail ? `, and of the ${count(tail.waits)} longest waits (${duration(tail.above_ns)} and more)` : ""}.${quotaWords([from])}`,
    columns: [{ head: "Who ran instead" }, figures("Share of the waiting"), ...(hasTail ? [figures("Share of the longest")] : []), figures("Time"), figures("Most in one wait"), figures("Beside an idle CPU")],
    rows: rows.map((row, at) => [from.who[at] ?? "", part(row.share), ...(hasTail ? [part(row.tail_share)] : []), time(row.time_ns), time(row.longest_ns), time(row.beside_idle_ns)]),
    sorts: true,
    first: FIRST,
    class: "bars-table stacks",
  });
}

/** Shares with their words. */
function worded(caption: string, head: string, rows: readonly Worded[]): Child {
  if (rows.length === 0) return null;
  return table({
    caption,
    columns: [{ head }, figures("Share"), figures("Time")],
    rows: rows.map((row) => [row.words, part(row.share), time(row.time_ns ?? row.wait_ns ?? 0)]),
    sorts: true,
    first: FIRST,
    class: "bars-table stacks",
  });
}

function waiters(rows: readonly Waiter[]): HTMLElement {
  return table({
    caption: "Whose waits they are.",
    columns: [{ head: "Who waited" }, figures("Share of the waiting"), figures("Time"), figures("Waits"), figures("Longest"), figures("Ran"), figures("Tasks")],
    rows: rows.map((row) => [row.waiter, part(row.share), time(row.wait_ns), number(row.waits), time(row.longest_ns), time(row.ran_ns), number(row.tasks)]),
    sorts: true,
    first: FIRST,
    class: "bars-table stacks",
  });
}

function wakers(rows: readonly Waker[]): Child {
  if (rows.length === 0) return null;
  return table({
    caption: "Who woke whom, before the waits that followed.",
    columns: [{ head: "Waker" }, { head: "Who waited then" }, figures("Share of the waiting"), figures("Time"), figures("Waits"), figures("Longest")],
    rows: rows.map((row) => [row.waker, row.wakee, part(row.share), time(row.wait_ns), number(row.waits), time(row.longest_ns)]),
    sorts: true,
    first: FIRST,
    class: "bars-table stacks",
  });
}

function places(rows: readonly Place[]): Child {
  if (rows.length === 0) return null;
  const name = (text: string): string => text || "not shown";
  return table({
    caption: "Where tasks slept and were woken, by call stacks, before the waits that followed.",
    columns: [{ head: "Slept in", class: "mono" }, { head: "Woken in", class: "mono" }, figures("Share of the waiting"), figures("Time"), figures("Waits"), figures("Longest")],
    rows: rows.map((row) => [name(row.slept_in), name(row.woken_in), part(row.share), time(row.wait_ns), number(row.waits), time(row.longest_ns)]),
    sorts: true,
    first: FIRST,
    class: "bars-table stacks",
  });
}

/** Sections on the sums of one trace; `title` tells several apart. */
function sums(from: Waiting, title: string, at: number): HTMLElement[] {
  const id = (name: string): string => (at === 0 ? name : `${name}-${at + 1}`);
  const { rules, ends, begun } = from.waiting;
  return [
    section(id("culprits"), `Who ran instead${title}`, culprits(from)),
    section(id("waiters"), `Who waited${title}`, waiters(from.waiting.waiters), wakers(from.waiting.wakers), places(from.waiting.places ?? [])),
    section(
      id("why"),
      `Why${title}`,
      worded("By which rule the waiting task was not picked.", "Rule", rules),
      worded("What ended the stretches of waiting.", "Ended when", ends),
      worded("Why the waits began.", "Began when", begun),
    ),
  ];
}

function changes(answer: Blamed, quota: string): HTMLElement[] {
  const { change } = answer;
  if (change === null) return [];
  const unit = change.by_run_time ? "in each second that the tasks ran" : "in each wait";
  const value = (row: ChangeRow, side: "before" | "after"): number => (change.by_run_time ? row[`${side}_ns_per_s`] : row[`${side}_ns_per_wait`]) ?? 0;
  const most = Math.max(1, ...[...change.culprits, ...change.rules, ...change.ends].map((row) => Math.abs(row.added_ns)));
  const bar = (row: ChangeRow): Cell => {
    const drawn = h("span", { class: row.added_ns < 0 ? "share-bar" : "share-bar against", style: `--share: ${((Math.abs(row.added_ns) / most) * 100).toFixed(1)}%`, "aria-hidden": "true" });
    const words = difference(row.added_ns, Math.max(value(row, "before"), value(row, "after")));
    return { show: h("span", { class: "share" }, drawn, h("span", { class: "share-number amount" }, words)), by: row.added_ns };
  };
  const one = (head: string, rows: readonly ChangeRow[]): Child =>
    rows.length === 0
      ? null
      : table({
          caption: `Waiting ${unit}.${rows === change.culprits ? quota : ""}`,
          columns: [{ head }, figures("Change"), figures("Before"), figures("After")],
          rows: rows.map((row) => [row.words, bar(row), time(value(row, "before")), time(value(row, "after"))]),
          sorts: true,
          first: FIRST,
          class: "bars-table stacks",
        });
  return [section("changes", "What differs", one("Who ran instead", change.culprits), one("Rule", change.rules), one("Ended when", change.ends))];
}

/** The page of who makes tasks wait. */
export function blamed(answer: Blamed, parts: PageParts): Drawn {
  const sides = parts.blame ?? [];
  const title = (from: Waiting): string => (sides.length > 1 ? `: ${shown(from.trace)}` : "");
  return {
    findings: sides.map((from) => finding(sides.length > 1 ? `${from.trace}: ${from.headline}` : from.headline)),
    sections: [...changes(answer, quotaWords(sides)), ...sides.flatMap((from, at) => sums(from, title(from), at))],
  };
}
