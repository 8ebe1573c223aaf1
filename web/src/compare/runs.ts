// Each run's value on all sides, for the metric that the reader chooses: whether a mean stands for its runs.

import * as Plot from "@observablehq/plot";
import { h, shown } from "../base/dom.js";
import { metric } from "../base/format.js";
import { plot, responsive, sideColour } from "../base/chart.js";
import { areHosts, ranges } from "../base/page.js";
import { table } from "../base/table.js";
import type { Comparison, Metric, RunRow } from "./types.js";

interface Dot {
  readonly side: string;
  readonly place: number;
  readonly run: number;
  readonly value: number;
}

interface Side {
  readonly name: string;
  readonly values: readonly number[];
}

function sidesOf(answer: Comparison, name: string): { sides: Side[]; rows: Metric[] } {
  const rows = answer.metrics.filter((row) => row.name === name);
  const baseline = { name: answer.baseline, values: rows[0]?.baseline_values ?? [] };
  return { sides: [baseline, ...rows.map((row) => ({ name: row.kernel, values: row.values }))], rows };
}

/** Whether lines join the runs of the sides. */
function arePaired(sides: readonly Side[], rows: readonly Metric[]): boolean {
  return rows.every((row) => row.pairing === "paired") && sides.every((side) => side.values.length === sides[0]?.values.length);
}

/** What the chart's dots, strokes and lines are. */
function legend(answer: Comparison, name: string): string {
  const { sides, rows } = sidesOf(answer, name);
  const hosts = areHosts(answer.provenance);
  const dots = `A dot is a ${hosts ? "host" : "run"}, an upright stroke the mean of a side.`;
  if (!arePaired(sides, rows)) return dots;
  return `${dots} ${hosts ? "Lines join equal hosts." : "Lines join runs with equal seeds."}`;
}

function chart(answer: Comparison, name: string, width: number): Element {
  const { sides, rows } = sidesOf(answer, name);
  const dots: Dot[] = sides.flatMap((side, place) => side.values.map((value, run) => ({ side: String(place), place, run, value })));
  const means = sides.map((side, place) => ({ side: String(place), mean: side.values.reduce((sum, value) => sum + value, 0) / Math.max(1, side.values.length) }));
  const values = dots.map((dot) => dot.value);
  const spread = Math.max(...values) / Math.min(...values);
  const isLog = Math.min(...values) > 0 && spread > 20;
  const seed = (run: number): string => {
    const seeds = answer.provenance.seeds ?? [];
    return seeds.length === sides[0]?.values.length ? `seed ${seeds[run]}` : `${areHosts(answer.provenance) ? "host" : "run"} ${run + 1}`;
  };
  const marks: Plot.Markish[] = [];
  if (arePaired(sides, rows)) marks.push(Plot.line(dots, { x: "value", y: "side", z: "run", stroke: "var(--strong-rule)", strokeOpacity: 0.45 }));
  marks.push(Plot.tickX(means, { x: "mean", y: "side", stroke: "var(--ink)", strokeWidth: 2 }));
  marks.push(Plot.dot(dots, { x: "value", y: "side", r: 3.5, fill: (dot: Dot) => sideColour(dot.place), fillOpacity: 0.75, stroke: "var(--paper)", strokeWidth: 0.5 }));
  marks.push(Plot.tip(dots, Plot.pointer({ x: "value", y: "side", title: (dot: Dot) => `${seed(dot.run)}: ${metric(name, dot.value)}`, fill: "var(--paper)", stroke: "var(--strong-rule)" })));
  const longest = Math.max(...sides.map((side) => shown(side.name).length));
  const marginLeft = Math.min(width * 0.35, 14 + longest * 6.6);
  return plot(`${name}: the value of each run, for ${sides.map((side) => side.name).join(", ")}`, {
    width,
    height: 34 + 42 * sides.length,
    marginLeft,
    marginRight: 20,
    marginBottom: 28,
    x: { type: isLog ? "log" : "linear", grid: true, insetLeft: 8, insetRight: 8, label: null, ticks: Math.max(3, Math.floor(width / (isLog ? 260 : 130))), tickFormat: (value: number) => metric(name, value).replace(/\.0+(?= |$)/, "") },
    y: { label: null, domain: sides.map((_, place) => String(place)), tickFormat: (place: string) => cut(shown(sides[Number(place)]?.name ?? ""), Math.floor(marginLeft / 6.6) - 1), tickSize: 0 },
    color: { type: "identity" },
    marks,
  });
}

/** A name that fits, its end left out where it does not. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

/** Two kinds of runs in one mean. */
function modesOf(answer: Comparison, name: string): string[] {
  const { rows } = sidesOf(answer, name);
  const words = (kernel: string, modes: Metric["modes"]): string[] =>
    modes === null || modes === undefined
      ? []
      : [`${kernel} has two modes: ${modes[0].runs} runs about ${metric(name, modes[0].mean)}, ${modes[1].runs} about ${metric(name, modes[1].mean)}.`];
  return [...words(answer.baseline, rows[0]?.baseline_modes ?? null), ...rows.flatMap((row) => words(row.kernel, row.modes))];
}

function valueTable(answer: Comparison, name: string): HTMLElement {
  const { sides } = sidesOf(answer, name);
  const most = Math.max(0, ...sides.map((side) => side.values.length));
  const rows = Array.from({ length: most }, (_, run) => [
    String(run + 1),
    ...sides.map((side) => {
      const value = side.values[run];
      return value === undefined ? "-" : { show: metric(name, value), by: value };
    }),
  ]);
  return table({ caption: `${shown(name)}, run by run.`, columns: [{ head: "Run" }, ...sides.map((side) => ({ head: side.name, figures: true }))], rows, first: 30 });
}

/** The section on single runs. */
export function runs(answer: Comparison): HTMLElement {
  const names = [...new Set(answer.metrics.map((row) => row.name))];
  const first = names.includes(answer.headline) ? answer.headline : names[0];
  const place = h("div");
  const choose = h("select", { id: "run-metric" }, ...names.map((each) => h("option", { value: each, selected: each === first }, shown(each))));
  const draw = (): void => {
    const name = choose.value;
    place.replaceChildren(
      h("figure", {}, responsive((width) => chart(answer, name, width)), h("figcaption", {}, legend(answer, name))),
      ...modesOf(answer, name).map((words) => h("p", {}, shown(words))),
      h("details", { class: "as-table" }, h("summary", {}, "As a table"), valueTable(answer, name)),
    );
  };
  choose.addEventListener("change", draw);
  draw();
  return h(
    "section",
    { id: "runs", "aria-labelledby": "runs-title" },
    h("h2", { id: "runs-title" }, areHosts(answer.provenance) ? "Host by host" : "Run by run"),
    h("p", { class: "control" }, h("label", { for: "run-metric" }, "Metric "), choose),
    place,
  );
}

/** The digests of all runs, by which they can be told to be the same. */
export function digests(rows: readonly RunRow[]): HTMLElement {
  const kernels = [...new Set(rows.map((row) => row.kernel))];
  const summary = `${rows.length} runs of ${kernels.length} kernels, seeds ${ranges([...new Set(rows.flatMap((row) => (row.seed === null ? [] : [row.seed])))])}, with their digests`;
  return h(
    "details",
    { id: "digests" },
    h("summary", {}, summary),
    table({
      caption: "A digest is of a run's whole course of events: equal inputs give equal digests.",
      columns: [{ head: "Kernel" }, { head: "Machine" }, { head: "Seed", figures: true }, { head: "Digest", class: "mono" }],
      rows: rows.map((row) => [row.kernel, row.machine, { show: row.seed === null ? "-" : String(row.seed), by: row.seed ?? undefined }, row.digest]),
      first: 20,
    }),
  );
}
