// Which commit changed a metric: named in words, then the steps of the search on the line of commits. Also of a parameter's values.

import { h, shown, type Child } from "../base/dom.js";
import { figure, responsive } from "../base/chart.js";
import { metric, significant } from "../base/format.js";
import { seriesChart, type SeriesPoint } from "../base/series.js";
import { table } from "../base/table.js";
import { command, finding, keys, many, notice, section, type Drawn } from "./drawn.js";
import { changeOf, spoken } from "./words.js";

/** A kernel, or a value, that was judged. */
interface Step {
  readonly kernel: string;
  readonly state: string;
  readonly runs: number;
  readonly mean: number | null;
  readonly low?: number | null;
  readonly high?: number | null;
  readonly position?: number | null;
  readonly subject?: string | null;
}

interface Crossing {
  readonly commit: string | null;
  readonly subject: string | null;
  readonly date?: string | null;
  readonly release: string | null;
  readonly last_without: string | null;
  readonly candidates: readonly { readonly commit: string | null; readonly subject: string }[];
  readonly before: string;
  readonly after: string;
  readonly becomes: string;
  readonly mean_before?: number;
  readonly mean_after?: number;
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly share: number | null;
  readonly command: string;
}

/** `docs/schemas/bisect-1.json`. */
interface Bisected {
  readonly metric: string;
  readonly from: string;
  readonly to: string;
  readonly verdict: string;
  readonly partial: boolean;
  readonly ends: { readonly kernel: string; readonly ratio: number | null; readonly low: number | null; readonly high: number | null; readonly verdict: string; readonly pairs: number; readonly command: string | null } | null;
  readonly crossings: readonly Crossing[];
  readonly changes: number;
  readonly skipped: readonly { readonly commit: string; readonly subject: string; readonly why: string }[];
  readonly error: number | null;
  readonly runs: number;
  readonly notices: readonly string[];
  readonly steps: readonly Step[];
}

interface State {
  readonly words: string;
  readonly colour: string;
  readonly symbol: "circle" | "square" | "diamond" | "triangle";
  readonly sign: string;
}

const STATES: Readonly<Record<string, State>> = {
  good: { words: "good", colour: "var(--better)", symbol: "circle", sign: "●" },
  bad: { words: "bad", colour: "var(--worse)", symbol: "square", sign: "■" },
  undecided: { words: "undecided", colour: "var(--neutral)", symbol: "diamond", sign: "◆" },
  one_course: { words: "one course of events", colour: "var(--neutral)", symbol: "triangle", sign: "▲" },
};

const UNKNOWN: State = { words: "not known", colour: "var(--neutral)", symbol: "diamond", sign: "◆" };

function stateOf(step: Step): State {
  return STATES[step.state] ?? UNKNOWN;
}

function badge(step: Step): HTMLElement {
  const state = stateOf(step);
  const sign = h("span", { class: "sign", "aria-hidden": "true" }, state.sign);
  sign.style.color = state.colour;
  return h("span", { class: "verdict" }, sign, ` ${state.words}`);
}

function legendOf(steps: readonly Step[]): HTMLElement {
  return keys("States", Object.entries(STATES).filter(([name]) => steps.some((step) => step.state === name)).map(([, state]) => state));
}

/** How much of the whole difference a commit makes: more than all of it where others take some back. */
function shareOfWhole(share: number): string {
  if (share > 1.005) return `${share.toFixed(2)} times the whole difference: other commits take some of it back`;
  return `${(share * 100).toFixed(0)} % of the whole difference`;
}

/** What one commit does, in a sentence. */
function effect(answer: Bisected, crossing: Crossing): string {
  const { mean_before: before, mean_after: after, ratio } = crossing;
  const values = before === undefined || after === undefined ? "" : `, ${metric(answer.metric, after)} instead of ${metric(answer.metric, before)}`;
  const change = ratio === null ? "differs" : changeOf(ratio, crossing.low, crossing.high, crossing.before);
  const share = crossing.share === null ? "" : `; ${shareOfWhole(crossing.share)}`;
  return `With it ${spoken(answer.metric)} is ${change}${values}${share}.`;
}

function whereIn(crossing: Crossing): string {
  const date = crossing.date === null || crossing.date === undefined ? "" : `of ${crossing.date}`;
  const release = crossing.release === null ? "" : `in ${crossing.release}${crossing.last_without === null ? "" : `, not in ${crossing.last_without}`}`;
  return [date, release].filter((part) => part !== "").join(", ");
}

const OUTCOMES: Readonly<Record<string, string>> = {
  several: "Several commits: no single one makes most of the difference.",
  nothing: "Nothing to find: the two kernels do not differ.",
  undecided: "Undecided: the runs that were granted do not tell which commit it is.",
  one_course: "One course of events: runs never differ, so nothing follows.",
  not_modelled: "No verdict: the two kernels differ only in what is not modelled.",
};

function named(commit: string | null, subject: string | null): Child[] {
  return [h("code", {}, shown(commit ?? "")), " ", h("bdi", {}, shown(subject ?? ""))];
}

function crossingWords(answer: Bisected, crossing: Crossing): HTMLElement[] {
  const isFound = answer.verdict === "found";
  const head = isFound ? (crossing.becomes === "bad" ? "First bad commit: " : "First good commit: ") : "Perhaps a part of it: ";
  const where = whereIn(crossing);
  const [only] = crossing.candidates;
  const which: Child[] =
    crossing.candidates.length === 1 && only !== undefined
      ? [...named(only.commit, only.subject), where === "" ? "." : ` (${where}).`]
      : [`one of ${crossing.candidates.length}, which could not be told apart.`];
  const several = crossing.candidates.length > 1 ? h("ul", { class: "sentences" }, ...crossing.candidates.map((one) => h("li", {}, ...named(one.commit, one.subject)))) : null;
  return [finding(h("strong", {}, head), ...which), ...(several === null ? [] : [several]), h("p", {}, shown(effect(answer, crossing)))];
}

function endsWords(answer: Bisected): HTMLElement | null {
  const { ends } = answer;
  if (ends === null || ends.ratio === null) return null;
  const other = ends.kernel === answer.to ? answer.from : answer.to;
  return h("p", {}, shown(`Both ends: ${ends.kernel}'s ${spoken(answer.metric)} is ${changeOf(ends.ratio, ends.low, ends.high, other)}, ${many(ends.pairs, "paired run")}.`));
}

function findings(answer: Bisected): Child[] {
  const outcome = answer.partial ? undefined : OUTCOMES[answer.verdict];
  const error = answer.error === null ? "" : ` An answer like this is wrong in at most ${significant(answer.error * 100)} % of such searches.`;
  return [
    answer.partial ? notice(`Partial: stopped after ${many(answer.runs, "run")}.`) : null,
    outcome === undefined ? null : finding(outcome),
    ...answer.crossings.flatMap((crossing) => crossingWords(answer, crossing)),
    endsWords(answer),
    h("p", { class: "soft" }, `${many(answer.runs, "run")}, ${many(answer.changes, "change")} between ${shown(answer.from)} and ${shown(answer.to)}.${error}`),
    ...answer.notices.map(notice),
  ];
}

/** Steps on the line of commits, in its order. */
function onLine(answer: Bisected): (Step & { readonly position: number; readonly mean: number; readonly turn: number })[] {
  const placed = answer.steps.flatMap((step, at) => (typeof step.position === "number" && step.mean !== null ? [{ ...step, position: step.position, mean: step.mean, turn: at + 1 }] : []));
  return placed.sort((one, other) => one.position - other.position);
}

function valueTitle(name: string, step: Step): string {
  const ends = typeof step.low === "number" && typeof step.high === "number" ? ` (${metric(name, step.low)} to ${metric(name, step.high)})` : "";
  return `${step.kernel}: ${stateOf(step).words}\n${step.mean === null ? "-" : metric(name, step.mean)}${ends}, ${many(step.runs, "run")}\n${step.subject ?? ""}`.trimEnd();
}

/** Names below the line: the ends, and both sides of where it crosses, as far as they fit. */
function ticksOf(answer: Bisected, steps: readonly (Step & { readonly position: number })[], width: number): { readonly at: number; readonly words: string }[] {
  const last = Math.max(1, ...steps.map((step) => step.position));
  const apart = (one: number, other: number): boolean => (Math.abs(one - other) / last) * (width - 90) > 100;
  const wanted = [answer.from, answer.to, ...answer.crossings.flatMap((crossing) => [crossing.after, crossing.before]), ...steps.map((step) => step.kernel)];
  const ticks: { at: number; words: string }[] = [];
  for (const kernel of wanted) {
    const step = steps.find((one) => one.kernel === kernel);
    if (step !== undefined && ticks.every((tick) => apart(tick.at, step.position))) ticks.push({ at: step.position, words: kernel });
  }
  return ticks.sort((one, other) => one.at - other.at);
}

/** Where the crossing that was found lies on the line. */
function markedOf(answer: Bisected, steps: readonly (Step & { readonly position: number })[]): readonly [number, number] | undefined {
  const [crossing] = answer.crossings;
  const after = steps.find((step) => step.kernel === crossing?.after)?.position;
  if (after === undefined || crossing === undefined) return undefined;
  const before = steps.find((step) => step.kernel === crossing.before)?.position ?? after - crossing.candidates.length;
  return [before, after];
}

function stepTable(answer: Bisected): HTMLElement {
  const turns = new Map(answer.steps.map((step, at) => [step, at + 1]));
  const place = (step: Step): number => step.position ?? Number.POSITIVE_INFINITY;
  const rows = [...answer.steps].sort((one, other) => place(one) - place(other));
  return table({
    caption: "In the order of commits; the number is the turn in which the search judged a kernel. Means of runs with their 95 % interval.",
    columns: [{ head: "Turn", figures: true }, { head: "Kernel", class: "mono" }, { head: "Is", class: "short" }, { head: "Runs", figures: true }, { head: spoken(answer.metric), figures: true }, { head: "95 % interval", figures: true }, { head: "Commit that leads to it", class: "words" }],
    rows: rows.map((step) => [
      { show: String(turns.get(step) ?? ""), by: turns.get(step) },
      step.kernel,
      { show: badge(step), by: step.state },
      { show: String(step.runs), by: step.runs },
      { show: step.mean === null ? "-" : metric(answer.metric, step.mean), by: step.mean ?? undefined },
      typeof step.low === "number" && typeof step.high === "number" ? `${metric(answer.metric, step.low)} .. ${metric(answer.metric, step.high)}` : "-",
      typeof step.position === "number" ? (step.subject ?? "") : `${step.subject ?? ""} (on a line that a merge joined)`,
    ]),
    sorts: true,
  });
}

function search(answer: Bisected): HTMLElement {
  const steps = onLine(answer);
  const last = Math.max(1, ...steps.map((step) => step.position));
  const points: SeriesPoint[] = steps.map((step) => ({
    at: step.position,
    value: step.mean,
    low: step.low ?? null,
    high: step.high ?? null,
    key: "",
    colour: stateOf(step).colour,
    symbol: stateOf(step).symbol,
    mark: String(step.turn),
    title: valueTitle(answer.metric, step),
  }));
  const marked = markedOf(answer, steps);
  const draw = (width: number): Element =>
    seriesChart(
      {
        label: `${answer.metric} of each kernel that was judged, from ${answer.from} to ${answer.to}`,
        along: `the line of commits, ${answer.from} to ${answer.to}`,
        points,
        places: [0, last],
        ticks: ticksOf(answer, steps, width),
        words: (value) => metric(answer.metric, value),
        ...(marked === undefined ? {} : { marked }),
      },
      width,
    );
  const caption = `${spoken(answer.metric)} of each kernel that the search judged, with its 95 % interval; the numbers are turns of the search.${marked === undefined ? "" : " Shaded: where it crosses."}`;
  return section("search", "The search", ...(points.length > 0 ? [legendOf(answer.steps), figure(caption, responsive(draw))] : []), stepTable(answer));
}

/** The page of a bisection. */
export function bisected(answer: Bisected): Drawn {
  const commands = [...answer.crossings.map((crossing) => crossing.command), ...(answer.ends?.command === null || answer.ends === null ? [] : [answer.ends.command])];
  const sections = [
    ...(answer.steps.length > 0 ? [search(answer)] : []),
    ...(answer.skipped.length > 0
      ? [section("skipped", "Passed over", table({ caption: "Commits of which no kernel builds or runs.", columns: [{ head: "Commit", class: "mono" }, { head: "Subject", class: "words" }, { head: "Why", class: "words" }], rows: answer.skipped.map((one) => [one.commit, one.subject, one.why]) }))]
      : []),
    ...(commands.length > 0 ? [section("again", "See it again", ...commands.map(command))] : []),
  ];
  return { findings: findings(answer), sections };
}

/** `docs/schemas/threshold-1.json`, as far as it is drawn. */
interface Threshold {
  /** The parameter. */
  readonly key: string;
  readonly metric: string;
  readonly steps: readonly (Omit<Step, "kernel"> & { readonly value: string })[];
}

/** Steps of a search along a parameter's values. */
export function threshold(answer: Threshold): Drawn {
  const steps = answer.steps.map((step): Step => ({ ...step, kernel: step.value }));
  const names = [...new Set(steps.map((step) => step.kernel))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const points: SeriesPoint[] = steps.flatMap((step, at) =>
    step.mean === null
      ? []
      : [{ at: step.kernel, value: step.mean, low: step.low ?? null, high: step.high ?? null, key: "", colour: stateOf(step).colour, symbol: stateOf(step).symbol, mark: String(at + 1), title: valueTitle(answer.metric, step) }],
  );
  if (points.length === 0) return { findings: [], sections: [] };
  const draw = (width: number): Element =>
    seriesChart({ label: `${answer.metric} at each value of ${answer.key}`, along: answer.key, points, places: names, words: (value) => metric(answer.metric, value) }, width);
  return { findings: [], sections: [section("search", "The search", legendOf(steps), figure(`${spoken(answer.metric)} at each value that was judged; the numbers are turns of the search.`, responsive(draw)))] };
}
