// Colours of tasks and of what they do, light and dark.

import { theme } from "../base/theme.js";
import { FIRST_TASK, IDLE, UNKNOWN } from "./data.js";
import type { Trace } from "./trace.js";

export interface Colours {
  readonly paper: string;
  readonly raised: string;
  readonly lane: string;
  readonly ink: string;
  readonly soft: string;
  readonly rule: string;
  readonly strong: string;
  /** Text on a task's colour. */
  readonly onTask: string;
  readonly waits: string;
  readonly throttled: string;
  readonly blocked: string;
  readonly sleeps: string;
  readonly hatch: string;
  readonly depth: string;
  readonly clock: string;
  readonly accent: string;
  readonly band: string;
}

const LIGHT: Colours = {
  paper: "#fdfdfb",
  raised: "#f1f1ec",
  lane: "#f6f6f2",
  ink: "#1c2024",
  soft: "#5b636b",
  rule: "#e2e3dd",
  strong: "#8d938f",
  onTask: "#10151a",
  waits: "#e08a00",
  throttled: "#5e35a0",
  blocked: "#b8443c",
  sleeps: "#b9bfc2",
  hatch: "#a4a9a5",
  depth: "#7f8f9b",
  clock: "#4b7f52",
  accent: "#c2255c",
  band: "rgba(194, 37, 92, 0.10)",
};

const DARK: Colours = {
  paper: "#14171a",
  raised: "#20262a",
  lane: "#191d21",
  ink: "#e4e6e3",
  soft: "#a3abb0",
  rule: "#2a3035",
  strong: "#6f787d",
  onTask: "#0b0e10",
  waits: "#f0a02c",
  throttled: "#8d6fd8",
  blocked: "#e0665c",
  sleeps: "#4d565c",
  hatch: "#59626a",
  depth: "#7d909e",
  clock: "#8cc496",
  accent: "#ff6b9b",
  band: "rgba(255, 107, 155, 0.14)",
};

export function colours(printing: boolean): Colours {
  return !printing && theme() === "dark" ? DARK : LIGHT;
}

/** Hues that are told apart, the first ones best. */
const HUES = [209, 152, 262, 32, 338, 186, 84, 228, 302, 56, 12, 168];

/** Threads of the kernel are grey. */
const KERNEL = /^(kworker|migration|ksoftirqd|rcu|kthread|swapper|irq\/|cpuhp|kcompactd|kswapd|khugepaged|watchdog|jbd2|kblockd|idle_inject)/;

/** What gives a task its colour: by what its hue is chosen, and which it is among the tasks of its name. */
interface Shade {
  readonly hue: string;
  readonly place: number;
}

/** Which set each task's hue is of, and its place among tasks of its name by their ids; `known`: those of a trace before. */
export function shadesOf(trace: Trace, known?: ReadonlyMap<string, ReadonlySet<string>>): Shade[] {
  const { comm, pid, set } = trace.data.tasks;
  const places = new Map<string, number>();
  const shades: Shade[] = Array.from({ length: comm.length }, () => ({ hue: "", place: 0 }));
  const order = comm.map((_, task) => task).sort((one, other) => pid[one]! - pid[other]!);
  for (const task of order) {
    const name = comm[task]!;
    const own = trace.data.sets.name[set[task]!] ?? "";
    const elsewhere = known?.get(name);
    // A task of this name that the other trace has in another group keeps that one's hue.
    const hue = elsewhere === undefined || elsewhere.has(own) ? own : [...elsewhere][0] ?? own;
    const place = places.get(`${own}\n${name}`) ?? 0;
    places.set(`${own}\n${name}`, place + 1);
    shades[task] = { hue, place };
  }
  return shades;
}

/** In which sets a trace has tasks of a name, the set in which such a task ran longest first. */
export function setsByName(trace: Trace): Map<string, Set<string>> {
  const { comm, ran, set } = trace.data.tasks;
  const found = new Map<string, Set<string>>();
  const order = comm.map((_, task) => task).sort((one, other) => ran[other]! - ran[one]!);
  for (const task of order) {
    const name = trace.data.sets.name[set[task]!] ?? "";
    const sets = found.get(comm[task]!);
    if (sets === undefined) found.set(comm[task]!, new Set([name]));
    else sets.add(name);
  }
  return found;
}

export class TaskColours {
  private readonly known = new Map<number, string>();

  constructor(
    private readonly shades: readonly Shade[],
    private readonly names: readonly string[],
    private readonly isDark: boolean,
  ) {}

  /** The colour of what a CPU does, which is a task. */
  of(what: number): string {
    const known = this.known.get(what);
    if (known !== undefined) return known;
    const colour = this.make(what);
    this.known.set(what, colour);
    return colour;
  }

  private make(what: number): string {
    const shade = this.shades[what - FIRST_TASK];
    if (what === IDLE || what === UNKNOWN || shade === undefined) return "transparent";
    const at = this.names.indexOf(shade.hue);
    // Tasks of a name differ a little.
    const lightness = (this.isDark ? 52 : 58) + ((shade.place * 7) % 6) * 3;
    if (KERNEL.test(shade.hue) || at < 0) return `hsl(210 6% ${lightness}%)`;
    const turned = HUES[at % HUES.length]! + (((shade.place * 3) % 7) - 3) * 5;
    return `hsl(${turned} ${this.isDark ? 42 : 50}% ${lightness}%)`;
  }
}

/** Names of sets of all traces, so that the same name has the same colour in each: those that ran longest first. */
export function namesByTime(traces: readonly Trace[]): string[] {
  const ran = new Map<string, number>();
  for (const trace of traces) {
    trace.members.forEach((tasks, set) => {
      const name = trace.data.sets.name[set] ?? "";
      const sum = tasks.reduce((all, task) => all + (trace.data.tasks.ran[task] ?? 0), 0);
      if (!KERNEL.test(name)) ran.set(name, (ran.get(name) ?? 0) + sum);
    });
  }
  return [...ran].sort((one, other) => other[1] - one[1]).map(([name]) => name);
}
