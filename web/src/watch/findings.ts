// All findings as a table: in any order, and those that a reader asks for alone.

import { h, shown, type Child } from "../base/dom.js";
import { metric } from "../base/format.js";
import { table, type Cell } from "../base/table.js";
import { badge } from "../compare/verdicts.js";
import type { Finding, WatchAnswer } from "./types.js";
import { commitsOf, counted, lastStep, ratioWords, size, told, VERDICTS } from "./words.js";

/** So many rows are there at once: the first picture of a page must not wait for the others. */
const FIRST = 40;

export type OnFinding = (finding: Finding, from: HTMLElement) => void;

function rowOf(answer: WatchAnswer, finding: Finding): (Cell | string)[] {
  const step = lastStep(finding);
  const [before, after] = told(finding).means;
  const back = finding.taken_back_by === null ? undefined : answer.findings[finding.taken_back_by];
  const open = h("button", { type: "button", class: "open", tabindex: -1, "data-finding": answer.findings.indexOf(finding) }, h("code", {}, shown(commitsOf(finding))));
  return [
    { show: h("span", {}, open, " ", h("span", { class: "subject" }, shown(step?.subject ?? ""))), by: finding.positions[1] },
    { show: shown(step?.release ?? "-"), by: finding.positions[1] },
    finding.case,
    finding.metric,
    { show: metric(finding.metric, before), by: before },
    { show: metric(finding.metric, after), by: after },
    { show: ratioWords(told(finding)), by: size(finding) },
    { show: h("span", {}, badge(finding.verdict, finding.verdict), back === undefined ? "" : h("span", { class: "back" }, ` taken back at ${shown(commitsOf(back))}`)), by: finding.verdict },
  ];
}

function findingTable(answer: WatchAnswer, findings: readonly Finding[], caption: string): HTMLElement {
  return table({
    caption,
    columns: [{ head: "Commit", class: "commit-cell" }, { head: "Release" }, { head: "Case" }, { head: "Metric" }, { head: "Before", figures: true }, { head: "After", figures: true }, { head: "Ratio, 95 % interval", figures: true }, { head: "Verdict" }],
    rows: findings.map((finding) => rowOf(answer, finding)),
    sorts: true,
    first: FIRST,
    class: "finding-table",
  });
}

/** Rows open their finding: at a click on the commit, or by Enter anywhere in the row. */
function opens(place: HTMLElement, answer: WatchAnswer, onFinding: OnFinding): void {
  const open = (button: HTMLElement | null | undefined): void => {
    const finding = answer.findings[Number(button?.dataset["finding"])];
    if (finding !== undefined && button !== null && button !== undefined) onFinding(finding, button.closest<HTMLElement>("th") ?? button);
  };
  place.addEventListener("click", (event) => open(event.target instanceof Element ? event.target.closest<HTMLElement>(".open") : null));
  place.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.target instanceof HTMLTableCellElement)) return;
    open(event.target.closest("tr")?.querySelector<HTMLElement>(".open"));
  });
}

/** A filled table is put in the order that the one before it had. */
function keepOrder(from: HTMLElement, into: HTMLElement): void {
  const sorted = from.querySelector<HTMLTableCellElement>("th[aria-sort]");
  const button = sorted === null ? null : into.querySelectorAll("thead th")[sorted.cellIndex]?.querySelector("button");
  button?.click();
  if (sorted?.getAttribute("aria-sort") === "descending") button?.click();
}

function option(value: string, words = value): HTMLElement {
  return h("option", { value }, shown(words));
}

/** The list with its filters; `ofCommit` shows one commit's alone. */
export interface FindingList {
  readonly element: HTMLElement;
  readonly ofCommit: (commit: string) => void;
}

export function findingList(answer: WatchAnswer, onFinding: OnFinding): FindingList {
  const all = answer.findings.filter((finding) => finding.confirmed);
  const place = h("div");
  const text = h("input", { type: "search", id: "find-commit", size: 24 });
  const cases = h("select", { id: "find-case" }, option("", "all"), ...[...new Set(all.map((finding) => finding.case))].sort().map((name) => option(name)));
  const verdict = h("select", { id: "find-verdict" }, option("", "all"), ...VERDICTS.map((each) => option(each)));
  const matches = (finding: Finding): boolean => {
    const words = finding.steps.map((step) => `${step.commit} ${step.subject} ${step.release ?? ""}`).join(" ");
    return (
      `${words} ${finding.metric}`.toLowerCase().includes(text.value.trim().toLowerCase()) &&
      (cases.value === "" || finding.case === cases.value) &&
      (verdict.value === "" || finding.verdict === verdict.value)
    );
  };
  const fill = (): void => {
    const kept = all.filter(matches);
    const caption = kept.length === all.length ? `${counted(all.length, "change")}, each confirmed by fresh runs.` : `${kept.length} of ${counted(all.length, "change")}.`;
    const next = kept.length === 0 ? h("p", { class: "soft" }, all.length === 0 ? "No change was confirmed." : "None is like that.") : findingTable(answer, kept, caption);
    keepOrder(place, next);
    place.replaceChildren(next);
  };
  for (const control of [text, cases, verdict]) control.addEventListener("input", fill);
  opens(place, answer, onFinding);
  fill();
  const label = (id: string, words: string, control: HTMLElement): HTMLElement => h("span", {}, h("label", { for: id }, `${words} `), control);
  const filters = h("p", { class: "control filters screen-only" }, label("find-commit", "Commit, subject or metric", text), label("find-case", "Case", cases), label("find-verdict", "Verdict", verdict));
  return {
    element: h("div", {}, all.length > 1 ? filters : null, place),
    ofCommit: (commit) => {
      [text.value, cases.value, verdict.value] = [commit, "", ""];
      fill();
    },
  };
}

/** What fresh runs did not show again. */
export function unconfirmed(answer: WatchAnswer, onFinding: OnFinding): Child {
  const findings = answer.findings.filter((finding) => !finding.confirmed);
  if (findings.length === 0) return null;
  const why = answer.partial ? "Found for sure, and not looked at again: the watch was stopped before its end, or fresh runs did not show it." : "Found for sure, but fresh runs do not show a difference that way: not told as changes.";
  const place = h("div", { class: "unconfirmed" }, findingTable(answer, findings, why));
  opens(place, answer, onFinding);
  return place;
}

/** What was left out, and why. */
export function skippedList(answer: WatchAnswer): Child {
  if (answer.skipped.length === 0) return null;
  return h("ul", { class: "skipped" }, ...answer.skipped.map(({ case: name, why }) => h("li", {}, h("bdi", {}, h("strong", {}, shown(name))), `: ${shown(why)}`)));
}
