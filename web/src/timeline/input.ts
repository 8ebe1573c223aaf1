// What pointers do on a pane: wheel, drag, click, touch.

import type { Page } from "./main.js";
import type { Pane } from "./pane.js";
import type { Row } from "./trace.js";

/** Less than this is a click, px. */
const CLICK = 4;

interface Drag {
  readonly startX: number;
  readonly startY: number;
  x: number;
  y: number;
  moved: boolean;
  readonly measures: boolean;
}

export function listen(pane: Pane, page: Page): void {
  const { canvas, view } = pane;
  const touches = new Map<number, { x: number; y: number }>();
  let drag: Drag | undefined;
  let pinch: { distance: number; middle: number } | undefined;
  const place = (event: MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const viewTime = (x: number): number => pane.timeAt(x) - pane.trace.offset;

  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const [x] = place(event);
      const LINE = 16;
      const unit = event.deltaMode === 1 ? LINE : 1;
      const [byX, byY] = [event.deltaX * unit, event.deltaY * unit];
      if (event.shiftKey || x < pane.labels) {
        pane.scrollBy(byY === 0 ? byX : byY);
        page.changed();
      } else if (Math.abs(byX) > Math.abs(byY)) {
        view.pan(byX / pane.scale().width);
      } else {
        view.zoom(Math.exp(Math.max(-120, Math.min(120, byY)) * 0.0025), viewTime(x));
      }
    },
    { passive: false },
  );

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = place(event);
    touches.set(event.pointerId, { x, y });
    pinch = undefined;
    const measures = event.shiftKey && x >= pane.labels;
    drag = touches.size === 1 ? { startX: x, startY: y, x, y, moved: false, measures } : undefined;
    if (measures) pane.measure = { from: viewTime(x), to: viewTime(x) };
  });

  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    page.cursor.show(pane, x);
    if (touches.has(event.pointerId)) touches.set(event.pointerId, { x, y });
    if (touches.size === 2) {
      const [one, other] = [...touches.values()] as [{ x: number; y: number }, { x: number; y: number }];
      const distance = Math.max(10, Math.abs(one.x - other.x));
      const middle = (one.x + other.x) / 2;
      if (pinch !== undefined) {
        view.zoom(pinch.distance / distance, viewTime(middle));
        view.pan((pinch.middle - middle) / pane.scale().width);
      }
      pinch = { distance, middle };
      return;
    }
    if (drag === undefined) {
      const hit = pane.hit(x, y);
      canvas.style.cursor = hit.onLabel ? (hit.row?.kind === "set" || hit.row?.kind === "task" ? "pointer" : "default") : "crosshair";
      page.showTip(pane, x, y, hit.onLabel ? pane.nameOf(hit.row) : page.hint(pane, hit));
      return;
    }
    drag.moved ||= Math.hypot(x - drag.startX, y - drag.startY) > CLICK;
    if (!drag.moved) return;
    page.showTip(pane, x, y, "");
    if (drag.measures) {
      if (pane.measure !== undefined) pane.measure.to = viewTime(Math.max(pane.labels, x));
      page.changed();
    } else {
      pane.scrollBy(drag.y - y);
      view.pan((drag.x - x) / pane.scale().width);
    }
    [drag.x, drag.y] = [x, y];
  });

  const end = (event: PointerEvent): void => {
    touches.delete(event.pointerId);
    pinch = undefined;
    const done = drag;
    drag = undefined;
    if (done === undefined || event.type === "pointercancel") return;
    if (done.measures) {
      if (done.moved) page.measured(pane);
      else pane.measure = undefined;
      page.changed();
    } else if (!done.moved) {
      click(pane, page, done.startX, done.startY);
    }
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    page.showTip(pane, 0, 0, "");
    page.cursor.hide();
  });
  canvas.addEventListener("dblclick", (event) => {
    const [x] = place(event);
    view.zoom(0.25, viewTime(x), true);
  });
  pane.heads.actions = {
    act: (key) => choose(pane, page, pane.rowOf(key)),
    move: (key, by) => {
      page.changed();
      return pane.headBeside(key, by);
    },
    tell: (head) => page.showTip(pane, 0, (head?.top ?? 0) + (head?.height ?? 0), head?.name ?? ""),
  };
}

/** What a row's name does: a group opens or closes, a task is selected. */
function choose(pane: Pane, page: Page, row: Row | undefined): void {
  if (row?.kind === "set") {
    const { open } = pane.trace;
    if (!open.delete(row.set)) open.add(row.set);
    page.relayout();
  } else if (row?.kind === "task") {
    page.showTask(pane.trace, row.task);
  }
}

function click(pane: Pane, page: Page, x: number, y: number): void {
  const hit = pane.hit(x, y);
  if (hit.onLabel) {
    choose(pane, page, hit.row);
  } else {
    const slice = pane.slice(hit);
    if (slice !== undefined) void page.showSlice(pane.trace, slice);
  }
}
