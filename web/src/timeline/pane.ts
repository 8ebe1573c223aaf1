// A pane: one trace's rows on a canvas, scrolled by itself, on the line of time that all panes share.

import { duration } from "../base/format.js";
import { h, shown } from "../base/dom.js";
import type { Colours, TaskColours } from "./colours.js";
import { Heads, type Head } from "./heads.js";
import { fullest, idOf, Painter, type Part, type Scale } from "./paint.js";
import type { Slice } from "./stretch.js";
import { HEIGHTS, TASKS_SHOWN, type Row, type Trace } from "./trace.js";
import type { View } from "./view.js";

/** With more switches in view, sums are drawn. */
export const SWITCHES_DRAWN = 250_000;

export const RULER = 26;
const GAP = 2;

/** How wide names are at least and at most, px, and as a share of the picture. */
const LABELS_LEAST = 84;
const LABELS_MOST = 320;
const LABELS_SHARE = 0.24;

/** A name has this room, px, before anything stands behind it. */
const LABELS_NAMED = 100;

/** So many names of a kind are measured. */
const LABELS_MEASURED = 20;

/** How wide a domain's bracket is. */
const BRACKET = 13;

/** What is selected: a slice of a CPU. */
export interface Selected {
  readonly slice: Slice;
  readonly task: number | undefined;
}

/** What is marked in the picture. */
export interface Marks {
  /** A stretch of time. */
  band: { readonly from: number; readonly to: number } | undefined;
  /** Slices that are framed: CPU, from, to. */
  frames: readonly (readonly [number, number, number])[];
  /** From a CPU and time to a CPU and time: who woke whom. */
  arrow: { readonly cpu: number; readonly time: number; readonly toCpu: number; readonly toTime: number } | undefined;
}

/** What lies under the pointer. */
export interface Hit {
  readonly row: Row | undefined;
  readonly time: number;
  readonly onLabel: boolean;
  readonly y: number;
}

interface Placed {
  readonly row: Row;
  readonly y: number;
  readonly height: number;
  /** It stays above the rows that are scrolled. */
  readonly fixed: boolean;
}

export class Pane {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  scroll = 0;
  marks: Marks = { band: undefined, frames: [], arrow: undefined };
  measure: { from: number; to: number } | undefined;
  focus = 0;
  private placed: Placed[] = [];
  private height = 0;
  /** How high the rows are that stay. */
  private stays = 0;
  /** How wide the names are. */
  labels = LABELS_LEAST;
  private readonly wanted: number;
  readonly heads: Heads;
  private readonly scales = new Map<number, number>();
  /** How many tasks each row's height stood for when it was drawn last. */
  private readonly drawn = new Map<string, number>();
  /** Whether what is drawn are sums. */
  drewSums = false;
  waiting = false;
  /** For a picture on paper. */
  printing = false;

  constructor(
    readonly trace: Trace,
    readonly view: View,
    private readonly title: string,
  ) {
    this.canvas = h("canvas", { class: "lanes", tabindex: 0, role: "img", "aria-label": `The line of time of ${title}; the table below says what is visible` });
    const context = this.canvas.getContext("2d");
    if (context === null) throw new Error("this browser draws no canvas");
    this.context = context;
    this.heads = new Heads(title);
    this.element = h("section", { class: "pane", "aria-label": `Trace ${title}` }, this.canvas, this.heads.element);
    this.layout();
    this.wanted = this.wantedLabels();
  }

  /** Places all rows; to be called when there are others. */
  layout(): void {
    let y = 0;
    const before = this.stays;
    this.stays = 0;
    const pinned = this.trace.pinned.length > 0 ? this.trace.pinned.length + 1 : 0;
    this.placed = this.trace.rows().map((row, place) => {
      const height = HEIGHTS[row.kind];
      const placed = { row, y, height, fixed: place < pinned };
      y += height + (row.kind === "depth" || row.kind === "frequency" ? 4 : GAP);
      if (placed.fixed) this.stays = y;
      return placed;
    });
    this.height = y;
    // What one looks at stays where it is.
    this.scrollBy(this.scroll > 0 ? this.stays - before : 0);
  }

  /** How wide names would be, whole, those of rows that are not open among them: what opens moves nothing. */
  private wantedLabels(): number {
    const { context, trace } = this;
    const sets: Row[] = trace.setOrder.map((set) => ({ kind: "set", set }));
    const tasks: Row[] = trace.setOrder.flatMap((set) => trace.members[set]!.slice(0, TASKS_SHOWN).map((task) => ({ kind: "task" as const, task, pinned: false })));
    // Letters differ less than lengths do: the longest texts are enough to look at.
    const longest = (rows: readonly Row[]): readonly Row[] => [...rows].sort((one, other) => this.text(other).text.length - this.text(one).text.length).slice(0, LABELS_MEASURED);
    const rows = [...longest(sets), ...longest(tasks), ...this.rows.filter(({ kind }) => kind === "cpu" || kind === "depth" || kind === "frequency")];
    const wide = rows.map((row) => {
      const { text, soft } = this.text(row);
      context.font = `11px ${FONT}`;
      const behind = soft === undefined ? 0 : context.measureText(soft[0] ?? "").width + 8;
      context.font = `12px ${FONT}`;
      return this.indent(row, 6 + trace.levels * BRACKET) + context.measureText(text).width + behind + 10;
    });
    return Math.ceil(Math.max(LABELS_LEAST, ...wide));
  }

  /** How much room the names of all panes take: what they need, unless the picture would be too narrow beside them. */
  static labelsOf(panes: readonly Pane[]): number {
    const width = Math.min(...panes.map((pane) => pane.canvas.clientWidth));
    const most = Math.max(LABELS_LEAST, Math.min(LABELS_MOST, Math.floor(width * LABELS_SHARE)));
    return Math.min(most, Math.max(...panes.map((pane) => pane.wanted)));
  }

  /** As high as its rows for paper, and as the window has it afterwards. */
  fitForPaper(on: boolean): void {
    const most = Math.min(this.canvas.clientHeight, RULER + this.height - this.scroll);
    this.canvas.style.height = on ? `${most}px` : "";
  }

  get visibleHeight(): number {
    return this.canvas.clientHeight - RULER;
  }

  scrollBy(by: number): void {
    this.scroll = Math.max(0, Math.min(Math.max(0, this.height - this.visibleHeight), this.scroll + by));
  }

  get rows(): readonly Row[] {
    return this.placed.map(({ row }) => row);
  }

  visibleRows(): readonly Row[] {
    return this.inSight().map(({ row }) => row);
  }

  private inSight(): Placed[] {
    const [from, to] = [this.scroll + this.stays, this.scroll + this.visibleHeight];
    return this.placed.filter(({ y, height, fixed }) => fixed || (y + height > from && y < to));
  }

  /** Where a row stands on the screen. */
  private top({ y, fixed }: Placed): number {
    return y + RULER - (fixed ? 0 : this.scroll);
  }

  /** Brings a row into sight. */
  reveal(is: (row: Row) => boolean): boolean {
    const found = this.placed.find(({ row }) => is(row));
    if (found === undefined) return false;
    if (found.fixed) return true;
    if (found.y < this.scroll + this.stays) this.scroll = found.y - this.stays;
    else if (found.y + found.height > this.scroll + this.visibleHeight) this.scroll = found.y + found.height - this.visibleHeight;
    this.scrollBy(0);
    return true;
  }

  /** Times of this trace as they stand on the screen. */
  scale(): Scale {
    const { offset } = this.trace;
    return {
      from: this.view.from + offset,
      to: this.view.to + offset,
      left: this.labels,
      width: Math.max(1, this.canvas.clientWidth - this.labels),
    };
  }

  timeAt(x: number): number {
    const { from, to, left, width } = this.scale();
    return from + ((x - left) / width) * (to - from);
  }

  hit(x: number, y: number): Hit {
    const isFixed = y < RULER + this.stays;
    const found = y < RULER ? undefined : this.placed.find((placed) => placed.fixed === isFixed && y >= this.top(placed) && y < this.top(placed) + placed.height);
    return { row: found?.row, time: this.timeAt(x), onLabel: x < this.labels, y };
  }

  /** The slice under the pointer, if it is drawn by itself. */
  slice(hit: Hit): Slice | undefined {
    const stretch = this.trace.stretchAt(hit.time);
    if (stretch === undefined || hit.row === undefined) return undefined;
    if (hit.row.kind === "cpu" || hit.row.kind === "depth" || hit.row.kind === "frequency") return stretch.at(hit.row.cpu, hit.time);
    if (hit.row.kind !== "task") return undefined;
    const carried = stretch.carriedRun(hit.row.task);
    if (carried !== undefined && hit.time < carried.to) return carried;
    let found: Slice | undefined;
    stretch.ofTask(hit.row.task, hit.time, hit.time + 1, (slice) => {
      const waited = Math.max(0, stretch.waited[slice.at]!);
      if (slice.from - waited <= hit.time && hit.time < slice.to) found = slice;
    });
    return found;
  }

  /** What of the trace is in view, by stretches where they are there. */
  parts(scale: Scale): Part[] {
    const { stretches, data } = this.trace;
    const [from, to] = [Math.max(0, scale.from), Math.min(data.length, scale.to)];
    if (to <= from) return [];
    const [first, last] = stretches.between(from, to);
    let switches = 0;
    for (let place = first; place < last; place += 1) {
      const [begin, end, count] = stretches.rows[place]!;
      const shownPart = end > begin ? (Math.min(end, to) - Math.max(begin, from)) / (end - begin) : 1;
      switches += count * Math.max(0, shownPart);
    }
    this.drewSums = switches > SWITCHES_DRAWN;
    this.waiting = false;
    if (this.drewSums) return [{ from, to, stretch: undefined }];
    const places = Array.from({ length: last - first }, (_, place) => first + place);
    stretches.want(places);
    const parts: Part[] = [];
    for (const place of places) {
      const [begin, end] = stretches.rows[place]!;
      const stretch = stretches.get(place);
      const isUnread = stretch === undefined && stretches.has(place);
      if (isUnread) this.waiting = true;
      else if (stretch === undefined) this.drewSums = true;
      const part = { from: Math.max(from, begin), to: Math.min(to, end), stretch, isUnread };
      const before = parts.at(-1);
      if (stretch === undefined && before !== undefined && before.stretch === undefined && before.isUnread === isUnread) parts[parts.length - 1] = { ...before, to: part.to };
      else parts.push(part);
    }
    return parts;
  }

  draw(colours: Colours, tasks: TaskColours): void {
    const { canvas, context } = this;
    const ratio = this.printing ? 2 : Math.min(2, devicePixelRatio);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const scale = this.scale();
    const parts = this.parts(scale);
    const painter = new Painter(context, colours, tasks, this.trace, scale, parts);
    context.textBaseline = "middle";
    const stays = RULER + this.stays;
    this.within(0, stays, width, height - stays, () => {
      this.gridLines(colours, scale, height);
      this.lanes(false, painter, colours, scale);
    });
    this.within(0, RULER, width, this.stays, () => {
      this.gridLines(colours, scale, height);
      this.lanes(true, painter, colours, scale);
    });
    this.within(scale.left, stays, scale.width, height - stays, () => this.drawRan(colours, scale, parts));
    this.within(scale.left, RULER, scale.width, height - RULER, () => painter.unread(RULER, height - RULER));
    this.within(scale.left, stays, scale.width, height - stays, () => this.drawFrames(colours, scale));
    this.within(scale.left, RULER, scale.width, height - RULER, () => this.drawBand(colours, scale, height));
    context.fillStyle = colours.paper;
    context.fillRect(0, RULER, this.labels, height);
    this.within(0, stays, width, height - stays, () => this.labelsOf(false, this.brackets(colours), colours, width));
    this.within(0, RULER, width, this.stays, () => this.labelsOf(true, 0, colours, width));
    context.fillStyle = colours.strong;
    context.fillRect(this.labels - 1, 0, 1, height);
    if (this.stays > 0) context.fillRect(0, stays - 1, width, 1);
    this.ruler(colours, scale, width);
    this.heads.update(this.headsInSight(), this.labels);
  }

  /** Draws in a part of the picture alone. */
  private within(x: number, y: number, width: number, height: number, draw: () => void): void {
    if (height <= 0) return;
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  private lanes(fixed: boolean, painter: Painter, colours: Colours, scale: Scale): void {
    this.context.font = `11px ${FONT}`;
    for (const placed of this.inSight()) {
      if (placed.fixed === fixed) this.lane(placed, this.top(placed), painter, colours, scale);
    }
  }

  private lane({ row, height }: Placed, y: number, painter: Painter, colours: Colours, scale: Scale): void {
    const { context } = this;
    if (row.kind === "heading") return;
    context.fillStyle = colours.lane;
    context.fillRect(scale.left, y, scale.width, height);
    context.save();
    context.beginPath();
    context.rect(scale.left, y, scale.width, height);
    context.clip();
    if (row.kind === "cpu") painter.cpu(row.cpu, y, height);
    else if (row.kind === "depth") this.drawn.set(`cpu ${row.cpu}`, painter.depth(row.cpu, y, height));
    else if (row.kind === "frequency") painter.frequency(row.cpu, y, height);
    else if (row.kind === "set") this.drawn.set(`set ${row.set}`, painter.set(row.set, this.most(row.set), y, height));
    else painter.task(row.task, y, height);
    context.restore();
  }

  private most(set: number): number {
    let most = this.scales.get(set);
    if (most === undefined) {
      most = Math.min(this.trace.members[set]!.length, fullest(this.trace.setCourses, set, this.trace.data.length));
      this.scales.set(set, most);
    }
    return most;
  }

  /** What a row is called; what stands softly behind it, the longest words first; and a mark before it. */
  private text(row: Row): { readonly text: string; readonly soft?: readonly string[]; readonly mark?: string } {
    switch (row.kind) {
      case "heading":
        return { text: row.text };
      case "cpu":
        return { text: `CPU ${row.cpu}` };
      case "depth": {
        const most = this.drawn.get(`cpu ${row.cpu}`) ?? this.trace.depthScale;
        return { text: "", soft: [`running, waiting, of ${most}`, `run, wait, of ${most}`, `of ${most}`] };
      }
      case "frequency": {
        const most = `${(this.trace.frequencyMost / 1e6).toFixed(2)} GHz`;
        return { text: "", soft: [`clock, of ${most}`, most] };
      }
      case "set":
        return { text: shown(this.trace.setName(row.set)), mark: this.trace.open.has(row.set) ? "▾" : "▸", soft: [`of ${this.drawn.get(`set ${row.set}`) ?? this.most(row.set)}`] };
      case "task":
        return { text: shown(this.trace.taskName(row.task)) };
    }
  }

  /** Where a row's name begins; `brackets`: how much room they take. */
  private indent(row: Row, brackets: number): number {
    if (row.kind === "cpu" || row.kind === "depth" || row.kind === "frequency") return brackets + 6;
    if (row.kind === "set") return 22;
    const isMember = row.kind === "task" && !row.pinned && (this.trace.members[this.trace.data.tasks.set[row.task]!]?.length ?? 0) > 1;
    return isMember ? 26 : 10;
  }

  private labelsOf(fixed: boolean, brackets: number, colours: Colours, width: number): void {
    const { context, labels } = this;
    for (const placed of this.inSight()) {
      if (placed.fixed !== fixed) continue;
      const { row, height } = placed;
      const y = this.top(placed);
      const { text, soft, mark } = this.text(row);
      context.font = row.kind === "heading" ? `600 11px ${FONT}` : `12px ${FONT}`;
      context.fillStyle = row.kind === "heading" ? colours.soft : colours.ink;
      if (row.kind === "heading") {
        context.fillText(text, 8, y + height / 2 + 2);
        context.fillStyle = colours.rule;
        context.fillRect(0, y + height - 1, width, 1);
        continue;
      }
      if (mark !== undefined) context.fillText(mark, 8, y + height / 2);
      const begin = this.indent(row, brackets);
      context.font = `11px ${FONT}`;
      // A name comes before what stands behind it.
      const least = text === "" ? 0 : LABELS_NAMED;
      const behind = soft?.find((words) => context.measureText(words).width + least <= labels - begin - 8) ?? "";
      const softWidth = behind === "" ? 0 : context.measureText(behind).width + 8;
      context.font = `12px ${FONT}`;
      const room = labels - begin - 8 - softWidth;
      const isPath = row.kind === "set" && text.includes("/");
      const path = row.kind === "set" && room < LABELS_NAMED ? shown(this.trace.data.sets.name[row.set] ?? "") : text;
      const called = isPath ? pathEnd(context, path, room) : clipped(context, text, room, row.kind === "task" ? idOf(text) : "");
      context.fillText(called, begin, y + height / 2 + 0.5);
      if (behind === "") continue;
      context.font = `11px ${FONT}`;
      context.fillStyle = colours.soft;
      context.textAlign = "right";
      context.fillText(behind, labels - 8, y + height / 2 + 0.5);
      context.textAlign = "left";
    }
  }

  /** The whole name of a row; of one without a name nothing. */
  nameOf(row: Row | undefined): string {
    if (row === undefined || row.kind === "heading") return "";
    const { text, soft } = this.text(row);
    return text === "" ? (soft?.[0] ?? "") : text;
  }

  /** Rows that one can act on, as far as they are in sight. */
  private headsInSight(): Head[] {
    return this.inSight().flatMap((placed) => {
      const key = keyOf(placed.row);
      if (key === undefined) return [];
      const isOpen = placed.row.kind === "set" ? this.trace.open.has(placed.row.set) : undefined;
      return [{ key, name: this.nameOf(placed.row), top: this.top(placed), height: placed.height, isOpen }];
    });
  }

  /** The row that a head's key means. */
  rowOf(key: string): Row | undefined {
    return this.rows.find((row) => keyOf(row) === key);
  }

  /** Brings the head that lies `by` heads further into sight; gives its key. */
  headBeside(key: string, by: number): string | undefined {
    const keys = this.rows.flatMap((row) => keyOf(row) ?? []);
    const next = keys[keys.indexOf(key) + by];
    if (next !== undefined) this.reveal((row) => keyOf(row) === next);
    return next;
  }

  /** Domains of the scheduler beside their CPUs; gives how much room they take. */
  private brackets(colours: Colours): number {
    const { context, trace } = this;
    if (trace.brackets.length === 0) return 6;
    const cpus = this.placed.filter(({ row }) => row.kind === "cpu");
    const end = new Map<number, number>();
    for (const { row, y, height } of this.placed) if ("cpu" in row) end.set(row.cpu, y + height);
    context.font = `9px ${FONT}`;
    for (const bracket of trace.brackets) {
      const x = 6 + (trace.levels - 1 - bracket.level) * BRACKET;
      // CPUs of a domain stand together, unless the machine's numbers are odd: then it has several pieces.
      let start: number | undefined;
      let last = 0;
      const draw = (): void => {
        if (start === undefined) return;
        const [top, bottom] = [start - this.scroll + RULER + 1, last - this.scroll + RULER - 1];
        if (bottom > RULER && top < this.canvas.clientHeight) this.bracket(bracket.name, x, top, bottom, colours);
        start = undefined;
      };
      for (const { row, y } of cpus) {
        if (row.kind !== "cpu") continue;
        if (!bracket.cpus.has(row.cpu)) draw();
        else {
          start ??= y;
          last = end.get(row.cpu) ?? y;
        }
      }
      draw();
    }
    return 6 + trace.levels * BRACKET;
  }

  private bracket(name: string, x: number, top: number, bottom: number, colours: Colours): void {
    const { context } = this;
    context.strokeStyle = colours.strong;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x + 4.5, top + 0.5);
    context.lineTo(x + 0.5, top + 0.5);
    context.lineTo(x + 0.5, bottom - 0.5);
    context.lineTo(x + 4.5, bottom - 0.5);
    context.stroke();
    const [low, high] = [Math.max(top, RULER), Math.min(bottom, this.canvas.clientHeight)];
    if (high - low < name.length * 6 + 4) return;
    context.save();
    context.translate(x + 7, (low + high) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillStyle = colours.soft;
    context.fillText(name, 0, 1);
    context.restore();
  }

  /** Places and words of the ruler's ticks, counted from where the traces are aligned. */
  private ticks(scale: Scale): { readonly x: number; readonly text: string }[] {
    const span = this.view.span;
    const least = (span / scale.width) * 110;
    const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) ?? 10 * power;
    const ticks = [];
    for (let time = Math.ceil(this.view.from / step) * step; time <= this.view.to; time += step) {
      ticks.push({ x: scale.left + ((time - this.view.from) / span) * scale.width, text: tick(time, step) });
    }
    return ticks;
  }

  private gridLines(colours: Colours, scale: Scale, height: number): void {
    this.context.fillStyle = colours.rule;
    for (const { x } of this.ticks(scale)) this.context.fillRect(Math.round(x), RULER, 1, height);
  }

  private ruler(colours: Colours, scale: Scale, width: number): void {
    const { context } = this;
    context.fillStyle = colours.raised;
    context.fillRect(0, 0, width, RULER);
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    context.fillStyle = colours.ink;
    context.fillText(clipped(context, shown(this.title), this.labels - 16), 8, RULER / 2);
    context.fillStyle = colours.soft;
    for (const { x, text } of this.ticks(scale)) {
      if (x < scale.left) continue;
      context.fillRect(Math.round(x), RULER - 6, 1, 6);
      if (x + 4 + context.measureText(text).width < width) context.fillText(text, Math.round(x) + 4, RULER / 2);
    }
    for (const [time, text] of this.trace.data.marks) {
      const x = scale.left + ((time - scale.from) / (scale.to - scale.from)) * scale.width;
      if (x < scale.left || x > width) continue;
      context.fillStyle = colours.accent;
      context.fillRect(x, 0, 1, RULER);
      if (this.trace.data.marks.length < 40) context.fillText(clipped(context, shown(text), 120), x + 3, 7);
    }
    context.fillStyle = colours.strong;
    context.fillRect(0, RULER - 1, width, 1);
  }

  private drawFrames(colours: Colours, scale: Scale): void {
    const { context } = this;
    const x = (time: number): number => scale.left + ((time - scale.from) / (scale.to - scale.from)) * scale.width;
    const { frames, arrow } = this.marks;
    const rowOf = (cpu: number): Placed | undefined => this.placed.find(({ row }) => row.kind === "cpu" && row.cpu === cpu);
    context.strokeStyle = context.fillStyle = colours.accent;
    context.lineWidth = 1.5;
    for (const [cpu, from, to] of frames) {
      const row = rowOf(cpu);
      if (row === undefined || x(to) < scale.left || x(from) > scale.left + scale.width) continue;
      const y = this.top(row);
      if (x(to) - x(from) > 8) context.strokeRect(x(from) + 0.75, y + 0.75, x(to) - x(from) - 1.5, row.height - 1.5);
      else context.fillRect(x(from), y + row.height - 3, Math.max(1, x(to) - x(from)), 3);
    }
    if (arrow !== undefined) this.drawArrow(x(arrow.time), rowOf(arrow.cpu), x(arrow.toTime), rowOf(arrow.toCpu), colours);
  }

  /** A line along the top of CPUs says where the selected tasks ran: colours of tasks are too many to tell apart. */
  private drawRan(colours: Colours, scale: Scale, parts: readonly Part[]): void {
    const LINE = 3;
    const tops = new Map<number, number>();
    for (const placed of this.inSight()) if (placed.row.kind === "cpu") tops.set(placed.row.cpu, this.top(placed));
    const pixel = (time: number): number => scale.left + ((time - scale.from) / (scale.to - scale.from)) * scale.width;
    this.context.fillStyle = colours.ink;
    for (const { from, to, stretch } of parts) {
      const draw = (slice: Slice): void => {
        const top = tops.get(slice.cpu);
        const [x0, x1] = [pixel(Math.max(slice.from, from)), pixel(Math.min(slice.to, to))];
        if (top !== undefined && slice.to > from && slice.from < to) this.context.fillRect(x0, top, Math.max(1, x1 - x0), LINE);
      };
      for (const task of this.trace.pinned) {
        const carried = stretch?.carriedRun(task);
        if (carried !== undefined) draw(carried);
        stretch?.ofTask(task, from, to, draw);
      }
    }
  }

  private drawBand(colours: Colours, scale: Scale, height: number): void {
    const { context } = this;
    const x = (time: number): number => scale.left + ((time - scale.from) / (scale.to - scale.from)) * scale.width;
    const { band } = this.marks;
    const { offset } = this.trace;
    if (band !== undefined) {
      context.fillStyle = colours.band;
      context.fillRect(x(band.from), RULER, Math.max(1, x(band.to) - x(band.from)), height);
      context.fillStyle = colours.accent;
      for (const time of [band.from, band.to]) context.fillRect(Math.round(x(time)), RULER, 1, height);
    }
    if (this.measure === undefined) return;
    const [from, to] = [Math.min(this.measure.from, this.measure.to), Math.max(this.measure.from, this.measure.to)];
    const [x0, x1] = [x(from + offset), x(to + offset)];
    context.fillStyle = colours.band;
    context.fillRect(x0, RULER, x1 - x0, height);
    context.fillStyle = colours.ink;
    context.fillRect(x0, RULER, 1, height);
    context.fillRect(x1, RULER, 1, height);
    const text = duration(to - from);
    context.font = `600 12px ${FONT}`;
    const wide = context.measureText(text).width + 12;
    const left = Math.max(scale.left + 2, Math.min((x0 + x1) / 2 - wide / 2, scale.left + scale.width - wide));
    context.fillStyle = colours.ink;
    context.fillRect(left, RULER + 4, wide, 20);
    context.fillStyle = colours.paper;
    context.fillText(text, left + 6, RULER + 14.5);
  }

  private drawArrow(x0: number, from: Placed | undefined, x1: number, to: Placed | undefined, colours: Colours): void {
    if (from === undefined || to === undefined) return;
    const { context } = this;
    const [y0, y1] = [from, to].map((placed) => this.top(placed) + placed.height / 2) as [number, number];
    context.strokeStyle = colours.accent;
    context.fillStyle = colours.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x0, y0);
    const bend = Math.max(12, Math.abs(x1 - x0) / 2);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.beginPath();
    context.arc(x0, y0, 3, 0, 2 * Math.PI);
    context.moveTo(x1, y1);
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
    context.closePath();
    context.fill();
  }
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/** Text that fits into a width; its end stays where there is room for it. */
function clipped(context: CanvasRenderingContext2D, text: string, width: number, tail = ""): string {
  if (width < 10) return "";
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length - tail.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…${tail}`).width <= width) low = middle;
    else high = middle - 1;
  }
  if (low === 0) return tail === "" ? "" : clipped(context, text, width);
  return `${text.slice(0, low)}…${tail}`;
}

/** A path that fits into a width: its end stays, which tells it from its siblings, from a whole part on where that fits. */
function pathEnd(context: CanvasRenderingContext2D, path: string, width: number): string {
  if (width < 10) return "";
  if (context.measureText(path).width <= width) return path;
  const fits = (from: number): boolean => context.measureText(`…${path.slice(from)}`).width <= width;
  for (let at = path.indexOf("/", 1); at > 0; at = path.indexOf("/", at + 1)) if (fits(at)) return `…${path.slice(at)}`;
  let [low, high] = [0, path.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return low === path.length ? "" : `…${path.slice(low)}`;
}

/** By what a row's head is found again; of a row that one cannot act on nothing. */
function keyOf(row: Row): string | undefined {
  if (row.kind === "set") return `set ${row.set}`;
  return row.kind === "task" ? `${row.pinned ? "selected" : "task"} ${row.task}` : undefined;
}

/** A time as the ruler writes it, exact to a pixel of so many ns. */
export function tickAt(time: number, pixel: number): string {
  return tick(time, 10 ** Math.floor(Math.log10(Math.max(1, pixel))));
}

/** A tick's time in the unit of the step between ticks, with no more digits than that has. */
function tick(time: number, step: number): string {
  const [unit, name] = Math.abs(time) >= 1e9 || step >= 1e8 ? [1e9, "s"] : Math.abs(time) >= 1e6 || step >= 1e5 ? [1e6, "ms"] : Math.abs(time) >= 1e3 || step >= 100 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(time / unit).toFixed(digits)} ${name}`;
}
