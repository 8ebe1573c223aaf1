// Published values beside measured ones, as bars: the pictures of reports, on pages and in documents.

import * as Plot from "@observablehq/plot";
import { significant } from "./format.js";

/** What a scenario leaves (crates/report/src/picture.rs). */
export interface Picture {
  readonly title: string;
  readonly logarithmic: boolean;
  readonly rows: readonly PictureRow[];
}

export interface PictureRow {
  readonly name: string;
  readonly published: number | null;
  readonly measured: number | null;
}

const ROW = 30;
const BAR = 10;

interface Bar {
  readonly value: number;
  readonly middle: number;
  readonly side: "published" | "measured";
}

const COLOURS = { published: "var(--published, #8b96a3)", measured: "var(--one, #356a9f)" } as const;

function barsOf(rows: readonly PictureRow[]): Bar[] {
  const sides = ["published", "measured"] as const;
  return rows.flatMap((row, place) =>
    sides.flatMap((side, half) => {
      const value = row[side];
      const isAlone = row.published === null || row.measured === null;
      return value === null ? [] : [{ value, middle: place * ROW + ROW / 2 + (isAlone ? 0 : (half - 0.5) * (BAR + 1)), side }];
    }),
  );
}

/** Where bars begin and end: from 0, or from a value that leaves the least of them a length. */
function domainOf(picture: Picture, bars: readonly Bar[]): readonly [number, number] {
  const values = bars.map((bar) => bar.value);
  if (!picture.logarithmic) return [Math.min(0, ...values), Math.max(0, ...values, Number.MIN_VALUE)];
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return [1, 10];
  return [Math.min(...positive) * 0.6, Math.max(...positive) * 1.05];
}

/** The picture; `document` is that of a page, or of a program that draws without one. */
export function bars(picture: Picture, width: number, document: Document): Element {
  const all = barsOf(picture.rows);
  const [low, high] = domainOf(picture, all);
  const base = picture.logarithmic ? low : 0;
  const height = picture.rows.length * ROW;
  const longest = Math.max(4, ...picture.rows.map((row) => row.name.length));
  const marginLeft = Math.min(width * 0.45, 16 + longest * 6.3);
  const end = (bar: Bar): number => (picture.logarithmic ? Math.max(low, bar.value) : bar.value);
  const isLeft = (bar: Bar): boolean => bar.value < base;
  const labels = (left: boolean): Plot.Markish =>
    Plot.text(all.filter((bar) => isLeft(bar) === left), { x: end, y: "middle", text: (bar: Bar) => significant(bar.value), textAnchor: left ? "end" : "start", dx: left ? -4 : 4, fontSize: 10, fill: "currentColor" });
  const drawn = Plot.plot({
    document,
    width,
    height: height + 34,
    marginLeft,
    marginRight: 52,
    marginTop: 4,
    marginBottom: 30,
    style: { background: "none", fontFamily: "var(--sans, system-ui, sans-serif)", fontSize: "11px", overflow: "visible" },
    x: { type: picture.logarithmic ? "log" : "linear", domain: [low, high], grid: true, label: null, ticks: 5, tickFormat: (value: number) => `${+value.toPrecision(3)}`, insetLeft: low < 0 ? 40 : 0 },
    y: { domain: [0, Math.max(1, height)], range: [4, height + 4], axis: null },
    marks: [
      Plot.rect(all, { x1: base, x2: end, y1: (bar: Bar) => bar.middle - BAR / 2, y2: (bar: Bar) => bar.middle + BAR / 2, fill: (bar: Bar) => COLOURS[bar.side] }),
      Plot.ruleX([base], { stroke: "currentColor", strokeOpacity: 0.6 }),
      labels(false),
      labels(true),
      Plot.text(picture.rows.map((row, place) => ({ name: row.name, middle: place * ROW + ROW / 2 })), { frameAnchor: "left", y: "middle", text: "name", textAnchor: "end", dx: -8, fontSize: 11, fill: "currentColor" }),
    ],
    color: { type: "identity" },
  });
  for (const part of drawn.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label");
  drawn.setAttribute("role", "img");
  const told = picture.rows.map((row) => `${row.name}: published ${row.published ?? "nothing"}, measured ${row.measured ?? "nothing"}`);
  drawn.setAttribute("aria-label", `${picture.title}. ${told.join("; ")}`);
  return drawn;
}
