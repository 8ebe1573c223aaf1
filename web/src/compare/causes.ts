// Why tasks wait differently: the difference by cause, drawn with its intervals, in sentences, and as a table.

import * as Plot from "@observablehq/plot";
import { h, shown, type Child } from "../base/dom.js";
import { count, duration, perSecond, share, significant } from "../base/format.js";
import { figure, plot, responsive } from "../base/chart.js";
import { table } from "../base/table.js";
import { asSentence } from "./words.js";
import type { Cause, Causes, Named, Tally, WaitScope } from "./types.js";

/** More causes than so many are in the table alone. */
const DRAWN = 8;

/** A bar that is a smaller share of the longest cannot be seen. */
const SEEN = 0.002;

const SCOPES: Readonly<Record<WaitScope["waits"], string>> = {
  all: "All waits",
  woken: "Waits of woken tasks",
  long_woken: "Long waits of woken tasks",
  named: "Waits of tasks of one name",
};

/** Which waits a part is about. */
function titleOf(scope: WaitScope): string {
  const least = scope.least_ns > 0 ? ` of ${duration(scope.least_ns)} or longer` : "";
  const whose = scope.waiter === null || scope.waiter === undefined ? SCOPES[scope.waits] : `Waits of ${shown(scope.waiter)}`;
  return `${whose}${least}`;
}

/** Text on lines of at most so many characters. */
function wrapped(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length + 1 > most) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return line === "" ? lines : [...lines, line];
}

interface Bar {
  readonly lines: readonly string[];
  readonly cause: Cause;
}

function chart(causes: readonly Cause[], kernel: string, width: number): Element {
  const isNarrow = width < 560;
  const marginLeft = isNarrow ? 4 : Math.min(300, width * 0.42);
  const perLine = Math.floor((isNarrow ? width : marginLeft) / 6.1);
  const bars: Bar[] = causes.map((cause) => ({ lines: wrapped(cause.words, perLine), cause }));
  const heights = bars.map((bar) => (isNarrow ? bar.lines.length * 14 + 24 : Math.max(34, bar.lines.length * 14 + 12)));
  const tops: number[] = [];
  let height = 0;
  for (const each of heights) {
    tops.push(height);
    height += each;
  }
  const middle = (at: number): number => (tops[at] ?? 0) + (isNarrow ? (heights[at] ?? 0) - 12 : (heights[at] ?? 0) / 2);
  const ends = causes.flatMap((cause) => [cause.added.ns_per_s, cause.added.low, cause.added.high, 0]).filter((end) => end !== null);
  const colour = (cause: Cause): string => (cause.added.ns_per_s > 0 ? "var(--worse)" : "var(--better)");
  const marks: Plot.Markish[] = [Plot.ruleX([0], { stroke: "var(--strong-rule)" })];
  bars.forEach((bar, at) => {
    const { cause } = bar;
    const y = middle(at);
    marks.push(Plot.rect([0], { x1: 0, x2: cause.added.ns_per_s, y1: y - 6, y2: y + 6, fill: colour(cause), fillOpacity: cause.sure ? 0.85 : 0.35 }));
    if (cause.added.low !== null && cause.added.high !== null) {
      marks.push(Plot.ruleY([y], { x1: cause.added.low, x2: cause.added.high, stroke: "var(--ink)", strokeWidth: 1.3 }));
    }
    const left = Math.min(...ends);
    const top = isNarrow ? (tops[at] ?? 0) + 10 : y - (bar.lines.length - 1) * 7;
    bar.lines.forEach((line, row) => {
      const where = isNarrow ? { textAnchor: "start" as const, dx: 2 } : { textAnchor: "end" as const, dx: -10 };
      marks.push(Plot.text([0], { x: left, y: top + row * 14, text: [shown(line)], fill: "var(--ink)", ...where }));
    });
  });
  return plot(`How much longer tasks wait in a second with ${kernel}, by cause: ${causes.map((cause) => `${cause.words} ${perSecond(cause.added.ns_per_s)}`).join("; ")}`, {
    width,
    height: height + 28,
    marginLeft,
    marginRight: 16,
    marginTop: 4,
    marginBottom: 24,
    x: { grid: true, label: null, domain: [Math.min(...ends), Math.max(...ends)], ticks: Math.max(3, Math.floor((width - marginLeft) / 90)), tickFormat: (value: number) => perSecond(value).replace(/\.0+(?= )/, "") },
    y: { domain: [0, height], range: [4, height + 4], axis: null },
    marks,
  });
}

function namesOf(names: readonly Named[]): string {
  const weight = (each: Named): number => Math.max(each.baseline_ns_per_s, each.ns_per_s);
  const most = [...names].sort((one, other) => weight(other) - weight(one)).slice(0, 3);
  return most.map((each) => each.name).join(", ");
}

function endedBy(cause: Cause): string {
  const weight = (each: { baseline_ns_per_s: number; ns_per_s: number }): number => Math.max(each.baseline_ns_per_s, each.ns_per_s);
  return [...cause.ended].sort((one, other) => weight(other) - weight(one))[0]?.words ?? "";
}

function causeTable(answer: Causes, scope: WaitScope): HTMLElement {
  const interval = (cause: Cause): string =>
    cause.added.low === null || cause.added.high === null ? "-" : `${perSecond(cause.added.low)} .. ${perSecond(cause.added.high)}`;
  return table({
    caption: "Waiting by cause, time in a second summed over all tasks.",
    columns: [
      { head: "Waiting", class: "words" },
      { head: answer.baseline, figures: true, class: "name-head" },
      { head: answer.kernel, figures: true, class: "name-head" },
      { head: "More", figures: true },
      { head: "95 % interval", figures: true },
      { head: "Share", figures: true },
      { head: "Who waits" },
      { head: "Behind" },
      { head: "Mostly ended when", class: "words" },
      { head: "Beside an idle CPU", figures: true },
    ],
    rows: scope.causes.map((cause) => [
      cause.words,
      { show: perSecond(cause.baseline_ns_per_s), by: cause.baseline_ns_per_s },
      { show: perSecond(cause.ns_per_s), by: cause.ns_per_s },
      { show: perSecond(cause.added.ns_per_s), by: cause.added.ns_per_s },
      interval(cause),
      { show: cause.share === null ? "-" : `${(cause.share * 100).toFixed(0)} %`, by: cause.share ?? undefined },
      namesOf(cause.waiters),
      namesOf(cause.runners),
      endedBy(cause),
      { show: cause.beside_idle === null ? "-" : share(cause.beside_idle), by: cause.beside_idle ?? undefined },
    ]),
    first: 40,
  });
}

function scopeSection(answer: Causes, scope: WaitScope): HTMLElement {
  const most = Math.max(...scope.causes.map((cause) => Math.abs(cause.added.ns_per_s)));
  const isSeen = (cause: Cause): boolean => Math.abs(cause.added.ns_per_s) > 0 && Math.abs(cause.added.ns_per_s) >= most * SEEN;
  const told = scope.causes.filter(isSeen).slice(0, DRAWN);
  const sentences = scope.sentences.map((text) => h("li", {}, shown(asSentence(text))));
  const rate = `${significant(scope.waits_per_s)} a second with ${answer.kernel}, ${significant(scope.baseline_waits_per_s)} with ${answer.baseline}.`;
  return h(
    "div",
    {},
    h("h3", {}, titleOf(scope)),
    h("p", { class: "soft" }, shown(rate)),
    h("ul", { class: "sentences" }, ...sentences),
    told.length === 0
      ? null
      : figure(
          "Time in a second that tasks wait more (right) or less (left), by cause, with its 95 % interval; pale: not sure among so many causes.",
          responsive((width) => chart(told, answer.kernel, width)),
          causeTable(answer, scope),
        ),
  );
}

/** Names that wait alike are many: only those that differ for sure are told, as in the program's text. */
function isShown(scope: WaitScope): boolean {
  return scope.waits !== "named" || scope.sure;
}

function tallies(what: string, answer: Causes, rows: readonly Tally[]): Child {
  if (rows.length === 0) return null;
  const change = (row: Tally): number => Math.abs(row.per_s - row.baseline_per_s);
  const sorted = [...rows].sort((one, other) => change(other) - change(one));
  return h(
    "details",
    {},
    h("summary", {}, what),
    table({
      caption: `${what}, times a second.`,
      columns: [{ head: "What", class: "words" }, { head: answer.baseline, figures: true, class: "name-head" }, { head: answer.kernel, figures: true, class: "name-head" }, { head: "More", figures: true }],
      rows: sorted.map((row) => [
        row.words,
        { show: row.baseline_per_s.toFixed(1), by: row.baseline_per_s },
        { show: row.per_s.toFixed(1), by: row.per_s },
        { show: (row.per_s - row.baseline_per_s).toFixed(1), by: row.per_s - row.baseline_per_s },
      ]),
      sorts: true,
    }),
  );
}

function workOf(answer: Causes): Child {
  const rows = (answer.work ?? []).filter((row) => row.baseline_units_per_s + row.units_per_s > 0);
  if (rows.length === 0) return null;
  const rate = (units: number): { show: string; by: number } => ({ show: count(units), by: units });
  const time = (spent: number): { show: string; by: number } => ({ show: perSecond(spent), by: spent });
  return h(
    "details",
    {},
    h("summary", {}, "What the scheduler itself was busy with"),
    table({
      caption: "Work of the scheduler: how many in a second, and how long it took, summed over CPUs.",
      columns: [
        { head: "Work", class: "words" },
        { head: "Counted" },
        { head: `${answer.baseline}, a second`, figures: true, class: "name-head" },
        { head: `${answer.kernel}, a second`, figures: true, class: "name-head" },
        { head: `${answer.baseline}, time`, figures: true, class: "name-head" },
        { head: `${answer.kernel}, time`, figures: true, class: "name-head" },
      ],
      rows: rows.map((row) => [row.words, row.unit, rate(row.baseline_units_per_s), rate(row.units_per_s), time(row.baseline_ns_per_s), time(row.ns_per_s)]),
      sorts: true,
    }),
  );
}

/** What is known of why one kernel makes tasks wait differently. */
export function causesOf(answer: Causes): HTMLElement {
  return h(
    "div",
    { class: "causes" },
    ...answer.scopes.filter(isShown).map((scope) => scopeSection(answer, scope)),
    tallies("What wakeups chose", answer, answer.placements),
    tallies("What balancing tried", answer, answer.balancing),
    workOf(answer),
    ...answer.notices.map((notice) => h("p", { class: "notice" }, shown(notice))),
  );
}
