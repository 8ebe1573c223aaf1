// Draws rows: slices where they are wide enough, and shares of time where many lie on one pixel.

import type { Colours, TaskColours } from "./colours.js";
import type { Courses } from "./courses.js";
import { BLOCKED, FIRST_TASK, IDLE, UNKNOWN } from "./data.js";
import type { Stretch } from "./stretch.js";
import type { Trace } from "./trace.js";

/** Times of a trace to places on the screen. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  /** Where `from` is. */
  readonly left: number;
  readonly width: number;
}

/** A part of what is shown: by its stretch, or by sums alone. */
export interface Part {
  readonly from: number;
  readonly to: number;
  readonly stretch: Stretch | undefined;
  /** Its switches are being read: sums stand for them for a moment. */
  readonly isUnread?: boolean;
}

/** Sums per pixel: each pixel has what intervals cover of it. */
export class Cover {
  private readonly part: Float64Array;
  private readonly whole: Float64Array;

  constructor(readonly width: number) {
    this.part = new Float64Array(width + 2);
    this.whole = new Float64Array(width + 2);
  }

  /** An interval in pixels. */
  add(from: number, to: number, weight = 1): void {
    const begin = Math.max(0, from);
    const end = Math.min(this.width, to);
    if (end <= begin) return;
    const [first, last] = [Math.floor(begin), Math.floor(end)];
    if (first === last) {
      this.part[first]! += (end - begin) * weight;
      return;
    }
    this.part[first]! += (first + 1 - begin) * weight;
    this.part[last]! += (end - last) * weight;
    this.whole[first + 1]! += weight;
    this.whole[last]! -= weight;
  }

  sums(): Float64Array {
    const sums = new Float64Array(this.width);
    let whole = 0;
    for (let pixel = 0; pixel < this.width; pixel += 1) {
      whole += this.whole[pixel]!;
      sums[pixel] = Math.max(0, this.part[pixel]! + whole);
    }
    return sums;
  }
}

/** The id at the end of a task's name: tasks of one name differ by it alone. */
export function idOf(text: string): string {
  return /:\d+$/.exec(text)?.[0] ?? "";
}

/** A name of so many letters, with its id where there is room for two letters more. */
function shortened(text: string, letters: number): string {
  if (text.length <= letters) return text;
  const id = idOf(text);
  const begin = letters - 1 - id.length;
  return begin >= 2 ? `${text.slice(0, begin)}…${id}` : `${text.slice(0, letters - 1)}…`;
}

export class Painter {
  private hatch: CanvasPattern | null = null;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly colours: Colours,
    private readonly tasks: TaskColours,
    private readonly trace: Trace,
    private readonly scale: Scale,
    private readonly parts: readonly Part[],
  ) {}

  private x(time: number): number {
    const { from, to, left, width } = this.scale;
    return left + ((time - from) / (to - from)) * width;
  }

  /** Covers what is not read yet, so that its sums are not taken for another course of events. */
  unread(y: number, height: number): void {
    for (const part of this.parts.filter(({ isUnread }) => isUnread === true)) {
      const [x0, x1] = [this.x(part.from), this.x(part.to)];
      this.context.fillStyle = this.colours.paper;
      this.context.globalAlpha = 0.7;
      this.context.fillRect(x0, y, x1 - x0, height);
      this.context.globalAlpha = 1;
      this.unknown(x0, y, x1 - x0, height);
    }
  }

  /** Time that is unknown. */
  unknown(x: number, y: number, width: number, height: number): void {
    if (this.hatch === null) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const draw = tile.getContext("2d");
      if (draw !== null) {
        draw.strokeStyle = this.colours.hatch;
        draw.lineWidth = 1;
        draw.beginPath();
        for (const shift of [-6, 0, 6]) {
          draw.moveTo(shift, 6);
          draw.lineTo(shift + 6, 0);
        }
        draw.stroke();
        this.hatch = this.context.createPattern(tile, "repeat");
      }
    }
    this.context.fillStyle = this.hatch ?? this.colours.hatch;
    this.context.fillRect(x, y, width, height);
  }

  private label(text: string, x: number, y: number, width: number, height: number): void {
    const { left, width: all } = this.scale;
    const begin = Math.max(x, left) + 4;
    const room = Math.min(x + width, left + all) - begin - 3;
    const letters = Math.floor(room / 6.2);
    if (letters < 4) return;
    this.context.fillStyle = this.colours.onTask;
    this.context.fillText(shortened(text, letters), begin, y + height / 2 + 0.5);
  }

  /** What a CPU did. */
  cpu(cpu: number, y: number, height: number): void {
    const row = this.trace.cpuCourses.rows > cpu;
    for (const part of this.parts) {
      if (!row) this.unknown(this.x(part.from), y, this.x(part.to) - this.x(part.from), height);
      else if (part.stretch === undefined) this.cpuCourse(cpu, part, y, height);
      else this.cpuSlices(cpu, part.stretch, part, y, height);
    }
  }

  private cpuCourse(cpu: number, part: Part, y: number, height: number): void {
    const courses = this.trace.cpuCourses;
    const [begin, end] = courses.between(cpu, part.from, part.to);
    const bar = new Bars(this.context, (x, width, busy, unknown, what) => {
      const high = Math.round(busy * height);
      if (unknown > 0.02) this.unknown(x, y, width, Math.max(1, Math.round(unknown * height)));
      if (high > 0 && what >= FIRST_TASK) {
        this.context.fillStyle = this.tasks.of(what);
        this.context.fillRect(x, y + height - high, width, high);
      }
    });
    for (let at = begin; at < end; at += 1) {
      const from = Math.max(part.from, courses.from[at]!);
      const whole = courses.end(cpu, at) - courses.from[at]!;
      const to = Math.min(part.to, courses.end(cpu, at));
      if (to <= from) continue;
      const share = whole > 0 ? 1 / whole : 0;
      bar.add(this.x(from), this.x(to), courses.ran[at]! * share, courses.other[at]! * share, 0, courses.top[at]!);
    }
    bar.flush();
  }

  private cpuSlices(cpu: number, stretch: Stretch, part: Part, y: number, height: number): void {
    const bar = new Bars(this.context, (x, width, busy, unknown, what) => {
      const high = Math.max(busy > 0 ? 1 : 0, Math.round(busy * height));
      if (unknown > 0.02) this.unknown(x, y, width, Math.max(1, Math.round(unknown * height)));
      if (high > 0 && what >= FIRST_TASK) {
        this.context.fillStyle = this.tasks.of(what);
        this.context.fillRect(x, y + height - high, width, high);
      }
    });
    stretch.ofCpu(cpu, part.from, part.to, (what, from, to) => {
      const x0 = this.x(Math.max(from, part.from));
      const x1 = this.x(Math.min(to, part.to));
      if (x1 - x0 < 2) {
        bar.add(x0, x1, what >= FIRST_TASK ? 1 : 0, what === UNKNOWN ? 1 : 0, 0, what);
        return;
      }
      bar.flush();
      if (what === UNKNOWN) this.unknown(x0, y, x1 - x0, height);
      if (what < FIRST_TASK) return;
      this.context.fillStyle = this.tasks.of(what);
      this.context.fillRect(x0, y, Math.max(1, x1 - x0 - 0.6), height);
      if (x1 - x0 > 30) this.label(this.trace.taskName(what - FIRST_TASK), x0, y, x1 - x0, height);
    });
    bar.flush();
  }

  /** How many tasks run and wait on a CPU; gives how many the height stands for. */
  depth(cpu: number, y: number, height: number): number {
    const pixels = Math.ceil(this.scale.width);
    const [ran, waited] = [new Cover(pixels), new Cover(pixels)];
    const x = (time: number): number => this.x(time) - this.scale.left;
    const courses = this.trace.cpuCourses;
    for (const part of this.parts) {
      if (part.stretch === undefined) {
        const [begin, end] = courses.between(cpu, part.from, part.to);
        for (let at = begin; at < end; at += 1) {
          const [from, to] = [courses.from[at]!, courses.end(cpu, at)];
          if (to <= from) continue;
          const [x0, x1] = [x(Math.max(from, part.from)), x(Math.min(to, part.to))];
          ran.add(x0, x1, courses.ran[at]! / (to - from));
          waited.add(x0, x1, courses.waited[at]! / (to - from));
        }
        continue;
      }
      part.stretch.ofCpu(cpu, part.from, part.to, (what, from, to) => {
        if (what >= FIRST_TASK) ran.add(x(Math.max(from, part.from)), x(Math.min(to, part.to)));
      });
      const { queues } = part.stretch;
      const [begin, end] = queues.byCpu.range(cpu);
      for (let place = begin; place < end; place += 1) {
        const at = queues.byCpu.order[place]!;
        // Who waits for a quota is not in the CPU's queue.
        this.trace.throttled.pieces(queues.task[at]!, Math.max(queues.from[at]!, part.from), Math.min(queues.to[at]!, part.to), (from, to, isHeld) => {
          if (!isHeld) waited.add(x(from), x(to));
        });
      }
    }
    return this.stack([ran.sums(), waited.sums()], this.trace.depthScale, this.colours.depth, y, height);
  }

  /** Sums on top of each other, up to `least` or more: who ran, who waited, who was throttled; gives up to how many. */
  private stack([low, high, held]: readonly [Float64Array, Float64Array, Float64Array?], least: number, colour: string, y: number, height: number): number {
    const { left } = this.scale;
    let most = least;
    for (let pixel = 0; pixel < low.length; pixel += 1) most = Math.max(most, Math.ceil(low[pixel]! + high[pixel]! + (held?.[pixel] ?? 0) - 0.05));
    const draw = (style: string, of: (pixel: number) => readonly [number, number]): void => {
      this.context.fillStyle = style;
      this.context.beginPath();
      let [start, before] = [0, of(0)];
      for (let pixel = 1; pixel <= low.length; pixel += 1) {
        const now = pixel < low.length ? of(pixel) : ([-1, -1] as const);
        if (now[0] === before[0] && now[1] === before[1]) continue;
        if (before[1] > 0) this.context.rect(left + start, y + height - before[0] - before[1], pixel - start, before[1]);
        [start, before] = [pixel, now];
      }
      this.context.fill();
    };
    const scaled = (value: number): number => Math.round(Math.min(1, value / most) * height * 2) / 2;
    draw(colour, (pixel) => [0, low[pixel]! > 0 ? Math.max(0.5, scaled(low[pixel]!)) : 0]);
    const waits = (pixel: number): readonly [number, number] => {
      const under = scaled(low[pixel]!);
      const over = high[pixel]! > 0 ? Math.max(0.5, Math.min(height - under, scaled(high[pixel]!))) : 0;
      return [under, over];
    };
    draw(this.colours.waits, waits);
    if (held === undefined) return most;
    draw(this.colours.throttled, (pixel) => {
      const [under, over] = waits(pixel);
      return [under + over, held[pixel]! > 0 ? Math.max(0.5, Math.min(height - under - over, scaled(held[pixel]!))) : 0];
    });
    return most;
  }

  /** How many tasks of a set run and wait; gives the number that the whole height stands for. */
  set(set: number, least: number, y: number, height: number): number {
    const pixels = Math.ceil(this.scale.width);
    const [ran, waited, held] = [new Cover(pixels), new Cover(pixels), new Cover(pixels)];
    const x = (time: number): number => this.x(time) - this.scale.left;
    const courses = this.trace.setCourses;
    const member = this.trace.data.tasks.set;
    for (const part of this.parts) {
      for (const task of this.trace.members[set]!) this.trace.throttled.within(task, part.from, part.to, (from, to) => held.add(x(from), x(to)));
      if (part.stretch === undefined) {
        const [begin, end] = courses.between(set, part.from, part.to);
        for (let at = begin; at < end; at += 1) {
          const [from, to] = [courses.from[at]!, courses.end(set, at)];
          if (to <= from) continue;
          const [x0, x1] = [x(Math.max(from, part.from)), x(Math.min(to, part.to))];
          ran.add(x0, x1, courses.ran[at]! / (to - from));
          waited.add(x0, x1, courses.waited[at]! / (to - from));
        }
        continue;
      }
      const { stretch } = part;
      for (const [cpu, what] of stretch.running) {
        if (member[what - FIRST_TASK] === set) ran.add(x(part.from), x(Math.min(part.to, stretch.carried(cpu).to)));
      }
      for (let at = 0; at < stretch.time.length; at += 1) {
        if (member[stretch.what[at]! - FIRST_TASK] !== set) continue;
        const next = stretch.next[at]!;
        const end = next < 0 ? stretch.to : stretch.time[next]!;
        ran.add(x(Math.max(stretch.time[at]!, part.from)), x(Math.min(end, part.to)));
      }
      const { queues } = stretch;
      for (let at = 0; at < queues.task.length; at += 1) {
        if (member[queues.task[at]!] !== set) continue;
        waited.add(x(Math.max(queues.from[at]!, part.from)), x(Math.min(queues.to[at]!, part.to)));
      }
    }
    const first = this.trace.members[set]![0] ?? 0;
    const [waits, throttled] = [waited.sums(), held.sums()];
    // Who is throttled is among those that wait.
    const others = waits.map((sum, pixel) => Math.max(0, sum - throttled[pixel]!));
    return this.stack([ran.sums(), others, throttled], least, this.tasks.of(first + FIRST_TASK), y, height);
  }

  /** What a task did. */
  task(task: number, y: number, height: number): void {
    for (const part of this.parts) {
      if (part.stretch === undefined) this.taskCourse(task, part, y, height);
      else this.taskRuns(task, part.stretch, part, y, height);
    }
  }

  private state(left: number): { readonly colour: string; readonly high: number } {
    return left === BLOCKED ? { colour: this.colours.blocked, high: 5 } : { colour: this.colours.sleeps, high: 2 };
  }

  private line(x0: number, x1: number, left: number, y: number, height: number): void {
    const { colour, high } = this.state(left);
    this.context.fillStyle = colour;
    this.context.fillRect(x0, y + height / 2 - high / 2, x1 - x0, high);
  }

  private taskCourse(task: number, part: Part, y: number, height: number): void {
    const courses = this.trace.taskCourses;
    const [begin, end] = courses.between(task, part.from, part.to);
    const colour = this.tasks.of(task + FIRST_TASK);
    const shares = this.shares(colour, y, height);
    const { exited } = this.trace.data.tasks;
    if (begin < end) {
      const until = exited[task] ?? part.to;
      const [x0, x1] = [this.x(Math.max(part.from, courses.from[begin]!)), this.x(Math.min(part.to, until))];
      if (x1 > x0) this.line(x0, x1, 0, y, height);
    }
    for (let at = begin; at < end; at += 1) {
      const from = courses.from[at]!;
      const to = courses.end(task, at);
      if (courses.slices[at] === 1) {
        // A single run is drawn where it was.
        const ran = from + courses.waited[at]!;
        this.trace.throttled.pieces(task, Math.max(from, part.from), Math.min(ran, part.to), (begin, end, isHeld) => shares.add(this.x(begin), this.x(end), 0, isHeld ? 0 : 1, isHeld ? 1 : 0));
        shares.add(this.x(Math.max(ran, part.from)), this.x(Math.min(ran + courses.ran[at]!, part.to)), 1, 0);
        continue;
      }
      const whole = Math.max(1, to - from);
      const [x0, x1] = [this.x(Math.max(from, part.from)), this.x(Math.min(to, part.to))];
      const throttled = this.trace.throttled.time(task, from, to);
      shares.add(x0, x1, courses.ran[at]! / whole, Math.max(0, courses.waited[at]! - throttled) / whole, throttled / whole);
    }
    shares.flush();
  }

  /** Shares of running, waiting and being throttled, on top of each other. */
  private shares(colour: string, y: number, height: number): Bars {
    return new Bars(this.context, (x, width, ran, waited, _what, throttled) => {
      const low = ran > 0 ? Math.max(1, Math.round(ran * height)) : 0;
      const high = waited > 0 ? Math.max(1, Math.round(waited * height)) : 0;
      const held = throttled > 0 ? Math.max(1, Math.round(throttled * height)) : 0;
      if (held > 0) {
        this.context.fillStyle = this.colours.throttled;
        this.context.fillRect(x, y + Math.max(0, height - low - high - held), width, Math.min(held, height));
      }
      if (low > 0) {
        this.context.fillStyle = colour;
        this.context.fillRect(x, y + height - low, width, low);
      }
      if (high > 0) {
        this.context.fillStyle = this.colours.waits;
        this.context.fillRect(x, y + Math.max(0, height - low - high), width, Math.min(high, height));
      }
    });
  }

  private taskRuns(task: number, stretch: Stretch, part: Part, y: number, height: number): void {
    const colour = this.tasks.of(task + FIRST_TASK);
    const shares = this.shares(colour, y, height);
    const clip = (time: number): number => this.x(Math.min(part.to, Math.max(part.from, time)));
    /** Draws from one time to another, by slices or by shares. */
    const run = (from: number, to: number, cpu: number): void => {
      const [x0, x1] = [clip(from), clip(to)];
      if (x1 <= x0) return;
      if (x1 - x0 < 2) {
        shares.add(x0, x1, 1, 0);
        return;
      }
      shares.flush();
      this.context.fillStyle = colour;
      this.context.fillRect(x0, y, x1 - x0, height);
      if (x1 - x0 > 44) this.label(`CPU ${cpu}`, x0, y, x1 - x0, height);
    };
    const wait = (from: number, to: number, crossed: boolean): void => {
      const [x0, x1] = [clip(from), clip(to)];
      if (x1 <= x0) return;
      if (crossed) {
        this.unknown(x0, y, x1 - x0, height);
        return;
      }
      this.trace.throttled.pieces(task, Math.max(from, part.from), Math.min(to, part.to), (begin, end, isHeld) => {
        const [left, right] = [clip(begin), clip(end)];
        if (x1 - x0 < 2 || right - left < 2) {
          shares.add(left, right, 0, isHeld ? 0 : 1, isHeld ? 1 : 0);
          return;
        }
        shares.flush();
        this.context.fillStyle = isHeld ? this.colours.throttled : this.colours.waits;
        this.context.fillRect(left, y + height * 0.2, right - left, height * 0.6);
      });
    };
    const rest = (from: number, to: number, left: number | undefined): void => {
      if (left === undefined || left === LEFT_EXITED) return;
      const [x0, x1] = [clip(from), clip(to)];
      if (x1 - x0 < 0.5) return;
      if (left === LEFT_UNKNOWN) this.unknown(x0, y + height / 2 - 3, x1 - x0, 6);
      else this.line(x0, x1, left, y, height);
    };
    const standing = stretch.standing.get(task);
    let at = stretch.from;
    let left = standing === undefined ? undefined : standing >= 2 ? standing - 2 : LEFT_RUNNABLE;
    const carried = stretch.carriedRun(task);
    if (carried !== undefined) {
      run(carried.from, carried.to, carried.cpu);
      at = carried.to;
      left = carried.next < 0 ? undefined : stretch.left[carried.next]!;
    }
    let isFirst = true;
    stretch.ofTask(task, part.from, part.to, (slice) => {
      const waited = Math.max(0, stretch.waited[slice.at]!);
      const began = slice.from - waited;
      isFirst = false;
      rest(at, began, left);
      wait(began, slice.from, stretch.crossed(slice.at));
      run(slice.from, slice.to, slice.cpu);
      at = slice.to;
      left = slice.next < 0 ? undefined : stretch.left[slice.next]!;
    });
    const last = stretch.waitsAtEnd(task);
    if (last !== undefined && last.since < part.to) {
      rest(at, last.since, left);
      wait(Math.max(last.since, part.from), part.to, false);
    } else if (isFirst || left !== undefined) {
      rest(at, part.to, left);
    }
    shares.flush();
  }

  /** A clock's frequency. */
  frequency(cpu: number, y: number, height: number): void {
    const list = this.trace.frequencies.get(cpu);
    if (list === undefined) return;
    const { from, to, left, width } = this.scale;
    this.context.fillStyle = this.colours.clock;
    let first = 0;
    let high = list.time.length;
    while (first < high) {
      const middle = (first + high) >> 1;
      if (list.time[middle]! <= from) first = middle + 1;
      else high = middle;
    }
    let before = -Infinity;
    for (let at = Math.max(0, first - 1); at < list.time.length && list.time[at]! < to; at += 1) {
      const x0 = Math.max(left, this.x(list.time[at]!), before);
      const x1 = Math.min(left + width, this.x(list.time[at + 1] ?? to));
      if (x1 - x0 < 0.3) continue;
      before = x1;
      const tall = Math.max(1, (list.khz[at]! / this.trace.frequencyMost) * height);
      this.context.globalAlpha = 0.35;
      this.context.fillRect(x0, y + height - tall, x1 - x0, tall);
      this.context.globalAlpha = 1;
      this.context.fillRect(x0, y + height - tall, x1 - x0, 1);
    }
  }
}

const LEFT_UNKNOWN = 0;
const LEFT_RUNNABLE = 5;
const LEFT_EXITED = 10;

/** Gathers what lies on one pixel; wide pieces go out as they are. */
class Bars {
  private pixel = NaN;
  private first = 0;
  private second = 0;
  private third = 0;
  private what = IDLE;
  private longest = 0;

  constructor(
    readonly context: CanvasRenderingContext2D,
    /** Draws a bar: its place, shares of two things from 0 to 1, what it is of, and the share of a third thing. */
    private readonly draw: (x: number, width: number, first: number, second: number, what: number, third: number) => void,
  ) {}

  /** From one place to another, with shares of three things. */
  add(from: number, to: number, first: number, second: number, third = 0, what = IDLE): void {
    if (to <= from) return;
    if (to - from >= 2) {
      this.flush();
      this.draw(from, to - from, first, second, what, third);
      return;
    }
    for (let at = from; at < to; ) {
      const pixel = Math.floor(at);
      const end = Math.min(to, pixel + 1);
      if (pixel !== this.pixel) {
        this.flush();
        this.pixel = pixel;
      }
      const size = end - at;
      this.first += first * size;
      this.second += second * size;
      this.third += third * size;
      if (what >= FIRST_TASK && size * first > this.longest) [this.longest, this.what] = [size * first, what];
      at = end;
    }
  }

  flush(): void {
    const isDrawn = this.first > 0 || this.second > 0 || this.third > 0;
    if (isDrawn) this.draw(this.pixel, 1, Math.min(1, this.first), Math.min(1, this.second), this.what, Math.min(1, this.third));
    this.pixel = NaN;
    this.first = this.second = this.third = this.longest = 0;
    this.what = IDLE;
  }
}

/** So many pieces of a trace are looked at for how much runs and waits at a time. */
const PIECES = 1000;

/** How many tasks run or wait at a time in the fullest piece of the trace. */
export function fullest(courses: Courses, row: number, length: number): number {
  const cover = new Cover(PIECES);
  const [begin, end] = courses.between(row, -Infinity, Infinity);
  const x = (time: number): number => (time / Math.max(1, length)) * PIECES;
  for (let at = begin; at < end; at += 1) {
    const [from, to] = [courses.from[at]!, courses.end(row, at)];
    if (to > from) cover.add(x(from), x(to), (courses.ran[at]! + courses.waited[at]!) / (to - from));
  }
  return Math.max(1, Math.ceil(cover.sums().reduce((most, sum) => Math.max(most, sum), 0)));
}
