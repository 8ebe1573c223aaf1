// What is known of one slice, in words.

import { duration } from "../base/format.js";
import { name, shown, type Child } from "../base/dom.js";
import { facts } from "../base/page.js";
import { BEGAN, FIRST_TASK, IDLE, LEFT, MODES, UNKNOWN } from "./data.js";
import type { Slice, Stretch } from "./stretch.js";
import type { Trace } from "./trace.js";

/** A slice with its ends, and the stretches in which it begins and ends. */
export interface Whole {
  readonly slice: Slice;
  readonly begin: Stretch | undefined;
  readonly end: Stretch | undefined;
}

/** Who woke the task of a slice: CPU, time, and what ran there. */
export interface Woken {
  readonly cpu: number;
  readonly time: number;
  readonly mode: number;
  readonly what: number | undefined;
}

export async function wakerOf(trace: Trace, { slice, begin }: Whole): Promise<Woken | undefined> {
  if (begin === undefined || slice.at < 0 || begin.waker[slice.at] === 0) return undefined;
  const cpu = begin.waker[slice.at]! - 1;
  const time = slice.from - Math.max(0, begin.waited[slice.at]!);
  const [place] = trace.stretches.between(time, time + 1);
  const stretch = await trace.stretches.load(place);
  return { cpu, time, mode: begin.mode(slice.at), what: stretch?.at(cpu, time).what };
}

/** Virtual ns as ms, whole. */
function virtualMs(value: bigint): string {
  const sign = value < 0n ? "-" : "";
  const size = value < 0n ? -value : value;
  return `${sign}${size / 1_000_000n}.${String((size / 1000n) % 1000n).padStart(3, "0")} ms`;
}

function clock(trace: Trace, time: number): string {
  return `${trace.clock(time)} (+${duration(time)})`;
}

/** The words for a slice. */
export function factsOf(trace: Trace, whole: Whole, woken: Woken | undefined): HTMLElement {
  const { slice, begin, end } = whole;
  const rows: (readonly [string, Child])[] = [];
  const isTask = slice.what >= FIRST_TASK;
  if (isTask) {
    const task = slice.what - FIRST_TASK;
    const { pid, tgid, prio } = trace.data.tasks;
    rows.push(["Task", name(trace.data.tasks.comm[task] || "(no name)")], ["Thread id", String(pid[task])]);
    if ((tgid[task] ?? -1) >= 0) rows.push(["Process", String(tgid[task])]);
    const nice = prio[task]! >= 100 && prio[task]! < 140 ? ` (nice ${prio[task]! - 120})` : "";
    rows.push(["Priority", `${prio[task]}${nice}`]);
    rows.push([trace.data.sets.group[trace.data.tasks.set[task]!] ? "Group" : "Called", name(trace.data.sets.name[trace.data.tasks.set[task]!] ?? "")]);
  }
  rows.push(["CPU", String(slice.cpu)]);
  rows.push(["From", slice.at < 0 ? "before what is known" : clock(trace, slice.from)]);
  rows.push(["To", slice.next < 0 ? "beyond the end" : clock(trace, slice.to)]);
  rows.push([slice.what === IDLE ? "Idled" : slice.what === UNKNOWN ? "Unknown for" : "Ran", duration(slice.to - slice.from)]);
  if (slice.what === UNKNOWN) rows.push(["Why", "events are missing there; nothing is known of this time"]);
  if (isTask) {
    rows.push(["Left", slice.next < 0 || end === undefined ? "not in the trace" : LEFT[end.left[slice.next]!] ?? ""]);
    if (slice.at >= 0 && begin !== undefined) rows.push(...waitRows(trace, slice, begin, woken));
  }
  const khz = trace.frequencyAt(slice.cpu, slice.from);
  if (khz !== undefined) rows.push(["Clock", `${(khz / 1e6).toFixed(3)} GHz at its beginning`]);
  if (trace.data.kept.unit > 1) rows.push(["Rounded", `times are multiples of ${trace.data.kept.unit} ns`]);
  return facts(rows);
}

function waitRows(trace: Trace, slice: Slice, begin: Stretch, woken: Woken | undefined): (readonly [string, Child])[] {
  const rows: (readonly [string, Child])[] = [];
  const waited = begin.waited[slice.at]!;
  if (waited < 0) rows.push(["Waited", "not at all, or unknown"]);
  else if (begin.crossed(slice.at)) rows.push(["Waited", `at most ${duration(waited)}: events are missing, so it is no measurement`]);
  else rows.push(["Waited", `${duration(waited)}, since it was ${BEGAN[begin.began(slice.at)]}`.replace("was yielded", "yielded").replace("was left", "left")]);
  const throttled = trace.throttled.time(slice.what - FIRST_TASK, slice.from - Math.max(0, waited), slice.from);
  if (throttled > 0) rows.push(["Of that", `${duration(throttled)} throttled: its group had used up its quota`]);
  if (woken !== undefined) {
    const who = woken.what === undefined ? "what ran" : woken.what === IDLE ? "the idle task" : shown(trace.whatName(woken.what));
    rows.push(["Woken by", `${MODES[woken.mode] ?? ""}${who} on CPU ${woken.cpu}`.replace("by ", "")]);
  }
  const virtual = begin.factsOf(slice.at);
  if (virtual !== undefined) {
    rows.push(["vruntime", virtualMs(virtual.vruntime)]);
    if (virtual.lag !== null) rows.push(["Lag when placed", duration(virtual.lag)]);
    if (virtual.deadline !== null) rows.push(["Deadline ahead", `${duration(virtual.deadline)} of vruntime`]);
  }
  return rows;
}

/** A short line for the pointer at a time at which a task was throttled; else nothing. */
export function heldHint(trace: Trace, task: number, time: number): string {
  const span = trace.throttled.at(task, time);
  if (span === undefined) return "";
  return `${shown(trace.taskName(task))} is throttled for ${duration(span[1] - span[0])}: its group has used up its quota (cpu.max), so no CPU may run it`;
}

/** A short line for the pointer. */
export function hint(trace: Trace, slice: Slice, stretch: Stretch | undefined, time: number): string {
  const what = shown(trace.whatName(slice.what));
  const parts = [`CPU ${slice.cpu}: ${what}`, duration(slice.to - slice.from)];
  if (stretch !== undefined && slice.at >= 0 && (stretch.waited[slice.at] ?? -1) > 0) {
    const waited = stretch.waited[slice.at]!;
    if (time < slice.from && slice.what >= FIRST_TASK) return `${what} waits for CPU ${slice.cpu}, ${duration(waited)}, ${BEGAN[stretch.began(slice.at)]}`;
    parts.push(`after ${duration(waited)} of waiting`);
  }
  return parts.join(", ");
}

