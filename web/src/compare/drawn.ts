// What a page says first and draws, by kind of answer: a sentence or two, then sections.

import { h, pageLink, shown, type Child } from "../base/dom.js";
import type { PageParts } from "./types.js";

/** What an answer's page has above its text and its values. */
export interface Drawn {
  /** What the page is called above its title. */
  readonly kicker?: string;
  /** The answer in words, the most important first. */
  readonly findings: readonly Child[];
  readonly sections: readonly HTMLElement[];
}

/** Draws answers of one schema. */
export type Draws = (answer: never, parts: PageParts) => Drawn;

/** A section with its head. */
export function section(id: string, title: string, ...children: readonly Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}

/** A sentence of the answer. */
export function finding(...words: readonly Child[]): HTMLElement {
  return h("p", { class: "finding" }, ...words.map((part) => (typeof part === "string" ? shown(part) : part)));
}

/** What the reader should know. */
export function notice(words: string): HTMLElement {
  return h("p", { class: "notice" }, shown(words));
}

/** Where one goes from a page of a folder. */
export function linksOf(parts: PageParts): Child {
  const links = [...(parts.up === undefined ? [] : [pageLink(parts.up, "↑ ")]), ...(parts.links ?? []).map((link) => pageLink(link))];
  return links.length === 0 ? null : h("nav", { class: "pages screen-only", "aria-label": "Pages" }, h("ul", {}, ...links.map((link) => h("li", {}, link))));
}

/** A command to be copied. */
export function command(words: string): HTMLElement {
  return h("pre", { class: "command" }, shown(words));
}

/** `1 run`, `2 runs`. */
export function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** What stands for colours of a chart. */
export function keys(label: string, list: readonly { readonly words: string; readonly colour: string; readonly sign?: string }[]): HTMLElement {
  const key = (one: (typeof list)[number]): HTMLElement => {
    const box = h("span", { class: one.sign === undefined ? "key" : "sign", "aria-hidden": "true" }, one.sign ?? "");
    if (one.sign === undefined) box.style.background = one.colour;
    else box.style.color = one.colour;
    return h("li", {}, box, h("bdi", {}, shown(one.words)));
  };
  return h("ul", { class: "legend", "aria-label": label }, ...list.map(key));
}
