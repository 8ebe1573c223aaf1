// When tasks were held back because their group had used up its quota: spans of each task, which lie within its waits.

import { Reader } from "./columns.js";

export class Throttled {
  private readonly first: Uint32Array;
  private readonly from: Float64Array;
  private readonly to: Float64Array;

  /** Of so many tasks, as crates/page/src/timeline/courses.rs writes them. */
  constructor(bytes: Uint8Array, tasks: number) {
    const reader = new Reader(bytes);
    const counts = reader.whole(tasks);
    this.first = new Uint32Array(tasks + 1);
    for (let task = 0; task < tasks; task += 1) this.first[task + 1] = this.first[task]! + counts[task]!;
    const all = this.first[tasks]!;
    this.from = reader.column(all);
    this.to = reader.column(all);
    for (let task = 0; task < tasks; task += 1) {
      let before = 0;
      for (let at = this.first[task]!; at < this.first[task + 1]!; at += 1) {
        this.from[at]! += before;
        this.to[at]! += this.from[at]!;
        before = this.to[at]!;
      }
    }
  }

  /** Whether no task was ever held back, as far as the trace tells. */
  get isEmpty(): boolean {
    return this.from.length === 0;
  }

  /** Calls `each` with the parts of a task's spans that lie between two times, in order. */
  within(task: number, from: number, to: number, each: (from: number, to: number) => void): void {
    const end = this.first[task + 1] ?? 0;
    let low = this.first[task] ?? end;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.to[middle]! <= from) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < end && this.from[at]! < to; at += 1) each(Math.max(from, this.from[at]!), Math.min(to, this.to[at]!));
  }

  /** For how long a task was held back between two times. */
  time(task: number, from: number, to: number): number {
    let sum = 0;
    this.within(task, from, to, (begin, end) => (sum += end - begin));
    return sum;
  }

  /** The span of a task that holds a time. */
  at(task: number, time: number): readonly [number, number] | undefined {
    const end = this.first[task + 1] ?? 0;
    for (let at = this.first[task] ?? end; at < end && this.from[at]! <= time; at += 1) if (time < this.to[at]!) return [this.from[at]!, this.to[at]!];
    return undefined;
  }

  /** A wait in pieces, in order: those in which its task was held back, and those in which it waited for a CPU. */
  pieces(task: number, from: number, to: number, each: (from: number, to: number, isHeld: boolean) => void): void {
    let at = from;
    this.within(task, from, to, (begin, end) => {
      if (begin > at) each(at, begin, false);
      each(begin, end, true);
      at = end;
    });
    if (to > at) each(at, to, false);
  }
}
