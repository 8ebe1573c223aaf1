// Commits down, cases across: what each commit changed where. A change is a button; what lies between changes of a row is one
// empty cell, so that the table stays small whatever was watched.

import { h, shown } from "../base/dom.js";
import { verdictSign } from "../compare/words.js";
import { historyRows, releases, type HistoryRow } from "./history.js";
import type { Finding, WatchAnswer } from "./types.js";
import { briefFactor, cellWords, counted, size, told, VERDICTS, whenOf } from "./words.js";

/** Up to so many cases a cell has room for its figure. */
const ROOMY = 12;

/** So many rows are there at first: more than a screen has. */
const FIRST_ROWS = 40;

/** Greatest change of each strength of colour but the last: 5 %, 20 %, 2 times. */
const STRENGTHS = [Math.log(1.05), Math.log(1.2), Math.log(2)] as const;

/** What the matrix asks the page for. */
export interface MatrixActions {
  /** Shows a case's line, and what was found at a kernel. */
  readonly onCase: (name: string, at: number | undefined, from: HTMLElement) => void;
  /** Shows what is known of the commit that leads to a kernel. */
  readonly onCommit: (at: number) => void;
}

function strength(finding: Finding): number {
  const at = STRENGTHS.findIndex((most) => size(finding) <= most);
  return (at < 0 ? STRENGTHS.length : at) + 1;
}

/** A button within the matrix: `column` is a case's place, -1 the commit's. */
function stop(column: number, attributes: Readonly<Record<string, string | number | undefined>>, ...children: readonly (Node | string)[]): HTMLButtonElement {
  return h("button", { type: "button", tabindex: -1, "data-column": column, ...attributes }, ...children);
}

function changeCell(findings: readonly Finding[], column: number, at: number, isRoomy: boolean): HTMLElement {
  const [largest] = findings;
  if (largest === undefined) return h("td");
  const words = findings.map((finding) => shown(cellWords(finding))).join("; ");
  const kind = `change change-${largest.verdict} strength-${strength(largest)}`;
  const figure = isRoomy ? h("span", {}, ` ${briefFactor(told(largest).ratio)}`) : "";
  return h("td", {}, stop(column, { class: kind, title: words, "aria-label": `${words}, ${largest.verdict}`, "data-at": at }, verdictSign(largest.verdict), figure));
}

/** One matrix with its state: which stretches are open, which button the Tab key stops at, which is chosen. */
export class Matrix {
  readonly element: HTMLElement;
  private readonly table: HTMLTableElement;
  private readonly release: readonly string[];
  /** Rows that are not drawn yet. */
  private rest: readonly HistoryRow[];
  private lastRelease = "";

  constructor(
    private readonly answer: WatchAnswer,
    private readonly actions: MatrixActions,
  ) {
    this.release = releases(answer);
    const rows = historyRows(answer);
    this.rest = rows.slice(FIRST_ROWS);
    const columns = answer.cases.map(() => h("col", { class: "cell" }));
    this.table = h(
      "table",
      { class: `matrix${this.isRoomy ? " roomy" : ""}`, style: `--cases: ${answer.cases.length}` },
      h("caption", { class: "unseen" }, "Commits down, cases across: what each commit changed"),
      h("colgroup", {}, h("col", { class: "release" }), h("col", { class: "commit" }), ...columns),
      this.head(),
      h("tbody", {}, ...this.drawn(rows.slice(0, FIRST_ROWS))),
    );
    this.table.addEventListener("click", (event) => this.clicked(event));
    this.table.addEventListener("keydown", (event) => this.pressed(event));
    const first = this.table.querySelector<HTMLButtonElement>("tbody .change") ?? this.table.querySelector("button");
    if (first !== null) first.tabIndex = 0;
    this.element = h("div", { class: "matrix-box" }, this.table);
  }

  /** Draws what the first screen does not need. */
  finish(): void {
    this.table.tBodies[0]?.append(...this.drawn(this.rest));
    this.rest = [];
  }

  private get isRoomy(): boolean {
    return this.answer.cases.length <= ROOMY;
  }

  private drawn(rows: readonly HistoryRow[]): readonly HTMLTableRowElement[] {
    return this.marked(rows.map((row) => this.row(row)));
  }

  private head(): HTMLElement {
    const cases = this.answer.cases.map(({ name, title }, column) => {
      const button = stop(column, { class: "case-name", title: shown(title) }, h("bdi", {}, shown(name)));
      // On paper the head stands on each page; browsers draw buttons on the first alone.
      return h("th", { scope: "col" }, button, h("span", { class: "case-name on-paper", "aria-hidden": "true" }, shown(name)));
    });
    return h("thead", {}, h("tr", {}, h("td", { class: "release" }), h("td", { class: "commit" }, `From ${shown(this.answer.kernels[0]?.name ?? "")} on`), ...cases));
  }

  private row(row: HistoryRow): HTMLTableRowElement {
    return "at" in row ? this.kernelRow(row.at, row.changes) : this.foldRow(row.from, row.to);
  }

  private kernelRow(at: number, changes: ReadonlyMap<string, readonly Finding[]>): HTMLTableRowElement {
    const { step, name } = this.answer.kernels[at] ?? { step: null, name: null };
    const commit = h("code", {}, shown(step?.commit ?? name ?? ""));
    const subject = h("span", { class: "subject" }, shown(step?.subject ?? ""), name === null ? " (no kernel: it contradicts itself, or was not built)" : "");
    const title = step === null ? undefined : shown(`${step.subject}, ${whenOf(step)}`);
    const cells: HTMLElement[] = [];
    let empty = 0;
    const gap = (): void => {
      if (empty > 0) cells.push(h("td", { class: "gap", colspan: empty }));
      empty = 0;
    };
    this.answer.cases.forEach((each, column) => {
      const here = changes.get(each.name);
      if (here === undefined) {
        empty += 1;
        return;
      }
      gap();
      cells.push(changeCell(here, column, at, this.isRoomy));
    });
    gap();
    return h("tr", { "data-first": at }, h("td", { class: "release" }), h("th", { scope: "row", class: "commit" }, stop(-1, { class: "commit-name", title, "data-at": at }, commit, " ", subject)), ...cells);
  }

  private foldRow(from: number, to: number): HTMLTableRowElement {
    const end = this.release[from] === this.release[to] ? "" : ` up to ${shown(this.release[to] ?? "")}`;
    const words = `${counted(to - from + 1, "commit")}${end}, no change found`;
    const button = stop(-1, { class: "fold", "aria-expanded": "false", "data-from": from, "data-to": to }, words);
    return h("tr", { class: "fold-row", "data-first": from }, h("td", { class: "release" }), h("th", { scope: "row", colspan: this.answer.cases.length + 1 }, button));
  }

  /** The release stands beside the first row of each. */
  private marked(rows: readonly HTMLTableRowElement[]): readonly HTMLTableRowElement[] {
    for (const row of rows) {
      const release = this.release[Number(row.dataset["first"])] ?? "";
      if (release !== this.lastRelease) {
        row.classList.add("release-begins");
        row.cells.item(0)?.append(shown(release));
      }
      this.lastRelease = release;
    }
    return rows;
  }

  private toggle(button: HTMLButtonElement): void {
    const row = button.closest("tr");
    if (row === null) return;
    const [from, to] = [Number(button.dataset["from"]), Number(button.dataset["to"])];
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      for (let at = from; at <= to; at += 1) row.nextElementSibling?.remove();
      return;
    }
    const rows = Array.from({ length: to - from + 1 }, (_, at) => this.kernelRow(from + at, new Map()));
    row.after(...rows);
  }

  /** The case whose column a pointer is over. */
  private caseUnder(event: MouseEvent): number {
    const heads = [...this.table.querySelectorAll("thead th")];
    return heads.findIndex((head) => {
      const { left, right } = head.getBoundingClientRect();
      return left <= event.clientX && event.clientX < right;
    });
  }

  private clicked(event: MouseEvent): void {
    if (!(event.target instanceof Element)) return;
    const button = event.target.closest("button");
    if (button === null) {
      const row = event.target.closest("tr");
      const column = event.target.matches(".gap") ? this.caseUnder(event) : -1;
      if (row !== null && column >= 0) this.open(column, Number(row.dataset["first"]), row.querySelector("button") ?? row);
      return;
    }
    this.stopAt(button);
    const column = Number(button.dataset["column"]);
    const at = button.dataset["at"] === undefined ? undefined : Number(button.dataset["at"]);
    if (button.matches(".fold")) this.toggle(button);
    else if (column >= 0) this.open(column, at, button);
    else if (at !== undefined) this.actions.onCommit(at);
  }

  private open(column: number, at: number | undefined, from: HTMLElement): void {
    const { name } = this.answer.cases[column] ?? {};
    if (name !== undefined) this.actions.onCase(name, at, from);
  }

  /** Marks what the page shows beside the matrix. */
  choose(name: string, at: number | undefined): void {
    const column = this.answer.cases.findIndex((each) => each.name === name);
    for (const old of this.table.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    this.table.querySelector(`thead [data-column="${column}"]`)?.setAttribute("aria-current", "true");
    if (at !== undefined) this.table.querySelector(`tbody [data-column="${column}"][data-at="${at}"]`)?.setAttribute("aria-current", "true");
  }

  /** Scrolls the matrix to what is chosen. */
  reveal(): void {
    this.table.querySelector("tbody [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  private stopAt(button: HTMLButtonElement): void {
    for (const old of this.table.querySelectorAll<HTMLElement>('button[tabindex="0"]')) old.tabIndex = -1;
    button.tabIndex = 0;
  }

  /** Left and right go to the next change of a commit, up and down to the next of a case. */
  private pressed(event: KeyboardEvent): void {
    const from = event.target instanceof Element ? event.target.closest<HTMLButtonElement>("button") : null;
    if (from === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = this.beside(from, event.key);
    if (next === undefined) return;
    event.preventDefault();
    this.stopAt(next);
    next.focus();
  }

  private beside(from: HTMLButtonElement, key: string): HTMLButtonElement | undefined {
    const row = [...(from.closest("tr")?.querySelectorAll("button") ?? [])];
    const column = [...this.table.querySelectorAll<HTMLButtonElement>(`[data-column="${from.dataset["column"]}"]`)];
    const within = (list: readonly HTMLButtonElement[], step: number): HTMLButtonElement | undefined => list[Math.max(0, Math.min(list.length - 1, list.indexOf(from) + step))];
    switch (key) {
      case "ArrowLeft":
        return within(row, -1);
      case "ArrowRight":
        return within(row, 1);
      case "ArrowUp":
        return within(column, -1);
      case "ArrowDown":
        return within(column, 1);
      case "PageUp":
        return within(column, -10);
      case "PageDown":
        return within(column, 10);
      case "Home":
        return row[0];
      case "End":
        return row[row.length - 1];
      default:
        return undefined;
    }
  }
}

/** What colours and signs stand for. */
export function matrixKey(): HTMLElement {
  const sizes = ["up to 5 %", "up to 20 %", "up to 2 times", "more"];
  const swatches = (verdict: string): HTMLElement[] => sizes.map((words, at) => h("span", { class: `change change-${verdict} strength-${at + 1}`, title: words, "aria-hidden": "true" }, verdictSign(verdict)));
  const items = VERDICTS.map((verdict) => h("li", {}, ...swatches(verdict), ` ${verdict}`));
  return h("ul", { class: "legend matrix-key", "aria-label": "Colours" }, ...items, h("li", { class: "soft" }, `Stronger: ${sizes.join(", ")}`));
}
