// The longest waits of one task: those that the list of the worst of all leaves out.

import { count, duration } from "../base/format.js";
import { h } from "../base/dom.js";
import { BEGAN } from "./data.js";
import { SWITCHES_DRAWN, type Pane } from "./pane.js";
import type { Trace } from "./trace.js";

/** So many are listed. */
const LISTED = 10;

/** Digits of a clock that no list needs: `explain` leaves them out, too. */
const NANOSECONDS = 3;

export interface OneWait {
  readonly from: number;
  readonly to: number;
  readonly cpu: number;
  /** How it began, as `BEGAN` counts. */
  readonly began: number;
}

/** The waits of a task that end between two times, the longest first; those across holes are no measurements. */
async function waitsOf(trace: Trace, task: number, from: number, to: number): Promise<OneWait[]> {
  const waits: OneWait[] = [];
  const [first, last] = trace.stretches.between(from, to);
  for (let place = first; place < last; place += 1) {
    const stretch = await trace.stretches.load(place);
    stretch?.ofTask(task, from, to, ({ at, from: end, cpu }) => {
      const waited = stretch.waited[at]!;
      if (waited > 0 && end > from && end <= to && !stretch.crossed(at)) waits.push({ from: end - waited, to: end, cpu, began: stretch.began(at) });
    });
  }
  return waits.sort((one, other) => other.to - other.from - (one.to - one.from));
}

/** A list of them: of the whole trace, or of what is in view where the trace is too long to be read for it. */
export async function taskWaits(pane: Pane, task: number, show: (wait: OneWait) => void): Promise<HTMLElement[]> {
  const { trace } = pane;
  const { length, switches, kept } = trace.data;
  const isWhole = switches <= SWITCHES_DRAWN;
  if (!isWhole && pane.drewSums) return [h("p", { class: "soft" }, "Its waits are listed if it is selected when single switches are drawn.")];
  const { from, to } = pane.scale();
  const waits = isWhole ? await waitsOf(trace, task, 0, length + 1) : await waitsOf(trace, task, from, to);
  const where = `${isWhole ? "" : " in view"}${kept.switches[0] < kept.switches[1] ? ", of those that the page keeps" : ""}`;
  if (waits.length === 0) return [h("p", { class: "soft" }, `It has no measured wait${where}.`)];
  const head = waits.length > LISTED ? `The longest ${LISTED} of its ${count(waits.length)} waits${where}:` : `Its waits${where}:`;
  const list = h("ul", { class: "results" });
  for (const wait of waits.slice(0, LISTED)) {
    const words = `${BEGAN[wait.began] ?? ""}, CPU ${wait.cpu}, ${trace.clock(wait.from).slice(0, -NANOSECONDS)}`;
    const button = h("button", { type: "button", class: "result" }, words, h("span", { class: "long" }, duration(wait.to - wait.from)));
    button.addEventListener("click", () => show(wait));
    list.append(h("li", {}, button));
  }
  return [h("p", { class: "soft" }, head), list];
}
