// What is visible, as a table: what the picture shows by colour stands here in words and numbers.

import { count, duration, share } from "../base/format.js";
import { h, name } from "../base/dom.js";
import { FIRST_TASK, IDLE, UNKNOWN } from "./data.js";
import type { Pane } from "./pane.js";
import type { Part } from "./paint.js";
import type { Row, Trace } from "./trace.js";

export interface Sums {
  ran: number;
  waited: number;
  /** How much of the waiting was for a quota. */
  throttled: number;
  unknown: number;
  longest: number;
  runs: number;
  /** What ran longest, where that is another. */
  top: Map<number, number>;
}

export function nothing(): Sums {
  return { ran: 0, waited: 0, throttled: 0, unknown: 0, longest: 0, runs: 0, top: new Map() };
}

/** Adds what a CPU did in these parts of time. */
export function ofCpu(trace: Trace, cpu: number, parts: readonly Part[], sums: Sums): void {
  const add = (what: number, time: number): void => {
    if (what === UNKNOWN) sums.unknown += time;
    if (what < FIRST_TASK) return;
    sums.top.set(what, (sums.top.get(what) ?? 0) + time);
  };
  for (const { from, to, stretch } of parts) {
    if (stretch === undefined) {
      const courses = trace.cpuCourses;
      const [begin, end] = courses.between(cpu, from, to);
      for (let at = begin; at < end; at += 1) {
        const whole = courses.end(cpu, at) - courses.from[at]!;
        const part = whole > 0 ? (Math.min(to, courses.end(cpu, at)) - Math.max(from, courses.from[at]!)) / whole : 0;
        sums.ran += courses.ran[at]! * part;
        sums.waited += courses.waited[at]! * part;
        sums.unknown += courses.other[at]! * part;
        sums.runs += courses.slices[at]! * part;
        if (courses.top[at]! !== UNKNOWN) add(courses.top[at]!, courses.ran[at]! * part);
      }
      continue;
    }
    stretch.ofCpu(cpu, from, to, (what, begin, end) => {
      const time = Math.min(end, to) - Math.max(begin, from);
      add(what, time);
      if (what >= FIRST_TASK) {
        sums.ran += time;
        sums.runs += 1;
      }
    });
    const { queues } = stretch;
    const [begin, end] = queues.byCpu.range(cpu);
    for (let place = begin; place < end; place += 1) {
      const at = queues.byCpu.order[place]!;
      const [since, until] = [Math.max(queues.from[at]!, from), Math.min(queues.to[at]!, to)];
      const time = until - since;
      if (time <= 0) continue;
      // Who waits for a quota is not in the CPU's queue.
      sums.waited += time - trace.throttled.time(queues.task[at]!, since, until);
      sums.longest = Math.max(sums.longest, queues.to[at]! - queues.from[at]!);
    }
  }
}

function ofTask(trace: Trace, task: number, parts: readonly Part[], sums: Sums): void {
  for (const { from, to, stretch } of parts) {
    sums.throttled += trace.throttled.time(task, from, to);
    if (stretch === undefined) {
      const courses = trace.taskCourses;
      const [begin, end] = courses.between(task, from, to);
      for (let at = begin; at < end; at += 1) {
        const whole = courses.end(task, at) - courses.from[at]!;
        const part = whole > 0 ? Math.max(0, Math.min(to, courses.end(task, at)) - Math.max(from, courses.from[at]!)) / whole : 0;
        sums.ran += courses.ran[at]! * part;
        sums.waited += courses.waited[at]! * part;
        sums.runs += courses.slices[at]! * part;
        sums.longest = Math.max(sums.longest, courses.peak[at]!);
      }
      continue;
    }
    const carried = stretch.carriedRun(task);
    if (carried !== undefined) sums.ran += Math.max(0, Math.min(carried.to, to) - from);
    stretch.ofTask(task, from, to, (slice) => {
      const waited = Math.max(0, stretch.waited[slice.at]!);
      const ran = Math.min(slice.to, to) - Math.max(slice.from, from);
      const slept = Math.min(slice.from, to) - Math.max(slice.from - waited, from);
      if (ran > 0) {
        sums.ran += ran;
        sums.runs += 1;
      }
      if (slept > 0 && waited > 0) {
        sums.waited += slept;
        sums.longest = Math.max(sums.longest, waited);
      }
    });
    const last = stretch.waitsAtEnd(task);
    if (last !== undefined && last.since < to) sums.waited += to - Math.max(from, last.since);
  }
}

function sumsOf(trace: Trace, row: Row, parts: readonly Part[]): Sums | undefined {
  const sums = nothing();
  if (row.kind === "cpu") ofCpu(trace, row.cpu, parts, sums);
  else if (row.kind === "task") ofTask(trace, row.task, parts, sums);
  else if (row.kind === "set") trace.members[row.set]!.forEach((task) => ofTask(trace, task, parts, sums));
  else return undefined;
  return sums;
}

function label(trace: Trace, row: Row): string {
  if (row.kind === "cpu") return `CPU ${row.cpu}`;
  if (row.kind === "task") return trace.taskName(row.task);
  return row.kind === "set" ? trace.setName(row.set) : "";
}

/** The table of a pane's rows in sight. */
export function tableOf(pane: Pane): HTMLElement {
  const { trace, view } = pane;
  const parts = pane.parts(pane.scale());
  const shown = parts.reduce((sum, part) => sum + part.to - part.from, 0);
  const isHeld = !trace.throttled.isEmpty;
  const head = ["Row", "Ran", "Share", "Runs", "Waited", ...(isHeld ? ["Of it throttled"] : []), "Longest wait", "Unknown", "Mostly"];
  const body = h("tbody");
  for (const row of pane.visibleRows()) {
    const sums = sumsOf(trace, row, parts);
    if (sums === undefined) continue;
    const [top] = [...sums.top].sort((one, other) => other[1] - one[1])[0] ?? [IDLE];
    const most = row.kind !== "cpu" ? "" : name(trace.whatName(top));
    const cells = [
      duration(sums.ran),
      shown > 0 ? share(sums.ran / shown) : "-",
      count(sums.runs),
      duration(sums.waited),
      ...(isHeld ? [sums.throttled > 0 ? duration(sums.throttled) : "-"] : []),
      sums.longest > 0 ? duration(sums.longest) : "-",
      sums.unknown > 0 ? duration(sums.unknown) : "-",
    ];
    body.append(
      h("tr", {}, h("th", { scope: "row" }, name(label(trace, row))), ...cells.map((cell) => h("td", { class: "figure-cell" }, cell)), h("td", {}, most)),
    );
  }
  const exact = pane.drewSums ? "by sums, whose pieces are rounded" : "by single switches";
  return h(
    "table",
    {},
    h("caption", {}, name(trace.data.label), `: ${duration(shown)} from ${duration(view.from)} on, ${exact}`),
    h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
    body,
  );
}
