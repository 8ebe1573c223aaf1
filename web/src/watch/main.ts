// The page of a watch: what the commits of a range changed in the cases of a catalogue.

import "../base/base.css";
import "../compare/compare.css";
import "./watch.css";
import { h, type Child } from "../base/dom.js";
import { masthead, provenanceFacts, shownOnce, start } from "../base/page.js";
import { badge } from "../compare/verdicts.js";
import { findingList, skippedList, unconfirmed, type FindingList } from "./findings.js";
import { Matrix, matrixKey } from "./matrix.js";
import { panel, type PanelView } from "./panel.js";
import type { Finding, WatchAnswer } from "./types.js";
import { counted, size, VERDICTS } from "./words.js";

function section(id: string, title: string, ...children: readonly Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}

/** All of it in one line. */
function summary(answer: WatchAnswer): HTMLElement {
  const confirmed = answer.findings.filter((finding) => finding.confirmed);
  const tally = VERDICTS.flatMap((verdict): Child[] => {
    const count = confirmed.filter((finding) => finding.verdict === verdict).length;
    return count === 0 ? [] : [" ", badge(verdict, `${count} ${verdict}`)];
  });
  const words = `${counted(answer.kernels.length, "kernel")}, ${counted(answer.cases.length, "case")}: ${counted(confirmed.length, "confirmed change")}`;
  const partial = answer.partial ? ". Partial: it was stopped before its end; the same command goes on" : "";
  return h("p", { class: "finding summary" }, words, ...(tally.length === 0 ? [] : [",", ...tally]), `${partial}.`);
}

/** The metric in which a case changes most, at a kernel where one is given. */
function metricOf(answer: WatchAnswer, view: Omit<PanelView, "metric">): string {
  const its = answer.findings.filter((finding) => finding.confirmed && finding.case === view.of.name && (view.at === undefined || finding.positions[1] === view.at));
  const [largest] = [...its].sort((one, other) => size(other) - size(one));
  return largest?.metric ?? view.of.metrics[0] ?? "";
}

/** The matrix, and beside it or below it the panel of the case that the reader chose. */
class Stage {
  readonly element: HTMLElement;
  private readonly place = h("section", { id: "case", "aria-labelledby": "case-title", hidden: true });
  readonly matrix: Matrix;
  /** Where the reader came from. */
  private from: HTMLElement | undefined;

  constructor(
    private readonly answer: WatchAnswer,
    onCommit: (at: number) => void,
  ) {
    this.matrix = new Matrix(answer, { onCase: (name, at, from) => this.open(name, at, undefined, from), onCommit });
    this.element = h("div", { class: "stage" }, h("div", { class: "stage-matrix" }, matrixKey(), this.matrix.element), this.place);
    this.place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  open(name: string, at: number | undefined, metric: string | undefined, from: HTMLElement): void {
    const of = this.answer.cases.find((each) => each.name === name);
    if (of === undefined) return;
    this.from = from;
    this.show({ of, at, metric: metric ?? metricOf(this.answer, { of, at }) });
    this.matrix.reveal();
    const head = this.place.querySelector<HTMLElement>("h2");
    head?.focus({ preventScroll: true });
    const top = head?.getBoundingClientRect().top ?? 0;
    if (top < 0 || top > innerHeight / 2) head?.scrollIntoView({ block: "start" });
  }

  private show(view: PanelView): void {
    this.place.hidden = false;
    this.element.classList.add("open");
    const wasIn = this.place.contains(document.activeElement) ? document.activeElement?.id : undefined;
    const parts = panel(this.answer, view, { onView: (next) => this.show(next), onClose: () => this.close() });
    this.place.replaceChildren(...parts.filter((part): part is Node => part instanceof Node));
    this.matrix.choose(view.of.name, view.at);
    // A reader who chose within the panel stays there.
    if (wasIn !== undefined) (this.place.querySelector<HTMLElement>(wasIn === "" ? "h2" : `#${wasIn}`) ?? this.place).focus();
  }

  close(): void {
    this.place.hidden = true;
    this.element.classList.remove("open");
    this.from?.focus();
  }
}

/** What the words of the page mean. */
function reading(answer: WatchAnswer): HTMLElement {
  const rows: [string, string][] = [
    ["confirmed", "Found among all questions, and shown once more by runs that took no part in finding it."],
    ["better, worse", "The whole interval lies on that side of no difference."],
    ["changed", "As better and worse, where neither side is better."],
    ["questions", `A metric of a case at a commit that makes runs differ: ${answer.questions}. Of what was found at most ${+(answer.false_discovery_rate * 100).toPrecision(2)} % is chance, in the long run.`],
    ["p, q", "How often chance alone makes a difference like this; q is adjusted for the number of questions."],
    ["runs equally", "With equal seeds all events are equal; then a commit changes nothing in that case."],
  ];
  return h("details", {}, h("summary", {}, "What the words mean"), h("dl", { class: "facts" }, ...rows.flatMap(([term, meaning]) => [h("dt", {}, term), h("dd", {}, meaning)])));
}

/** On paper there is nothing to click. */
function printWhole(root: HTMLElement): void {
  addEventListener("beforeprint", () => {
    for (const more of root.querySelectorAll<HTMLButtonElement>("#findings .scroll > .tool:not([hidden])")) more.click();
  });
}

start(async (root, data) => {
  const answer = data as WatchAnswer;
  root.className = "report watch";
  root.tabIndex = -1;
  document.body.prepend(h("a", { class: "skip", href: "#page" }, "To the answer"));
  const onFinding = (finding: Finding, from: HTMLElement): void => stage.open(finding.case, finding.positions[1], finding.metric, from);
  let list: FindingList | undefined;
  const stage = new Stage(answer, (at) => {
    const commit = answer.kernels[at]?.step?.commit;
    if (commit === undefined) return;
    list?.ofCommit(commit);
    list?.element.scrollIntoView({ block: "nearest" });
  });
  const keys = [
    { key: "arrows", label: "← ↑ ↓ →", does: "In the matrix: to the next change of a commit, or of a case" },
    { key: "Enter", does: "Show a case with what was found; open a stretch of commits" },
    { key: "Escape", label: "Esc", does: "Close a case" },
    { key: "p", does: "Print", act: () => print() },
  ];
  root.append(
    masthead("Fairlab watch", `What changed in ${answer.range}`, keys, summary(answer)),
    section("matrix", "Commits and cases", stage.element),
  );
  // The rest is below what a screen shows.
  await shownOnce();
  stage.matrix.finish();
  list = findingList(answer, onFinding);
  const rest = unconfirmed(answer, onFinding);
  const skipped = skippedList(answer);
  root.append(
    section("findings", "Findings", list.element),
    ...(rest === null ? [] : [section("unconfirmed", "Not confirmed", rest)]),
    ...(skipped === null ? [] : [section("skipped", "Left out", skipped)]),
    section("provenance", "How it came about", provenanceFacts(answer.provenance ?? {}, ["Runs", String(answer.runs)]), reading(answer)),
  );
  printWhole(root);
  performance.mark("drawn");
});
