// Light or dark: as the system says, until the reader says otherwise.

import { h } from "./dom.js";

export type Theme = "light" | "dark";

const KEY = "fairlab-theme";

function kept(): Theme | undefined {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : undefined;
  } catch {
    // A file's storage may be closed.
    return undefined;
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It then lasts as long as the page does.
  }
}

/** The theme that the page has now. */
export function theme(): Theme {
  const set = document.documentElement.dataset["theme"];
  if (set === "light" || set === "dark") return set;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Changes to the other theme; canvases listen for `themechange` on the document, for they do not follow custom properties. */
export function toggleTheme(): void {
  const other = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = other;
  keep(other);
  document.dispatchEvent(new Event("themechange"));
}

/** The value of a custom property, for canvases. */
export function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

/** A button that changes the theme. */
export function themeButton(): HTMLButtonElement {
  const button = h("button", { type: "button", class: "tool", id: "theme" });
  const name = (): void => {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${theme() === "dark" ? "light" : "dark"} colours`);
    button.title = "Change colours (t)";
  };
  button.addEventListener("click", toggleTheme);
  document.addEventListener("themechange", name);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    name();
    document.dispatchEvent(new Event("themechange"));
  });
  const first = kept();
  if (first !== undefined) document.documentElement.dataset["theme"] = first;
  name();
  return button;
}
