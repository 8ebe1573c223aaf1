// A trace's waits at a glance: how long they are and how they are distributed, whose they are, who ran instead, the worst told.

import { h, shown, type Child } from "../base/dom.js";
import { count, duration, share } from "../base/format.js";
import { shareBar } from "../base/share.js";
import { table, type Cell } from "../base/table.js";
import { culprits } from "./blame.js";
import { finding, section, type Drawn } from "./drawn.js";
import type { PageParts } from "./types.js";

interface Waits {
  readonly count: number;
  readonly sum_ns: number;
  readonly p50_ns?: number;
  readonly p99_ns?: number;
  readonly max_ns: number | null;
}

/** `docs/schemas/summary-1.json`, as far as it is drawn. */
interface Summary {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly wakeup_latency: Waits;
  readonly idle_share: number | null;
  /** Whom the names that waited most waited behind. */
  readonly waiting?: readonly { readonly whose: readonly string[]; readonly culprits: readonly { readonly behind: string; readonly runner: string; readonly share: number }[] }[];
  readonly by_name: readonly { readonly kind: string; readonly name: string; readonly tasks: number; readonly run_ns: number; readonly wait_ns: number; readonly metrics: Readonly<Record<string, number>> }[];
}

/** Who ran instead, in a sentence and as bars. */
function instead(parts: PageParts): { readonly words: Child[]; readonly sections: HTMLElement[] } {
  const from = parts.blame?.[0];
  if (from === undefined || from.waiting.waits === 0) return { words: [], sections: [] };
  return { words: [finding(from.headline)], sections: [section("culprits", "Who ran instead", culprits(from))] };
}

function time(value: number | undefined): Cell {
  return value === undefined ? { show: "-" } : { show: duration(value), by: value };
}

/** Names of tasks, or groups: how long each ran and waited. */
function names(answer: Summary, kind: string, id: string, title: string): HTMLElement[] {
  const rows = answer.by_name.filter((row) => row.kind === kind && row.run_ns + row.wait_ns > 0).sort((one, other) => other.wait_ns - one.wait_ns);
  if (rows.length === 0) return [];
  // Groups contain each other: no sum of theirs is a whole.
  const sum = (of: (row: (typeof rows)[number]) => number): number => Math.max(1, kind === "task" ? rows.reduce((all, row) => all + of(row), 0) : Math.max(...rows.map(of)));
  const [ran, waited] = [sum((row) => row.run_ns), sum((row) => row.wait_ns)];
  const behind = (row: (typeof rows)[number]): string => {
    const most = answer.waiting?.find(({ whose }) => whose.includes(row.name))?.culprits[0];
    return most === undefined ? "-" : `${most.runner === "" ? most.behind.replaceAll("_", " ") : most.runner}: ${share(most.share)}`;
  };
  const p99 = (row: (typeof rows)[number]): number | undefined => row.metrics["wakeup_latency_ns_p99"];
  const bar = (value: number, whole: number): Cell => ({ show: shareBar(value / whole), by: value });
  return [
    section(
      id,
      title,
      table({
        caption: kind === "task" ? "By name: the parts of all waiting and of all running." : "Groups of tasks; the parts are of the group that waited, or ran, longest.",
        columns: [{ head: "Name" }, ...["Of the waiting", "Waited", "Of the running", "Ran", "p99 wakeup latency", "Tasks"].map((head) => ({ head, figures: true })), ...(kind === "task" && answer.waiting !== undefined ? [{ head: "Mostly behind", class: "words" }] : [])],
        rows: rows.map((row) => [row.name, bar(row.wait_ns, waited), time(row.wait_ns), bar(row.run_ns, ran), time(row.run_ns), time(p99(row)), { show: count(row.tasks), by: row.tasks }, ...(kind === "task" && answer.waiting !== undefined ? [behind(row)] : [])]),
        sorts: true,
        first: 10,
        class: "bars-table stacks",
      }),
    ),
  ];
}

/** The page of a summary. */
export function summed(answer: Summary, parts: PageParts): Drawn {
  const waits = answer.wakeup_latency;
  const who = instead(parts);
  const latency = waits.count === 0 || waits.max_ns === null ? "No wakeup is measured." : `After ${count(waits.count)} wakeups tasks waited ${duration(waits.p50_ns ?? 0)} at the median, ${duration(waits.p99_ns ?? 0)} at p99, ${duration(waits.max_ns)} at most.`;
  const idle = answer.idle_share === null ? "" : ` CPUs were idle for ${share(answer.idle_share)} of ${duration(answer.end_ns - answer.start_ns)}.`;
  return {
    findings: [finding(`${latency}${idle}`), ...who.words],
    sections: [...who.sections, ...names(answer, "task", "names", "By name"), ...names(answer, "group", "groups", "By group")],
  };
}

/** `docs/schemas/latency-1.json`, as far as it is drawn. */
interface Latency {
  readonly tasks: readonly {
    readonly comm: string;
    readonly pid: number | null;
    readonly merged_threads: number;
    readonly runtime_ns: number;
    readonly count: number;
    readonly avg_delay_ns: number | null;
    readonly max_delay_ns: number | null;
  }[];
}

function taskName(row: Latency["tasks"][number]): string {
  return row.merged_threads > 1 ? `${row.comm}:(${row.merged_threads})` : row.pid === null ? row.comm : `${row.comm}:${row.pid}`;
}

/** The page of latencies. */
export function latencies(answer: Latency, parts: PageParts): Drawn {
  const rows = answer.tasks.filter((row) => row.count > 0 && row.max_delay_ns !== null).sort((one, other) => (other.max_delay_ns ?? 0) - (one.max_delay_ns ?? 0));
  const most = Math.max(1, ...rows.map((row) => row.max_delay_ns ?? 0));
  const [worst] = rows;
  const who = instead(parts);
  const delays = table({
    caption: "The longest wait of each task; bars are parts of the longest of all.",
    columns: [{ head: "Task" }, ...["Of the longest", "Longest", "Average", "Waits", "Ran"].map((head) => ({ head, figures: true }))],
    rows: rows.map((row) => [
      taskName(row),
      { show: lengthBar((row.max_delay_ns ?? 0) / most), by: row.max_delay_ns ?? undefined },
      time(row.max_delay_ns ?? undefined),
      time(row.avg_delay_ns ?? undefined),
      { show: count(row.count), by: row.count },
      time(row.runtime_ns),
    ]),
    sorts: true,
    first: 12,
    class: "bars-table stacks",
  });
  return {
    findings: [worst === undefined ? finding("No wait is measured.") : finding(`${taskName(worst)} waited longest: ${duration(worst.max_delay_ns ?? 0)}, ${duration(worst.avg_delay_ns ?? 0)} on average in ${count(worst.count)} waits.`), ...who.words],
    sections: [...who.sections, ...(rows.length === 0 ? [] : [section("delays", "The longest waits, task by task", delays)])],
  };
}

function lengthBar(part: number): HTMLElement {
  return h("span", { class: "share-bar", style: `--share: ${(part * 100).toFixed(1)}%`, "aria-hidden": "true" });
}

/** `docs/schemas/explain-1.json`, as far as it is drawn. */
interface Explained {
  readonly stories: readonly {
    readonly task: { readonly comm: string; readonly pid: number };
    readonly wait_ns: number;
    readonly ran_on_cpu: number | null;
    readonly runners: readonly { readonly task: { readonly comm: string; readonly pid: number } | null; readonly ran_ns: number }[];
    readonly throttled?: readonly { readonly from_ns: number; readonly to_ns: number }[];
  }[];
  readonly measured: number;
  readonly still_waiting_count: number;
}

/** How much time spans cover that begin one after the other: a group and the one above it may be throttled at once. */
function covered(spans: readonly { readonly from_ns: number; readonly to_ns: number }[]): number {
  let [sum, end] = [0, 0];
  for (const span of spans) {
    sum += Math.max(0, span.to_ns - Math.max(span.from_ns, end));
    end = Math.max(end, span.to_ns);
  }
  return sum;
}

function storyWords(story: Explained["stories"][number]): string {
  const [first] = [...story.runners].sort((one, other) => other.ran_ns - one.ran_ns);
  const ran = first === undefined || first.task === null ? "" : `behind ${first.task.comm}:${first.task.pid}, which ran for ${duration(first.ran_ns)} of it`;
  const throttled = covered(story.throttled ?? []);
  const quota = throttled === 0 ? "" : `for its group's quota, which was used up for ${duration(throttled)} of it`;
  // Who ran meanwhile ran also while the quota was used up: what took most of the wait stands first.
  const both = throttled > story.wait_ns / 2 ? [quota, ran] : [ran, quota];
  const behind = both.filter((words) => words !== "").map((words) => `, ${words}`).join("");
  return `${story.task.comm}:${story.task.pid} waited ${duration(story.wait_ns)}${story.ran_on_cpu === null ? "" : ` for CPU ${story.ran_on_cpu}`}${behind}.`;
}

/** The page of explained waits. */
export function explained(answer: Explained, parts: PageParts): Drawn {
  const who = instead(parts);
  const [worst] = answer.stories;
  const waiting = answer.still_waiting_count === 0 ? "" : ` At the end ${count(answer.still_waiting_count)} tasks still waited.`;
  return {
    findings: [
      worst === undefined ? finding("No wait is measured.") : finding(`The longest of ${count(answer.measured)} waits: ${storyWords(worst)}`),
      ...who.words,
      waiting === "" ? null : h("p", {}, shown(waiting.trim())),
    ],
    sections: who.sections,
  };
}
