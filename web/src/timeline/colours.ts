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

export class TaskColours {
  private readonly known = new Map<number, string>();
  private readonly hues: readonly (number | undefined)[];
  private readonly isDark: boolean;

  constructor(
    private readonly trace: Trace,
    private readonly names: readonly string[],
    dark: boolean,
  ) {
    this.isDark = dark;
    const { sets } = trace.data;
    this.hues = sets.name.map((name) => {
      const place = this.names.indexOf(name);
      return KERNEL.test(name) || place < 0 ? undefined : HUES[place % HUES.length];
    });
  }

  /** The colour of what a CPU does, which is a task. */
  of(what: number): string {
    const known = this.known.get(what);
    if (known !== undefined) return known;
    const colour = this.make(what);
    this.known.set(what, colour);
    return colour;
  }

  private make(what: number): string {
    if (what === IDLE || what === UNKNOWN) return "transparent";
    const task = what - FIRST_TASK;
    const hue = this.hues[this.trace.data.tasks.set[task] ?? 0];
    // Tasks of a set differ a little.
    const pid = Math.abs(this.trace.data.tasks.pid[task] ?? 0);
    const lightness = (this.isDark ? 52 : 58) + ((pid * 7) % 6) * 3;
    if (hue === undefined) return `hsl(210 6% ${lightness}%)`;
    const turned = hue + (((pid * 3) % 7) - 3) * 5;
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
