// Heads of rows for keys and screen readers: where the picture has a name, a button with the whole name stands over it.

import { h } from "../base/dom.js";

/** A row that one can act on. */
export interface Head {
  readonly key: string;
  /** Its whole name. */
  readonly name: string;
  readonly top: number;
  readonly height: number;
  /** Whether its tasks are shown; of a task nothing. */
  readonly isOpen: boolean | undefined;
}

export interface HeadActions {
  /** As a click on the name does. */
  readonly act: (key: string) => void;
  /** Brings the row `by` rows further into sight; gives its key. */
  readonly move: (key: string, by: number) => string | undefined;
  /** Shows the whole name beside the row, or hides it. */
  readonly tell: (head: Head | undefined) => void;
}

export class Heads {
  readonly element: HTMLElement;
  actions: HeadActions | undefined;
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private heads: readonly Head[] = [];
  /** The row that gets the focus once it is there. */
  private wanted: string | undefined;

  constructor(title: string) {
    this.element = h("div", { class: "heads", role: "group", "aria-label": `Rows of ${title}` });
  }

  /** Places the buttons of the rows in sight. */
  update(heads: readonly Head[], width: number): void {
    this.heads = heads;
    this.element.style.inlineSize = `${width}px`;
    const focused = [...this.buttons].find(([, button]) => button === document.activeElement)?.[0];
    const stop = heads.find(({ key }) => key === (this.wanted ?? focused)) ?? heads[0];
    const known = new Set(heads.map(({ key }) => key));
    for (const [key, button] of this.buttons) {
      if (known.has(key)) continue;
      button.remove();
      this.buttons.delete(key);
    }
    heads.forEach((head, place) => {
      const button = this.button(head.key);
      if (this.element.children[place] !== button) this.element.insertBefore(button, this.element.children[place] ?? null);
      if (button.title !== head.name) button.title = head.name;
      button.setAttribute("aria-label", head.name);
      if (head.isOpen !== undefined) button.setAttribute("aria-expanded", String(head.isOpen));
      button.tabIndex = head === stop ? 0 : -1;
      button.style.insetBlockStart = `${head.top}px`;
      button.style.blockSize = `${head.height}px`;
    });
    if (this.wanted === undefined || !known.has(this.wanted)) return;
    this.buttons.get(this.wanted)?.focus({ preventScroll: true });
    this.wanted = undefined;
  }

  private button(key: string): HTMLButtonElement {
    const known = this.buttons.get(key);
    if (known !== undefined) return known;
    const button = h("button", { type: "button", class: "head" });
    button.addEventListener("click", () => {
      this.wanted = key;
      this.actions?.act(key);
    });
    button.addEventListener("focus", () => this.actions?.tell(this.heads.find((head) => head.key === key)));
    button.addEventListener("blur", () => this.actions?.tell(undefined));
    button.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (by === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.wanted = this.actions?.move(key, by);
    });
    this.buttons.set(key, button);
    return button;
  }
}
