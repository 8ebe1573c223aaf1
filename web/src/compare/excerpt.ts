// The longest wait of a run: what ran on each CPU around it.

import * as Plot from "@observablehq/plot";
import { h, shown } from "../base/dom.js";
import { count, duration, seconds } from "../base/format.js";
import { figure, plot, responsive, tickOf } from "../base/chart.js";
import { table } from "../base/table.js";

/** As the program writes it (crates/page/src/excerpt.rs); times are ns of the run's clock. */
export interface Excerpt {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly cpus: readonly number[];
  readonly cpus_in_all: number;
  readonly tasks: readonly { readonly comm: string; readonly pid: number }[];
  /** CPU, task, from, to. */
  readonly ran: readonly (readonly [number, number, number, number])[];
  readonly wait: {
    readonly comm: string;
    readonly pid: number;
    readonly start: number;
    readonly end: number;
    /** CPU, from, to. */
    readonly stays: readonly (readonly [number, number, number])[];
    /** How it began: `woken`, `new`, `preempted`, `yielded`, `left runnable`. */
    readonly began: string;
    /** For how long of it the task's group was throttled. */
    readonly throttled: number;
  };
  readonly text: string;
}

/** Whose a stretch is: who waited; tasks of one name; or one of the many other names. */
interface Kind {
  readonly words: string;
  readonly colour: string;
}

interface Bar {
  readonly cpu: string;
  readonly task: number;
  readonly from: number;
  readonly to: number;
}

const COLOURS = ["var(--one)", "var(--three)", "var(--four)", "var(--five)"] as const;

const WAITER = "var(--two)";

const OTHERS = "var(--published)";

/** A name without a number at its end: tasks that differ in it are alike. */
function stem(comm: string): string {
  return comm.replace(/([-:/]?\d+)+$/, "") || comm;
}

/** What each task's bars look like; names that ran longest have colours of their own. */
function kindsOf(from: Excerpt): { of: readonly number[]; kinds: readonly Kind[] } {
  const spans = new Map<string, number>();
  for (const [, task, start, end] of from.ran) {
    const { comm, pid } = from.tasks[task] ?? { comm: "", pid: 0 };
    if (pid !== from.wait.pid) spans.set(stem(comm), (spans.get(stem(comm)) ?? 0) + end - start);
  }
  const longest = [...spans].sort((one, other) => other[1] - one[1]).map(([comm]) => comm);
  const own = longest.slice(0, longest.length === COLOURS.length + 1 ? COLOURS.length + 1 : COLOURS.length);
  const waiter = `${from.wait.comm}:${from.wait.pid}, who waited`;
  const kinds: Kind[] = [{ words: waiter, colour: WAITER }, ...own.map((words, place) => ({ words, colour: COLOURS[place] ?? OTHERS }))];
  const rest = longest.length - own.length;
  if (rest > 0) kinds.push({ words: `${rest} other names`, colour: OTHERS });
  const of = from.tasks.map((task) => {
    if (task.pid === from.wait.pid) return 0;
    const place = own.indexOf(stem(task.comm));
    return place < 0 ? kinds.length - 1 : place + 1;
  });
  return { of, kinds };
}

const ROW = 24;

/** Bars that are narrower than a name have none. */
const LETTER = 6.4;

function chart(from: Excerpt, width: number): Element {
  const { of, kinds } = kindsOf(from);
  const { wait } = from;
  const begin = wait.start;
  const row = (cpu: number): string => `CPU ${cpu}`;
  const bars: Bar[] = from.ran.map(([cpu, task, start, end]) => ({ cpu: row(cpu), task, from: start - begin, to: end - begin }));
  const stays = wait.stays.filter(([cpu]) => from.cpus.includes(cpu)).map(([cpu, start, end]) => ({ cpu: row(cpu), from: Math.max(start, from.from) - begin, to: Math.min(end, from.to) - begin })).filter((stay) => stay.to > stay.from);
  const [marginLeft, marginRight] = [58, 14];
  const scale = (width - marginLeft - marginRight) / (from.to - from.from);
  const colour = (bar: Bar): string => kinds[of[bar.task] ?? 0]?.colour ?? OTHERS;
  const nameOf = (task: number): string => `${from.tasks[task]?.comm ?? ""}:${from.tasks[task]?.pid ?? ""}`;
  const named = bars.filter((bar) => (bar.to - bar.from) * scale > shown(nameOf(bar.task)).length * LETTER + 6);
  const title = (bar: Bar): string => `${shown(nameOf(bar.task))} on ${bar.cpu}\nran ${duration(bar.to - bar.from)}, from ${tickOf(bar.from)}`;
  const marks: Plot.Markish[] = [
    Plot.rect(stays, { x1: "from", x2: "to", y: "cpu", fill: "none", stroke: WAITER, strokeWidth: 1.5, strokeDasharray: "4 2", insetTop: -1, insetBottom: -1 }),
    Plot.barX(bars, { x1: "from", x2: "to", y: "cpu", fill: colour, insetTop: 3, insetBottom: 3, insetRight: 0.4 }),
    Plot.text(named, { x: (bar: Bar) => (bar.from + bar.to) / 2, y: "cpu", text: (bar: Bar) => shown(nameOf(bar.task)), fill: "var(--paper)", fontSize: 10.5, fontWeight: 600 }),
    Plot.ruleX([0, wait.end - begin].filter((at) => at >= from.from - begin), { stroke: WAITER, strokeWidth: 1 }),
    Plot.tip(bars, Plot.pointer({ x: (bar: Bar) => (bar.from + bar.to) / 2, y: "cpu", title, fill: "var(--paper)", stroke: "var(--strong-rule)" })),
  ];
  return plot(`${from.name}: what ran on each CPU while ${wait.comm}:${wait.pid} waited ${duration(wait.end - wait.start)}`, {
    width,
    height: ROW * from.cpus.length + 34,
    marginLeft,
    marginRight,
    marginTop: 6,
    marginBottom: 28,
    x: { domain: [from.from - begin, from.to - begin], label: null, ticks: Math.max(3, Math.floor(width / 110)), tickFormat: tickOf },
    y: { domain: from.cpus.map(row), label: null, tickSize: 0, padding: 0.05 },
    marks,
  });
}

function barTable(from: Excerpt): HTMLElement {
  return table({
    caption: "What ran in the time that is drawn.",
    columns: [{ head: "Task" }, { head: "CPU", figures: true }, { head: "From", figures: true }, { head: "Ran", figures: true }],
    rows: from.ran.map(([cpu, task, start, end]) => [
      `${from.tasks[task]?.comm ?? ""}:${from.tasks[task]?.pid ?? ""}`,
      { show: String(cpu), by: cpu },
      { show: `${seconds(start)} s`, by: start },
      { show: duration(end - start), by: end - start },
    ]),
    sorts: true,
    first: 30,
  });
}

function legendOf(kinds: readonly Kind[]): HTMLElement {
  const key = (kind: Kind): HTMLElement => {
    const box = h("span", { class: "key", "aria-hidden": "true" });
    box.style.background = kind.colour;
    return h("li", {}, box, h("bdi", {}, shown(kind.words)));
  };
  return h("ul", { class: "legend", "aria-label": "Tasks" }, ...kinds.map(key));
}

/** Which kind of wait it is, beside the metrics that count such waits. */
function kindWords({ wait }: Excerpt): string {
  const length = duration(wait.end - wait.start);
  const quota = wait.throttled > 0 ? ` For ${duration(wait.throttled)} of it its group had used up its quota.` : "";
  const BEGUN: Readonly<Record<string, string>> = {
    woken: `A wakeup latency of ${length}: it began with a wakeup.`,
    new: `A fork wait of ${length}: the task was new. No wakeup latency counts it.`,
    preempted: `A wait of ${length} after a preemption: the task was not woken, so no wakeup latency counts it.`,
    yielded: `A wait of ${length} after a yield: the task was not woken, so no wakeup latency counts it.`,
  };
  return `${BEGUN[wait.began] ?? `A wait of ${length}: the task left its CPU runnable, so no wakeup latency counts it.`}${quota}`;
}

/** The longest wait of a run, drawn, and told in words. */
export function excerpt(from: Excerpt): HTMLElement {
  const left = from.cpus_in_all - from.cpus.length;
  const parts = [
    "0 is where the wait began; dashed: the queue in which the task waited; upright: begin and end of the wait.",
    from.from > from.wait.start ? `Too much ran to draw all of it: the first ${duration(from.from - from.wait.start)} of the wait are left out.` : "",
    left > 0 ? `${count(left)} more CPUs are not drawn.` : "",
  ];
  const caption = parts.filter((part) => part !== "").join(" ");
  return h(
    "div",
    { class: "kept-whole" },
    h("h3", {}, h("bdi", {}, shown(from.name))),
    h("p", { class: "kind" }, kindWords(from)),
    legendOf(kindsOf(from).kinds),
    figure(caption, responsive((width) => chart(from, width)), barTable(from)),
    h("pre", { class: "story" }, from.text.trimEnd().split("\n").map(shown).join("\n")),
  );
}
