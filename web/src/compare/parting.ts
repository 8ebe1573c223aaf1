// The first decision in which two kernels part: what each does, and what both held just before, side by side.

import { h, shown, type Child } from "../base/dom.js";
import { swatch } from "../base/chart.js";
import { seconds } from "../base/format.js";
import { facts } from "../base/page.js";
import { table } from "../base/table.js";
import type { Causes, Held, Parting } from "./types.js";

/** The names of both. */
type Sides = Pick<Causes, "baseline" | "kernel">;

function sideOf(name: string, place: number, does: string, decisions: readonly string[] | null): HTMLElement {
  const [event, ...fields] = shown(does).split(": ");
  return h(
    "div",
    { class: `parted side-${place}` },
    h("h3", {}, swatch(place), h("bdi", {}, shown(name))),
    h("p", { class: "does" }, h("strong", {}, event ?? ""), ` ${fields.join(": ")}`),
    decisions === null ? null : decisions.length === 0 ? h("p", { class: "soft" }, "It does not tell what it decided.") : h("ol", { class: "decisions" }, ...decisions.map((words) => h("li", {}, shown(words)))),
  );
}

/** Of what a member is, and its name there. */
function subjectOf(held: Held): readonly [string, string] {
  const space = held.member.lastIndexOf(" ");
  return space < 0 ? ["", held.member] : [held.member.slice(0, space), held.member.slice(space + 1)];
}

/** What both held of one subject, by member. */
interface Subject {
  readonly name: string;
  readonly members: Map<string, Held>;
}

function subjectsOf(held: readonly Held[]): Subject[] {
  const subjects = new Map<string, Subject>();
  for (const each of held) {
    const [name, member] = subjectOf(each);
    const subject = subjects.get(name) ?? { name, members: new Map<string, Held>() };
    subject.members.set(member, each);
    subjects.set(name, subject);
  }
  return [...subjects.values()];
}

function value(held: Held | undefined): Child {
  if (held === undefined) return "-";
  if (held.baseline === held.kernel) return shown(held.baseline);
  return h("span", { class: "differs" }, h("del", {}, shown(held.baseline)), " ", h("ins", {}, shown(held.kernel)));
}

/** A row a subject, a column a member; where both differ, both values stand. */
function subjectTable(answer: Sides, what: string, subjects: readonly Subject[]): Child {
  if (subjects.length === 0) return null;
  const members = [...new Set(subjects.flatMap((subject) => [...subject.members.keys()]))];
  const differing = subjects.flatMap((subject) => [...subject.members.values()]).filter((each) => each.baseline !== each.kernel).length;
  const marked = differing === 0 ? "equal on both sides" : `${differing} values differ and are marked, ${answer.baseline}'s before ${answer.kernel}'s`;
  return table({
    caption: `${what} just before: ${shown(marked)}.`,
    columns: [{ head: what }, ...members.map((member) => ({ head: member, figures: true, class: "mono" }))],
    rows: subjects.map((subject) => [subject.name, ...members.map((member) => ({ show: value(subject.members.get(member)), by: subject.members.get(member)?.baseline }))]),
    first: 40,
  });
}

function stateTables(answer: Sides, held: readonly Held[]): Child[] {
  const subjects = subjectsOf(held);
  const isQueue = (subject: Subject): boolean => subject.name.startsWith("CPU ");
  return [subjectTable(answer, "Queue", subjects.filter(isQueue)), subjectTable(answer, "Task", subjects.filter((subject) => !isQueue(subject)))];
}

/** Members one below the other, where few are left. */
function memberTable(answer: Sides, held: readonly Held[]): Child {
  if (held.length === 0) return null;
  const { baseline, kernel } = answer;
  return table({
    caption: "What differs just before.",
    columns: [{ head: "Of" }, { head: baseline, class: "mono" }, { head: kernel, class: "mono" }],
    rows: held.map((one) => [one.member, one.baseline, one.kernel]),
  });
}

/** The section on where both part; `held` says what of the state is shown, where that is not all. */
export function parting(answer: Sides, from: Parting, held?: string): HTMLElement {
  return h(
    "div",
    { class: "parting" },
    facts([
      ["When", `${seconds(from.time_ns)} s of virtual time, in exact runs with seed ${from.seed}`],
      ["Where", `CPU ${from.cpu}`],
    ]),
    h("div", { class: "pair kept-whole" }, sideOf(answer.baseline, 0, from.baseline, from.baseline_decisions), sideOf(answer.kernel, 1, from.kernel, from.decisions)),
    ...(held === undefined ? stateTables(answer, from.state) : [h("p", {}, held), memberTable(answer, from.state)]),
    h("p", { class: "soft" }, "This command makes both runs again:"),
    h("pre", {}, shown(from.command)),
  );
}
