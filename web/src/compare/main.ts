// The page of an answer: of a comparison or an attribution in full, of any other as tables.

import "../base/base.css";
import "./compare.css";
import { h, shown, type Child } from "../base/dom.js";
import { bars, type Picture } from "../base/bars.js";
import { figure, legend, responsive } from "../base/chart.js";
import { significant } from "../base/format.js";
import { table } from "../base/table.js";
import { areHosts, masthead, provenanceFacts, start, type Provenance } from "../base/page.js";
import type { Key } from "../base/keyboard.js";
import { answerSections } from "./answer.js";
import { tried } from "./attempt.js";
import { attributionOf } from "./attribution.js";
import { bisected, threshold } from "./bisect.js";
import { blamed } from "./blame.js";
import { causesOf } from "./causes.js";
import { linksOf, notice, section, type Drawn, type Draws } from "./drawn.js";
import { excerpt } from "./excerpt.js";
import { firstRule, gateLine, gateSection } from "./gate.js";
import { parting } from "./parting.js";
import { runFindings, runSections as sectionsOfRuns, runTable, type Runs } from "./run.js";
import { digests, runs } from "./runs.js";
import { swept } from "./sweep.js";
import { distribution } from "./times.js";
import type { Attributed, Comparison, Metric, PageParts } from "./types.js";
import { badge, byKernel, ratioWords, tallyLine, verdicts } from "./verdicts.js";
import { explained, latencies, summed } from "./waits.js";
import { differs, largestFirst, sentence, verdictOf } from "./words.js";

interface Answer {
  readonly schema?: string;
  readonly provenance?: Provenance;
  readonly page?: PageParts;
}

/** Keys of a report: from section to section. */
function sectionKeys(): Key[] {
  const go = (step: number) => (): void => {
    const heads = [...document.querySelectorAll<HTMLElement>("main h2")];
    const at = heads.findIndex((head) => head.getBoundingClientRect().top > 40);
    const current = at < 0 ? heads.length : at;
    const next = heads[Math.max(0, Math.min(heads.length - 1, step > 0 ? current : current - 2))];
    if (next === undefined) return;
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "start" });
  };
  return [
    { key: "j", does: "Next section", act: go(1) },
    { key: "k", does: "Section before", act: go(-1) },
    { key: "Tab", does: "Next table, button or list" },
    { key: "arrows", label: "← ↑ ↓ →", does: "From cell to cell in a table" },
    { key: "p", does: "Print", act: () => print() },
  ];
}

/** Links to the sections of the page, for who reads and who listens. */
function contents(sections: readonly HTMLElement[]): HTMLElement {
  const links = sections.flatMap((section, place) => {
    const title = section.querySelector("h2");
    if (title === null) return [];
    section.id ||= `section-${place}`;
    return [h("li", {}, h("a", { href: `#${section.id}` }, title.textContent ?? ""))];
  });
  return h("nav", { class: "contents screen-only", "aria-label": "Sections" }, h("ul", {}, ...links));
}

/** The rows that answer what was asked: of the headline; of the only metric there is otherwise. */
function asked(answer: Comparison): readonly Metric[] {
  const names = new Set(answer.metrics.map((row) => row.name));
  const name = names.has(answer.headline) ? answer.headline : names.size === 1 ? answer.metrics[0]?.name : undefined;
  return answer.metrics.filter((row) => row.name === name);
}

/** Of each kernel the largest change that is sure; one for better or worse before one that is neither. */
function largestSure(answer: Comparison): readonly Metric[] {
  const sided = (row: Metric): boolean => row.verdict !== "changed";
  return byKernel(answer).flatMap((rows) => {
    const sure = largestFirst(rows.filter(differs));
    const [largest] = [...sure.filter(sided), ...sure];
    return largest === undefined ? [] : [largest];
  });
}

/** What a gate's rule is about in words, the largest sure changes, then what was asked for, where that is another metric. */
function findings(answer: Comparison): HTMLElement {
  const told = (row: Metric): readonly Child[] => [shown(`${sentence(row, answer.baseline).replace(`: ${verdictOf(row)},`, ",")}.`), " ", badge(row.verdict, verdictOf(row))];
  const rule = answer.gate === undefined ? undefined : firstRule(answer.gate);
  const ruled = answer.metrics.filter((row) => row.name === rule?.metric && row.kernel === rule.kernel);
  const largest = [...ruled, ...largestSure(answer).filter((row) => !ruled.includes(row))];
  const rest = asked(answer).filter((row) => !largest.includes(row));
  const words = [...largest.map((row) => h("p", { class: "finding" }, ...told(row))), ...rest.map((row) => h("p", { class: largest.length > 0 ? "asked" : "finding" }, ...told(row)))];
  const groups = byKernel(answer);
  const partial = answer.partial && h("p", { class: "notice" }, `Partial: stopped after ${answer.partial.runs} of ${answer.partial.wanted} runs.`);
  return h(
    "div",
    { class: "findings" },
    answer.gate === undefined ? null : gateLine(answer.gate),
    ...words,
    groups.length === 1 ? tallyLine(answer.metrics) : null,
    partial,
    ...answer.notices.map((notice) => h("p", { class: "notice" }, shown(notice))),
  );
}

/** What both sides' runs come to: verdicts, distributions, single runs. */
async function runSections(answer: Comparison, parts: PageParts): Promise<HTMLElement[]> {
  const times = (await Promise.all((parts.distributions ?? []).map(distribution))).filter((each) => each !== null);
  return [verdicts(answer), ...(times.length > 0 ? [section("distributions", "Distributions", ...times)] : []), runs(answer)];
}

/** How the answer came about, with its runs. */
function fromSection(answer: Comparison, parts: PageParts): HTMLElement {
  const made = parts.runs !== undefined && parts.runs.length > 0 ? digests(parts.runs) : null;
  return section("provenance", "How it came about", provenanceFacts(answer.provenance, ["Workload", parts.workload ?? ""]), made, reading(answer));
}

async function comparison(root: HTMLElement, answer: Comparison): Promise<void> {
  const kernels = byKernel(answer).map((rows) => rows[0]?.kernel ?? "");
  const parts = answer.page ?? {};
  const causes = answer.causes ?? [];
  const head = (kernel: string): Child => (causes.length > 1 ? h("h3", {}, h("bdi", {}, shown(kernel))) : null);
  const partings = causes.flatMap((each) => (each.difference === null || each.difference === undefined ? [] : [{ each, from: each.difference }]));
  const sections: HTMLElement[] = [
    ...(answer.gate === undefined ? [] : [gateSection(answer.gate)]),
    ...(await runSections(answer, parts)),
    ...(causes.length > 0 ? [section("causes", "Why tasks wait differently", ...causes.flatMap((each) => [head(each.kernel), causesOf(each)]))] : []),
    ...(partings.length > 0 ? [section("parting", "First diverging decision", ...partings.flatMap(({ each, from }) => [head(each.kernel), parting(each, from)]))] : []),
    fromSection(answer, parts),
  ];
  root.append(
    masthead("Fairlab comparison", `${kernels.join(", ")} against ${answer.baseline}`, sectionKeys(), setting(answer, parts.workload)),
    findings(answer),
    legend([answer.baseline, ...kernels]),
    contents(sections),
    ...sections,
  );
}

function setting(answer: Comparison | Attributed, workload: string | undefined): HTMLElement {
  const machines = (answer.provenance.machines ?? []).join(", ");
  const where = areHosts(answer.provenance) ? "Sets of hosts: each host is one observation" : machines === "" ? "" : `on ${machines}`;
  const words = [workload ?? "", where].filter((part) => part !== "").join(" ");
  return h("p", { class: "setting" }, h("bdi", {}, shown(words)));
}

/** What the words of the page mean. */
function reading(answer: Comparison): HTMLElement {
  const margin = `${(answer.margin * 100).toPrecision(2).replace(/\.0$/, "")} %`;
  const rows: [string, string][] = [
    ["ratio", ratioWords(answer.metrics)],
    ["better, worse", "The whole interval lies on that side of no difference, and the difference stands among so many metrics."],
    ["changed", "As better and worse, where neither side is better."],
    ["equivalent", `The whole interval lies within ${margin} of no difference.`],
    ["undecided", "The interval allows more than one of these; the number of runs that would probably decide stands beside it."],
    ["one course of events", "A side's runs all have equal values; nothing follows."],
    ["p, q", "How often chance alone makes a difference like this; q is adjusted for the number of metrics. A verdict's title has both."],
  ];
  return h("details", {}, h("summary", {}, "What the words mean"), h("dl", { class: "facts" }, ...rows.flatMap(([term, meaning]) => [h("dt", {}, term), h("dd", {}, meaning)])));
}

async function attributed(root: HTMLElement, answer: Attributed): Promise<void> {
  const [first] = answer.metrics;
  const title = first === undefined ? "Attribution" : `What makes ${first.kernel} differ from ${first.baseline}`;
  const parts = answer.page ?? {};
  const compared = parts.comparison === undefined ? undefined : { ...parts.comparison, provenance: answer.provenance };
  const from = compared === undefined ? section("provenance", "How it came about", provenanceFacts(answer.provenance)) : fromSection(compared, parts);
  const sections = [...answer.metrics.map(attributionOf), ...(compared === undefined ? [] : await runSections(compared, parts)), from];
  const stopped = answer.partial ? h("p", { class: "notice" }, `Partial: stopped after ${answer.runs} runs; ${answer.unsearched} changes were not looked into.`) : null;
  root.append(masthead("Fairlab attribution", title, sectionKeys(), setting(answer, parts.workload)), ...(stopped === null ? [] : [stopped]), contents(sections), ...sections);
}

/** What the colours of bars stand for. */
function colourKey(): HTMLElement {
  const key = (side: string): HTMLElement => h("li", {}, h("span", { class: `key key-${side}`, "aria-hidden": "true" }), side);
  return h("ul", { class: "legend" }, key("published"), key("measured"));
}

function pictureTable(picture: Picture): HTMLElement {
  const cell = (value: number | null): { show: string; by: number | undefined } => ({ show: value === null ? "-" : significant(value), by: value ?? undefined });
  return table({
    caption: shown(picture.title),
    columns: [{ head: "Row" }, { head: "Published", figures: true }, { head: "Measured", figures: true }],
    rows: picture.rows.map((row) => [row.name, cell(row.published), cell(row.measured)]),
  });
}

/** How each kind of answer is drawn. */
const DRAWS: Readonly<Record<string, Draws>> = {
  "fairlab/bisect/1": bisected,
  "fairlab/threshold/1": threshold,
  "fairlab/try/1": tried,
  "fairlab/query/1": swept,
  "fairlab/blame/1": blamed,
  "fairlab/summary/1": summed,
  "fairlab/latency/1": latencies,
  "fairlab/explain/1": explained,
};

const PLAIN: Drawn = { findings: [], sections: [] };

/** Which waits are drawn: figures above them may be of wakeups alone. */
const ANY_WAIT = "These are waits of any kind: after a wakeup, after a preemption, or for a group's quota. A wakeup latency counts only the time from a wakeup until the task runs.";

/** Sections of what a page has beside its answer: published values, waits that are drawn, distributions. */
async function partSections(parts: PageParts): Promise<HTMLElement[]> {
  const times = (await Promise.all((parts.distributions ?? []).map(distribution))).filter((each) => each !== null);
  const pictures = (parts.pictures ?? []).map((picture) => figure(picture.title, responsive((width) => bars(picture, width, document)), pictureTable(picture)));
  const excerpts = parts.excerpts ?? [];
  return [
    ...(pictures.length > 0 ? [section("pictures", "Published and measured", colourKey(), ...pictures)] : []),
    ...(excerpts.length > 0 ? [section("excerpts", excerpts.length > 1 ? "The longest waits" : "The longest wait", h("p", {}, ANY_WAIT), ...excerpts.map(excerpt))] : []),
    ...(times.length > 0 ? [section("distributions", "Distributions", ...times)] : []),
  ];
}

/** Any answer: what its kind draws, what its page has besides, its text and its values. */
async function any(root: HTMLElement, answer: Answer): Promise<void> {
  const schema = answer.schema ?? "fairlab/answer/1";
  const parts = answer.page ?? {};
  const { kicker, findings, sections: own } = DRAWS[schema]?.(answer as never, parts) ?? PLAIN;
  const besides = await partSections(parts);
  const isDrawn = own.length + besides.length > 0;
  const sections = [...(schema === "fairlab/explain/1" ? [...besides, ...own] : [...own, ...besides]), ...answerSections(answer, parts.text, isDrawn), section("provenance", "How it came about", provenanceFacts(answer.provenance ?? {}))];
  root.append(masthead(kicker ?? `Fairlab ${schema.split("/")[1] ?? "answer"}`, document.title, sectionKeys(), linksOf(parts)), h("div", { class: "findings" }, ...findings, ...(parts.notices ?? []).map(notice)), contents(sections), ...sections);
}

/** Runs that nothing is compared with. */
async function ran(root: HTMLElement, answer: Runs): Promise<void> {
  const parts = answer.page ?? {};
  const { metrics, printed } = sectionsOfRuns(answer, parts.text);
  const sections = [
    ...(await partSections(parts)),
    metrics,
    ...(printed === null ? [] : [printed]),
    section("provenance", "How it came about", provenanceFacts(answer.provenance, ["Workload", parts.workload ?? ""]), h("details", { id: "digests" }, h("summary", {}, "Runs with their digests"), runTable(answer))),
  ];
  root.append(masthead("Fairlab run", document.title, sectionKeys(), linksOf(parts)), runFindings(answer), contents(sections), ...sections);
}

start(async (root, data) => {
  const answer = data as Answer;
  root.className = "report";
  root.tabIndex = -1;
  document.body.prepend(h("a", { class: "skip", href: "#page" }, "To the answer"));
  if (answer.schema === "fairlab/compare/1") await comparison(root, data as Comparison);
  else if (answer.schema === "fairlab/attribute/1") await attributed(root, data as Attributed);
  else if (answer.schema === "fairlab/run/1") await ran(root, data as Runs);
  else await any(root, answer);
});
