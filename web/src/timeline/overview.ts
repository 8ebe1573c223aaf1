// The whole trace on a strip: how busy its CPUs were, where the worst waits are, and which part is looked at.

import { h } from "../base/dom.js";
import type { Colours } from "./colours.js";
import { Cover } from "./paint.js";
import type { Trace } from "./trace.js";
import type { View } from "./view.js";

const STRIP = 30;

/** How high the most waiting tasks stand in it. */
const WAITS_HIGH = 10;

export class Overview {
  readonly canvas: HTMLCanvasElement;
  private readonly sums = new Map<Trace, readonly [Float64Array, Float64Array]>();
  private width = 0;

  constructor(
    private readonly traces: readonly Trace[],
    private readonly view: View,
    private readonly labels: () => number,
  ) {
    this.canvas = h("canvas", { class: "overview", "aria-hidden": "true" });
    this.canvas.style.height = `${STRIP * traces.length + 4}px`;
    this.listen();
  }

  private timeAt(x: number): number {
    const { first, last } = this.view;
    return first + ((x - this.labels()) / Math.max(1, this.canvas.clientWidth - this.labels())) * (last - first);
  }

  private listen(): void {
    let drags = false;
    const move = (event: PointerEvent): void => {
      const time = this.timeAt(event.offsetX);
      const half = this.view.span / 2;
      this.view.set(time - half, time + half);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      drags = true;
      this.canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (drags) move(event);
    });
    this.canvas.addEventListener("pointerup", () => (drags = false));
    this.canvas.addEventListener("pointercancel", () => (drags = false));
  }

  private sum(trace: Trace, pixels: number): readonly [Float64Array, Float64Array] {
    const [ran, waited] = [new Cover(pixels), new Cover(pixels)];
    const { first, last } = this.view;
    const x = (time: number): number => ((time - trace.offset - first) / (last - first)) * pixels;
    const courses = trace.cpuCourses;
    for (let cpu = 0; cpu < courses.rows; cpu += 1) {
      const [begin, end] = courses.between(cpu, -Infinity, Infinity);
      for (let at = begin; at < end; at += 1) {
        const [from, to] = [courses.from[at]!, courses.end(cpu, at)];
        if (to <= from) continue;
        ran.add(x(from), x(to), courses.ran[at]! / (to - from) / courses.rows);
        waited.add(x(from), x(to), courses.waited[at]! / (to - from) / courses.rows);
      }
    }
    return [ran.sums(), waited.sums()];
  }

  draw(colours: Colours): void {
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const ratio = Math.min(2, devicePixelRatio);
    if (this.width !== width) {
      this.width = width;
      this.sums.clear();
    }
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const left = this.labels();
    const pixels = Math.max(1, width - left);
    const { first, last } = this.view;
    context.font = '11px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = "middle";
    this.traces.forEach((trace, place) => {
      const y = place * STRIP + 2;
      let sums = this.sums.get(trace);
      if (sums === undefined) {
        sums = this.sum(trace, pixels);
        this.sums.set(trace, sums);
      }
      const [ran, waited] = sums;
      const most = waited.reduce((all, sum) => Math.max(all, sum), 1);
      context.fillStyle = colours.soft;
      context.fillText(this.traces.length > 1 ? `${trace.letter}: all` : "All CPUs", 8, y + STRIP / 2);
      context.fillStyle = colours.lane;
      context.fillRect(left, y, pixels, STRIP - 4);
      for (let pixel = 0; pixel < pixels; pixel += 1) {
        const high = Math.min(1, ran[pixel]!) * (STRIP - 4 - WAITS_HIGH - 2);
        context.fillStyle = colours.depth;
        context.fillRect(left + pixel, y + STRIP - 4 - high, 1, high);
        const waits = (waited[pixel]! / most) * WAITS_HIGH;
        context.fillStyle = colours.waits;
        context.fillRect(left + pixel, y, 1, waits);
      }
      context.fillStyle = colours.accent;
      for (const wait of trace.data.waits) {
        const x = left + ((wait.from - trace.offset - first) / (last - first)) * pixels;
        context.fillRect(x, y + STRIP - 8, Math.max(2, ((wait.to - wait.from) / (last - first)) * pixels), 4);
      }
    });
    const x = (time: number): number => left + ((time - first) / (last - first)) * pixels;
    const [from, to] = [x(this.view.from), x(this.view.to)];
    context.globalAlpha = 0.55;
    context.fillStyle = colours.paper;
    context.fillRect(left, 0, from - left, height);
    context.fillRect(to, 0, left + pixels - to, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.strokeRect(Math.round(from) + 0.5, 0.5, Math.max(2, Math.round(to - from) - 1), height - 1);
  }
}
