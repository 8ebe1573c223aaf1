// Verdicts, metric by metric: figures of both sides, the ratio with its interval drawn, and what it comes to.

import { h, shown } from "../base/dom.js";
import { metric, significant } from "../base/format.js";
import { table, type Cell } from "../base/table.js";
import { axisChart, axisOf, rowChart, type Axis, type Ratio } from "./forest.js";
import type { Comparison, Metric, Verdict } from "./types.js";
import { differs, direction, intervalOf, tally, unitWords, verdictColour, verdictOf, verdictSign, verdictWords, type Directions } from "./words.js";

const WIDTH = 230;

/** A verdict with its sign, in its colour. */
export function badge(verdict: Verdict, words: string): HTMLElement {
  return h("span", { class: `verdict verdict-${verdict}` }, h("span", { "aria-hidden": "true" }, verdictSign(verdict)), ` ${words}`);
}

/** How many metrics have which verdict. */
export function tallyLine(rows: readonly { readonly verdict: Verdict }[]): HTMLElement {
  const items = tally(rows.map((row) => row.verdict)).map(([verdict, count]) => h("li", {}, badge(verdict, `${count} ${verdictWords(verdict)}`)));
  return h("ul", { class: "tally", "aria-label": "Metrics by verdict" }, ...items);
}

/** A metric's name, what it counts where that is not its value's unit, and which way it is better. */
export function directed(name: string, directions: Directions | undefined): Cell {
  const words = [unitWords(name), direction(name, directions)].filter((part) => part !== "").join("; ");
  return { show: h("span", {}, h("bdi", { class: "metric" }, shown(name)), words === "" ? null : h("span", { class: "direction" }, words)), by: name };
}

function drawn(row: Metric): Ratio {
  const label = row.ratio === null ? "no ratio" : `ratio ${significant(row.ratio)}, interval ${intervalOf(row)}`;
  return { ratio: row.ratio, low: row.low, high: row.high, colour: verdictColour(row.verdict), label };
}

function titleOf(row: Metric): string {
  const parts = [row.p === null ? "" : `p ${significant(row.p)}`, row.q === null ? "" : `q ${significant(row.q)}`, row.method ?? ""];
  return parts.filter((part) => part !== "").join(", ");
}

/** What differs for sure first, then what is equal for sure; of each the order of the answer. */
function surestFirst(rows: readonly Metric[]): Metric[] {
  const rank = (row: Metric): number => (differs(row) ? 0 : row.verdict === "equivalent" ? 1 : 2);
  return [...rows].sort((one, other) => rank(one) - rank(other));
}

/** A value whose column's head a narrow screen does not have. */
function labelled(label: string, value: string): HTMLElement {
  return h("span", {}, h("span", { class: "cell-label" }, h("bdi", {}, shown(label))), value);
}

/** What a ratio is, as the text output says it (crates/cli/src/commands/compare/table.rs): the means beside it do not give it. */
export function ratioWords(rows: readonly Pick<Metric, "pairing" | "baseline_values" | "values">[]): string {
  const arePaired = rows.every((row) => row.pairing === "paired");
  const from = arePaired ? "the geometric mean of the paired runs' ratios" : "the ratio of the geometric means of the runs";
  const hasZero = rows.some((row) => [...row.baseline_values, ...row.values].some((value) => value <= 0));
  return `Ratio: ${from}${hasZero ? ", where a run has 0 that of the means" : ""}; the means beside it are arithmetic, so their ratio may differ.`;
}

/** All metrics of one kernel. */
function ofKernel(answer: Comparison, all: readonly Metric[], axis: Axis): HTMLElement {
  const rows = surestFirst(all);
  const kernel = rows[0]?.kernel ?? "";
  const cells = (row: Metric): (Cell | string)[] => [
    directed(row.name, answer.page?.directions),
    { show: labelled(answer.baseline, metric(row.name, row.baseline_mean)), by: row.baseline_mean },
    { show: labelled(kernel, metric(row.name, row.mean)), by: row.mean },
    { show: labelled("ratio", row.ratio === null ? "-" : significant(row.ratio)), by: row.ratio ?? undefined },
    { show: rowChart(drawn(row), axis, WIDTH), by: row.ratio ?? undefined },
    { show: labelled("95 % interval", intervalOf(row)), by: row.low ?? undefined },
    { show: h("span", { title: titleOf(row) || undefined }, badge(row.verdict, verdictOf(row))), by: row.verdict },
  ];
  return table({
    caption: `Means of runs; ratio of ${shown(kernel)} to ${shown(answer.baseline)} with its 95 % interval; shaded: within ${+(answer.margin * 100).toPrecision(3)} % of no difference. ${ratioWords(rows)}`,
    columns: [
      { head: "Metric" },
      { head: answer.baseline, figures: true, class: "name-head" },
      { head: kernel, figures: true, class: "name-head" },
      { head: "Ratio", figures: true, title: ratioWords(rows) },
      { head: "", class: "forest", beside: axisChart(axis, WIDTH) },
      { head: "95 % interval", figures: true, class: "interval-cell" },
      { head: "Verdict", class: "verdict-cell" },
    ],
    rows: rows.map(cells),
    class: "forest-table",
    rowClass: (at) => (rows[at]?.name === answer.headline ? "headline" : undefined),
  });
}

/** Rows kernel by kernel, as the answer has them. */
export function byKernel(answer: Comparison): Metric[][] {
  const groups: Metric[][] = [];
  for (const row of answer.metrics) {
    const last = groups[groups.length - 1];
    if (last !== undefined && last[0]?.kernel === row.kernel) last.push(row);
    else groups.push([row]);
  }
  return groups;
}

/** The section on verdicts; a reader may leave out what does not differ. */
export function verdicts(answer: Comparison): HTMLElement {
  const groups = byKernel(answer);
  // One axis, so that kernels can be held beside each other.
  const axis = axisOf(answer.metrics.map(drawn), answer.margin);
  const place = h("div");
  const fill = (only: boolean): void => {
    place.replaceChildren(
      ...groups.flatMap((rows) => {
        const kept = only ? rows.filter(differs) : rows;
        const head = groups.length > 1 ? h("h3", {}, h("bdi", {}, shown(rows[0]?.kernel ?? ""))) : null;
        const body = kept.length === 0 ? h("p", { class: "soft" }, "No metric differs for sure.") : ofKernel(answer, kept, axis);
        return head === null ? [body] : [head, tallyLine(rows), body];
      }),
    );
  };
  fill(false);
  const only = h("input", { type: "checkbox", id: "only-differing" });
  only.addEventListener("change", () => fill(only.checked));
  const control = h("label", { class: "control screen-only", for: "only-differing" }, only, " Only what differs for sure");
  return h("section", { id: "verdicts", "aria-labelledby": "verdicts-title" }, h("h2", { id: "verdicts-title" }, "Verdicts"), control, place);
}
