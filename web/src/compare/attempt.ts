// What a patch does: the headline in words, then every case, a row a metric and a column a machine, all on one axis of ratios.

import { h, shown, type Child } from "../base/dom.js";
import { metric, significant } from "../base/format.js";
import { facts } from "../base/page.js";
import { table, type Cell } from "../base/table.js";
import { command, finding, many, notice, section, type Drawn } from "./drawn.js";
import { axisChart, axisOf, rowChart, type Axis, type Ratio } from "./forest.js";
import { parting } from "./parting.js";
import type { Held, PageParts } from "./types.js";
import { badge, directed, tallyLine } from "./verdicts.js";
import { changeOf, differs, largestFirst, spoken, verdictColour, verdictWords, type Directions } from "./words.js";

/** A metric of a case. */
interface Row {
  readonly machine: string;
  readonly workload: string;
  readonly metric: string;
  readonly runs: number;
  readonly before: number;
  readonly after: number;
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly verdict: string;
  readonly command: string;
}

interface Side {
  readonly source: string;
  readonly patches: readonly string[];
  readonly release: string;
  readonly kernels: readonly string[];
}

/** `docs/schemas/try-1.json`. */
interface Tried {
  readonly before: Side;
  readonly after: Side;
  readonly machines: readonly string[];
  readonly workloads: readonly { readonly workload: string; readonly purpose: string | null }[];
  readonly runs: number;
  readonly until_sure: boolean;
  readonly margin: number;
  readonly rows: readonly Row[];
  readonly alike: readonly { readonly machine: string; readonly workload: string }[];
  readonly difference: {
    readonly seed: number;
    readonly command: string;
    readonly time_ns: number;
    readonly cpu: number;
    readonly leads: string;
    readonly model: string;
    readonly state: readonly { readonly member: string; readonly leads: string; readonly model: string }[];
  } | null;
  readonly partial: boolean;
}

/** Workloads have short names: W1, W2. */
function short(answer: Tried, workload: string): string {
  const at = answer.workloads.findIndex((one) => one.workload === workload);
  return at < 0 ? workload : `W${at + 1}`;
}

function casesSeen(answer: Tried): number {
  const cases = [...answer.rows, ...answer.alike].map((one) => `${one.machine}\n${one.workload}`);
  return answer.partial ? new Set(cases).size : answer.workloads.length * answer.machines.length;
}

/** One sentence on the change that is largest, one on all of them. */
function findings(answer: Tried): Child[] {
  const cases = answer.workloads.length * answer.machines.length;
  const changed = largestFirst(answer.rows.filter(differs));
  const [largest] = changed;
  const partial = answer.partial ? notice(`Partial: stopped after ${casesSeen(answer)} of ${many(cases, "case")}. What follows is of these alone.`) : null;
  if (answer.rows.length === 0) {
    return [partial, finding(answer.partial ? "No case differs so far." : "The patch changes nothing that these workloads see: all runs are equal, event by event.")];
  }
  const all = `${many(answer.rows.length, "metric")} in ${many(casesSeen(answer), "case")}, ${answer.until_sure ? "up to " : ""}${many(answer.runs, "run")} a side.`;
  if (largest === undefined) return [partial, finding(`Nothing has changed for sure, of ${all}`), tallyLine(answer.rows)];
  const change = largest.ratio === null ? "" : ` ${changeOf(largest.ratio, largest.low, largest.high)}:`;
  const words = `${short(answer, largest.workload)} on ${largest.machine}: ${spoken(largest.metric)}${change} ${metric(largest.metric, largest.after)} instead of ${metric(largest.metric, largest.before)}.`;
  return [partial, finding("Largest change for sure: ", words, " ", badge(largest.verdict, verdictWords(largest.verdict))), h("p", {}, `Of ${all}`), tallyLine(answer.rows)];
}

function drawn(row: Row): Ratio {
  const ends = row.low === null || row.high === null ? "" : `, interval ${significant(row.low)} to ${significant(row.high)}`;
  const label = `${row.metric} on ${row.machine}: ${row.ratio === null ? "no ratio" : `ratio ${significant(row.ratio)}${ends}`}, ${verdictWords(row.verdict)}`;
  return { ratio: row.ratio, low: row.low, high: row.high, colour: verdictColour(row.verdict), label };
}

const WIDTH = 190;

function cellOf(row: Row | undefined, machine: string, axis: Axis): Cell {
  const where = h("span", { class: "cell-label" }, h("bdi", {}, shown(machine)));
  if (row === undefined) return { show: h("span", {}, where, "-") };
  const values = `${metric(row.metric, row.before)} → ${metric(row.metric, row.after)}`;
  const told = h("span", { class: "case-values" }, values, " ", badge(row.verdict, verdictWords(row.verdict)));
  return { show: h("span", { class: "case" }, where, rowChart(drawn(row), axis, WIDTH), told), by: row.ratio ?? undefined };
}

/** The cases of one workload. */
function workloadTable(answer: Tried, workload: string, axis: Axis, directions: Directions | undefined): Child {
  const rows = answer.rows.filter((row) => row.workload === workload);
  const alike = answer.alike.filter((one) => one.workload === workload).map((one) => one.machine);
  const equal = alike.length === 0 ? null : h("p", { class: "soft" }, `Equal, event by event: ${alike.map(shown).join(", ")}.`);
  if (rows.length === 0) return equal ?? h("p", { class: "soft" }, "Not run.");
  const machines = answer.machines.filter((machine) => rows.some((row) => row.machine === machine));
  const of = (name: string): Row[] => rows.filter((row) => row.metric === name);
  const rank = (name: string): number => (of(name).some(differs) ? 0 : of(name).some((row) => row.verdict === "equivalent") ? 1 : 2);
  const names = [...new Set(rows.map((row) => row.metric))].sort((one, other) => rank(one) - rank(other));
  return h(
    "div",
    {},
    table({
      caption: `After over before, one axis for all cases; shaded: within ${significant(answer.margin * 100)} % of no difference.`,
      columns: [{ head: "Metric" }, ...machines.map((machine) => ({ head: machine, class: "forest", beside: axisChart(axis, WIDTH) }))],
      rows: names.map((name) => [
        directed(name, directions),
        ...machines.map((machine) => cellOf(of(name).find((row) => row.machine === machine), machine, axis)),
      ]),
      class: "case-table",
    }),
    equal,
  );
}

function cases(answer: Tried, directions: Directions | undefined): HTMLElement {
  const axis = axisOf(answer.rows.map(drawn), answer.margin);
  const parts = answer.workloads.flatMap(({ workload, purpose }) => [
    h("h3", {}, `${short(answer, workload)} `, h("code", {}, h("bdi", {}, shown(workload)))),
    purpose === null ? null : h("p", { class: "soft" }, shown(`${purpose.replace(/^./, (letter) => letter.toUpperCase())}.`)),
    workloadTable(answer, workload, axis, directions),
  ]);
  return section("cases", "All cases", ...parts);
}

function sideWords(side: Side): string {
  return `${side.source} (Linux ${side.release})${side.patches.length === 0 ? "" : ` with ${side.patches.join(", ")}`}`;
}

/** The decision in which both differ first; what both hold alike is left out. */
function firstDifference(answer: Tried): HTMLElement[] {
  const from = answer.difference;
  if (from === null) return [];
  const held = from.state.map((one): Held => ({ member: one.member, baseline: one.leads, kernel: one.model }));
  const state = held.filter((one) => one.baseline !== one.kernel);
  const words = state.length === 0 ? `Just before, both hold the same: ${many(held.length, "value")}.` : `Of ${many(held.length, "value")} that were held just before, those that differ:`;
  const drawnParting = parting({ baseline: "before", kernel: "after" }, { ...from, baseline: from.leads, kernel: from.model, baseline_decisions: null, decisions: null, state }, words);
  return [section("parting", "First decision that differs, without chance and costs", drawnParting)];
}

/** The page of a patch. */
export function tried(answer: Tried, parts: PageParts): Drawn {
  const changed = largestFirst(answer.rows.filter(differs));
  const commands = changed.slice(0, 5).map((row) => `${row.command} --explain`);
  return {
    findings: [...findings(answer), facts([["Before", sideWords(answer.before)], ["After", sideWords(answer.after)]])],
    sections: [
      ...(answer.rows.length + answer.alike.length > 0 ? [cases(answer, parts.directions)] : []),
      ...firstDifference(answer),
      ...(commands.length > 0 ? [section("again", "See the largest changes again, with their causes", ...commands.map(command))] : []),
    ],
  };
}
