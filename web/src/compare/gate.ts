// A gate: its rules, each with the interval of its change drawn against the bound, and what all come to.

import * as Plot from "@observablehq/plot";
import { h, shown, type Child } from "../base/dom.js";
import { difference, metric, quantity, significant } from "../base/format.js";
import { plot } from "../base/chart.js";
import { table, type Cell } from "../base/table.js";
import type { Gate, Rule } from "./types.js";

const WIDTH = 300;

/** An interval that reaches farther than so many times what matters goes on beyond the axis. */
const FARTHEST = 4;

const SIGNS: Readonly<Record<string, string>> = { passed: "✓", regression: "✗", undecided: "?" };

const COLOURS: Readonly<Record<string, string>> = { passed: "var(--better)", regression: "var(--worse)", undecided: "var(--neutral)" };

function outcome(word: string, words: string = word): HTMLElement {
  return h("span", { class: `verdict verdict-${word}` }, h("span", { "aria-hidden": "true" }, SIGNS[word] ?? "·"), ` ${words}`);
}

/** A change with its sign: a share of the baseline, or an amount of the metric's unit. */
function signed(rule: Rule, value: number): string {
  const sign = value > 0 ? "+" : "";
  const scale = { ns: 1, us: 1e3 }[quantity(rule.metric) as string];
  if (!rule.is_share && scale !== undefined) {
    const beside = Math.max(...[rule.bound, rule.change, rule.low, rule.high].map((one) => Math.abs(one ?? 0)));
    return difference(value * scale, beside * scale);
  }
  return rule.is_share ? `${sign}${significant(value * 100)} %` : `${sign}${metric(rule.metric, value)}`;
}

function intervalOf(rule: Rule): string {
  return rule.low === null || rule.high === null ? "-" : `${signed(rule, rule.low)} .. ${signed(rule, rule.high)}`;
}

/** What it would take to decide. */
function open(rule: Rule): string {
  if (rule.why !== null) return rule.why;
  if (typeof rule.more_runs === "number") return `about ${rule.more_runs} more runs would decide`;
  return rule.more_runs === null ? "" : "more than 10000 more runs";
}

/** Whether a rule is broken above its bound; below it otherwise. */
function isAbove(rule: Rule): boolean {
  return rule.rule.lastIndexOf(">") > rule.rule.lastIndexOf("<");
}

/** The ends of a rule's axis: no change, the bound, and the interval as far as it matters. */
function axisOf(rule: Rule): readonly [number, number] {
  const points = [0, rule.bound, rule.change ?? 0];
  const [least, most] = [Math.min(...points), Math.max(...points)];
  const reach = Math.max(most - least, Math.abs(rule.bound), 1e-9) * FARTHEST;
  const low = Math.min(least, Math.max(rule.low ?? least, least - reach));
  const high = Math.max(most, Math.min(rule.high ?? most, most + reach));
  const room = (high - low || Math.abs(rule.bound) || 1) * 0.08;
  return [low - room, high + room];
}

function words(rule: Rule): string {
  const change = rule.change === null ? "no change is known" : `changed by ${signed(rule, rule.change)}, interval ${intervalOf(rule)}`;
  return `${rule.rule}: ${change}; the bound is ${signed(rule, rule.bound)}: ${rule.outcome}`;
}

/** A rule's interval; shaded is where the change must not lie. */
function chart(rule: Rule): Element {
  const [low, high] = axisOf(rule);
  const colour = COLOURS[rule.outcome] ?? "var(--neutral)";
  const bad = isAbove(rule) ? { x1: rule.bound, x2: high } : { x1: low, x2: rule.bound };
  const marks: Plot.Markish[] = [
    Plot.rect([0], { ...bad, y1: 0, y2: 1, fill: "var(--bad)" }),
    Plot.ruleX([0], { stroke: "var(--strong-rule)", strokeDasharray: "3 3" }),
    Plot.ruleX([rule.bound], { stroke: "var(--worse)", strokeWidth: 1.6 }),
    ...labels(rule, [low, high]),
  ];
  if (rule.low !== null && rule.high !== null) {
    marks.push(Plot.ruleY([0.5], { x1: Math.max(low, rule.low), x2: Math.min(high, rule.high), stroke: colour, strokeWidth: 2.5, strokeLinecap: "round" }));
    if (rule.low < low) marks.push(Plot.text([0.5], { x: low, y: 0.5, text: ["◂"], fill: colour, fontSize: 14 }));
    if (rule.high > high) marks.push(Plot.text([0.5], { x: high, y: 0.5, text: ["▸"], fill: colour, fontSize: 14 }));
  }
  if (rule.change !== null) marks.push(Plot.dot([0.5], { x: rule.change, y: 0.5, r: 4.5, fill: colour, stroke: "var(--paper)", strokeWidth: 1 }));
  const y: Plot.ScaleOptions = { domain: [0, 1], axis: null };
  return plot(words(rule), { width: WIDTH, height: 46, marginLeft: 8, marginRight: 30, marginTop: 3, marginBottom: 17, x: { domain: [low, high], axis: null }, y, marks });
}

/** What stands below: no change, and the bound, which are left of and right of their lines where they are near to each other. */
function labels(rule: Rule, [low, high]: readonly [number, number]): Plot.Markish[] {
  const isNear = Math.abs(rule.bound) < (high - low) * 0.3;
  const side = (at: number): "start" | "middle" | "end" => {
    if (isNear) return (at === 0) === rule.bound > 0 ? "end" : "start";
    return at - low < (high - low) * 0.15 ? "start" : high - at < (high - low) * 0.15 ? "end" : "middle";
  };
  const label = (at: number, text: string, fill: string): Plot.Markish =>
    Plot.text([text], { x: at, frameAnchor: "bottom", dy: 15, text: [text], fill, textAnchor: side(at), dx: isNear ? (side(at) === "end" ? 4 : -4) : 0 });
  return [label(0, rule.bound === 0 ? "" : "0", "var(--soft)"), label(rule.bound, signed(rule, rule.bound).replace(/\.0+(?= )/, ""), "var(--worse)")];
}

function sentence(gate: Gate): string {
  const many = (word: string): number => gate.rules.filter((rule) => rule.outcome === word).length;
  const parts = [
    [many("regression"), "broken for sure"],
    [many("undecided"), "undecided"],
    [many("passed"), "passed"],
  ] as const;
  const told = parts.filter(([number]) => number > 0).map(([number, words]) => `${number} ${words}`);
  return `${gate.rules.length === 1 ? "1 rule" : `${gate.rules.length} rules`}: ${told.join(", ")}.`;
}

/** What the gate comes to, in a line. */
export function gateLine(gate: Gate): HTMLElement {
  return h("p", { class: "finding gate-line" }, "Gate: ", outcome(gate.outcome), `. ${sentence(gate)}`);
}

/** The rule that a reader asks for first: one that is broken, one that is open, or the first. */
export function firstRule({ rules }: Gate): Rule | undefined {
  const first = (outcome: string): Rule | undefined => rules.find((rule) => rule.outcome === outcome);
  return first("regression") ?? first("undecided") ?? rules[0];
}

/** The section on the gate. */
export function gateSection(gate: Gate): HTMLElement {
  const cells = (rule: Rule): (Cell | string)[] => [
    { show: h("code", {}, h("bdi", {}, shown(rule.rule))), by: rule.rule },
    rule.kernel,
    { show: rule.change === null ? "-" : signed(rule, rule.change), by: rule.change ?? undefined },
    { show: chart(rule), by: rule.change ?? undefined },
    { show: intervalOf(rule), by: rule.low ?? undefined },
    { show: `${rule.runs[0]} and ${rule.runs[1]}`, by: rule.runs[1] },
    { show: h("span", {}, outcome(rule.outcome), ...remark(rule)), by: rule.outcome },
  ];
  return h(
    "section",
    { id: "gate", "aria-labelledby": "gate-title" },
    h("h2", { id: "gate-title" }, "Gate"),
    table({
      caption: "What must not happen, and the change of each kernel against the baseline. Shaded: past the bound. Intervals are as wide as it takes for all rules together to hold in 95 % of all cases.",
      columns: [
        { head: "Must not happen" },
        { head: "Kernel", class: "name-head" },
        { head: "Change", figures: true },
        { head: "Against the bound", class: "forest gate-chart" },
        { head: "Interval", figures: true, class: "interval-cell" },
        { head: "Runs", figures: true },
        { head: "Outcome", class: "gate-outcome" },
      ],
      rows: gate.rules.map(cells),
      class: "gate-table",
    }),
  );
}

function remark(rule: Rule): Child[] {
  const text = open(rule);
  return text === "" ? [] : [h("span", { class: "gate-open" }, text)];
}
