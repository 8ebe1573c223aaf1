// A stretch: all switches from one time to another, with what CPUs and tasks take over from before.

import { Reader, inflate, unfolded } from "./columns.js";
import { FIRST_TASK, UNKNOWN, type StretchRow } from "./data.js";

/** Places in a list, put in order by a key: those of key k stand from first(k) on. */
export class Buckets {
  private readonly first = new Map<number, number>();
  readonly order: Uint32Array;
  private readonly counts = new Map<number, number>();

  constructor(keys: ArrayLike<number>) {
    for (let at = 0; at < keys.length; at += 1) this.counts.set(keys[at]!, (this.counts.get(keys[at]!) ?? 0) + 1);
    let sum = 0;
    const next = new Map<number, number>();
    for (const [key, count] of this.counts) {
      this.first.set(key, sum);
      next.set(key, sum);
      sum += count;
    }
    this.order = new Uint32Array(keys.length);
    for (let at = 0; at < keys.length; at += 1) {
      const place = next.get(keys[at]!)!;
      this.order[place] = at;
      next.set(keys[at]!, place + 1);
    }
  }

  range(key: number): [number, number] {
    const first = this.first.get(key);
    return first === undefined ? [0, 0] : [first, first + this.counts.get(key)!];
  }
}

/** One slice of a CPU or a run of a task, whole or as far as the stretch goes. */
export interface Slice {
  readonly what: number;
  readonly cpu: number;
  readonly from: number;
  readonly to: number;
  /** The switch with which it begins; -1: it goes on from before the stretch. */
  readonly at: number;
  /** The switch with which it ends; -1: it goes on behind the stretch. */
  readonly next: number;
}

/** Waits in pieces, each on one CPU (-1: not queued yet). */
export interface Queued {
  readonly task: readonly number[];
  readonly cpu: readonly number[];
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly byCpu: Buckets;
}

export interface Facts {
  /** Virtual ns; more digits than a number holds. */
  readonly vruntime: bigint;
  readonly lag: number | null;
  readonly deadline: number | null;
}

export class Stretch {
  readonly from: number;
  readonly to: number;
  /** What tasks do at the beginning: 0 runs, 1 waits, from 2 on it sleeps and how it left. */
  readonly standing = new Map<number, number>();
  readonly running = new Map<number, number>();
  readonly time: Float64Array;
  readonly cpu: Uint32Array;
  readonly what: Uint32Array;
  readonly left: Uint32Array;
  private readonly waitByte: Uint32Array;
  /** How long a wait was that ended there; -1: none did. */
  readonly waited: Float64Array;
  /** The waker's CPU from 1. */
  readonly waker: Uint32Array;
  /** The next switch of the CPU; -1: there is none. */
  readonly next: Int32Array;
  readonly moves: { readonly time: Float64Array; readonly task: Uint32Array; readonly from: Uint32Array; readonly to: Uint32Array };
  readonly waiting: { readonly task: Uint32Array; readonly cpu: Uint32Array; readonly since: Float64Array };
  private readonly waitingOf = new Map<number, number>();
  private readonly byCpu: Buckets;
  private readonly byTask: Buckets;
  private facts: Map<number, Facts> | undefined;
  private queued: Queued | undefined;

  constructor(bytes: Uint8Array, unit: number) {
    const reader = new Reader(bytes);
    const from = reader.number();
    const to = reader.number();
    const [standing, running, switches, moves, waiting] = [0, 0, 0, 0, 0].map(() => reader.number()) as [number, number, number, number, number];
    this.from = from * unit;
    this.to = to * unit;
    const tasks = reader.rising(standing, 0, 1);
    reader.column(standing).forEach((code, row) => this.standing.set(tasks[row]!, code));
    const cpus = reader.rising(running, 0, 1);
    reader.column(running).forEach((what, row) => this.running.set(cpus[row]!, what));
    const first = from + unfolded(reader.number());
    this.time = reader.rising(switches, first, unit);
    this.cpu = reader.whole(switches);
    this.what = reader.whole(switches);
    this.left = reader.whole(switches);
    this.waitByte = reader.whole(switches);
    this.waited = reader.scaled(switches, unit);
    this.waker = reader.whole(switches);
    this.moves = {
      time: reader.rising(moves, from, unit),
      task: reader.whole(moves),
      from: reader.whole(moves),
      to: reader.whole(moves),
    };
    const [waitingTask, waitingCpu] = [reader.whole(waiting), reader.whole(waiting)];
    const since = reader.scaled(waiting, unit);
    for (let row = 0; row < waiting; row += 1) since[row] = this.to - since[row]!;
    this.waiting = { task: waitingTask, cpu: waitingCpu, since };
    waitingTask.forEach((task, row) => this.waitingOf.set(task, row));
    this.byCpu = new Buckets(this.cpu);
    this.byTask = new Buckets(this.what);
    this.next = new Int32Array(switches).fill(-1);
    this.link();
  }

  /** Finds each switch's next one on its CPU, and waits that began when their task left its CPU. */
  private link(): void {
    const IMPLIED = 1 << 6;
    const last = new Map<number, number>();
    const running = new Map(this.running);
    const leftAt = new Map<number, number>();
    for (let at = 0; at < this.time.length; at += 1) {
      const cpu = this.cpu[at]!;
      const before = last.get(cpu);
      if (before !== undefined) this.next[before] = at;
      last.set(cpu, at);
      const gone = running.get(cpu);
      if (gone !== undefined && gone >= FIRST_TASK) leftAt.set(gone, this.time[at]!);
      running.set(cpu, this.what[at]!);
      const byte = this.waitByte[at]!;
      if (byte === 0) this.waited[at] = -1;
      else if ((byte & IMPLIED) !== 0) this.waited[at] = this.time[at]! - (leftAt.get(this.what[at]!) ?? this.time[at]!);
    }
  }

  began(at: number): number {
    return this.waitByte[at]! & 7;
  }

  crossed(at: number): boolean {
    return (this.waitByte[at]! & 8) !== 0;
  }

  mode(at: number): number {
    return (this.waitByte[at]! >> 4) & 3;
  }

  private end(at: number): number {
    const next = this.next[at]!;
    return next < 0 ? this.to : this.time[next]!;
  }

  private slice(at: number): Slice {
    return { what: this.what[at]!, cpu: this.cpu[at]!, from: this.time[at]!, to: this.end(at), at, next: this.next[at]! };
  }

  /** What a CPU does at the beginning, up to its first switch. */
  carried(cpu: number): Slice {
    const [begin, end] = this.byCpu.range(cpu);
    const next = begin < end ? this.byCpu.order[begin]! : -1;
    const to = next < 0 ? this.to : this.time[next]!;
    return { what: this.running.get(cpu) ?? UNKNOWN, cpu, from: this.from, to, at: -1, next };
  }

  /** Calls `each` with the slices of a CPU that show between two times, in order. */
  ofCpu(cpu: number, from: number, to: number, each: (what: number, from: number, to: number, at: number) => void): void {
    const carried = this.carried(cpu);
    if (carried.to > from && carried.to > carried.from) each(carried.what, carried.from, carried.to, -1);
    const [begin, end] = this.byCpu.range(cpu);
    const { order } = this.byCpu;
    for (let place = this.reach(order, begin, end, from); place < end; place += 1) {
      const at = order[place]!;
      if (this.time[at]! >= to) return;
      each(this.what[at]!, this.time[at]!, this.end(at), at);
    }
  }

  /** The place of the last switch at or before a time; the first one if none is. */
  private reach(order: Uint32Array, begin: number, end: number, time: number): number {
    let low = begin;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[order[middle]!]! <= time) low = middle + 1;
      else high = middle;
    }
    return Math.max(begin, low - 1);
  }

  /** The run of a task that goes on when the stretch begins. */
  carriedRun(task: number): Slice | undefined {
    if (this.standing.get(task) !== 0) return undefined;
    for (const [cpu, what] of this.running) if (what === task + FIRST_TASK) return this.carried(cpu);
    return undefined;
  }

  /** The runs of a task that show between two times, or wait for a time in it, in order. */
  ofTask(task: number, from: number, to: number, each: (slice: Slice) => void): void {
    const [begin, end] = this.byTask.range(task + FIRST_TASK);
    const { order } = this.byTask;
    for (let place = this.reach(order, begin, end, from); place < end; place += 1) {
      const at = order[place]!;
      if (this.time[at]! - Math.max(0, this.waited[at]!) >= to) return;
      each(this.slice(at));
    }
  }

  /** Since when a task waits at the end. */
  waitsAtEnd(task: number): { readonly since: number; readonly cpu: number } | undefined {
    const row = this.waitingOf.get(task);
    return row === undefined ? undefined : { since: this.waiting.since[row]!, cpu: this.waiting.cpu[row]! - 1 };
  }

  /** What a CPU does at a time. */
  at(cpu: number, time: number): Slice {
    const [begin, end] = this.byCpu.range(cpu);
    if (begin === end || this.time[this.byCpu.order[begin]!]! > time) return this.carried(cpu);
    return this.slice(this.byCpu.order[this.reach(this.byCpu.order, begin, end, time)]!);
  }

  /** Who waited where and when, within the stretch, with moves between CPUs. */
  get queues(): Queued {
    return (this.queued ??= this.findQueues());
  }

  private findQueues(): Queued {
    const [task, cpu, from, to]: [number[], number[], number[], number[]] = [[], [], [], []];
    const add = (who: number, where: number, since: number, until: number): void => {
      if (until <= since) return;
      task.push(who);
      cpu.push(where);
      from.push(since);
      to.push(until);
    };
    const moved = new Map<number, number[]>();
    this.moves.task.forEach((who, row) => {
      const list = moved.get(who);
      if (list === undefined) moved.set(who, [row]);
      else list.push(row);
    });
    const wait = (who: number, where: number, since: number, until: number): void => {
      let start = Math.max(since, this.from);
      for (const row of moved.get(who) ?? []) {
        const time = this.moves.time[row]!;
        if (time < start || time > until) continue;
        add(who, this.moves.from[row]!, start, time);
        start = time;
      }
      add(who, where, start, until);
    };
    for (let at = 0; at < this.time.length; at += 1) {
      const waited = this.waited[at]!;
      if (waited > 0 && !this.crossed(at)) wait(this.what[at]! - FIRST_TASK, this.cpu[at]!, this.time[at]! - waited, this.time[at]!);
    }
    this.waiting.task.forEach((who, row) => wait(who, this.waiting.cpu[row]! - 1, this.waiting.since[row]!, this.to));
    return { task, cpu, from, to, byCpu: new Buckets(cpu) };
  }

  /** Takes the virtual times of this stretch. */
  learn(bytes: Uint8Array): void {
    const reader = new Reader(bytes);
    const rows = reader.number();
    const at = reader.rising(rows, 0, 1);
    const deltas = reader.column(rows);
    const lags = reader.column(rows);
    const ahead = reader.column(rows);
    this.facts = new Map();
    let vruntime = 0n;
    for (let row = 0; row < rows; row += 1) {
      vruntime += BigInt(unfolded(deltas[row]!));
      const placed = lags[row] !== 0;
      const lag = placed ? unfolded(lags[row]! - 1) : null;
      this.facts.set(at[row]!, { vruntime, lag, deadline: placed ? unfolded(ahead[row]! - 1) : null });
    }
  }

  factsOf(at: number): Facts | undefined {
    return this.facts?.get(at);
  }
}

/** So many switches are kept decoded. */
const DECODED_MAX = 1 << 20;

/** The stretches of a trace, decoded when they are looked at. */
export class Stretches {
  private readonly decoded = new Map<number, Stretch>();
  private readonly wanted = new Set<number>();
  private busy = false;
  private switches = 0;
  /** What could not be decoded. */
  trouble = "";

  constructor(
    readonly rows: readonly StretchRow[],
    private readonly blob: string,
    private readonly unit: number,
    private readonly changed: () => void,
  ) {}

  /** The stretches that show between two times: first and behind the last. */
  between(from: number, to: number): [number, number] {
    const find = (is: (row: StretchRow) => boolean): number => {
      let low = 0;
      let high = this.rows.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (is(this.rows[middle]!)) high = middle;
        else low = middle + 1;
      }
      return low;
    };
    return [find((row) => row[1] > from), find((row) => row[0] >= to)];
  }

  /** Whether the page has it. */
  has(place: number): boolean {
    return (this.rows[place]?.[4] ?? 0) > 0;
  }

  get(place: number): Stretch | undefined {
    const stretch = this.decoded.get(place);
    if (stretch !== undefined) {
      // Those looked at last are kept.
      this.decoded.delete(place);
      this.decoded.set(place, stretch);
    }
    return stretch;
  }

  /** Asks for stretches; `changed` is called when some have come. */
  want(places: readonly number[]): void {
    this.wanted.clear();
    for (const place of places) if (this.has(place) && !this.decoded.has(place)) this.wanted.add(place);
    if (!this.busy && this.wanted.size > 0) void this.work();
  }

  private async work(): Promise<void> {
    this.busy = true;
    try {
      for (let place = this.nextWanted(); place !== undefined; place = this.nextWanted()) {
        await this.load(place);
        this.changed();
      }
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
      this.wanted.clear();
      this.changed();
    } finally {
      this.busy = false;
    }
  }

  private nextWanted(): number | undefined {
    for (const place of this.wanted) {
      this.wanted.delete(place);
      if (!this.decoded.has(place)) return place;
    }
    return undefined;
  }

  /** Decodes a stretch if it is not. */
  async load(place: number): Promise<Stretch | undefined> {
    const known = this.get(place);
    const row = this.rows[place];
    if (known !== undefined || row === undefined || !this.has(place)) return known;
    const stretch = new Stretch(await inflate(this.blob, row[3], row[4]), this.unit);
    if (row[6] > 0) stretch.learn(await inflate(this.blob, row[5], row[6]));
    const other = this.decoded.get(place);
    if (other !== undefined) return other;
    this.decoded.set(place, stretch);
    this.switches += row[2];
    for (const [oldest] of this.decoded) {
      if (this.switches <= DECODED_MAX || oldest === place) break;
      this.decoded.delete(oldest);
      this.switches -= this.rows[oldest]![2];
    }
    return stretch;
  }
}
