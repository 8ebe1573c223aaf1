// What part of time is looked at, by all panes together.

/** Nobody looks closer, ns. */
const SHORTEST = 200;

/** So many places are kept to go back to. */
const RESTS_KEPT = 100;

export class View {
  from: number;
  to: number;
  private readonly listeners: (() => void)[] = [];
  /** Where the view has rested, the last place last. */
  private readonly rests: (readonly [number, number])[] = [];
  private target: { from: number; to: number; since: number; startFrom: number; startTo: number } | undefined;

  constructor(
    readonly first: number,
    readonly last: number,
  ) {
    this.from = first;
    this.to = last;
  }

  get span(): number {
    return this.to - this.from;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    this.listeners.forEach((listener) => listener());
  }

  /** As near to what is asked for as there is time. */
  private within(from: number, to: number): [number, number] {
    const all = this.last - this.first;
    const span = Math.max(Math.min(SHORTEST, all), Math.min(all, to - from));
    const middle = (from + to) / 2;
    const begin = Math.max(this.first, Math.min(this.last - span, middle - span / 2));
    return [begin, begin + span];
  }

  /** Shows this at once. */
  set(from: number, to: number): void {
    this.target = undefined;
    [this.from, this.to] = this.within(from, to);
    this.tell();
  }

  /** Goes there in a short while, unless the reader wants no motion. */
  go(from: number, to: number): void {
    const [begin, end] = this.within(from, to);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.set(begin, end);
      return;
    }
    this.target = { from: begin, to: end, since: performance.now(), startFrom: this.from, startTo: this.to };
    requestAnimationFrame((now) => this.step(now));
  }

  private step(now: number): void {
    const { target } = this;
    if (target === undefined) return;
    const DURATION_MS = 180;
    const part = Math.min(1, Math.max(0, (now - target.since) / DURATION_MS));
    const eased = 1 - (1 - part) ** 3;
    // The span changes by equal factors, its place on the screen evenly.
    const [span, end] = [target.startTo - target.startFrom, target.to - target.from];
    const width = span * (end / span) ** eased;
    const shift = Math.abs(end - span) < 1e-6 ? eased : (width - span) / (end - span);
    const from = target.startFrom + (target.from - target.startFrom) * shift;
    [this.from, this.to] = part === 1 ? [target.from, target.to] : [from, from + width];
    if (part === 1) this.target = undefined;
    this.tell();
    if (part < 1) requestAnimationFrame((later) => this.step(later));
  }

  /** Where the view is going. */
  private goal(): [number, number] {
    return this.target === undefined ? [this.from, this.to] : [this.target.from, this.target.to];
  }

  /** Makes what is shown `factor` times as long, around a time. */
  zoom(factor: number, around: number, smooth = false): void {
    const [from, to] = smooth ? this.goal() : [this.from, this.to];
    const span = Math.max(SHORTEST, Math.min(this.last - this.first, (to - from) * factor));
    const part = (around - from) / (to - from);
    const begin = around - span * part;
    if (smooth) this.go(begin, begin + span);
    else this.set(begin, begin + span);
  }

  /** Moves by a part of what is shown. */
  pan(part: number, smooth = false): void {
    const [from, to] = smooth ? this.goal() : [this.from, this.to];
    const by = (to - from) * part;
    const limited = Math.max(this.first - from, Math.min(this.last - to, by));
    if (smooth) this.go(from + limited, to + limited);
    else this.set(from + limited, to + limited);
  }

  /** The view has come to rest: one can come back here. */
  rest(): void {
    const last = this.rests.at(-1);
    if (this.target !== undefined || (last !== undefined && last[0] === this.from && last[1] === this.to)) return;
    this.rests.push([this.from, this.to]);
    if (this.rests.length > RESTS_KEPT) this.rests.shift();
  }

  /** Goes where the view rested before. */
  back(): void {
    const [from, to] = this.goal();
    while (this.rests.length > 0) {
      const [begin, end] = this.rests.at(-1)!;
      if (begin !== from || end !== to) return this.go(begin, end);
      this.rests.pop();
    }
  }

  fit(): void {
    this.go(this.first, this.last);
  }
}
