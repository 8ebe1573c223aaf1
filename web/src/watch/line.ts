// A case's metric over history: the mean of each class of kernels with its interval, and what was found on the way.

import * as Plot from "@observablehq/plot";
import { h, shown } from "../base/dom.js";
import { figure, plot, responsive } from "../base/chart.js";
import { metric } from "../base/format.js";
import { table } from "../base/table.js";
import { verdictColour, verdictSign } from "../compare/words.js";
import { releaseSpans } from "./history.js";
import type { Finding, KernelClass, WatchAnswer, WatchedCase } from "./types.js";
import { cellWords, counted } from "./words.js";

/** Kernels in a row that run equally. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly of: KernelClass;
  readonly mean: number;
  readonly half: number | null;
}

/** Ends of an axis farther apart than this are drawn as powers. */
const LOGARITHMIC_FROM = 20;

/** Width of a release's name, px. */
const MARK = 42;

function stretches(of: WatchedCase, name: string): Stretch[] {
  const place = of.metrics.indexOf(name);
  const all: { from: number; to: number; of: KernelClass; mean: number; half: number | null }[] = [];
  let last: number | null = null;
  of.line.forEach((number, at) => {
    const its = number === null ? undefined : of.classes[number];
    const value = its?.metrics[place];
    const open = all[all.length - 1];
    if (number === last && open !== undefined) open.to = at;
    else if (its !== undefined && value !== undefined) all.push({ from: at, to: at, of: its, mean: value.mean, half: value.half });
    last = number;
  });
  return all;
}

/** Marks of releases, as many as have room. */
function releaseMarks(answer: WatchAnswer, width: number): { at: number; release: string; named: boolean }[] {
  const scale = width / Math.max(1, answer.kernels.length);
  let free = -Infinity;
  return releaseSpans(answer).map(({ release, from }) => {
    const named = from * scale >= free && from * scale + MARK <= width + MARK / 2;
    if (named) free = from * scale + MARK;
    return { at: from - 0.5, release, named };
  });
}

function kernelWords(answer: WatchAnswer, at: number): string {
  const { step, name } = answer.kernels[at] ?? { step: null, name: null };
  return step === null ? shown(name ?? "") : shown(`${step.commit}${step.release === null ? "" : `, ${step.release}`}\n`).replace("\\n", "\n") + shown(step.subject);
}

function valueWords(name: string, { mean, half }: Stretch): string {
  return half === null ? metric(name, mean) : `${metric(name, mean)} ± ${metric(name, half)}`;
}

function chart(answer: WatchAnswer, of: WatchedCase, name: string, chosen: number | undefined, width: number): Element {
  const lines = stretches(of, name);
  const changes = answer.findings.filter((finding) => finding.confirmed && finding.case === of.name && finding.metric === name);
  const [low, high] = [Math.min(...lines.map((line) => line.mean - (line.half ?? 0))), Math.max(...lines.map((line) => line.mean + (line.half ?? 0)))];
  const isLog = low > 0 && high / low > LOGARITHMIC_FROM;
  const steps = lines.flatMap((line, place) => {
    // What was not run is a gap.
    const before = lines[place - 1];
    const gap = before !== undefined && before.to + 1 < line.from ? [{ at: line.from - 0.5, mean: NaN }] : [];
    return [...gap, { at: line.from - 0.5, mean: line.mean }, { at: line.to + 0.5, mean: line.mean }];
  });
  const points = lines.flatMap((line) => Array.from({ length: line.to - line.from + 1 }, (_, at) => ({ at: line.from + at, line })));
  const marginLeft = 66;
  const marks = releaseMarks(answer, width - marginLeft - 20);
  const at = (finding: Finding): number => finding.positions[1] - 0.5;
  const intervals = lines.filter((line) => line.half !== null);
  return plot(`${of.name}: ${name} over ${counted(answer.kernels.length, "kernel")} from ${answer.kernels[0]?.name ?? ""} on${changes.map((finding) => `; ${cellWords(finding)}`).join("")}`, {
    width,
    height: 290,
    marginLeft,
    marginRight: 20,
    marginTop: 26,
    marginBottom: 26,
    x: { domain: [-0.5, answer.kernels.length - 0.5], axis: null },
    y: { type: isLog ? "log" : "linear", grid: true, nice: true, label: null, ticks: 5, tickFormat: (value: number) => metric(name, value).replace(/\.0+(?= |$)/, ""), ...(low === high ? { domain: [low === 0 ? -1 : low * 0.9, low === 0 ? 1 : low * 1.1] } : {}) },
    marks: [
      Plot.ruleX(marks, { x: "at", stroke: "var(--rule)", strokeOpacity: (mark) => (mark.named ? 1 : 0.5) }),
      Plot.text(marks.filter((mark) => mark.named), { x: "at", frameAnchor: "bottom", dy: 20, dx: 2, textAnchor: "start", text: (mark) => shown(mark.release), fill: "var(--soft)" }),
      Plot.ruleX(changes, { x: at, stroke: (finding: Finding) => verdictColour(finding.verdict), strokeWidth: (finding: Finding) => (finding.positions[1] === chosen ? 2.5 : 1), strokeDasharray: "4 3" }),
      Plot.text(changes, { x: at, frameAnchor: "top", dy: -18, fontSize: (finding: Finding) => (finding.positions[1] === chosen ? 17 : 12), text: (finding: Finding) => verdictSign(finding.verdict), fill: (finding: Finding) => verdictColour(finding.verdict) }),
      Plot.rect(intervals, { x1: (line: Stretch) => line.from - 0.5, x2: (line: Stretch) => line.to + 0.5, y1: (line: Stretch) => (isLog ? Math.max(low / 2, line.mean - (line.half ?? 0)) : line.mean - (line.half ?? 0)), y2: (line: Stretch) => line.mean + (line.half ?? 0), fill: "var(--one)", fillOpacity: 0.22 }),
      Plot.line(steps, { x: "at", y: "mean", stroke: "var(--one)", strokeWidth: 1.8 }),
      Plot.tip(points, Plot.pointerX({ x: "at", y: (point) => point.line.mean, title: (point) => `${kernelWords(answer, point.at)}\n${valueWords(name, point.line)}, ${counted(point.line.of.runs, "run")}`, fill: "var(--paper)", stroke: "var(--strong-rule)", lineWidth: 24 })),
    ],
    color: { type: "identity" },
  });
}

function asTable(answer: WatchAnswer, of: WatchedCase, name: string): HTMLElement {
  const commit = (at: number): string => answer.kernels[at]?.step?.commit ?? answer.kernels[at]?.name ?? "";
  return table({
    caption: `${shown(name)}, by kernels that run equally, event by event.`,
    columns: [{ head: "From", class: "mono" }, { head: "Kernels", figures: true }, { head: "Mean", figures: true }, { head: "Half of the interval", figures: true }, { head: "Runs", figures: true }],
    rows: stretches(of, name).map((line) => [
      commit(line.from),
      { show: line.to - line.from + 1, by: line.to - line.from + 1 },
      { show: metric(name, line.mean), by: line.mean },
      { show: line.half === null ? "-" : metric(name, line.half), by: line.half ?? undefined },
      { show: line.of.runs, by: line.of.runs },
    ]),
    first: 30,
  });
}

/** The chart with its table; `chosen` is the position of the change that the reader looks at. */
export function caseLine(answer: WatchAnswer, of: WatchedCase, name: string, chosen: number | undefined): HTMLElement {
  const words = "Means of kernels that run equally, shaded: their 95 % intervals; upright: confirmed changes; below: where a release's commits begin.";
  if (stretches(of, name).length === 0) return h("p", { class: "soft" }, "No run of this case was kept.");
  return figure(words, responsive((width) => chart(answer, of, name, chosen, width)), asTable(answer, of, name));
}
