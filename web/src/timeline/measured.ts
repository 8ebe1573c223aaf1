// What a measured time holds: how busy its CPUs were, and who ran in it.

import { duration, share } from "../base/format.js";
import { h, name } from "../base/dom.js";
import { FIRST_TASK } from "./data.js";
import type { Pane } from "./pane.js";
import { nothing, ofCpu } from "./table.js";

/** So many of the tasks that ran longest are listed. */
const LISTED = 8;

/** In words and as a list; times are those of the pane's trace. */
export function measuredOf(pane: Pane, from: number, to: number, showTask: (task: number) => void): HTMLElement[] {
  const { trace } = pane;
  const sums = nothing();
  const parts = pane
    .parts(pane.scale())
    .map((part) => ({ ...part, from: Math.max(part.from, from), to: Math.min(part.to, to) }))
    .filter((part) => part.to > part.from);
  for (const cpu of trace.cpus) ofCpu(trace, cpu, parts, sums);
  const all = parts.reduce((sum, part) => sum + part.to - part.from, 0) * trace.cpus.length;
  if (all === 0) return [];
  const unknown = sums.unknown > 0 ? `; of ${share(sums.unknown / all)} nothing is known` : "";
  const words = h("p", {}, `CPUs were busy for ${share(sums.ran / all)} of it${unknown}. Tasks waited for ${duration(sums.waited)} in all.`);
  const longest = [...sums.top].sort((one, other) => other[1] - one[1]);
  const list = h("ul", { class: "results" });
  for (const [what, ran] of longest.slice(0, LISTED)) {
    const button = h("button", { type: "button", class: "result" }, name(trace.whatName(what)), h("span", { class: "long" }, duration(ran)));
    button.addEventListener("click", () => showTask(what - FIRST_TASK));
    list.append(h("li", {}, button));
  }
  const which = longest.length > LISTED ? `Of ${longest.length} tasks that ran in it, the ${LISTED} that ran longest` : "Who ran in it";
  const head = h("p", { class: "soft" }, `${which}${pane.drewSums ? ", by sums" : ""}:`);
  return longest.length === 0 ? [words] : [words, head, list];
}
