// Courses: what each CPU, task and set did, in few entries. An entry covers the time up to the next one.

import { Reader } from "./columns.js";

export class Courses {
  readonly rows: number;
  private readonly first: Uint32Array;
  private readonly to: Float64Array;
  readonly from: Float64Array;
  readonly slices: Uint32Array;
  readonly ran: Float64Array;
  readonly waited: Float64Array;
  readonly other: Float64Array;
  readonly top: Uint32Array;
  readonly peak: Float64Array;

  constructor(bytes: Uint8Array, rows: number) {
    const reader = new Reader(bytes);
    const counts = reader.whole(rows);
    this.rows = rows;
    this.first = new Uint32Array(rows + 1);
    for (let row = 0; row < rows; row += 1) this.first[row + 1] = this.first[row]! + counts[row]!;
    const all = this.first[rows]!;
    this.to = reader.column(rows);
    this.from = reader.column(all);
    for (let row = 0; row < rows; row += 1) {
      for (let at = this.first[row]! + 1; at < this.first[row + 1]!; at += 1) this.from[at]! += this.from[at - 1]!;
    }
    this.slices = reader.whole(all);
    this.ran = reader.column(all);
    this.waited = reader.column(all);
    this.other = reader.column(all);
    this.top = reader.whole(all);
    this.peak = reader.column(all);
  }

  /** The entries of a row that show between two times: the first one's place, and that behind the last. */
  between(row: number, from: number, to: number): [number, number] {
    const [begin, end] = [this.first[row] ?? 0, this.first[row + 1] ?? 0];
    let low = begin;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.from[middle]! <= from) low = middle + 1;
      else high = middle;
    }
    let last = low;
    let far = end;
    while (last < far) {
      const middle = (last + far) >> 1;
      if (this.from[middle]! < to) last = middle + 1;
      else far = middle;
    }
    return [Math.max(begin, low - 1), last];
  }

  /** When an entry ends. */
  end(row: number, at: number): number {
    return at + 1 < this.first[row + 1]! ? this.from[at + 1]! : this.to[row]!;
  }

  /** How many entries a row has. */
  count(row: number): number {
    return (this.first[row + 1] ?? 0) - (this.first[row] ?? 0);
  }

  /** When a row begins and ends. */
  span(row: number): [number, number] {
    return [this.from[this.first[row]!] ?? 0, this.to[row] ?? 0];
  }
}
