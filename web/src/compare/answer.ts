// Any answer as a page: its values by name, its lists as tables, whatever its schema is.

import { h, shown, type Child } from "../base/dom.js";
import { metric, seconds, significant } from "../base/format.js";
import { facts, ranges } from "../base/page.js";
import { table, type Cell, type Column } from "../base/table.js";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Fields = { readonly [name: string]: Json };

/** Lists of so many parts are drawn whole; of longer ones the rest opens. */
const PARTS_OPEN = 12;

/** Parts of a list stand side by side up to so many. */
const COLUMNS_MAX = 40;

/** Nobody reads on below so many levels: there the page has JSON. */
const DEPTH_MAX = 6;

function isFields(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function isScalar(value: Json | undefined): value is null | boolean | number | string {
  return value === null || typeof value !== "object";
}

/** Points of a trace's clock, which must not lose digits, apart from lengths. */
const INSTANT = /(^|_)(time|at|begin|start|started|end|ended|from|until|to|first|last|max_start|max_end)_ns$/;

/** A field's name as people read it; its unit stands behind its value. */
function words(field: string): string {
  return field.replace(/_ns(?=_|$)|_us(?=_|$)/g, "").replaceAll("_", " ").trim() || field;
}

function number(field: string, value: number): string {
  if (INSTANT.test(field)) return `${seconds(value)} s`;
  const shownAs = metric(field, value);
  // What has no unit and is whole is a number of something, or a name: all of its digits count.
  return shownAs === significant(value) && Number.isInteger(value) ? String(value) : shownAs;
}

function scalar(field: string, value: null | boolean | number | string): Child {
  if (value === null) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(field, value);
  if (value.trimEnd().includes("\n")) return h("pre", {}, ...lines(value));
  return h("bdi", {}, shown(value));
}

function lines(text: string): string[] {
  return [text.trimEnd().split("\n").map((line) => shown(line.replaceAll("\t", "        "))).join("\n")];
}

/** A list of scalars on one line. */
function listed(field: string, list: readonly Json[]): string {
  const numbers = list.filter((each) => typeof each === "number");
  if (numbers.length === list.length && numbers.every(Number.isInteger) && /cpu|seed/.test(field)) return ranges(numbers);
  return list.map((each) => (typeof each === "number" ? number(field, each) : String(each ?? "-"))).join(", ");
}

/** Fields of fields as fields with longer names, so that they fit into a row. */
function flat(fields: Fields, before = ""): [string, Json][] {
  return Object.entries(fields).flatMap(([name, value]): [string, Json][] => {
    const path = before === "" ? name : `${before} ${name}`;
    return isFields(value) ? flat(value, path) : [[path, value]];
  });
}

function isShortList(value: Json | undefined): value is readonly Json[] {
  return isList(value) && value.every(isScalar) && JSON.stringify(value).length <= 400;
}

/** Whether a value fits into a cell. */
function isCell(value: Json | undefined): boolean {
  return (isScalar(value) && !(typeof value === "string" && value.trimEnd().includes("\n"))) || isShortList(value);
}

function cellOf(field: string, value: Json | undefined): Cell | string {
  if (value === undefined) return "";
  if (isList(value)) return listed(field, value);
  if (!isScalar(value)) return "";
  return { show: scalar(field, value), by: typeof value === "boolean" || value === null ? String(value ?? "") : value };
}

/** The field in which each part of a list has numbers by name. */
function numbersField(list: readonly Fields[]): string | undefined {
  return Object.keys(list[0] ?? {}).find((name) => list.every((fields) => isNumbersByName(fields[name])));
}

/** Numbers by name, a column a part: what each part is called stands above. */
function matrix(caption: string, list: readonly Fields[], field: string): HTMLElement {
  const seed = (fields: Fields): string => (typeof fields["seed"] === "number" ? `, seed ${fields["seed"]}` : "");
  const heads = list.map((fields, place) => `${titleOf(fields, place)}${seed(fields)}`);
  const numbers = list.map((fields) => fields[field] as { readonly [name: string]: number | null });
  const names = [...new Set(numbers.flatMap((each) => Object.keys(each)))];
  const cell = (name: string, value: number | null | undefined): Cell => ({ show: value === null || value === undefined ? "-" : number(name, value), by: value ?? undefined });
  return table({
    caption,
    columns: [{ head: words(field), class: "short" }, ...heads.map((head) => ({ head, figures: true, class: "name-head" }))],
    rows: names.map((name) => [name, ...numbers.map((each) => cell(name, each[name]))]),
  });
}

/** A list of fields as a table: a column for each name that any has. */
function rowsTable(caption: string, list: readonly Fields[]): HTMLElement {
  const rows = list.map((fields) => new Map(flat(fields)));
  const names = [...new Set(rows.flatMap((row) => [...row.keys()]))];
  const isNumber = (name: string): boolean => rows.some((row) => typeof row.get(name) === "number") && rows.every((row) => ["number", "undefined"].includes(typeof row.get(name)) || row.get(name) === null);
  const isLong = (name: string): boolean => rows.some((row) => String(row.get(name) ?? "").length > 40);
  // What says whose a row is stands first.
  const order = [...names.filter((name) => !isNumber(name) && !isLong(name)), ...names.filter(isNumber), ...names.filter((name) => !isNumber(name) && isLong(name))];
  const columns: Column[] = order.map((name) => ({ head: words(name), figures: isNumber(name), class: isLong(name) ? "words" : "short" }));
  return table({ caption, columns, rows: rows.map((row) => order.map((name) => cellOf(name, row.get(name)))), sorts: true });
}

function isNumbersByName(value: Json | undefined): value is { readonly [name: string]: number | null } {
  return isFields(value) && Object.keys(value).length > 3 && Object.values(value).every((each) => typeof each === "number" || each === null);
}

function isRowsByName(value: Json): value is { readonly [name: string]: Fields } {
  const isRow = (each: Json): boolean => isFields(each) && !("name" in each) && Object.values(each).every((cell) => isCell(cell));
  return isFields(value) && Object.values(value).every(isRow);
}

function numbersTable(caption: string, fields: { readonly [name: string]: number | null }): HTMLElement {
  const rows = Object.entries(fields).map(([name, value]) => [shown(name), { show: value === null ? "-" : number(name, value), by: value ?? undefined }]);
  return table({ caption, columns: [{ head: "Name" }, { head: "Value", figures: true }], rows, sorts: true });
}

/** A list of pairs `[name, number]`. */
function pairsOf(list: readonly Json[]): { readonly [name: string]: number | null } | undefined {
  const isPair = (each: Json): each is readonly [string, number] => isList(each) && each.length === 2 && typeof each[0] === "string" && typeof each[1] === "number";
  return list.length > 0 && list.every(isPair) ? Object.fromEntries(list.filter(isPair)) : undefined;
}

/** What names a part of a list. */
function titleOf(fields: Fields, place: number): string {
  for (const name of ["name", "title", "task", "comm", "metric", "kernel", "commit", "id"]) {
    const value = fields[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return String(place + 1);
}

function heading(level: number, text: string): HTMLElement {
  return level <= 2 ? h("h2", {}, shown(text)) : level === 3 ? h("h3", {}, shown(text)) : h("h4", {}, shown(text));
}

/** A list whose parts hold lists themselves: a part each. */
function partsOf(list: readonly Fields[], level: number): HTMLElement[] {
  const part = (fields: Fields, place: number): HTMLElement => h("section", { class: "part" }, heading(level, titleOf(fields, place)), ...bodyOf(fields, level + 1));
  const open = list.slice(0, PARTS_OPEN).map(part);
  const rest = list.slice(PARTS_OPEN);
  if (rest.length === 0) return open;
  const more = h("details", {}, h("summary", {}, `${rest.length} more`));
  // They are drawn when somebody asks.
  more.addEventListener("toggle", () => more.childElementCount > 1 || more.append(...rest.map((fields, place) => part(fields, place + PARTS_OPEN))));
  return [...open, more];
}

function listBody(field: string, list: readonly Json[], level: number): Child[] {
  if (list.length === 0) return [h("p", { class: "soft" }, "None.")];
  const pairs = pairsOf(list);
  if (pairs !== undefined) return [numbersTable(words(field), pairs)];
  if (list.every(isFields)) {
    const apart = list.length <= COLUMNS_MAX ? numbersField(list) : undefined;
    if (apart !== undefined) {
      const rest = list.map((fields) => Object.fromEntries(Object.entries(fields).filter(([name]) => name !== apart)));
      return [matrix(`${words(apart)} of ${list.length} ${words(field)}`, list, apart), ...listBody(field, rest, level)];
    }
    const inRows = list.every((fields) => flat(fields).every(([, value]) => isCell(value)));
    return inRows ? [rowsTable(`${words(field)}: ${list.length}`, list)] : partsOf(list, level);
  }
  if (list.every(isScalar)) {
    const isProse = list.every((each) => typeof each === "string" && each.length > 24);
    return [isProse ? h("ul", { class: "sentences" }, ...list.map((each) => h("li", {}, scalar(field, each)))) : h("p", {}, shown(listed(field, list)))];
  }
  return [h("pre", {}, shown(JSON.stringify(list)))];
}

/** The values of some fields, then what they hold. */
function bodyOf(fields: Fields, level: number): Child[] {
  if (level > DEPTH_MAX) return [h("pre", {}, shown(JSON.stringify(fields)))];
  const entries = Object.entries(fields);
  const short = entries.filter(([, value]) => value !== null && isCell(value) && !(isList(value) && value.length === 0));
  const head = short.length === 0 ? null : facts(short.map(([name, value]) => [words(name), isList(value) ? listed(name, value) : isScalar(value) ? scalar(name, value) : ""]));
  const rest = entries.filter(([, value]) => !isCell(value));
  return [head, ...rest.flatMap(([name, value]) => sectionOf(name, value, level))];
}

function sectionOf(name: string, value: Json, level: number): Child[] {
  if (isList(value) && value.length === 0) return [];
  const title = heading(level, words(name).replace(/^./, (first) => first.toUpperCase()));
  if (isList(value)) return [title, ...listBody(name, value, level + 1)];
  if (isNumbersByName(value)) return [title, numbersTable(words(name), value)];
  if (isFields(value) && Object.keys(value).length === 0) return [];
  if (isRowsByName(value)) return [title, rowsTable(words(name), Object.entries(value).map(([key, fields]) => ({ name: key, ...fields })))];
  if (isFields(value)) return [title, ...bodyOf(value, level + 1)];
  return isScalar(value) ? [title, scalar(name, value)] : [];
}

/** Sections of an answer's page: its text as the program prints it, then all of its values. Where something is drawn, both wait to be opened. */
export function answerSections(data: unknown, text: string | undefined, isDrawn = false): HTMLElement[] {
  const answer = data as Fields;
  const told = Object.fromEntries(Object.entries(answer).filter(([name]) => !["schema", "provenance", "page"].includes(name)));
  const values = (): readonly Child[] => bodyOf(told, 3);
  const printed = (): HTMLElement => h("pre", { class: "printed", tabindex: 0 }, ...lines(text ?? ""));
  const hasText = text !== undefined && text.trim() !== "";
  if (isDrawn) {
    return [h("section", { id: "full", class: "answer screen-only" }, h("h2", {}, "The answer in full"), ...(hasText ? [opens("As the program prints it", () => [printed()])] : []), opens("Every field", values))];
  }
  if (!hasText) return [h("section", { class: "answer" }, h("h2", {}, "Values"), ...values())];
  const isShort = !isNested(told) || text.length >= TEXT_OPEN;
  return [
    h("section", { class: "answer" }, h("h2", {}, "In words"), printed()),
    h("section", { class: "answer" }, h("h2", {}, "All values"), ...(isShort ? [h("div", {}, ...values())] : [opens("Every field of the answer", values)])),
  ];
}

/** What is drawn when somebody asks. */
function opens(summary: string, fill: () => readonly Child[]): HTMLElement {
  const details = h("details", {}, h("summary", {}, summary));
  details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(...fill().filter((part): part is Node => part instanceof Node)));
  return details;
}

/** A text that is longer is no story that would stand for its values. */
const TEXT_OPEN = 200_000;

/** Whether parts of the answer's lists hold lists themselves, which makes a long page of small tables. */
function isNested(told: Fields): boolean {
  const parts = Object.values(told).filter(isList).flat().filter(isFields);
  return parts.some((fields) => numbersField([fields]) === undefined && !flat(fields).every(([, value]) => isCell(value)));
}
