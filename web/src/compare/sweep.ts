// What came of a sweep, drawn: a line along its parameter, a grid where there are two, a metric at a time.

import { h, pageLink, shown, type Child } from "../base/dom.js";
import { figure, legend, responsive, sideColour, sideDash } from "../base/chart.js";
import { metric, significant } from "../base/format.js";
import { gridChart, seriesChart, type SeriesPoint } from "../base/series.js";
import { table } from "../base/table.js";
import { many, notice, section, type Drawn } from "./drawn.js";
import type { PageParts } from "./types.js";
import { badge } from "./verdicts.js";
import { changeOf, largestFirst, spoken, verdictWords } from "./words.js";

interface QueryRow {
  readonly group: Readonly<Record<string, string>>;
  readonly metric: string;
  readonly cells: number;
  readonly mean: number;
  readonly median: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly deviation: number | null;
  readonly one_course: boolean;
  readonly two_modes: boolean;
}

/** How a kernel's runs of a setting compare with the first kernel's (crates/cli/src/commands/sweep/changes.rs). */
export interface KernelChange {
  /** The setting, without its kernel. */
  readonly setting: Readonly<Record<string, string>>;
  readonly metric: string;
  readonly baseline: string;
  readonly kernel: string;
  readonly baseline_mean: number;
  readonly mean: number;
  readonly ratio: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly verdict: string;
}

/** `docs/schemas/query-1.json`. */
export interface Queried {
  readonly partial: { readonly cells: number; readonly wanted: number } | null;
  readonly cells: number;
  readonly rows: readonly QueryRow[];
}

/** A column with its values in their order. */
interface Parameter {
  readonly name: string;
  readonly values: readonly string[];
}

/** Numbers by their size, so that 4 comes before 16 and v6.6 before v6.12. */
function inOrder(values: Iterable<string>): string[] {
  return [...new Set(values)].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
}

function columnsOf(rows: readonly QueryRow[]): Parameter[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.group)))];
  return names.map((name) => ({ name, values: inOrder(rows.map((row) => row.group[name] ?? "")) }));
}

function isNumber(text: string): boolean {
  return text.trim() !== "" && Number.isFinite(Number(text));
}

/** What a chart lies along: parameters of numbers first, then whatever varies; and what tells its lines or grids apart. */
function plan(columns: readonly Parameter[]): { readonly along: readonly Parameter[]; readonly apart: readonly Parameter[] } {
  const varying = columns.filter((column) => column.values.length > 1);
  const numbers = varying.filter((column) => column.values.every(isNumber));
  const ranked = [...numbers].sort((one, other) => other.values.length - one.values.length);
  const along = ranked.length > 0 ? ranked.slice(0, 2) : [...varying].sort((one, other) => other.values.length - one.values.length).slice(0, 1);
  return { along, apart: varying.filter((column) => !along.includes(column)) };
}

/** What tells a row's line or grid apart from others. */
function keyOf(row: QueryRow, apart: readonly Parameter[]): string {
  return apart.map((column) => row.group[column.name] ?? "").join(", ");
}

function title(row: QueryRow): string {
  const settings = Object.entries(row.group).map(([name, value]) => `${name} ${value}`);
  const range = row.min === null || row.max === null || row.min === row.max ? "" : ` (${metric(row.metric, row.min)} to ${metric(row.metric, row.max)})`;
  return `${settings.join(", ")}\n${metric(row.metric, row.mean)}${range}, ${many(row.cells, "cell")}`;
}

/** Powers of 2 or 10 lie evenly along a logarithmic axis. */
function isGeometric(values: readonly number[]): boolean {
  return values.length > 2 && values.every((value) => value > 0) && (values[values.length - 1] ?? 1) / (values[0] ?? 1) >= 8;
}

function lines(rows: readonly QueryRow[], along: Parameter, apart: readonly Parameter[]): Child[] {
  const keys = inOrder(rows.map((row) => keyOf(row, apart)));
  const isNumeric = along.values.every(isNumber);
  const points: SeriesPoint[] = rows.map((row) => {
    const key = keyOf(row, apart);
    const at = row.group[along.name] ?? "";
    return { at: isNumeric ? Number(at) : at, value: row.mean, low: row.min, high: row.max, key, colour: sideColour(keys.indexOf(key)), title: title(row) };
  });
  const name = rows[0]?.metric ?? "";
  const numbers = isNumeric ? along.values.map(Number) : [];
  const [first, last] = [numbers[0] ?? 0, numbers[numbers.length - 1] ?? 1];
  const draw = (width: number): Element =>
    seriesChart(
      {
        label: `${name} along ${along.name}, for ${keys.join("; ")}`,
        along: along.name,
        points,
        places: isNumeric ? [first, last] : along.values,
        logarithmicAlong: isGeometric(numbers),
        ...(isNumeric && numbers.length <= 12 ? { ticks: numbers.map((at) => ({ at, words: String(at) })) } : {}),
        words: (value) => metric(name, value),
        ...(isNumeric ? { dashes: new Map(keys.map((key, at) => [key, sideDash(at)])) } : {}),
      },
      width,
    );
  const caption = `${spoken(name)}: means of a setting's cells; bars reach from the least to the greatest.`;
  return [keys.length > 1 ? legend(keys) : null, figure(caption, responsive(draw))];
}

function grids(rows: readonly QueryRow[], [across, down]: readonly [Parameter, Parameter], apart: readonly Parameter[]): Child[] {
  const keys = inOrder(rows.map((row) => keyOf(row, apart)));
  const name = rows[0]?.metric ?? "";
  return keys.flatMap((key) => {
    const cells = rows.filter((row) => keyOf(row, apart) === key).map((row) => ({ across: row.group[across.name] ?? "", down: row.group[down.name] ?? "", value: row.mean, title: title(row) }));
    const draw = (width: number): Element =>
      gridChart({ label: `${name} by ${across.name} and ${down.name}${key === "" ? "" : ` for ${key}`}`, across: across.values, down: [...down.values].reverse(), cells, alongAcross: across.name, alongDown: down.name, words: (value) => metric(name, value) }, width);
    return [key === "" ? null : h("h3", {}, h("bdi", {}, shown(key))), figure(`${spoken(name)}: means; the deeper the colour the greater.`, responsive(draw))];
  });
}

/** The least and the greatest, in a sentence. */
function extremes(rows: readonly QueryRow[], columns: readonly Parameter[]): string {
  const sorted = [...rows].sort((one, other) => one.mean - other.mean);
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  if (least === undefined || most === undefined) return "";
  const varying = columns.filter((column) => column.values.length > 1);
  const where = (row: QueryRow): string => varying.map((column) => `${column.name} ${row.group[column.name] ?? ""}`).join(", ");
  if (least === most || varying.length === 0) return `${spoken(least.metric)}: ${metric(least.metric, least.mean)}.`;
  const times = least.mean > 0 ? `, ${significant(most.mean / least.mean)} times as much` : "";
  return `${spoken(least.metric)} is least with ${where(least)}: ${metric(least.metric, least.mean)}; greatest with ${where(most)}: ${metric(most.metric, most.mean)}${times}.`;
}

/** Where a kernel is better and where it is worse, the largest change that is sure of each: one alone would hide the other. */
function kernelWords(name: string, parts: PageParts, columns: readonly Parameter[]): HTMLElement[] {
  const rows = (parts.changes ?? []).filter((row) => row.metric === name);
  const varying = columns.filter((column) => column.values.length > 1 && column.name !== "kernel");
  const where = (row: KernelChange): string => varying.map((column) => `${column.name} ${row.setting[column.name] ?? ""}`).join(", ");
  const told = (row: KernelChange): readonly Child[] => {
    const at = where(row);
    const change = row.ratio === null ? "other" : changeOf(row.ratio, row.low, row.high, row.baseline);
    const words = `${spoken(name)} ${change}, by pairs of seeds, ${metric(name, row.mean)} instead of ${metric(name, row.baseline_mean)} on average${at === "" ? "" : `, with ${at}`}`;
    return [h("bdi", {}, shown(words)), " ", badge(row.verdict, verdictWords(row.verdict))];
  };
  const kernels = [...new Set(rows.map((row) => row.kernel))];
  return kernels.map((kernel) => {
    const own = rows.filter((row) => row.kernel === kernel);
    const [better, worse, changed] = ["better", "worse", "changed"].map((verdict) => largestFirst(own.filter((row) => row.verdict === verdict)));
    const head = [better, worse, changed].flatMap((list) => (list === undefined || list.length === 0 ? [] : [list]));
    const baseline = own[0]?.baseline ?? "";
    const tally = `better in ${better?.length ?? 0} of ${many(own.length, "setting")}, worse in ${worse?.length ?? 0}${changed === undefined || changed.length === 0 ? "" : `, changed in ${changed.length}`}`;
    if (head.length === 0) return h("p", { class: "finding" }, shown(`${kernel}: no difference from ${baseline} is sure in any of ${many(own.length, "setting")}.`));
    const largest = head.map((list) => h("li", {}, ...told(list[0]!)));
    return h("div", { class: "sure" }, h("p", { class: "finding" }, shown(`${kernel} against ${baseline}, for sure: ${tally}. ${head.length > 1 ? "The largest of each" : "The largest"}:`)), h("ul", { class: "sentences" }, ...largest));
  });
}

/** The page of a setting's run, in a folder of pages. */
function pageOf(row: QueryRow, pages: PageParts["pages"]): string | undefined {
  return pages?.find(({ group }) => Object.entries(row.group).every(([name, value]) => group[name] === value))?.page;
}

/** What all rows have alike stands above the table. */
function valueTable(rows: readonly QueryRow[], all: readonly Parameter[], pages: PageParts["pages"]): HTMLElement {
  const varying = all.filter((column) => column.values.length > 1);
  const columns = varying.length > 0 ? varying : all;
  const isNumeric = (column: Parameter): boolean => column.values.every(isNumber);
  const remark = (row: QueryRow): string => (row.one_course ? "one course of events" : row.two_modes ? "two modes" : "");
  const hasRemarks = rows.some((row) => remark(row) !== "");
  const number = (name: string, value: number | null): { show: string; by: number | undefined } => ({ show: value === null ? "-" : metric(name, value), by: value ?? undefined });
  const rank = new Map(columns.map((column) => [column.name, new Map(column.values.map((value, at) => [value, at]))]));
  const place = (row: QueryRow, column: Parameter): number => rank.get(column.name)?.get(row.group[column.name] ?? "") ?? 0;
  const sorted = [...rows].sort((one, other) => columns.map((column) => place(one, column) - place(other, column)).find((order) => order !== 0) ?? 0);
  return table({
    caption: pages === undefined ? "Values of each setting's cells." : "Values of each setting's cells. A row's link leads to one of them alone: the run of its first seed.",
    columns: [...columns.map((column) => ({ head: column.name, figures: isNumeric(column), class: isNumeric(column) ? "" : "setting-cell" })), ...["cells", "mean", "deviation", "median", "least", "greatest"].map((head) => ({ head, figures: true })), ...(hasRemarks ? [{ head: "remark" }] : []), ...(pages === undefined ? [] : [{ head: "Run of its first seed", class: "short" }])],
    rows: sorted.map((row) => [
      ...columns.map((column) => {
        const value = row.group[column.name] ?? "";
        return isNumeric(column) ? { show: value, by: Number(value) } : value;
      }),
      { show: String(row.cells), by: row.cells },
      ...[row.mean, row.deviation, row.median, row.min, row.max].map((value) => number(row.metric, value)),
      ...(hasRemarks ? [remark(row)] : []),
      ...(pages === undefined ? [] : [{ show: runLink(pageOf(row, pages), columns.map((column) => `${column.name} ${row.group[column.name] ?? ""}`).join(", ")) }]),
    ]),
    sorts: true,
    class: "stacks",
  });
}

/** Links say of which setting their run is: a list of them is read without the table. */
function runLink(page: string | undefined, setting: string): Child {
  return page === undefined ? "-" : pageLink({ page, words: setting === "" ? "first seed" : `${setting}, first seed` });
}

/** The page of a sweep, or of a question to one. */
export function swept(answer: Queried, parts: PageParts): Drawn {
  const from = parts.settings ?? answer;
  const names = [...new Set(from.rows.map((row) => row.metric))];
  const all = columnsOf(from.rows);
  const columns = [...all.filter((column) => column.values.length > 1), ...all.filter((column) => column.values.length <= 1)];
  const { along, apart } = plan(columns);
  const place = h("div");
  const sure = h("div", { class: "kernels", "aria-live": "polite" });
  const fill = (name: string): void => {
    sure.replaceChildren(...kernelWords(name, parts, columns));
    const rows = from.rows.filter((row) => row.metric === name);
    const [first, second] = along;
    const chart = first === undefined ? [] : second === undefined ? lines(rows, first, apart) : grids(rows, [first, second], apart);
    place.replaceChildren(h("p", {}, shown(extremes(rows, columns))), ...chart.filter((part): part is HTMLElement => part instanceof HTMLElement), valueTable(rows, columns, parts.pages));
  };
  fill(names[0] ?? "");
  const choice = h("select", { id: "metric" }, ...names.map((name) => h("option", { value: shown(name) }, shown(name))));
  choice.addEventListener("change", () => fill(names[choice.selectedIndex] ?? ""));
  const control = names.length > 1 ? h("p", { class: "control screen-only" }, h("label", { for: "metric" }, "Metric"), " ", choice) : null;
  const partial = answer.partial === null ? null : notice(`Partial: ${answer.partial.cells} of the sweep's ${answer.partial.wanted} cells are done.`);
  const fixed = columns.filter((column) => column.values.length === 1 && column.values[0] !== "").map((column) => `${column.name} ${column.values[0]}`);
  const said = [many(answer.cells, "cell"), ...fixed].join("; ");
  return {
    kicker: `Fairlab ${parts.kind ?? "query"}`,
    findings: [partial, sure, h("p", { class: "setting" }, shown(`${said}.`))],
    sections: answer.rows.length === 0 ? [] : [section("values", names.length > 1 ? "Values" : spoken(names[0] ?? ""), control, place)],
  };
}
