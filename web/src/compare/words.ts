// A comparison in words: the same as the program's text output says (crates/cli/src/commands/compare/table.rs).

import { metric, significant } from "../base/format.js";
import type { Effect, Metric, Verdict } from "./types.js";

/** What stands for each verdict, apart from its colour. */
const SIGNS: Readonly<Record<string, string>> = {
  better: "▲",
  worse: "▼",
  changed: "◆",
  equivalent: "=",
  undecided: "?",
  one_course: "·",
  not_modelled: "·",
};

export function verdictSign(verdict: Verdict): string {
  return SIGNS[verdict] ?? "·";
}

/** The words for people. */
export function verdictWords(verdict: Verdict): string {
  if (verdict === "not_modelled") return "not modelled";
  return verdict === "one_course" ? "one course of events" : verdict;
}

/** The colour of a verdict. */
export function verdictColour(verdict: Verdict): string {
  return verdict === "better" || verdict === "worse" || verdict === "changed" ? `var(--${verdict})` : "var(--neutral)";
}

/** The verdict, and where there is none yet, what it would take. */
export function verdictOf(row: Metric): string {
  if (row.verdict === "undecided" && typeof row.more_runs === "number") return `undecided, +${row.more_runs} runs`;
  if (row.verdict === "undecided" && row.more_runs !== null) return "undecided, > 10000 runs";
  return verdictWords(row.verdict);
}

/** A ratio's interval, or why there is none. */
export function intervalOf(row: Metric): string {
  if (row.low !== null && row.high !== null) return `${significant(row.low)} .. ${significant(row.high)}`;
  if (row.verdict === "one_course") return "-";
  if (row.ratio === null) return "no ratio to 0";
  return `${Math.min(row.baseline_values.length, row.values.length)} run decides nothing`;
}

/** A ratio with its interval behind it. */
export function effectOf(effect: Effect | null): string {
  if (effect === null || effect.ratio === null) return "-";
  if (effect.low === null || effect.high === null) return significant(effect.ratio);
  return `${significant(effect.ratio)} (${significant(effect.low)} to ${significant(effect.high)})`;
}

/** A metric's name in a sentence. */
export function spoken(name: string): string {
  return name.startsWith("wakeup_latency_ns_") ? `${name.slice("wakeup_latency_ns_".length)} wakeup latency` : name;
}

/** What a number counts, where neither its name nor its value's unit says it. */
export function unitWords(name: string): string {
  return /(^| )throughput$/.test(name) ? "units of work per second" : "";
}

/** The runs behind a row. */
export function runsOf(row: Metric): string {
  const [base, other] = [row.baseline_values.length, row.values.length];
  if (row.pairing === "unpaired") return `${base} and ${other} runs`;
  return other === 1 ? "1 paired run" : `${other} paired runs`;
}

/** From this ratio on a change is told in times, not in percent. */
const IN_TIMES = 2;

/** How something compares with `other`: `91.4 % lower (62.2 to 98.1 %) than v6.5's`, `3.20 times (2.50 to 4.10) v6.5's`; without it the change alone. */
export function changeOf(ratio: number, low: number | null, high: number | null, other?: string): string {
  const [beside, than] = other === undefined ? [" as much", ""] : [` ${other}'s`, ` than ${other}'s`];
  const hasEnds = low !== null && high !== null;
  if (ratio >= IN_TIMES) return `${significant(ratio)} times${hasEnds ? ` (${significant(low)} to ${significant(high)})` : ""}${beside}`;
  const percent = (value: number) => significant(Math.abs((value - 1) * 100));
  let ends = "";
  if (hasEnds && low < 1 !== high < 1) ends = ` (${percent(low)} % lower to ${percent(high)} % higher)`;
  else if (hasEnds) ends = ` (${percent(low < 1 ? high : low)} to ${percent(low < 1 ? low : high)} %)`;
  const size = percent(ratio);
  return size === "0" ? `as${other === undefined ? " before" : beside}${ends}` : `${size} % ${ratio < 1 ? "lower" : "higher"}${ends}${than}`;
}

/** One sentence: `v6.6: p99 wakeup latency 42.0 % lower (39.0 to 45.0 %) than v6.5's, 58 us instead of 100 us: better, 10 paired runs`. */
export function sentence(row: Metric, baseline: string): string {
  const [from, to] = [metric(row.name, row.baseline_mean), metric(row.name, row.mean)];
  if (row.ratio === null) return `${spoken(row.name)}: ${to} with ${row.kernel}, ${from} with ${baseline}; ${runsOf(row)}`;
  const has = `${row.kernel}: ${spoken(row.name)} ${changeOf(row.ratio, row.low, row.high, baseline)}`;
  if (row.verdict === "one_course") return `${has} in one course of events, which decides nothing: ${runsOf(row)}`;
  return `${has}, ${to} instead of ${from}: ${verdictOf(row)}, ${runsOf(row)}`;
}

/** A sentence begins with a capital letter and ends with a full stop. */
export function asSentence(text: string): string {
  const [first] = text;
  const begun = first === undefined ? text : first.toUpperCase() + text.slice(first.length);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** How many rows have each verdict, those that say most first. */
export function tally(verdicts: readonly Verdict[]): (readonly [Verdict, number])[] {
  const order = ["worse", "better", "changed", "equivalent", "undecided", "one_course", "not_modelled"];
  return order.map((verdict) => [verdict, verdicts.filter((one) => one === verdict).length] as const).filter(([, count]) => count > 0);
}

/** Whether a row differs for sure. */
export function differs(row: { readonly verdict: Verdict }): boolean {
  return ["better", "worse", "changed"].includes(row.verdict);
}

/** By the size of the factor; a change from or to nothing is the largest. */
export function largestFirst<R extends { readonly ratio: number | null }>(rows: readonly R[]): R[] {
  const size = (row: R): number => (row.ratio === null || row.ratio <= 0 ? Infinity : Math.abs(Math.log(row.ratio)));
  return [...rows].sort((one, other) => (size(other) === size(one) ? 0 : size(other) - size(one)));
}

/** Which way each metric is better, as the program knows it: `lower`, `higher`. */
export type Directions = Readonly<Record<string, string>>;

/** `lower is better`, where one way is. */
export function direction(name: string, directions: Directions | undefined): string {
  const way = directions?.[name];
  return way === undefined ? "" : `${way} is better`;
}
