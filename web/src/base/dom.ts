// Elements, built without markup: text goes in by textContent alone, so no name in an answer can become an element.

export type Child = Node | string | number | null | undefined | false;
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

const SVG = "http://www.w3.org/2000/svg";

/** Attributes in which a browser would obey what stands there. */
const OBEYED = /^(on|href$|src|srcdoc$|action$|formaction$|xlink)/i;

function fill(element: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    const text = value === true ? "" : String(value);
    // Links lead to places within the page, and to pages beside it in its folder.
    if (OBEYED.test(name) && !(name === "href" && /^(#[\w-]+|[a-z0-9-]+\.html)$/.test(text))) throw new Error(`${name} is not set by data`);
    element.setAttribute(name, text);
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** An element of HTML. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

/** An element of SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, name);
  fill(element, attributes, children);
  return element;
}

/**
 * Text of others on one line: what would turn the direction of text, break a line or hide is written as its number, as
 * Fairlab's text output does.
 */
export function shown(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    if (character === "\r") return "\\r";
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** A name of others, apart from the text around it. */
export function name(text: string): HTMLElement {
  return h("bdi", {}, shown(text));
}

/** Another page of the same folder (crates/cli/src/commands/pages.rs). */
export interface PageLink {
  readonly page: string;
  readonly words: string;
}

/** A link to a page of the same folder. */
export function pageLink(link: PageLink, before = ""): HTMLElement {
  return h("a", { href: link.page }, before, h("bdi", {}, shown(link.words)));
}

/** A metric's name that breaks between its words, and nowhere else. */
export function breakable(text: string): HTMLElement {
  const words = shown(text).split("_");
  return h("bdi", { class: "unbroken" }, ...words.flatMap((word, at) => (at < words.length - 1 ? [`${word}_`, h("wbr")] : [word])));
}
