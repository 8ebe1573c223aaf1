// Tables: figures to the right, arrows from cell to cell, long ones in parts, columns in order at a click.

import { h, shown, type Child } from "./dom.js";
import { arrowKeys } from "./keyboard.js";

/** A cell: what stands there; and by what it is put in order, where that is another thing. */
export interface Cell {
  readonly show: Child;
  readonly by?: number | string | undefined;
}

export interface Column {
  readonly head: string;
  /** Numbers stand to the right. */
  readonly figures?: boolean;
  readonly class?: string;
  /** What the words of the head mean. */
  readonly title?: string;
  /** What stands in the head beside its words. */
  readonly beside?: Child;
}

export interface TableOptions {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly (Cell | string)[])[];
  /** Whether a click on a head puts rows in order. */
  readonly sorts?: boolean;
  /** Classes of rows. */
  readonly rowClass?: (row: number) => string | undefined;
  /** How many rows are there before somebody asks for more. */
  readonly first?: number;
  readonly class?: string;
}

const FIRST = 100;

function cellOf(cell: Cell | string, column: Column | undefined, isHead: boolean): HTMLElement {
  const show = typeof cell === "string" ? shown(cell) : cell.show;
  const classes = [column?.figures === true ? "figure-cell" : "", column?.class ?? ""].join(" ").trim();
  // On a narrow screen a value may stand without its column's head.
  const label = shown(column?.head ?? "");
  return isHead ? h("th", { scope: "row", class: classes || undefined }, show) : h("td", { class: classes || undefined, "data-label": label || undefined }, show);
}

function keyOf(cell: Cell | string | undefined): number | string {
  if (cell === undefined) return "";
  if (typeof cell === "string") return cell;
  return cell.by ?? (cell.show instanceof Node ? (cell.show.textContent ?? "") : String(cell.show ?? ""));
}

function compare(one: number | string, other: number | string): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

/** A table in a place that scrolls by itself where it is too wide. */
export function table(options: TableOptions): HTMLElement {
  const body = h("tbody");
  const head = h("tr");
  const element = h("table", { class: options.class }, h("caption", {}, h("span", {}, options.caption)), h("thead", {}, head), body);
  let order = options.rows.map((_, at) => at);
  let visible = Math.min(options.first ?? FIRST, order.length);
  const more = h("button", { type: "button", class: "tool screen-only" });
  const fill = (): void => {
    body.replaceChildren(
      ...order.slice(0, visible).map((at) => {
        const cells = options.rows[at] ?? [];
        return h("tr", { class: options.rowClass?.(at) }, ...cells.map((cell, place) => cellOf(cell, options.columns[place], place === 0)));
      }),
    );
    more.textContent = `Show all ${order.length} rows`;
    more.hidden = visible >= order.length;
    arrowKeys(element);
  };
  options.columns.forEach((column, place) => head.append(headOf(column, place)));

  function headOf(column: Column, place: number): HTMLElement {
    const classes = [column.figures === true ? "figure-cell" : "", column.class ?? ""].join(" ").trim();
    const cell = h("th", { scope: "col", class: classes || undefined, title: column.title });
    if (options.sorts !== true) {
      cell.append(shown(column.head), ...(column.beside instanceof Node ? [column.beside] : []));
      return cell;
    }
    const button = h("button", { type: "button", class: "sort" }, shown(column.head));
    button.addEventListener("click", () => {
      const descending = cell.getAttribute("aria-sort") === "ascending";
      for (const other of head.cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (at: number): number | string => keyOf(options.rows[at]?.[place]);
      order = [...order].sort((one, other) => compare(key(one), key(other)) * (descending ? -1 : 1));
      fill();
    });
    cell.append(button);
    return cell;
  }
  more.addEventListener("click", () => {
    visible = order.length;
    fill();
  });
  fill();
  return h("div", { class: "scroll" }, element, more);
}
