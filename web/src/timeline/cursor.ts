// The line under the pointer: through all panes, with its time, so that rows far apart and two traces can be compared.

import { h } from "../base/dom.js";
import { tickAt, type Pane } from "./pane.js";

export class Cursor {
  readonly element: HTMLElement;
  private readonly text = h("span", {});
  private at: { readonly pane: Pane; readonly x: number } | undefined;

  constructor() {
    this.element = h("div", { class: "cursor", "aria-hidden": "true", hidden: true }, this.text);
  }

  /** Stands at a place of a pane; outside of its rows nowhere. */
  show(pane: Pane, x: number): void {
    this.at = x >= pane.labels ? { pane, x } : undefined;
    this.refresh();
  }

  hide(): void {
    this.at = undefined;
    this.refresh();
  }

  /** To be called when the view has moved below it. */
  refresh(): void {
    this.element.hidden = this.at === undefined;
    if (this.at === undefined) return;
    const { pane, x } = this.at;
    const { left, width } = pane.scale();
    this.element.style.insetInlineStart = `${Math.round(x)}px`;
    this.text.textContent = tickAt(pane.timeAt(x) - pane.trace.offset, pane.view.span / width);
    this.element.classList.toggle("flipped", x - left > width / 2);
  }
}
