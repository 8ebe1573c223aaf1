// What every page has: its data, its head, how the answer came about, and a place for trouble.

import { h, name, shown, type Child } from "./dom.js";
import { keyboard, type Key } from "./keyboard.js";
import { themeButton, toggleTheme } from "./theme.js";

/** How an answer came about, as every answer says it (docs/schemas/provenance-1.json). */
export interface Provenance {
  readonly origin?: readonly string[];
  readonly program?: string;
  readonly version?: string;
  readonly commit?: string | null;
  readonly command?: string;
  readonly kernels?: readonly string[];
  readonly machines?: readonly string[];
  readonly seeds?: readonly number[];
}

/** Whether each observation is another host, so that no machine and no seed is told (crates/lab/src/hosts.rs). */
export function areHosts(from: Provenance): boolean {
  return from.machines?.length === 1 && from.machines[0] === "hosts";
}

/** The page's data, which stands in it as JSON. */
export function pageData(): unknown {
  const text = document.getElementById("data")?.textContent;
  if (text === null || text === undefined || text === "") throw new Error("the page holds no data");
  return JSON.parse(text);
}

/** The element that the page is drawn into. */
export function pageRoot(): HTMLElement {
  const root = document.getElementById("page");
  if (root === null) throw new Error("the page has no place to be drawn into");
  return root;
}

/** A page in the background has no frames. */
const HIDDEN_MS = 1000;

/** Draws the page, or says in it why that failed. */
export function start(draw: (root: HTMLElement, data: unknown) => void | Promise<void>): void {
  const run = async (): Promise<void> => {
    const root = pageRoot();
    try {
      await draw(root, pageData());
      document.documentElement.dataset["drawn"] = "true";
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      root.prepend(h("p", { role: "alert", class: "trouble" }, `This page could not be drawn: ${shown(words)}.`));
      console.error(error);
    }
  };
  void run();
}

/** After the browser has shown what is there; soon also where it shows nothing, and before it prints. */
export function shownOnce(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, HIDDEN_MS);
    addEventListener("beforeprint", () => resolve(), { once: true });
  });
}

/** The keys of every page. */
export const THEME_KEY: Key = { key: "t", does: "Change between light and dark", act: toggleTheme };

/** The title with the page's tools beside it. */
export function masthead(kicker: string, title: string, keys: readonly Key[], ...more: readonly Child[]): HTMLElement {
  const help = keyboard([...keys, THEME_KEY]);
  return h(
    "header",
    { class: "masthead" },
    h("div", {}, h("p", { class: "kicker" }, shown(kicker)), h("h1", {}, name(title)), ...more),
    h("div", { class: "tools", role: "group", "aria-label": "Page" }, help, themeButton()),
  );
}

/** Numbers that follow each other, as ranges: 1-10, 12. */
export function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  const sorted = [...numbers].sort((one, other) => one - other);
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while ((sorted[end + 1] ?? NaN) === (sorted[end] ?? NaN) + 1) end += 1;
    const [first, last] = [sorted[at], sorted[end]];
    parts.push(first === last ? `${first}` : `${first}-${last}`);
    at = end + 1;
  }
  return parts.join(", ");
}

/** Terms with what they are; those with nothing are left out. */
export function facts(rows: readonly (readonly [string, Child])[]): HTMLElement {
  const list = h("dl", { class: "facts" });
  for (const [term, value] of rows) {
    if (value === "" || value === null || value === undefined || value === false) continue;
    list.append(h("dt", {}, term), h("dd", {}, typeof value === "string" ? shown(value) : value));
  }
  return list;
}

/** How the answer came about. */
export function provenanceFacts(from: Provenance, ...more: readonly (readonly [string, Child])[]): HTMLElement {
  const names = (list: readonly string[] | undefined): string => (list ?? []).map(shown).join(", ");
  const commit = from.commit === null || from.commit === undefined ? "" : ` (${from.commit})`;
  const version = from.version === undefined ? "" : `${from.program ?? "fairlab"} ${from.version}${commit}`;
  return facts([
    ["Command", from.command === undefined ? "" : h("code", {}, shown(from.command))],
    ["Came about", (from.origin ?? []).join(", ")],
    ["Kernels", names(from.kernels)],
    ["Machines", names(from.machines)],
    ["Seeds", ranges(from.seeds ?? [])],
    ["Program", version],
    ...more,
  ]);
}
