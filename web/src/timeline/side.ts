// The side list: the worst waits, what was found, and what is selected.

import { count, duration } from "../base/format.js";
import { h, name, shown, type Child } from "../base/dom.js";
import type { Wait } from "./data.js";
import type { Trace } from "./trace.js";

/** So many tasks that were found are listed. */
const FOUND_MAX = 60;

export interface SideActions {
  readonly showWait: (trace: Trace, place: number) => void;
  readonly showTask: (trace: Trace, task: number) => void;
}

type Span = readonly [number, number];

/** Spans in order, those together that touch: groups above each other may all have used up their quotas. */
function joined(spans: readonly Span[]): Span[] {
  const found: [number, number][] = [];
  for (const [from, to] of [...spans].sort((one, other) => one[0] - other[0])) {
    const last = found[found.length - 1];
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else if (to > from) found.push([from, to]);
  }
  return found;
}

const lengthOf = (spans: readonly Span[]): number => spans.reduce((sum, [from, to]) => sum + to - from, 0);

/** The part of a span that lies in others. */
function within([from, to]: Span, spans: readonly Span[]): number {
  return lengthOf(spans.map(([since, until]): Span => [Math.max(from, since), Math.min(to, until)]).filter(([since, until]) => until > since));
}

/** What the wait was for longest: its group's quota, or who ran where the task waited while there was some of it left. */
function behindOf(trace: Trace, wait: Wait): readonly Child[] {
  const quota = joined((wait.throttled ?? []).map(([, from, to]): Span => [Math.max(from, wait.from), Math.min(to, wait.to)]));
  const ran = new Map<number, number>();
  for (const [task, , from, to] of wait.runs) {
    const span: Span = [Math.max(from, wait.from), Math.min(to, wait.to)];
    const length = span[1] - span[0] - within(span, quota);
    if (task !== null && length > 0) ran.set(task, (ran.get(task) ?? 0) + length);
  }
  const [longest] = [...ran].sort((one, other) => other[1] - one[1]);
  const throttled = lengthOf(quota);
  if (throttled > (longest?.[1] ?? 0)) return [`${duration(throttled)} for its group's quota`];
  return longest === undefined ? [] : ["behind ", name(trace.taskName(longest[0]))];
}

/** Traces in the order of their longest waits: the list whose first wait is the longest of all stands first. */
export function worstFirst(traces: readonly Trace[]): Trace[] {
  const longest = ({ data: { waits } }: Trace): number => (waits[0] === undefined ? -1 : waits[0].to - waits[0].from);
  return [...traces].sort((one, other) => longest(other) - longest(one));
}

export class Side {
  readonly element: HTMLElement;
  readonly selection: HTMLElement;
  private readonly found: HTMLElement;
  private readonly items = new Map<string, HTMLButtonElement>();

  constructor(
    private readonly traces: readonly Trace[],
    private readonly actions: SideActions,
  ) {
    this.selection = h("section", { class: "selection", "aria-live": "polite", "aria-label": "Selected" });
    this.found = h("section", { class: "found", "aria-live": "polite", "aria-label": "Found" });
    this.element = h("aside", { class: "side", "aria-label": "Waits and selection" }, this.found, this.selection, ...worstFirst(traces).map((trace) => this.waitsOf(trace)));
    this.selection.append(h("p", { class: "soft" }, "Click a slice, or one of the worst waits below."));
  }

  private waitsOf(trace: Trace): HTMLElement {
    const { waits, measured, crossed, still, still_count } = trace.data;
    const which = this.traces.length > 1 ? ` of ${trace.letter}` : "";
    const list = h("ol", { class: "waits" });
    const longest = waits[0] === undefined ? 1 : waits[0].to - waits[0].from;
    waits.forEach((wait, place) => list.append(h("li", {}, this.item(trace, wait, place, longest))));
    const lost = crossed > 0 ? `; ${count(crossed)} more cross holes and are no measurements` : "";
    const remains = still.map((one) => h("li", {}, shown(one.text)));
    return h(
      "section",
      {},
      h("h2", {}, `Worst waits${which}`),
      h("p", { class: "soft" }, `${count(measured)} were measured${lost}.`),
      waits.length === 0 ? h("p", {}, "There are none.") : list,
      still_count > 0 && h("details", {}, h("summary", {}, `${count(still_count)} still wait when the trace ends`), h("ul", { class: "still" }, ...remains)),
    );
  }

  private item(trace: Trace, wait: Wait, place: number, longest: number): HTMLButtonElement {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.inlineSize = `${Math.max(2, ((wait.to - wait.from) / longest) * 100)}%`;
    const who = h("span", { class: "who" }, name(`${wait.who.comm || "task"}:${wait.who.pid}`));
    const behind = behindOf(trace, wait);
    const other = behind.length === 0 ? null : h("span", { class: "behind" }, ...behind);
    const button = h("button", { type: "button", class: "wait" }, who, h("span", { class: "long" }, duration(wait.to - wait.from)), other, bar);
    button.addEventListener("click", () => this.actions.showWait(trace, place));
    this.items.set(`${trace.letter}${place}`, button);
    return button;
  }

  /** Marks a wait as the one that is shown. */
  current(trace: Trace | undefined, place: number): void {
    for (const [key, button] of this.items) {
      const is = trace !== undefined && key === `${trace.letter}${place}`;
      if (is) {
        button.setAttribute("aria-current", "true");
        button.scrollIntoView({ block: "nearest" });
      } else button.removeAttribute("aria-current");
    }
  }

  select(...content: readonly Node[]): void {
    this.selection.replaceChildren(...content);
    this.element.scrollTop = 0;
  }

  /** Lists what a search found. */
  show(word: string): readonly (readonly [Trace, number])[] {
    if (word === "") {
      this.found.replaceChildren();
      return [];
    }
    const all = this.traces.flatMap((trace) => trace.search(word).map((task) => [trace, task] as const));
    const list = h("ul", { class: "results" });
    for (const [trace, task] of all.slice(0, FOUND_MAX)) {
      const prefix = this.traces.length > 1 ? `${trace.letter} ` : "";
      const button = h("button", { type: "button", class: "result" }, prefix, name(trace.taskName(task)), h("span", { class: "long" }, duration(trace.data.tasks.ran[task] ?? 0)));
      button.addEventListener("click", () => this.actions.showTask(trace, task));
      list.append(h("li", {}, button));
    }
    const more = all.length > FOUND_MAX ? `, the ${FOUND_MAX} that ran longest are listed` : "";
    const head = all.length === 0 ? `No task is called '${shown(word)}' or has that id.` : `${count(all.length)} ${all.length === 1 ? "task" : "tasks"} found${more}, with how long each ran`;
    this.found.replaceChildren(h("p", { class: "soft" }, head), list);
    return all;
  }
}
