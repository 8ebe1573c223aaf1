// Values along a line of settings: points with their intervals, joined within a series; and values of two settings as a grid of cells.

import * as Plot from "@observablehq/plot";
import { shown } from "./dom.js";
import { plot } from "./chart.js";

/** A value at a place of the line. */
export interface SeriesPoint {
  /** Its place: a number, or one of the names of the line. */
  readonly at: number | string;
  readonly value: number;
  readonly low?: number | null;
  readonly high?: number | null;
  /** Points of equal keys are joined, where lines are drawn. */
  readonly key: string;
  readonly colour: string;
  readonly symbol?: Plot.SymbolType;
  /** What stands beside the point. */
  readonly mark?: string;
  /** What a pointer reads, line by line. */
  readonly title: string;
}

export interface SeriesOptions {
  /** What a screen reader says. */
  readonly label: string;
  /** What lies along the line. */
  readonly along: string;
  readonly points: readonly SeriesPoint[];
  /** The line's places: names in their order, or the two ends of numbers. */
  readonly places: readonly string[] | readonly [number, number];
  readonly logarithmicAlong?: boolean;
  /** Places that are named below; without, as many as fit. */
  readonly ticks?: readonly { readonly at: number; readonly words: string }[];
  /** Values as words. */
  readonly words: (value: number) => string;
  /** How lines are drawn by key; without, points are not joined. */
  readonly dashes?: ReadonlyMap<string, string | undefined>;
  /** A stretch of the line that is marked. */
  readonly marked?: readonly [number, number];
}

/** Values that lie so many times apart need a logarithmic axis. */
const LOGARITHMIC = 20;

/** What is left of and below a chart for words. */
const MARGIN = { left: 66, right: 20, bottom: 46 } as const;

function isPositive(value: number): boolean {
  return Number.isFinite(value) && value > 0;
}

/** Whether values spread so far that a linear axis would hide most of them. */
export function isWide(values: readonly number[]): boolean {
  const all = values.filter(Number.isFinite);
  return all.length > 1 && all.every(isPositive) && Math.max(...all) / Math.min(...all) > LOGARITHMIC;
}

/** Ends of the axis of values: all of them, intervals as far as they do not dwarf the values. */
function domainOf(points: readonly SeriesPoint[], isLog: boolean): readonly [number, number] {
  const values = points.map((point) => point.value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const ends = points.flatMap((point) => [point.low, point.high]).filter((end): end is number => typeof end === "number");
  if (isLog) {
    const kept = ends.filter((end) => end > least / 4 && end < most * 4);
    return [Math.min(least, ...kept) / 1.3, Math.max(most, ...kept) * 1.3];
  }
  const reach = Math.max(most - least, Math.abs(most) * 0.1, 1e-9) * 2;
  const kept = ends.filter((end) => end >= least - reach && end <= most + reach);
  const [low, high] = [Math.min(least, ...kept), Math.max(most, ...kept)];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low >= 0 && low < (high - low) * 0.6 ? 0 : low - room, high + room];
}

/** Round values between two ends: 1, 2 and 5 of each power of ten, or powers alone. */
function roundBetween(low: number, high: number): number[] {
  const powers = Array.from({ length: 40 }, (_, at) => 10 ** (at - 12));
  const within = (value: number): boolean => value >= low && value <= high;
  const fine = powers.flatMap((power) => [power, 2 * power, 5 * power]).filter(within);
  const whole = powers.filter(within);
  return fine.length <= 7 ? fine : whole.length <= 7 ? whole : whole.filter((_, at) => at % 2 === 0);
}

/** Points, their intervals, and lines between those of a key. */
export function seriesChart(options: SeriesOptions, width: number): Element {
  const { points, places, words } = options;
  const isNamed = places.some((place) => typeof place === "string");
  const isLog = isWide(points.map((point) => point.value));
  const [low, high] = domainOf(points, isLog);
  const inside = (value: number): number => Math.max(low, Math.min(high, value));
  const withEnds = points.filter((point) => typeof point.low === "number" && typeof point.high === "number");
  const marks: Plot.Markish[] = [];
  if (options.marked !== undefined) marks.push(Plot.rect([options.marked], { x1: (ends) => ends[0], x2: (ends) => ends[1], y1: low, y2: high, fill: "var(--mark)" }));
  marks.push(Plot.gridY({ stroke: "var(--rule)", strokeOpacity: 1, ...(isLog ? { ticks: roundBetween(low, high) } : { ticks: 5 }) }));
  for (const [key, dash] of options.dashes ?? []) {
    const own = points.filter((point) => point.key === key);
    const stroke = own[0]?.colour ?? "currentColor";
    marks.push(Plot.line(own, { x: "at", y: "value", stroke, strokeWidth: 1.8, ...(dash === undefined ? {} : { strokeDasharray: dash }) }));
  }
  marks.push(
    Plot.ruleX(withEnds, { x: "at", y1: (point: SeriesPoint) => inside(point.low ?? 0), y2: (point: SeriesPoint) => inside(point.high ?? 0), stroke: "colour", strokeWidth: 2, strokeOpacity: 0.7 }),
    Plot.dot(points, { x: "at", y: "value", r: 5, symbol: (point: SeriesPoint) => point.symbol ?? "circle", fill: "colour", stroke: "var(--paper)", strokeWidth: 1 }),
    Plot.text(points.filter((point) => point.mark !== undefined), { x: "at", y: "value", text: (point: SeriesPoint) => shown(point.mark ?? ""), dx: 9, dy: -9, fill: "var(--ink)", fontSize: 11 }),
    Plot.tip(points, Plot.pointer({ x: "at", y: "value", title: (point: SeriesPoint) => shown(point.title).replaceAll("\\n", "\n"), fill: "var(--paper)", stroke: "var(--strong-rule)" })),
  );
  // As text, for Plot leaves out numbers of a logarithmic axis that it formats.
  if (isLog) marks.push(Plot.axisY(roundBetween(low, high), { text: (value: number) => words(value), label: null, tickSize: 4 }));
  if (options.ticks !== undefined) {
    marks.push(Plot.axisX(options.ticks.map((tick) => tick.at), { text: (at: number) => shown(options.ticks?.find((tick) => tick.at === at)?.words ?? ""), label: null, tickSize: 5 }));
  }
  const along: Plot.ScaleOptions = isNamed
    ? { type: "point", domain: places as readonly string[], padding: 0.4, label: null, tickFormat: (name: string) => shown(name) }
    : { type: options.logarithmicAlong === true ? "log" : "linear", domain: places as readonly number[], label: null, inset: 12, ...(options.ticks === undefined ? {} : { axis: null }) };
  return plot(options.label, {
    width,
    height: Math.min(360, Math.max(260, width * 0.42)),
    marginLeft: MARGIN.left,
    marginRight: MARGIN.right,
    marginTop: 14,
    marginBottom: MARGIN.bottom,
    x: along,
    y: { type: isLog ? "log" : "linear", domain: [low, high], label: null, ...(isLog ? { axis: null } : { ticks: 5, tickFormat: words }) },
    color: { type: "identity" },
    marks: [...marks, Plot.text([options.along], { text: (text: string) => shown(text), frameAnchor: "bottom", dy: 40, fill: "var(--soft)", fontSize: 11.5 })],
  });
}

/** A value of two settings. */
export interface GridCell {
  readonly across: string;
  readonly down: string;
  readonly value: number;
  readonly title: string;
}

export interface GridOptions {
  readonly label: string;
  readonly across: readonly string[];
  readonly down: readonly string[];
  readonly cells: readonly GridCell[];
  readonly alongAcross: string;
  readonly alongDown: string;
  readonly words: (value: number) => string;
}

const CELL = 34;

/** A grid: the deeper the colour the greater the value, which stands in each cell. */
export function gridChart(options: GridOptions, width: number): Element {
  const { cells, words } = options;
  const values = cells.map((cell) => cell.value);
  const isLog = isWide(values);
  const place = (value: number): number => (isLog ? Math.log(value) : value);
  const [least, most] = [Math.min(...values.map(place)), Math.max(...values.map(place))];
  const depth = (value: number): number => (most > least ? (place(value) - least) / (most - least) : 0.5);
  const fill = (cell: GridCell): string => `color-mix(in srgb, var(--two) ${Math.round(6 + 54 * depth(cell.value))}%, var(--paper))`;
  const marginLeft = Math.min(width * 0.3, 26 + Math.max(...options.down.map((name) => name.length)) * 7);
  const narrow = (width - marginLeft - 12) / options.across.length < 52;
  return plot(options.label, {
    width,
    height: CELL * options.down.length + 52,
    marginLeft: marginLeft + 12,
    marginRight: 12,
    marginTop: 6,
    marginBottom: 46,
    x: { type: "band", domain: options.across, label: null, padding: 0.04, tickSize: 0, tickFormat: (name: string) => shown(name) },
    y: { type: "band", domain: options.down, label: null, padding: 0.06, tickSize: 0, tickFormat: (name: string) => shown(name) },
    color: { type: "identity" },
    marks: [
      Plot.cell(cells, { x: "across", y: "down", fill, stroke: "var(--rule)", strokeWidth: 0.5 }),
      ...(narrow ? [] : [Plot.text(cells, { x: "across", y: "down", text: (cell: GridCell) => words(cell.value), fill: "var(--ink)", fontSize: 11 })]),
      Plot.tip(cells, Plot.pointer({ x: "across", y: "down", title: (cell: GridCell) => shown(cell.title).replaceAll("\\n", "\n"), fill: "var(--paper)", stroke: "var(--strong-rule)" })),
      Plot.text([options.alongAcross], { text: (text: string) => shown(text), frameAnchor: "bottom", dy: 40, fill: "var(--soft)", fontSize: 11.5 }),
      Plot.text([options.alongDown], { text: (text: string) => shown(text), frameAnchor: "left", rotate: -90, dx: -marginLeft - 2, fill: "var(--soft)", fontSize: 11.5 }),
    ],
  });
}
