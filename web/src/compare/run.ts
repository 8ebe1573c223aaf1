// The page of runs: what each measured, how times are distributed, the longest wait, what the programs print.

import { breakable, h, shown, type Child } from "../base/dom.js";
import { duration, metric, significant } from "../base/format.js";
import { legend } from "../base/chart.js";
import type { Provenance } from "../base/page.js";
import { table } from "../base/table.js";
import type { PageParts } from "./types.js";
import { directed } from "./verdicts.js";
import { spoken, unitWords } from "./words.js";

/** A run, as `docs/schemas/run-1.json` has it. */
export interface Run {
  readonly kernel: string;
  readonly machine: string;
  readonly workload: string;
  readonly seed: number;
  readonly digest: string;
  readonly simulated_ns: number;
  readonly wall_ns: number;
  readonly switches: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface Runs {
  readonly schema: string;
  readonly provenance: Provenance;
  readonly partial: { readonly runs: number; readonly wanted: number } | null;
  readonly notices?: readonly string[];
  readonly runs: readonly Run[];
  readonly page?: PageParts;
}

/** So many runs of a kernel stand apart; of more the mean stands, with the least and the greatest. */
const APART = 6;

function kernelsOf(answer: Runs): string[] {
  return [...new Set(answer.runs.map((run) => run.kernel))];
}

function valuesOf(answer: Runs, kernel: string, name: string): number[] {
  return answer.runs.flatMap((run) => (run.kernel === kernel && run.metrics[name] !== undefined ? [run.metrics[name]] : []));
}

/** Numbers that are read first: of what the workload is run for, and of waits. */
function headlines(answer: Runs): string[] {
  const names = [...new Set(answer.runs.flatMap((run) => Object.keys(run.metrics)))];
  const wanted = [/(^| )throughput$/, /request_latency_ns_p99$/, /wakeup_latency_ns_p50$/, /wakeup_latency_ns_p99$/, /wakeup_latency_ns_max$/, /(^| )switches_per_s$/, /idle_share$/];
  return wanted.flatMap((one) => names.find((name) => one.test(name)) ?? []);
}

/** What a number that is read first counts: a wakeup latency is only one kind of wait. */
function countsWords(name: string): string {
  return plainOf(name).startsWith("wakeup_latency_ns_") ? "from wakeup to running" : unitWords(name);
}

/** A metric's name without whose it is. */
function plainOf(name: string): string {
  return name.slice(name.lastIndexOf(" ") + 1);
}

/** What each kernel's runs come to, in the numbers that are read first. */
function figures(answer: Runs): HTMLElement {
  const kernels = kernelsOf(answer);
  const one = (name: string): HTMLElement => {
    const values = kernels.map((kernel, place) => {
      const all = valuesOf(answer, kernel, name);
      const mean = all.reduce((sum, value) => sum + value, 0) / Math.max(1, all.length);
      return h("dd", { class: `side-${place % 5}` }, all.length === 0 ? "-" : metric(name, mean), h("span", { class: "unseen" }, shown(` with ${kernel}`)));
    });
    const counts = countsWords(name);
    return h("div", {}, h("dt", {}, breakable(spoken(name)), counts === "" ? null : h("span", { class: "unit" }, counts)), ...values);
  };
  return h("dl", { class: "figures" }, ...headlines(answer).map(one));
}

function spread(name: string, values: readonly number[]): Child {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return h("span", {}, metric(name, mean), values.length > 1 && high > low ? h("span", { class: "soft" }, ` (${metric(name, low)} to ${metric(name, high)})`) : null);
}

/** Every metric: a column a run, or a column a kernel where runs are many. */
function metrics(answer: Runs): HTMLElement {
  const kernels = kernelsOf(answer);
  const names = [...new Set(answer.runs.flatMap((run) => Object.keys(run.metrics)))];
  const isApart = answer.runs.length <= APART;
  const head = isApart ? answer.runs.map((run) => `${run.kernel}, seed ${run.seed}`) : kernels;
  const values = (name: string): number[][] =>
    isApart ? answer.runs.map((run) => (run.metrics[name] === undefined ? [] : [run.metrics[name]])) : kernels.map((kernel) => valuesOf(answer, kernel, name));
  return h(
    "section",
    { id: "metrics", "aria-labelledby": "metrics-title" },
    h("h2", { id: "metrics-title" }, "Metrics"),
    table({
      caption: isApart ? "What each run measured." : `Means of ${Math.max(...kernels.map((kernel) => answer.runs.filter((run) => run.kernel === kernel).length))} runs a kernel, and between which values they lie.`,
      columns: [{ head: "Metric" }, ...head.map((each) => ({ head: each, figures: true, class: "name-head" }))],
      rows: names.map((name) => [directed(name, undefined), ...values(name).map((all) => (all.length === 0 ? "-" : { show: spread(name, all), by: all[0] }))]),
    }),
  );
}

/** Each run in a row. */
export function runTable(answer: Runs): HTMLElement {
  return table({
    caption: "Each run. A digest is of a run's whole course of events: equal inputs give equal digests.",
    columns: [
      { head: "Kernel" },
      { head: "Seed", figures: true },
      { head: "Measured", figures: true },
      { head: "Took", figures: true },
      { head: "Switches", figures: true },
      { head: "Digest", class: "mono" },
    ],
    rows: answer.runs.map((run) => [
      run.kernel,
      { show: String(run.seed), by: run.seed },
      { show: duration(run.simulated_ns), by: run.simulated_ns },
      { show: duration(run.wall_ns), by: run.wall_ns },
      { show: run.switches < 1e6 ? String(run.switches) : significant(run.switches), by: run.switches },
      run.digest,
    ]),
    sorts: true,
    first: 20,
  });
}

/** What stands above the sections. */
export function runFindings(answer: Runs): HTMLElement {
  const partial = answer.partial && h("p", { class: "notice" }, `Partial: stopped after ${answer.partial.runs} of ${answer.partial.wanted} runs.`);
  const notes = (answer.notices ?? []).map((notice) => h("p", { class: "notice" }, shown(notice)));
  return h("div", { class: "findings" }, legend(kernelsOf(answer)), figures(answer), partial, ...notes);
}

/** The section on metrics, and the one of the text. */
export function runSections(answer: Runs, text: string | undefined): { readonly metrics: HTMLElement; readonly printed: HTMLElement | null } {
  const lines = (text ?? "").trimEnd().split("\n").map((line) => shown(line.replaceAll("\t", "        ")));
  const printed = h("section", { id: "printed", "aria-labelledby": "printed-title" }, h("h2", { id: "printed-title" }, "What the programs print"), h("pre", { class: "printed", tabindex: 0 }, lines.join("\n")));
  return { metrics: metrics(answer), printed: text === undefined || text === "" ? null : printed };
}
