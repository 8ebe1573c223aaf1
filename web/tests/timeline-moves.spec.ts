// Finding one's way in the page of traces: the line under the pointer, the way back, ids in parts, what a time holds.

import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { fairlab, labelsOf, open, test } from "./program.js";

const HACKBENCH = "testdata/perf-hackbench.data";

/** What is looked at, as the address says it. */
async function view(page: Page): Promise<string> {
  await expect.poll(() => page.url()).toContain("#v=");
  return /#v=(-?\d+,-?\d+)/.exec(page.url())![1]!;
}

test("a line under the pointer goes through both traces, with its time", async ({ page, folder }) => {
  const path = join(folder, "cursor.html");
  fairlab("view", HACKBENCH, "testdata/perf-make.data", "-o", path);
  await open(page, path);
  await page.keyboard.press("f");
  await expect.poll(() => view(page)).toMatch(/^0,/);
  const cursor = page.locator(".cursor");
  await expect(cursor).toBeHidden();
  const box = (await page.locator("canvas.lanes").first().boundingBox())!;
  const end = Number((await view(page)).split(",")[1]);
  const labels = await labelsOf(page);
  await page.mouse.move(box.x + labels + (box.width - labels) / 4, box.y + 100);
  const told = Number(/^([\d.]+) ms$/.exec(await cursor.innerText())![1]) * 1e6;
  expect(Math.abs(told / (end / 4) - 1)).toBeLessThan(0.01);
  const line = (await cursor.boundingBox())!;
  const other = (await page.locator("canvas.lanes").last().boundingBox())!;
  expect(line.y).toBeLessThanOrEqual(box.y);
  expect(line.y + line.height).toBeGreaterThanOrEqual(other.y + other.height - 1);
  // Zoomed in below a pointer that stands, the line stays and tells the new time with more digits.
  await page.mouse.wheel(0, -120);
  await expect.poll(() => view(page)).not.toBe(`0,${end}`);
  await expect(cursor).toBeVisible();
  await page.mouse.move(box.x + labels / 2, box.y + 100);
  await expect(cursor).toBeHidden();
});

test("one goes back to where the view was", async ({ page, folder }) => {
  const path = join(folder, "back.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  await page.keyboard.press("f");
  await expect.poll(() => view(page)).toMatch(/^0,/);
  const whole = await view(page);
  await page.locator(".wait").nth(1).click();
  await expect.poll(() => view(page)).not.toBe(whole);
  const wait = await view(page);
  await page.keyboard.press("w");
  await expect.poll(() => view(page)).not.toBe(wait);
  await page.keyboard.press("b");
  await expect.poll(() => view(page)).toBe(wait);
  await page.getByRole("button", { name: "Back" }).click();
  await expect.poll(() => view(page)).toBe(whole);
});

test("a task is found by a part of its id, and by its name as rows show it", async ({ page, folder }) => {
  const path = join(folder, "ids.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  const results = page.locator(".found .result");
  for (const word of ["1096", "hackbench:1096"]) {
    await page.locator("#search").fill(word);
    await expect(results).toHaveCount(10);
    for (const text of await results.allInnerTexts()) expect(text).toContain("hackbench:1096");
  }
  // A whole id stands before names and longer ids that have it in them.
  await page.locator("#search").fill("9");
  await expect(results.first()).toContainText("kworker/0:0:9");
});

test("a measured time tells who ran in it", async ({ page, folder }) => {
  const path = join(folder, "holds.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  const box = (await page.locator("canvas.lanes").boundingBox())!;
  const labels = await labelsOf(page);
  const quarter = (box.width - labels) / 4;
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + labels + quarter, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + labels + 2 * quarter, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const told = page.locator(".selection");
  await expect(told).toContainText(/CPUs were busy for [\d.]+ % of it/);
  await expect(told).toContainText(/Tasks waited for [\d.]+ m?s in all/);
  const ran = (await told.locator(".result .long").allInnerTexts()).map((text) => Number(/^([\d.]+) /.exec(text)![1]) * (text.endsWith("us") ? 1e-3 : 1));
  expect(ran.length).toBeGreaterThan(3);
  expect(ran).toEqual([...ran].sort((one, other) => other - one));
  const first = (await told.locator(".result").first().innerText()).split("\n")[0]!;
  await told.locator(".result").first().click();
  await expect(told).toContainText("Selected task");
  await expect(told).toContainText(first);
});

test("CPUs show where the selected task ran", async ({ page, folder }) => {
  const path = join(folder, "ran.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  await page.keyboard.press("f");
  await expect.poll(() => view(page)).toMatch(/^0,/);
  const labels = await labelsOf(page);
  /** How many pixels of ink the first three lines of CPU 0's row have; a selected task and its heading stand above. */
  const ink = (): Promise<number> =>
    page.locator("canvas.lanes").evaluate((canvas, left) => {
      const lanes = canvas as HTMLCanvasElement;
      const [top, height] = [26 + 26 + 22 + 26, 3];
      const context = new OffscreenCanvas(lanes.width, height).getContext("2d", { willReadFrequently: true })!;
      context.drawImage(lanes, -left, -top);
      const { data } = context.getImageData(0, 0, lanes.width - left, height);
      let dark = 0;
      for (let at = 0; at < data.length; at += 4) if (data[at]! < 60 && data[at + 1]! < 60 && data[at + 2]! < 60 && data[at + 3]! > 200) dark += 1;
      return dark;
    }, labels);
  await page.locator("#search").fill("10929");
  await page.locator("#search").press("Enter");
  await expect.poll(ink).toBeGreaterThan(100);
  const much = await ink();
  await page.locator("#search").fill("rcu_preempt");
  await page.locator("#search").press("Enter");
  await expect.poll(ink).toBeLessThan(much / 2);
});

test("a selected task has its longest waits beside it", async ({ page, folder }) => {
  const path = join(folder, "waits.html");
  fairlab("view", HACKBENCH, "-o", path);
  const known = JSON.parse(fairlab("timehist", HACKBENCH, "--tid", "11001", "--format", "json")) as { events: { kind: string; task?: { pid: number }; delay_ns?: number | null }[] };
  const waits = known.events.flatMap((one) => (one.kind === "switch" && one.task?.pid === 11001 && (one.delay_ns ?? 0) > 0 ? [one.delay_ns!] : [])).sort((one, other) => other - one);
  await open(page, path);
  await page.locator("#search").fill("11001");
  await page.locator("#search").press("Enter");
  const told = page.locator(".selection");
  await expect(told).toContainText(/The longest 10 of its \d+ waits:/);
  const first = told.locator(".result").first();
  await expect(first).toContainText(`${(waits[0]! / 1e6).toFixed(1)} ms`);
  await expect(first).toContainText(/^(woken|preempted|yielded|new|left runnable), CPU [01], 135\d\.\d{6}/);
  const [from, to] = await told.locator(".result .long").allInnerTexts().then((all) => [all[0], all[9]]);
  await first.click();
  await expect.poll(async () => { const [begin, end] = (await view(page)).split(",").map(Number); return end! - begin!; }).toBeLessThan(2 * waits[0]!);
  // The list stays, for the next click.
  await expect(told.locator(".result .long").first()).toHaveText(from!);
  await expect(told.locator(".result .long").last()).toHaveText(to!);
});

test("a narrow window has narrow names from the beginning, with their ids", async ({ page, folder }) => {
  const path = join(folder, "narrow.html");
  fairlab("view", HACKBENCH, "-o", path);
  await page.setViewportSize({ width: 420, height: 900 });
  // A canvas tells no text: what is written into it is noted.
  await page.addInitScript(() => {
    const written: string[] = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text: string, x: number, y: number) {
      written.push(text);
      write.call(this, text, x, y);
    };
    Object.assign(globalThis, { written });
  });
  await open(page, path);
  await page.locator("#search").fill("10959");
  await page.locator("#search").press("Enter");
  await expect.poll(() => page.evaluate(() => (globalThis as unknown as { written: string[] }).written)).toContainEqual(expect.stringMatching(/^hac\w*…:10959$/));
  const box = (await page.locator("canvas.lanes").boundingBox())!;
  await page.mouse.move(box.x + 130, box.y + 100);
  await expect(page.locator(".cursor")).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(420);
});
