// Ratios with their intervals, one below the other on one logarithmic axis: a table whose rows are drawn.

import * as Plot from "@observablehq/plot";
import { significant } from "../base/format.js";
import { plot } from "../base/chart.js";

/** A ratio that is drawn. */
export interface Ratio {
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly colour: string;
  /** What it is, for a screen reader. */
  readonly label: string;
}

/** The axis that all rows of a table share. */
export interface Axis {
  readonly low: number;
  readonly high: number;
  readonly margin: number;
  readonly ticks: readonly number[];
}

/** Nobody reads an interval's end that is so far away. */
const FARTHEST = 1e4;

/** An axis is at least so wide on either side of 1. */
const NEAREST = 1.05;

/** Round ratios, the coarser the longer the axis. */
function ticksOf(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const within = (value: number): boolean => value >= low * 0.999 && value <= high * 1.001;
  if (decades > 2) {
    const step = Math.max(1, Math.ceil(decades / 6));
    const powers = Array.from({ length: 17 }, (_, at) => at - 8).filter((power) => power % step === 0);
    return powers.map((power) => 10 ** power).filter(within);
  }
  const steps = [
    [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50],
    [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4],
    [0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4],
    [0.9, 0.95, 1, 1.05, 1.1],
  ];
  // Labels that stand closer than a seventh of the axis would lie over each other.
  const apart = (step: readonly number[]): boolean =>
    step.every((value, at) => at === 0 || Math.log10(value / (step[at - 1] ?? value)) >= decades / 7);
  return (steps.map((step) => step.filter(within)).filter((step) => step.length >= 3 && apart(step)).pop() ?? [1]).slice();
}

/** The axis of these ratios: as wide as they and their intervals are, as far as the ratios themselves allow. */
export function axisOf(rows: readonly Ratio[], margin: number): Axis {
  const positive = (value: number | null): value is number => value !== null && Number.isFinite(value) && value > 0;
  const ratios = rows.map((row) => row.ratio).filter(positive);
  const ends = rows.flatMap((row) => [row.low, row.high]).filter(positive);
  const reach = Math.min(FARTHEST, Math.max(NEAREST, 1 + 2 * margin, ...ratios.flatMap((ratio) => [ratio, 1 / ratio])) ** 1.5);
  const kept = [...ratios, ...ends].filter((value) => value <= reach && value >= 1 / reach);
  const low = Math.min(1 / NEAREST, 1 / (1 + 2 * margin), ...kept);
  const high = Math.max(NEAREST, 1 + 2 * margin, ...kept);
  const room = (high / low) ** 0.04;
  return { low: low / room, high: high * room, margin, ticks: ticksOf(low / room, high * room) };
}

const ROW = { height: 28, marginLeft: 8, marginRight: 8 } as const;

function scale(axis: Axis): Plot.ScaleOptions {
  return { type: "log", domain: [axis.low, axis.high], axis: null, clamp: true };
}

/** What lies behind every row: the band of what counts as equal, and 1. */
function ground(axis: Axis): Plot.Markish[] {
  return [
    // A narrow margin on a long axis would be thinner than a line: it is a little wider.
    Plot.rect([0], { x1: 1 / (1 + axis.margin), x2: 1 + axis.margin, y1: 0, y2: 1, fill: "var(--margin)", insetLeft: -1.5, insetRight: -1.5 }),
    Plot.ruleX(axis.ticks, { stroke: "var(--rule)", strokeWidth: 0.7 }),
    Plot.ruleX([1], { stroke: "var(--strong-rule)", strokeWidth: 0.8 }),
  ];
}

/** One row: its interval, its ratio, and an arrow where the interval goes on beyond the axis. */
export function rowChart(row: Ratio, axis: Axis, width: number): Element {
  const { ratio, colour } = row;
  const low = row.low === null ? null : Math.max(row.low, 0);
  const marks = ground(axis);
  if (low !== null && row.high !== null) {
    const [from, to] = [Math.max(low, axis.low), Math.min(row.high, axis.high)];
    marks.push(Plot.ruleY([0.5], { x1: from, x2: to, stroke: colour, strokeWidth: 2, strokeLinecap: "round" }));
    if (low < axis.low) marks.push(arrow(axis.low, "◂", colour));
    if (row.high > axis.high) marks.push(arrow(axis.high, "▸", colour));
  }
  if (ratio !== null && Number.isFinite(ratio)) {
    if (ratio < axis.low || ratio <= 0) marks.push(arrow(axis.low, "◂", colour));
    else if (ratio > axis.high) marks.push(arrow(axis.high, "▸", colour));
    else marks.push(Plot.dot([0.5], { x: ratio, y: 0.5, r: 4.5, fill: colour, stroke: "var(--paper)", strokeWidth: 1 }));
  }
  const y: Plot.ScaleOptions = { domain: [0, 1], axis: null };
  return plot(row.label, { ...ROW, marginTop: 0, marginBottom: 0, width, x: scale(axis), y, marks });
}

function arrow(at: number, sign: string, colour: string): Plot.Markish {
  return Plot.text([0.5], { x: at, y: 0.5, text: [sign], fill: colour, fontSize: 14 });
}

/** The axis over the rows. */
export function axisChart(axis: Axis, width: number): Element {
  const label = `Axis of ratios from ${significant(axis.low)} to ${significant(axis.high)}, logarithmic`;
  return plot(label, {
    ...ROW,
    height: 22,
    marginTop: 18,
    marginBottom: 0,
    width,
    x: scale(axis),
    y: { domain: [0, 1], axis: null },
    // As text, for Plot leaves out numbers of a logarithmic axis that it formats.
    marks: [Plot.axisX([...axis.ticks], { anchor: "top", text: (value: number) => `${+value.toPrecision(3)}`, tickSize: 4, label: null })],
  });
}
