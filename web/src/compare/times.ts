// Distributions of times on all sides: what share is no longer, and how the long ones thin out.

import * as Plot from "@observablehq/plot";
import { h, shown } from "../base/dom.js";
import { count, duration, share } from "../base/format.js";
import { unpack } from "../base/packed.js";
import { figure, legend, plot, responsive, sideColour, sideDash, tickOf } from "../base/chart.js";
import { table } from "../base/table.js";
import type { Distribution, SideTimes } from "./types.js";

/** A side's times by size. */
interface Steps {
  readonly name: string;
  readonly total: number;
  readonly min: number;
  readonly max: number;
  /** Ascending sizes, ns. */
  readonly at: Float64Array;
  /** How many are no greater. */
  readonly upTo: Float64Array;
}

async function stepsOf(side: SideTimes): Promise<Steps> {
  const [at, counts] = await Promise.all([unpack("f64", side.at), unpack("f64", side.counts)]);
  const upTo = new Float64Array(counts.length);
  let sum = 0;
  counts.forEach((each, place) => {
    sum += each;
    upTo[place] = sum;
  });
  return { name: side.name, total: sum, min: side.min, max: side.max, at, upTo };
}

interface Point {
  readonly side: number;
  readonly at: number;
  readonly share: number;
}

/** Times of 0 have no place on a logarithmic axis; they stand at its beginning. */
const LEAST = 1;

function points(sides: readonly Steps[], shareOf: (upTo: number, total: number) => number): Point[] {
  return sides.flatMap((side, place) =>
    Array.from(side.at, (at, index) => ({ side: place, at: Math.max(LEAST, at), share: shareOf(side.upTo[index] ?? 0, side.total) })),
  );
}

/** Powers of ten between the ends, not more than fit. */
function decades(low: number, high: number, most: number): number[] {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  return Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, at) => 10 ** (first + at * step));
}

function lines(data: readonly Point[], sides: readonly Steps[]): Plot.Markish[] {
  return sides.map((_, place) =>
    Plot.line(
      data.filter((point) => point.side === place && point.share > 0),
      { x: "at", y: "share", curve: "step-after", stroke: sideColour(place), strokeWidth: 1.8, ...dash(place) },
    ),
  );
}

function dash(place: number): { strokeDasharray?: string } {
  const pattern = sideDash(place);
  return pattern === undefined ? {} : { strokeDasharray: pattern };
}

function timeAxis(sides: readonly Steps[], width: number): Plot.ScaleOptions {
  const low = Math.max(LEAST, Math.min(...sides.map((side) => side.min)));
  const high = Math.max(low * 10, ...sides.map((side) => side.max));
  const ticks = decades(low, high, Math.max(2, Math.floor(width / 70)));
  return { type: "log", domain: [low, high], ticks, tickFormat: tickOf, label: null };
}

/** What a pointer reads off the lines. */
function reading(data: readonly Point[], sides: readonly Steps[], words: string): Plot.Markish {
  const title = (point: Point): string => `${shown(sides[point.side]?.name ?? "")}\n${share(point.share)} ${words} ${duration(point.at)}`;
  return Plot.tip([...data], Plot.pointer({ x: "at", y: "share", title, fill: "var(--paper)", stroke: "var(--strong-rule)" }));
}

function noLonger(sides: readonly Steps[], words: string, width: number): Element {
  const data = points(sides, (upTo, total) => upTo / total);
  return plot(`${words}: which share is no longer than a time, for ${sides.map((side) => side.name).join(", ")}`, {
    width,
    height: Math.min(300, Math.max(220, width * 0.62)),
    marginLeft: 46,
    marginRight: 18,
    x: timeAxis(sides, width),
    y: { domain: [0, 1], grid: true, label: null, ticks: 5, tickFormat: (value: number) => `${Math.round(value * 100)} %` },
    marks: [Plot.ruleY([0], { stroke: "var(--strong-rule)" }), ...lines(data, sides), reading(data, sides, "no longer than")],
  });
}

function longer(sides: readonly Steps[], words: string, width: number): Element {
  // The longest of all is as rare as one in all of them.
  const data = points(sides, (upTo, total) => Math.max(1, total - upTo) / total);
  const rarest = Math.min(0.1, ...sides.map((side) => 1 / Math.max(10, side.total)));
  const shareWords = (value: number): string => (value >= 0.0009 ? `${+(value * 100).toPrecision(2)} %` : `1 in 1e${Math.round(-Math.log10(value))}`);
  return plot(`${words}: which share is longer than a time, both logarithmic, for ${sides.map((side) => side.name).join(", ")}`, {
    width,
    height: Math.min(300, Math.max(220, width * 0.62)),
    marginLeft: 58,
    marginRight: 18,
    x: timeAxis(sides, width),
    y: { type: "log", domain: [rarest, 1], grid: true, label: null, ticks: decades(rarest, 1, 6), tickFormat: shareWords },
    marks: [...lines(data, sides), reading(data, sides, "longer than")],
  });
}

const PERCENTILES = [500, 750, 900, 950, 990, 995, 999, 1000] as const;

/** The least time such that so many thousandths of all are no greater. */
function percentile(side: Steps, perMille: number): number {
  if (perMille === 1000) return side.max;
  const rank = Math.max(1, Math.ceil((side.total * perMille) / 1000));
  const place = side.upTo.findIndex((upTo) => upTo >= rank);
  return Math.min(side.max, side.at[place] ?? side.max);
}

function percentileTable(sides: readonly Steps[], words: string): HTMLElement {
  const label = (perMille: number): string => (perMille === 1000 ? "max" : `p${perMille / 10}`);
  const rows = PERCENTILES.map((perMille) => [label(perMille), ...sides.map((side) => ({ show: duration(percentile(side, perMille)), by: percentile(side, perMille) }))]);
  const totals = ["number", ...sides.map((side) => ({ show: count(side.total), by: side.total }))];
  return table({
    caption: `${words} by percentile, all runs of a side together; sizes are kept within 0.8 %.`,
    columns: [{ head: "Percentile" }, ...sides.map((side) => ({ head: side.name, figures: true }))],
    rows: [...rows, totals],
  });
}

/** Both charts and the table of one kind of times; nothing where no side has any. */
export async function distribution(from: Distribution): Promise<HTMLElement | null> {
  const sides = (await Promise.all(from.sides.map(stepsOf))).filter((side) => side.total > 0);
  if (sides.length === 0) return null;
  const words = from.words;
  return h(
    "div",
    { class: "kept-whole" },
    h("h3", {}, words),
    legend(sides.map((side) => side.name)),
    h(
      "div",
      { class: "pair" },
      figure("Share that is no longer (ECDF).", responsive((width) => noLonger(sides, words, width))),
      figure("Share that is longer (CCDF); the tail thins out downwards.", responsive((width) => longer(sides, words, width))),
    ),
    percentileTable(sides, words),
  );
}
