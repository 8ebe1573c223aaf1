// Parts of a whole as bars in tables.

import { h } from "./dom.js";

/** A part of one, drawn and in percent; parts that go against the whole have another colour. */
export function shareBar(share: number | null): HTMLElement {
  if (share === null) return h("span", {}, "-");
  const width = Math.min(100, Math.abs(share) * 100);
  const percent = Math.abs(share) < 0.0995 && share !== 0 ? (share * 100).toFixed(1) : (share * 100).toFixed(0);
  const bar = h("span", { class: share < 0 ? "share-bar against" : "share-bar", style: `--share: ${width.toFixed(1)}%`, "aria-hidden": "true" });
  return h("span", { class: "share" }, bar, h("span", { class: "share-number" }, `${percent} %`));
}
