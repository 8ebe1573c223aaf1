// The page of two million events opens and zooms. How long it takes to open, and how smoothly it zooms, is printed, not judged.

import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "@playwright/test";
import { open, program, test } from "./program.js";

const EVENTS = 2_000_000;
const BYTES_MAX = 5e6;

test("two million events open, zoom and pan", async ({ page, folder }) => {
  test.setTimeout(600_000);
  const path = join(folder, "long.html");
  const said = execFileSync(join(program(), "..", "examples", "long_trace"), [String(EVENTS), path], { encoding: "utf8" });
  expect(statSync(path).size).toBeLessThanOrEqual(BYTES_MAX);
  await open(page, path);
  // The page was drawn before this is asked.
  const paint = await page.evaluate(() => performance.getEntriesByName("drawn")[0]?.startTime ?? NaN);
  const box = (await page.locator("canvas.lanes").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80);
  const frames = page.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        const step = (now: number): void => {
          times.push(now);
          if (now - times[0]! < 4_000) requestAnimationFrame(step);
          else resolve(times);
        };
        requestAnimationFrame(step);
      }),
  );
  for (let turn = 0; turn < 40; turn += 1) {
    await page.mouse.wheel(turn % 10 === 9 ? 200 : 0, turn % 10 === 9 ? 0 : -60);
    await page.waitForTimeout(40);
  }
  const times = await frames;
  const rate = (times.length - 1) / ((times.at(-1)! - times[0]!) / 1e3);
  console.log(`${said.trim()}; first paint after ${paint.toFixed(0)} ms, ${rate.toFixed(1)} frames/s while zooming and panning`);
  expect(times.length).toBeGreaterThan(1);
  for (let turn = 0; turn < 80; turn += 1) await page.mouse.wheel(0, -120);
  await expect.poll(() => page.url()).toMatch(/#v=\d+,\d+/);
  await expect.poll(() => { const [from, to] = /#v=(\d+),(\d+)/.exec(page.url())!.slice(1).map(Number); return to! - from!; }).toBeLessThanOrEqual(1_000);
  await expect(page.getByRole("status")).toContainText("each switch is drawn");
});
