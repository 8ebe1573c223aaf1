// Keys: one list that both acts and explains itself (`?`), and arrows in tables.

import { h } from "./dom.js";

/** A key of the page, and what it does. */
export interface Key {
  /** As `KeyboardEvent.key` names it. */
  readonly key: string;
  /** As the help shows it, where that differs. */
  readonly label?: string;
  /** Without it the help leaves the key out: another's words stand for it. */
  readonly does?: string;
  /** Without it the help explains what something else does. */
  readonly act?: () => void;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));
}

/** The dialog that explains the keys. */
function helpDialog(keys: readonly Key[]): HTMLDialogElement {
  const rows = keys.filter((key) => key.does !== undefined).map((key) => h("div", {}, h("dt", {}, h("kbd", {}, key.label ?? key.key)), h("dd", {}, key.does)));
  const close = h("button", { type: "button", class: "tool" }, "Close");
  const dialog = h(
    "dialog",
    { id: "help", "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, "Keys"),
    h("dl", { class: "keys" }, ...rows),
    close,
  );
  close.addEventListener("click", () => dialog.close());
  return dialog;
}

/** Makes the page listen to `keys` and to `?`; gives a button that opens the help. */
export function keyboard(keys: readonly Key[]): HTMLButtonElement {
  const help: Key = { key: "?", does: "Show or hide this list", act: () => (dialog.open ? dialog.close() : dialog.showModal()) };
  const all = [...keys, help, { key: "Escape", label: "Esc", does: "Close this list" }];
  const dialog = helpDialog(all);
  document.body.append(dialog);
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const key = all.find((known) => known.key === event.key);
    if (key?.act === undefined || (dialog.open && key !== help)) return;
    event.preventDefault();
    key.act();
  });
  const button = h("button", { type: "button", class: "tool", id: "keys", title: "Keys (?)" }, "Keys");
  button.addEventListener("click", () => dialog.showModal());
  return button;
}

/** The cell that lies `rows` below and `columns` right of `cell`; the nearest where there is none. */
function neighbour(table: HTMLTableElement, cell: HTMLTableCellElement, rows: number, columns: number): HTMLTableCellElement | undefined {
  const row = cell.parentElement;
  if (!(row instanceof HTMLTableRowElement)) return undefined;
  const within = (value: number, end: number): number => Math.max(0, Math.min(end - 1, value));
  const target = table.rows.item(within(row.rowIndex + rows, table.rows.length));
  return target?.cells.item(within(cell.cellIndex + columns, target.cells.length)) ?? undefined;
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/** Arrows move from cell to cell; the table takes one stop of the Tab key. */
export function arrowKeys(table: HTMLTableElement): void {
  const first = table.rows.item(0)?.cells.item(0);
  for (const row of table.rows) for (const cell of row.cells) cell.tabIndex = cell === first ? 0 : -1;
  table.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    const cell = event.target instanceof Element ? event.target.closest<HTMLTableCellElement>("td, th") : null;
    if (move === undefined || cell === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = neighbour(table, cell, move[0], move[1]);
    if (next === undefined) return;
    event.preventDefault();
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
