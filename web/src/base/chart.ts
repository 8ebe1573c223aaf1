// Charts by Observable Plot, each with a name for screen readers and a table of what it shows.

import * as Plot from "@observablehq/plot";
import { h, s, shown, type Child } from "./dom.js";
import { duration } from "./format.js";

/** Colours of sides, the baseline's first: custom properties, so that themes and paper change them. */
const SIDES = ["var(--one)", "var(--two)", "var(--three)", "var(--four)", "var(--five)"] as const;

/** The colour of the side that stands at this place; more sides than colours share them. */
export function sideColour(place: number): string {
  return SIDES[place % SIDES.length] ?? "currentColor";
}

/** How the strokes of sides differ where colours do not show. */
export function sideDash(place: number): string | undefined {
  return [undefined, "6 3", "2 2.5", "8 3 2 3", "1 3"][place % 5];
}

/** Options that all charts share. */
const COMMON: Plot.PlotOptions = {
  style: { background: "none", color: "var(--ink)", fontFamily: "var(--sans)", fontSize: "11.5px", overflow: "visible" },
};

/** One chart of a given width: an image with a name, as far as a screen reader goes. */
export function plot(label: string, options: Plot.PlotOptions): SVGSVGElement | HTMLElement {
  const drawn = Plot.plot({ ...COMMON, ...options });
  // To a screen reader the chart is one image; what Plot calls its parts stays for who looks at the file.
  for (const part of drawn.querySelectorAll<SVGGElement>("g[aria-label]")) {
    part.dataset["mark"] = part.getAttribute("aria-label") ?? "";
    part.removeAttribute("aria-label");
  }
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", shown(label));
  return drawn as SVGSVGElement | HTMLElement;
}

/** A place whose chart is drawn as wide as the place is, and once more when that changes. */
export function responsive(draw: (width: number) => Element): HTMLElement {
  const place = h("div", { class: "chart" });
  let last = 0;
  const redraw = (width: number): void => {
    if (width <= 0 || Math.abs(width - last) < 2) return;
    last = width;
    place.replaceChildren(draw(width));
  };
  new ResizeObserver((entries) => redraw(Math.floor(entries[0]?.contentRect.width ?? 0))).observe(place);
  return place;
}

/** A stroke as a side's lines are drawn. */
export function swatch(place: number): SVGSVGElement {
  const stroke = { x1: 1, x2: 25, y1: 6, y2: 6, stroke: "currentColor", "stroke-width": 2.5, "stroke-dasharray": sideDash(place) };
  return s("svg", { class: "swatch", width: 26, height: 12, "aria-hidden": "true" }, s("line", stroke));
}

/** A duration at an axis: round ones without zeros behind the point. */
export function tickOf(nanoseconds: number): string {
  return duration(nanoseconds).replace(/\.0+(?= )/, "");
}

/** Names of sides with their colours; nothing in charts is told by colour alone. */
export function legend(sides: readonly string[]): HTMLElement {
  const key = (side: string, place: number): HTMLElement =>
    h("li", { class: `side side-${place % SIDES.length}` }, swatch(place), h("bdi", {}, shown(side)));
  return h("ul", { class: "legend", "aria-label": "Sides" }, ...sides.map(key));
}

/** A chart with what it shows in words, and as a table that opens. */
export function figure(caption: string, chart: Child, table?: HTMLElement): HTMLElement {
  const open = table && h("details", { class: "as-table" }, h("summary", {}, "As a table"), table);
  return h("figure", {}, chart, h("figcaption", {}, caption), open);
}
