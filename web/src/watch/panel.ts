// The panel of a case: its line over history, and what was found at the commit that the reader looks at.

import { h, shown, type Child } from "../base/dom.js";
import { significant } from "../base/format.js";
import { facts } from "../base/page.js";
import { parting } from "../compare/parting.js";
import { badge } from "../compare/verdicts.js";
import { caseLine } from "./line.js";
import type { Finding, Step, WatchAnswer, WatchedCase } from "./types.js";
import { cellWords, commitsOf, findingWords, mail, ratioWords, told, whenOf } from "./words.js";

/** What a panel shows. */
export interface PanelView {
  readonly of: WatchedCase;
  readonly metric: string;
  /** The kernel that is looked at. */
  readonly at: number | undefined;
}

/** What a panel asks the page for. */
export interface PanelActions {
  readonly onView: (view: PanelView) => void;
  readonly onClose: () => void;
}

function close(onClose: () => void): HTMLElement {
  const button = h("button", { type: "button", class: "tool", title: "Close (Esc)" }, "Close");
  button.addEventListener("click", onClose);
  return button;
}

/** A text that is to be taken elsewhere: all of it at a click. */
function copyable(id: string, label: string, text: string): HTMLElement {
  const box = h("textarea", { id, readonly: true, rows: Math.min(30, text.split("\n").length + 1), spellcheck: "false" });
  box.value = text;
  const button = h("button", { type: "button", class: "tool screen-only" }, "Copy");
  button.addEventListener("click", () => {
    box.select();
    // Where the browser lets no page write there, the text is marked, and the keys do it.
    navigator.clipboard?.writeText(text).then(
      () => (button.textContent = "Copied"),
      () => (button.textContent = "Marked: press Ctrl-C"),
    );
  });
  return h("div", { class: "copyable" }, h("p", {}, h("label", { for: id }, label), " ", button), box);
}

function stepLines(steps: readonly Step[]): Child {
  return h("ul", { class: "steps" }, ...steps.map((step) => h("li", {}, h("code", {}, shown(step.commit)), ` ${shown(step.subject)}`, h("span", { class: "soft" }, ` ${shown(whenOf(step))}`))));
}

function sure(finding: Finding): string {
  const { p } = told(finding);
  const { q } = finding.found;
  return [p === null ? "" : `p ${significant(p)} in ${finding.confirmed ? "fresh" : "these"} runs`, q === null ? "" : `q ${significant(q)} among all questions when found`].filter((part) => part !== "").join(", ");
}

/** All of a finding. */
function findingPart(answer: WatchAnswer, of: WatchedCase, finding: Finding): HTMLElement {
  const [baseline, kernel] = finding.kernels;
  return h(
    "div",
    { class: "finding-part" },
    h("p", { class: "finding" }, `${shown(findingWords(answer, finding))}. `, badge(finding.verdict, finding.verdict)),
    facts([
      [finding.steps.length === 1 ? "Commit" : "Commits", stepLines(finding.steps)],
      ["Ratio, 95 % interval", ratioWords(told(finding))],
      ["Chance alone", sure(finding)],
    ]),
    h("h3", {}, "Cause: the first diverging decision"),
    finding.parting === null ? h("p", { class: "soft" }, "Without chance the two kernels were not seen to part.") : parting({ baseline, kernel }, finding.parting),
    h("h3", {}, "To repeat it"),
    h("pre", { class: "repeat" }, shown(finding.command)),
    copyable("mail", "As a mail", mail(answer, of, finding)),
  );
}

/** Changes of the case, to go from one to the next. */
function changes(answer: WatchAnswer, view: PanelView, onView: (view: PanelView) => void): Child {
  const its = answer.findings.filter((finding) => finding.case === view.of.name && finding.confirmed);
  if (its.length === 0) return h("p", { class: "soft" }, "No commit of the range has a confirmed change in this case.");
  const item = (finding: Finding): HTMLElement => {
    const isShown = finding.positions[1] === view.at && finding.metric === view.metric;
    const words = cellWords(finding).slice(finding.case.length + 1);
    const button = h("button", { type: "button", class: "goto", "aria-current": isShown ? "true" : undefined }, badge(finding.verdict, ""), h("code", {}, shown(commitsOf(finding))), ` ${shown(words)}`);
    button.addEventListener("click", () => onView({ of: view.of, metric: finding.metric, at: finding.positions[1] }));
    return h("li", {}, button);
  };
  return h("details", { open: its.length <= 6 }, h("summary", {}, `Its ${its.length} confirmed changes`), h("ol", { class: "changes" }, ...its.map(item)));
}

/** The panel, drawn for what the reader looks at. */
export function panel(answer: WatchAnswer, view: PanelView, { onView, onClose }: PanelActions): Child[] {
  const { of, metric, at } = view;
  const choose = h("select", { id: "case-metric" }, ...of.metrics.map((each) => h("option", { value: each, selected: each === metric }, shown(each))));
  choose.addEventListener("change", () => onView({ of, metric: choose.value, at }));
  const finding = answer.findings.find((each) => each.case === of.name && each.metric === metric && each.positions[1] === at);
  const step = at === undefined ? null : (answer.kernels[at]?.step ?? null);
  const none = step === null ? null : h("p", { class: "finding" }, `${shown(metric)}: nothing was found at `, h("code", {}, shown(step.commit)), ` (${shown(step.subject)}).`);
  return [
    h("div", { class: "panel-head" }, h("h2", { id: "case-title", tabindex: -1 }, h("bdi", {}, shown(of.name))), close(onClose)),
    of.title === of.name ? null : h("p", {}, shown(of.title)),
    h("p", { class: "control" }, h("label", { for: "case-metric" }, "Metric "), choose),
    caseLine(answer, of, metric, at),
    finding === undefined ? none : findingPart(answer, of, finding),
    changes(answer, view, onView),
    facts([
      ["Workload", h("code", {}, shown(of.workload))],
      ["Machine", of.machine],
      ["Source", of.source],
      ["Of no interest", `differences below ${+(of.margin * 100).toPrecision(3)} %`],
    ]),
  ];
}
