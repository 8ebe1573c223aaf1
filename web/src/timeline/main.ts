// The page of traces: a line of time that one looks at from the whole down to a microsecond.

import "../base/base.css";
import "./timeline.css";
import { h, name, pageLink, shown } from "../base/dom.js";
import { count, duration } from "../base/format.js";
import { keyboard, type Key } from "../base/keyboard.js";
import { provenanceFacts, start, THEME_KEY } from "../base/page.js";
import { theme, themeButton } from "../base/theme.js";
import { colours, namesByTime, setsByName, shadesOf, TaskColours } from "./colours.js";
import { Cursor } from "./cursor.js";
import { FIRST_TASK, type TimelineData } from "./data.js";
import { factsOf, heldHint, hint, wakerOf } from "./facts.js";
import { listen } from "./input.js";
import { measuredOf } from "./measured.js";
import { Overview } from "./overview.js";
import { Pane, SWITCHES_DRAWN, type Hit } from "./pane.js";
import { Side, worstFirst } from "./side.js";
import type { Slice } from "./stretch.js";
import { tableOf } from "./table.js";
import { taskWaits, type OneWait } from "./taskwaits.js";
import { Trace } from "./trace.js";
import { View } from "./view.js";

/** How closely what is in view is drawn, in words, and what that means. */
interface Level {
  readonly words: string;
  readonly meaning: string;
}

const READING: Level = { words: "its switches are being read", meaning: "Until they are read, their time is hatched." };

const SWITCHES: Level = {
  words: "each switch is drawn",
  meaning: "Each run is a bar of its own, from the switch to a task to the switch away from it. Where several runs lie on one pixel, the bar's height is the share of time.",
};

const SUMS: Level = {
  words: "sums are drawn; zoom in to see each switch",
  meaning: `More than ${count(SWITCHES_DRAWN)} switches are in view, or the page leaves some out. A bar stands for up to 64 runs: its height is the share of time, its colour is of the task that ran longest.`,
};

class Page {
  readonly traces: readonly Trace[];
  readonly view: View;
  readonly panes: readonly Pane[];
  readonly cursor = new Cursor();
  private readonly overview: Overview;
  private readonly side: Side;
  private readonly names: readonly string[];
  private readonly shades: readonly ReturnType<typeof shadesOf>[];
  private taskColours: readonly TaskColours[] = [];
  private dirty = false;
  private printing = false;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private waitShown: { readonly trace: Trace; readonly place: number } | undefined;
  private taskShown: { readonly trace: Trace; readonly task: number } | undefined;
  private readonly status = h("p", { class: "status", role: "status" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly table = h("div", { class: "scroll" });
  private readonly search = h("input", { type: "search", id: "search", placeholder: "Find a task (/)", "aria-label": "Find a task by name or id", autocomplete: "off", spellcheck: "false" });
  private seriesOfSearch = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly data: TimelineData,
    traces: readonly Trace[],
  ) {
    this.traces = traces;
    const first = Math.min(...traces.map((trace) => -trace.offset));
    const last = Math.max(...traces.map((trace) => trace.data.length - trace.offset), first + 1);
    this.view = new View(first, last);
    this.names = namesByTime(traces);
    const known = setsByName(traces[0]!);
    this.shades = traces.map((trace, place) => shadesOf(trace, place === 0 ? undefined : known));
    this.panes = traces.map((trace) => new Pane(trace, this.view, traces.length > 1 ? `${trace.letter}: ${trace.data.label}` : trace.data.label));
    this.overview = new Overview(traces, this.view, () => this.panes[0]!.labels);
    this.side = new Side(traces, {
      showWait: (trace, place) => this.showWait(trace, place),
      showTask: (trace, task) => this.showTask(trace, task),
    });
    this.build();
    this.view.onChange(() => this.changed());
    document.addEventListener("themechange", () => this.recolour());
    addEventListener("resize", () => this.resized());
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    addEventListener("hashchange", () => this.readHash());
    this.recolour();
  }

  private build(): void {
    const keys = this.keys();
    const tool = (text: string, title: string, act: () => void): HTMLButtonElement => {
      const button = h("button", { type: "button", class: "tool", title }, text);
      button.addEventListener("click", act);
      return button;
    };
    const labels = this.traces.map((trace) => h("span", { class: "label" }, this.traces.length > 1 ? `${trace.letter} ` : "", name(trace.data.label)));
    const head = h(
      "header",
      { class: "top" },
      h("h1", {}, ...labels),
      h("p", { class: "soft" }, this.traces.map((trace) => this.sums(trace)).join("; ")),
      this.data.up === undefined ? null : h("p", {}, pageLink(this.data.up, "↑ ")),
      h("div", { class: "tools", role: "group", "aria-label": "Page" }, keyboard([...keys, THEME_KEY]), themeButton()),
    );
    const bar = h(
      "div",
      { class: "controls", role: "group", "aria-label": "View" },
      this.search,
      tool("Whole", "Show all (f)", () => this.view.fit()),
      tool("Back", "Where the view was before (b)", () => this.view.back()),
      tool("−", "Zoom out (-)", () => this.zoom(2)),
      tool("+", "Zoom in (+)", () => this.zoom(0.5)),
      tool("◂ Wait", "The wait before (p)", () => this.nextWait(-1)),
      tool("Wait ▸", "The next wait (n)", () => this.nextWait(1)),
      tool("Depth", "Show or hide runqueue depths (q)", () => this.toggleDepth()),
      legend(this.traces),
      this.status,
    );
    const kept = this.traces.filter((trace) => trace.data.kept.text !== null);
    const warnings = kept.map((trace) => h("p", { class: "kept", role: "note" }, name(trace.data.label), `: ${trace.data.kept.text}.`));
    const panes = h("div", { class: "panes" }, this.overview.canvas, h("div", { class: "rows" }, ...this.panes.map((pane) => pane.element), this.cursor.element));
    const tables = h("details", { class: "tables", id: "table" }, h("summary", {}, "What is visible, as a table"), this.table);
    tables.addEventListener("toggle", () => this.fillTable());
    this.root.className = "timeline";
    this.root.append(
      h("div", { class: "screen" }, head, bar, ...warnings, h("div", { class: "body" }, panes, this.side.element)),
      h("div", { class: "below" }, tables, this.about()),
      this.tip,
    );
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (event) => this.searchKey(event));
    for (const pane of this.panes) listen(pane, this);
  }

  private sums(trace: Trace): string {
    const { events, switches, length, release } = trace.data;
    const parts = [duration(length), `${count(events)} events`, `${count(switches)} switches`, `${trace.cpus.length} CPUs`];
    return (release === "" ? parts : [...parts, shown(release)]).join(", ");
  }

  private about(): HTMLElement {
    const details = h("details", { class: "about", id: "about" }, h("summary", {}, "How this page came about, and what the traces lack"));
    for (const trace of this.traces) {
      const { data } = trace;
      const notices = [...data.notices, ...data.trouble];
      const domains = data.machine.domains.length > 0 ? `as ${data.machine.domains_of} builds them on the recorded machine` : "not drawn: the trace does not tell the machine's topology, or no modelled kernel is its";
      const marks = data.mark_count > data.marks.length ? `the first ${data.marks.length} of ${count(data.mark_count)} marks are drawn` : "";
      details.append(
        h("h3", {}, name(data.label)),
        provenanceFacts(data.provenance, ["Begins at", `${trace.clock(0)} of the trace's clock`], ["Domains", domains], ["Marks", marks]),
        notices.length > 0 && h("ul", {}, ...notices.map((line) => h("li", {}, shown(line)))) || "",
      );
    }
    if (this.traces.length > 1) {
      const by = this.data.aligned;
      details.append(h("p", {}, by === null ? "Both traces are aligned at their beginnings." : `Both traces are aligned where '${shown(by)}' shows first.`));
    }
    return details;
  }

  private keys(): Key[] {
    const repeat = (key: string, does: string, act: () => void): Key => ({ key, does, act });
    return [
      { key: "w", label: "w s, + -", does: "Zoom in, out", act: () => this.zoom(0.6) },
      { key: "s", act: () => this.zoom(1 / 0.6) },
      { key: "a", label: "a d, ← →", does: "Earlier, later", act: () => this.view.pan(-0.25, true) },
      { key: "d", act: () => this.view.pan(0.25, true) },
      { key: "ArrowLeft", act: () => this.view.pan(-0.25, true) },
      { key: "ArrowRight", act: () => this.view.pan(0.25, true) },
      { key: "ArrowUp", label: "↑ ↓", does: "Rows above, below", act: () => this.scrollRows(-60) },
      { key: "ArrowDown", act: () => this.scrollRows(60) },
      { key: "+", act: () => this.zoom(0.5) },
      { key: "=", act: () => this.zoom(0.5) },
      { key: "-", act: () => this.zoom(2) },
      repeat("f", "Show all", () => this.view.fit()),
      repeat("b", "Back to where the view was", () => this.view.back()),
      repeat("/", "Find a task", () => this.search.focus()),
      repeat("n", "The next wait", () => this.nextWait(1)),
      repeat("p", "The wait before", () => this.nextWait(-1)),
      repeat("q", "Show or hide runqueue depths", () => this.toggleDepth()),
      { key: "Backspace", label: "Backspace", does: "Forget what is selected", act: () => this.clear() },
      { key: "Shift", label: "Shift + drag", does: "Measure a time" },
      { key: "Wheel", label: "Wheel", does: "Zoom; with Shift, or over names: rows" },
    ];
  }

  zoom(factor: number): void {
    this.view.zoom(factor, (this.view.from + this.view.to) / 2, true);
  }

  private scrollRows(by: number): void {
    const focused = this.panes.find((pane) => pane.canvas === document.activeElement) ?? this.panes[0]!;
    focused.scrollBy(by);
    this.changed();
  }

  private toggleDepth(): void {
    for (const trace of this.traces) trace.showsDepth = !trace.showsDepth;
    this.relayout();
  }

  relayout(): void {
    this.panes.forEach((pane) => pane.layout());
    this.changed();
  }

  /** The window has its size: names take what they need, and less of a narrow one. */
  resized(): void {
    const labels = Pane.labelsOf(this.panes);
    this.panes.forEach((pane) => (pane.labels = labels));
    this.relayout();
  }

  private recolour(): void {
    const dark = !this.printing && theme() === "dark";
    this.taskColours = this.shades.map((shades) => new TaskColours(shades, this.names, dark));
    this.changed();
  }

  changed(): void {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      this.draw();
    });
  }

  draw(): void {
    const palette = colours(this.printing);
    this.panes.forEach((pane, place) => {
      pane.printing = this.printing;
      pane.draw(palette, this.taskColours[place]!);
    });
    this.overview.draw(palette);
    this.cursor.refresh();
    clearTimeout(this.settled);
    const SETTLED_MS = 250;
    this.settled = setTimeout(() => this.settle(), SETTLED_MS);
  }

  /** The view has come to rest. */
  private settle(): void {
    const trouble = this.traces.map((trace) => trace.stretches.trouble).find((text) => text !== "");
    const level = this.panes.some((pane) => pane.waiting) ? READING : this.panes.some((pane) => pane.drewSums) ? SUMS : SWITCHES;
    this.status.textContent = trouble === undefined ? `${duration(this.view.span)} in view: ${level.words}` : `the page's data cannot be read: ${trouble}`;
    this.status.title = trouble === undefined ? level.meaning : "";
    this.view.rest();
    this.writeHash();
    this.fillTable();
  }

  private fillTable(): void {
    const details = this.table.parentElement;
    if (details instanceof HTMLDetailsElement && (details.open || this.printing)) this.table.replaceChildren(...this.panes.map((pane) => tableOf(pane)));
  }

  private writeHash(): void {
    const parts = [`v=${Math.round(this.view.from)},${Math.round(this.view.to)}`];
    if (this.waitShown !== undefined) parts.push(`wait=${this.waitShown.trace.letter}${this.waitShown.place}`);
    else if (this.taskShown !== undefined) parts.push(`task=${this.taskShown.trace.letter}${this.taskShown.task}`);
    const hash = `#${parts.join("&")}`;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }

  readHash(): void {
    const words = new URLSearchParams(location.hash.slice(1));
    const place = (word: string | null): { trace: Trace; number: number } | undefined => {
      const trace = this.traces.find((known) => known.letter === word?.[0]);
      const number = Number(word?.slice(1));
      return trace === undefined || !Number.isInteger(number) ? undefined : { trace, number };
    };
    const wait = place(words.get("wait"));
    const task = place(words.get("task"));
    if (wait !== undefined && wait.trace.data.waits[wait.number] !== undefined) this.showWait(wait.trace, wait.number);
    else if (task !== undefined && task.trace.data.tasks.pid[task.number] !== undefined) this.showTask(task.trace, task.number);
    else if (location.hash === "") this.showWorst();
    const [from, to] = (words.get("v") ?? "").split(",").map(Number);
    if (from !== undefined && to !== undefined && Number.isFinite(from) && to > from) this.view.set(from, to);
  }

  /** The page opens on the longest wait of all, whose list stands first. */
  private showWorst(): void {
    const [worst] = worstFirst(this.traces);
    if (worst !== undefined) this.showWait(worst, 0);
  }

  private paneOf(trace: Trace): Pane {
    return this.panes[this.traces.indexOf(trace)]!;
  }

  clear(): void {
    for (const pane of this.panes) {
      pane.marks = { band: undefined, frames: [], arrow: undefined };
      pane.measure = undefined;
      pane.trace.pinned = [];
    }
    this.waitShown = this.taskShown = undefined;
    this.side.current(undefined, 0);
    this.side.select(h("p", { class: "soft" }, "Click a slice, or one of the worst waits below."));
    this.relayout();
  }

  /** Shows one of the worst waits: where, who woke, who ran instead, and its story. */
  showWait(trace: Trace, place: number): void {
    const wait = trace.data.waits[place];
    if (wait === undefined) return;
    this.clear();
    this.waitShown = { trace, place };
    const pane = this.paneOf(trace);
    if (wait.who.task !== null) trace.pinned = [wait.who.task];
    const toCpu = wait.stays[0]?.[0] ?? wait.cpu;
    pane.marks = {
      band: { from: wait.from, to: wait.to },
      frames: wait.runs.map(([, cpu, from, to]) => [cpu, from, to] as const),
      arrow: wait.waker === null ? undefined : { cpu: wait.waker.cpu, time: wait.from, toCpu, toTime: wait.from },
    };
    this.side.current(trace, place);
    const whose = this.traces.length > 1 ? ` of ${trace.letter}` : "";
    this.side.select(h("h2", {}, `Selected wait${whose}`), h("pre", { class: "story", tabindex: 0 }, wait.story.split("\n").map(shown).join("\n")));
    this.relayout();
    pane.reveal((row) => row.kind === "cpu" && row.cpu === (wait.waker?.cpu ?? toCpu));
    pane.reveal((row) => row.kind === "cpu" && row.cpu === toCpu);
    const around = Math.max(500, (wait.to - wait.from) * 0.25);
    this.view.go(wait.from - around - trace.offset, wait.to + around - trace.offset);
  }

  nextWait(by: number): void {
    const all = worstFirst(this.traces).flatMap((trace) => trace.data.waits.map((_, place) => ({ trace, place })));
    if (all.length === 0) return;
    const now = all.findIndex(({ trace, place }) => trace === this.waitShown?.trace && place === this.waitShown.place);
    const next = all[(now < 0 ? (by > 0 ? 0 : all.length - 1) : now + by + all.length) % all.length]!;
    this.showWait(next.trace, next.place);
  }

  /** Shows a task's row. */
  showTask(trace: Trace, task: number): void {
    this.clear();
    this.taskShown = { trace, task };
    trace.pinned = [task];
    const { pid, ran, waited, comm } = trace.data.tasks;
    const line = `${comm[task] || "task"}:${pid[task]} ran for ${duration(ran[task] ?? 0)} and waited for ${duration(waited[task] ?? 0)} in all.`;
    const visit = h("button", { type: "button", class: "tool" }, "Show all of its time");
    visit.addEventListener("click", () => {
      const [from, to] = trace.taskCourses.span(task);
      this.view.go(from - trace.offset, Math.max(to, from + 1) - trace.offset);
    });
    const waits = h("div", {});
    this.side.select(h("h2", {}, "Selected task"), h("p", {}, shown(line)), visit, waits);
    void taskWaits(this.paneOf(trace), task, (wait) => this.showOneWait(trace, wait)).then((list) => waits.append(...list));
    this.relayout();
    this.changed();
  }

  /** Shows a wait of the selected task, which stays selected: its other waits are one click away. */
  private showOneWait(trace: Trace, { from, to, cpu }: OneWait): void {
    const pane = this.paneOf(trace);
    pane.marks = { band: { from, to }, frames: [], arrow: undefined };
    pane.reveal((row) => row.kind === "cpu" && row.cpu === cpu);
    const around = Math.max(500, (to - from) * 0.25);
    this.view.go(from - around - trace.offset, to + around - trace.offset);
    this.changed();
  }

  /** Shows a slice, with its facts. */
  async showSlice(trace: Trace, part: Slice): Promise<void> {
    const whole = await trace.whole(part);
    const woken = await wakerOf(trace, whole);
    this.clear();
    const { slice } = whole;
    const pane = this.paneOf(trace);
    const task = slice.what >= FIRST_TASK ? slice.what - FIRST_TASK : undefined;
    if (task !== undefined) {
      trace.pinned = [task];
      this.taskShown = { trace, task };
    }
    pane.marks = {
      band: undefined,
      frames: [[slice.cpu, slice.from, slice.to]],
      arrow: woken === undefined ? undefined : { cpu: woken.cpu, time: woken.time, toCpu: slice.cpu, toTime: slice.from },
    };
    const visit = h("button", { type: "button", class: "tool" }, "Zoom to it");
    visit.addEventListener("click", () => {
      const around = Math.max(100, (slice.to - slice.from) * 0.3);
      this.view.go(slice.from - around - trace.offset, slice.to + around - trace.offset);
    });
    this.side.select(h("h2", {}, "Selected slice"), factsOf(trace, whole, woken), visit);
    this.relayout();
  }

  /** What a measured time holds. */
  measured(pane: Pane): void {
    const { measure } = pane;
    if (measure === undefined) return;
    const [from, to] = [Math.min(measure.from, measure.to), Math.max(measure.from, measure.to)];
    const visit = h("button", { type: "button", class: "tool" }, "Zoom to it");
    visit.addEventListener("click", () => this.view.go(from, to));
    this.side.select(
      h("h2", {}, "Measured"),
      h("p", {}, `${duration(to - from)}, from ${pane.trace.clock(from + pane.trace.offset)} to ${pane.trace.clock(to + pane.trace.offset)} of the trace's clock.`),
      visit,
      ...measuredOf(pane, from + pane.trace.offset, to + pane.trace.offset, (task) => this.showTask(pane.trace, task)),
    );
  }

  showTip(pane: Pane, x: number, y: number, text: string): void {
    this.tip.textContent = text;
    this.tip.hidden = text === "";
    if (text === "") return;
    const box = pane.canvas.getBoundingClientRect();
    const left = Math.min(box.left + x + 14, innerWidth - this.tip.offsetWidth - 8);
    this.tip.style.insetInlineStart = `${Math.max(4, left)}px`;
    this.tip.style.insetBlockStart = `${box.top + y + 16 + scrollY}px`;
  }

  hint(pane: Pane, hit: Hit): string {
    const slice = pane.slice(hit);
    const { row, time } = hit;
    const held = row?.kind === "task" ? heldHint(pane.trace, row.task, time) : "";
    if (held !== "") return held;
    return slice === undefined ? "" : hint(pane.trace, slice, pane.trace.stretchAt(time), time);
  }

  private find(): void {
    const series = ++this.seriesOfSearch;
    const WAIT_MS = 80;
    setTimeout(() => {
      if (series === this.seriesOfSearch) this.side.show(this.search.value.trim());
    }, WAIT_MS);
  }

  private searchKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.search.value = "";
      this.side.show("");
      this.panes[0]!.canvas.focus();
    }
    if (event.key !== "Enter") return;
    const [first] = this.side.show(this.search.value.trim());
    if (first !== undefined) this.showTask(first[0], first[1]);
  }

  private print(on: boolean): void {
    this.printing = on;
    this.panes.forEach((pane) => pane.fitForPaper(on));
    this.recolour();
    const tables = this.table.parentElement;
    if (tables instanceof HTMLDetailsElement && on) tables.open = true;
    this.fillTable();
    this.draw();
  }
}

function legend(traces: readonly Trace[]): HTMLElement {
  const hasClock = traces.some((trace) => trace.frequencies.size > 0);
  const hasHeld = traces.some((trace) => !trace.throttled.isEmpty);
  const item = (kind: string, text: string): HTMLElement => h("span", { class: "key" }, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text);
  return h("p", { class: "legend" }, item("runs", "runs"), item("waits", "waits for a CPU"), hasHeld && item("throttled", "throttled: its group's quota is used up"), item("sleeps", "sleeps"), item("blocked", "blocked (D)"), item("unknown", "unknown, or not read yet"), item("worst", "worst waits, above"), item("depth", "how many run"), hasClock && item("clock", "clock"));
}

export type { Page };

start(async (root, json) => {
  const data = json as TimelineData;
  let page: Page | undefined;
  const traces = data.traces.map((trace, place) => new Trace(trace, data.align[place] ?? 0, "AB"[place] ?? "?", () => page?.changed()));
  await Promise.all(traces.map((trace) => trace.prepare()));
  traces.slice(1).forEach((trace) => trace.follow(traces[0]!));
  page = new Page(root, data, traces);
  page.resized();
  page.draw();
  performance.mark("drawn");
  page.readHash();
});
