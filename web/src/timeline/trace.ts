// A trace as the page knows it: names, CPUs in the machine's order, rows, and what is looked up in it.

import { inflate, Reader } from "./columns.js";
import { Courses } from "./courses.js";
import { fullest } from "./paint.js";
import { FIRST_TASK, IDLE, UNKNOWN, type Piece, type TraceData } from "./data.js";
import { Stretches, type Slice, type Stretch } from "./stretch.js";
import { Throttled } from "./throttled.js";

export type Row =
  | { readonly kind: "heading"; readonly text: string }
  | { readonly kind: "cpu"; readonly cpu: number }
  | { readonly kind: "depth"; readonly cpu: number }
  | { readonly kind: "frequency"; readonly cpu: number }
  | { readonly kind: "set"; readonly set: number }
  | { readonly kind: "task"; readonly task: number; readonly pinned: boolean };

export const HEIGHTS: Readonly<Record<Row["kind"], number>> = {
  heading: 24,
  cpu: 24,
  depth: 18,
  frequency: 18,
  set: 28,
  task: 20,
};

/** A domain of the scheduler as a bracket beside CPUs. */
export interface Bracket {
  readonly name: string;
  readonly level: number;
  readonly cpus: ReadonlySet<number>;
}

/** So many tasks of a set have rows at first. */
export const TASKS_SHOWN = 200;

/** With more CPUs, the depth of their queues is shown on demand. */
const DEPTHS_SHOWN = 16;

export class Trace {
  readonly stretches: Stretches;
  cpuCourses!: Courses;
  taskCourses!: Courses;
  setCourses!: Courses;
  /** CPUs, those that share something beside each other. */
  readonly cpus: number[];
  readonly brackets: Bracket[];
  readonly levels: number;
  /** Tasks of each set, those that ran longest first. */
  readonly members: number[][];
  /** Sets, those that ran longest first. */
  readonly setOrder: number[];
  readonly open = new Set<number>();
  showsDepth: boolean;
  showsFrequency = true;
  pinned: number[] = [];
  /** Whose rows alone are shown. */
  only: ReadonlySet<number> | undefined;
  readonly frequencies = new Map<number, { readonly time: number[]; readonly khz: number[] }>();
  frequencyMost = 0;
  throttled!: Throttled;
  /** How many tasks the height of a queue stands for. */
  depthScale = 2;

  constructor(
    readonly data: TraceData,
    /** What is subtracted from its times in the view. */
    readonly offset: number,
    readonly letter: string,
    changed: () => void,
  ) {
    this.stretches = new Stretches(data.stretches, data.blob, data.kept.unit, changed);
    const rows = data.courses.cpus.rows;
    const count = Math.max(rows, Math.min(data.machine.cpus ?? 0, 8192));
    const place = new Map(data.machine.places.map(([cpu, core, llc, node]) => [cpu, [node, llc, core, cpu] as const]));
    this.cpus = Array.from({ length: count }, (_, cpu) => cpu).sort((one, other) => {
      const [a, b] = [place.get(one), place.get(other)];
      if (a === undefined || b === undefined) return one - other;
      return a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3];
    });
    const names = [...new Set(data.machine.domains.map((domain) => domain.name))];
    this.levels = names.length;
    this.brackets = data.machine.domains.map(({ name, cpus }) => ({ name, level: names.indexOf(name), cpus: new Set(cpus) }));
    this.members = data.sets.name.map(() => []);
    // Who neither ran nor waited has no row.
    const waits = new Set(data.still.map(({ who }) => who.task));
    const acts = (task: number): boolean => data.tasks.ran[task]! > 0 || data.tasks.waited[task]! > 0 || waits.has(task);
    data.tasks.set.forEach((set, task) => {
      if (acts(task)) this.members[set]?.push(task);
    });
    const longest = (one: number, other: number): number =>
      data.tasks.ran[other]! - data.tasks.ran[one]! || data.tasks.pid[one]! - data.tasks.pid[other]!;
    this.members.forEach((tasks) => tasks.sort(longest));
    const ran = this.members.map((tasks) => tasks.reduce((sum, task) => sum + data.tasks.ran[task]!, 0));
    this.setOrder = data.sets.name.map((_, set) => set).filter((set) => this.members[set]!.length > 0);
    this.setOrder.sort((one, other) => Number(data.sets.group[other]) - Number(data.sets.group[one]) || ran[other]! - ran[one]!);
    this.showsDepth = count <= DEPTHS_SHOWN;
    this.only = (data.only ?? null) === null ? undefined : new Set(data.only ?? []);
    // What is busiest is open at first, as far as it fits.
    let shown = 0;
    for (const set of this.setOrder) {
      const size = this.members[set]!.length;
      if (size > 1 && shown + size <= 24) this.open.add(set);
      shown += size > 1 && this.open.has(set) ? size : 1;
    }
  }

  /** Puts sets and tasks in the order of another trace, as far as it has them too: rows of both stand beside each other. */
  follow(other: Trace): void {
    const { name } = this.data.sets;
    const sets = new Map(other.setOrder.map((set, at) => [other.data.sets.name[set], at]));
    const tasks = new Map(other.setOrder.flatMap((set) => other.members[set]!).map((task, at) => [other.taskName(task), at]));
    const byPlace = <T>(places: ReadonlyMap<T, number>, key: (one: number) => T) => (one: number, two: number): number => (places.get(key(one)) ?? Infinity) - (places.get(key(two)) ?? Infinity) || 0;
    this.setOrder.sort(byPlace(sets, (set) => name[set]));
    for (const list of this.members) list.sort(byPlace(tasks, (task) => this.taskName(task)));
    for (const set of this.setOrder) {
      const known = other.setOrder.find((one) => other.data.sets.name[one] === name[set]);
      if (known === undefined) continue;
      if (other.open.has(known)) this.open.add(set);
      else this.open.delete(set);
    }
  }

  async prepare(): Promise<void> {
    const { courses, frequencies, throttled } = this.data;
    const bytes = (piece: Piece): Promise<Uint8Array> => inflate(this.data.blob, piece.at, piece.length);
    const [cpus, tasks, sets, clocks, held] = await Promise.all([bytes(courses.cpus), bytes(courses.tasks), bytes(courses.sets), bytes(frequencies), bytes(throttled)]);
    this.throttled = new Throttled(held, courses.tasks.rows);
    this.cpuCourses = new Courses(cpus, courses.cpus.rows);
    this.taskCourses = new Courses(tasks, courses.tasks.rows);
    this.setCourses = new Courses(sets, courses.sets.rows);
    for (let cpu = 0; cpu < this.cpuCourses.rows; cpu += 1) this.depthScale = Math.max(this.depthScale, fullest(this.cpuCourses, cpu, this.data.length));
    const reader = new Reader(clocks);
    const time = reader.rising(frequencies.rows, 0, 1);
    const cpu = reader.whole(frequencies.rows);
    const khz = reader.whole(frequencies.rows);
    for (let row = 0; row < frequencies.rows; row += 1) {
      const list = this.frequencies.get(cpu[row]!) ?? { time: [], khz: [] };
      list.time.push(time[row]!);
      list.khz.push(khz[row]!);
      this.frequencies.set(cpu[row]!, list);
      this.frequencyMost = Math.max(this.frequencyMost, khz[row]!);
    }
  }

  /** The clock's frequency of a CPU at a time, kHz. */
  frequencyAt(cpu: number, time: number): number | undefined {
    const list = this.frequencies.get(cpu);
    if (list === undefined) return undefined;
    let low = 0;
    let high = list.time.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list.time[middle]! <= time) low = middle + 1;
      else high = middle;
    }
    return list.khz[low - 1];
  }

  taskName(task: number): string {
    return `${this.data.tasks.comm[task] || "task"}:${this.data.tasks.pid[task] ?? "?"}`;
  }

  whatName(what: number): string {
    if (what === IDLE) return "idle";
    return what === UNKNOWN ? "unknown" : this.taskName(what - FIRST_TASK);
  }

  setName(set: number): string {
    const name = this.data.sets.name[set] || "(no name)";
    const size = this.members[set]!.length;
    return size === 1 && !this.data.sets.group[set] ? this.taskName(this.members[set]![0]!) : `${name} (${size})`;
  }

  /** All rows as they stand now. */
  rows(): Row[] {
    const rows: Row[] = [];
    if (this.pinned.length > 0) {
      rows.push({ kind: "heading", text: "Selected" });
      for (const task of this.pinned) rows.push({ kind: "task", task, pinned: true });
    }
    rows.push({ kind: "heading", text: `CPUs (${this.cpus.length})` });
    for (const cpu of this.cpus) {
      rows.push({ kind: "cpu", cpu });
      if (this.showsDepth && cpu < this.cpuCourses.rows) rows.push({ kind: "depth", cpu });
      if (this.showsFrequency && this.frequencies.has(cpu)) rows.push({ kind: "frequency", cpu });
    }
    const shown = this.setOrder.map((set) => [set, this.members[set]!.filter((task) => this.only?.has(task) ?? true)] as const);
    const some = shown.filter(([, tasks]) => tasks.length > 0);
    const tasks = some.reduce((sum, [, list]) => sum + list.length, 0);
    rows.push({ kind: "heading", text: `Groups and tasks (${tasks})` });
    for (const [set, list] of some) {
      if (this.members[set]!.length === 1 && !this.data.sets.group[set]) {
        rows.push({ kind: "task", task: list[0]!, pinned: false });
        continue;
      }
      rows.push({ kind: "set", set });
      if (!this.open.has(set) && this.only === undefined) continue;
      for (const task of list.slice(0, this.only === undefined ? TASKS_SHOWN : undefined)) rows.push({ kind: "task", task, pinned: false });
      if (this.only === undefined && list.length > TASKS_SHOWN) {
        rows.push({ kind: "heading", text: `${list.length - TASKS_SHOWN} more: search finds them` });
      }
    }
    return rows;
  }

  /** Tasks whose name or id a word is part of; the task with just this id stands first. */
  search(word: string): number[] {
    const { comm, pid } = this.data.tasks;
    const lower = word.toLowerCase();
    const found: number[] = [];
    for (let task = 0; task < comm.length; task += 1) {
      // Rows show the name with the id: a search for a part of that finds them, too.
      if (this.taskName(task).toLowerCase().includes(lower)) found.push(task);
    }
    const isId = (task: number): number => (String(pid[task]) === word ? 1 : 0);
    return found.sort((one, other) => isId(other) - isId(one) || this.data.tasks.ran[other]! - this.data.tasks.ran[one]!);
  }

  private stretchPlaceAt(time: number): number {
    const [first] = this.stretches.between(time, time + 1);
    return first;
  }

  /** The stretch of a time, if it is decoded. */
  stretchAt(time: number): Stretch | undefined {
    return this.stretches.get(this.stretchPlaceAt(time));
  }

  /** A slice joined with its parts in stretches beside, which are decoded as far as it reaches. */
  async whole(slice: Slice): Promise<{ slice: Slice; begin: Stretch | undefined; end: Stretch | undefined }> {
    let { from, to, at, next } = slice;
    let place = this.stretchPlaceAt(slice.from);
    let begin = await this.stretches.load(place);
    let end = begin;
    for (let back = place; at < 0 && back > 0; ) {
      back -= 1;
      const stretch = await this.stretches.load(back);
      if (stretch === undefined) break;
      const part = stretch.at(slice.cpu, stretch.to);
      if (part.what !== slice.what) break;
      [from, at, begin] = [part.from, part.at, stretch];
    }
    while (next < 0 && place + 1 < this.stretches.rows.length) {
      place += 1;
      const stretch = await this.stretches.load(place);
      if (stretch === undefined) break;
      const part = stretch.carried(slice.cpu);
      if (part.what !== slice.what) break;
      [to, next, end] = [part.to, part.next, stretch];
    }
    return { slice: { ...slice, from, to, at, next }, begin, end };
  }

  /** The trace clock at a time, as trace tools print it. */
  clock(time: number): string {
    const all = BigInt(this.data.origin) + BigInt(Math.round(time));
    return `${all / 1_000_000_000n}.${String(all % 1_000_000_000n).padStart(9, "0")}`;
  }
}
