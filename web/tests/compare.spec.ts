// The page of a comparison, as a reader uses it: on a screen, by keyboard, by ear, on paper.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import AxeBuilder from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";
import { fairlab, open, test as watched } from "./program.js";

const KERNELS = ["v6.12", "v6.12-fee1759e4f04-450e749707bc"] as const;

const EXPERIMENT = `schbench -t 4 --machine qemu8-hres --kernel ${KERNELS[0]} --kernel ${KERNELS[1]} --runs 3 --duration 1s`.split(" ");

interface Answer {
  readonly html: string;
  readonly markdown: string;
  readonly words: readonly string[];
}

/** One comparison with its causes, made once for all tests of a worker. */
const test = watched.extend<object, { answer: Answer }>({
  answer: [
    async ({ folder }, use) => {
      const [html, markdown] = [join(folder, "compare.html"), join(folder, "compare.md")];
      const words = ["compare", ...EXPERIMENT, "--explain", "--export", html, "--export", markdown];
      fairlab(...words);
      await use({ html, markdown, words });
    },
    { scope: "worker" },
  ],
});

/** The cells of the tables in an answer's Markdown, without what keeps them from being markup. */
function markdownRows(text: string): string[][] {
  const lines = text.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("|---"));
  return lines.map((line) => line.slice(2, -2).split(" | ").map((cell) => cell.replaceAll("\\", "")));
}

async function background(page: Page): Promise<string> {
  return page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
}

test("every verdict is there, with the figures that the text output has", async ({ page, answer }) => {
  await open(page, answer.html);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`${KERNELS[1]} against ${KERNELS[0]}`);
  const told = markdownRows(readFileSync(answer.markdown, "utf8").split("## ")[0] ?? "").slice(1);
  const rows = page.locator("#verdicts tbody tr");
  await expect(rows).toHaveCount(told.length);
  expect(told.length).toBeGreaterThan(10);
  for (const [name, baseline, kernel, ratio, interval, verdict] of told) {
    const row = rows.filter({ has: page.locator(".metric").getByText(name ?? "", { exact: true }) });
    const cells = (await row.locator("th, td").allInnerTexts()).map((cell) => cell.trim());
    expect([cells[0]?.split("\n")[0], cells[1], cells[2], cells[3], cells[5]]).toEqual([name, baseline, kernel, ratio, interval]);
    expect(cells[6]).toContain(verdict);
  }
  await expect(rows.locator("svg[role=img]")).toHaveCount(told.length);
});

test("the largest sure change stands on top, and what is undecided last", async ({ page, answer }) => {
  await open(page, answer.html);
  const sure = /better|worse|changed/;
  await expect(page.locator(".findings .finding").first()).toHaveText(/(lower|higher|times) .*than|times/);
  await expect(page.locator(".findings .finding .verdict").first()).toHaveText(sure);
  const verdicts = await page.locator("#verdicts tbody .verdict").allInnerTexts();
  const ranks = verdicts.map((verdict) => (sure.test(verdict) ? 0 : verdict.includes("equivalent") ? 1 : 2));
  expect(ranks).toEqual([...ranks].sort((one, other) => one - other));
  const metrics = page.locator("#verdicts tbody tr", { has: page.getByText("wakeup_latency_ns_p99", { exact: true }) });
  await expect(metrics).toContainText("lower is better");
  // Each tick of the axis has its number, and the margin can be seen.
  const ticks = page.locator('#verdicts thead svg g[data-mark="x-axis tick"] path');
  const numbers = await page.locator("#verdicts thead svg text").allTextContents();
  expect(numbers.filter((number) => Number(number) > 0)).toHaveLength(await ticks.count());
  const band = await page.locator("#verdicts tbody svg g[data-mark=rect] rect").first().boundingBox();
  expect(band?.width).toBeGreaterThanOrEqual(3);
});

test("an interval is drawn where its numbers lie", async ({ page, answer }) => {
  await open(page, answer.html);
  const at = await page.locator("#verdicts tbody tr").evaluateAll((rows) =>
    rows.flatMap((row) => {
      const [ratio] = [Number((row.children[3] as HTMLElement).innerText)];
      const dot = row.querySelector("svg g[data-mark=dot] circle");
      return dot === null || !(ratio > 0) ? [] : [{ ratio, x: Number(dot.getAttribute("cx")) }];
    }),
  );
  expect(at.length).toBeGreaterThan(5);
  const [low, high] = [at.reduce((one, other) => (one.ratio < other.ratio ? one : other)), at.reduce((one, other) => (one.ratio > other.ratio ? one : other))];
  const scale = (high.x - low.x) / Math.log(high.ratio / low.ratio);
  // Three digits of a small ratio leave some percent open.
  for (const { ratio, x } of at) expect(Math.abs(low.x + scale * Math.log(ratio / low.ratio) - x)).toBeLessThan(scale * 0.12 + 1);
});

test("labels of the ratios' axis do not lie over each other", async ({ page, answer }) => {
  await open(page, answer.html);
  const labels = await page.locator("#verdicts thead svg text").evaluateAll((texts) =>
    texts.map((text) => text.getBoundingClientRect()).map(({ left, right }) => ({ left, right })).sort((one, other) => one.left - other.left),
  );
  expect(labels.length).toBeGreaterThan(0);
  labels.slice(1).forEach((label, at) => expect(label.left).toBeGreaterThan(labels[at]?.right ?? Infinity));
});

test("a reader may leave out what does not differ, and choose the metric of single runs", async ({ page, answer }) => {
  await open(page, answer.html);
  const rows = page.locator("#verdicts tbody tr");
  const all = await rows.count();
  await page.getByLabel("Only what differs for sure").check();
  expect(await rows.count()).toBeLessThan(all);
  for (const verdict of await rows.locator(".verdict").allInnerTexts()) expect(verdict).toMatch(/better|worse|changed/);
  await page.getByLabel("Metric", { exact: true }).selectOption("switches_per_s");
  await expect(page.locator("#runs figure svg[role=img]")).toHaveAttribute("aria-label", /^switches_per_s/);
  await expect(page.locator("#runs figure svg g[data-mark=dot] circle")).toHaveCount(6);
});

test("distributions of both sides, as lines and as percentiles", async ({ page, answer }) => {
  await open(page, answer.html);
  const charts = page.locator("#distributions figure svg[role=img]");
  await expect(charts).toHaveCount(2);
  for (const chart of await charts.all()) await expect(chart.locator("g[data-mark=line] path")).toHaveCount(2);
  const row = (name: string) => page.locator("#distributions tbody tr", { has: page.getByRole("rowheader", { name, exact: true }) });
  await expect(row("p99")).toContainText(/\d (us|ms)/);
  await expect(row("max")).toContainText("ms");
});

test("causes, and the decision in which both part, side by side", async ({ page, answer }) => {
  await open(page, answer.html);
  await expect(page.locator("#causes")).toContainText("Tasks wait");
  await expect(page.locator("#causes figure svg[role=img]").first()).toBeVisible();
  await expect(page.locator("#parting .parted")).toHaveCount(2);
  await expect(page.locator("#parting .parted").nth(1)).toContainText("decided_balance");
  await expect(page.locator("#parting")).toContainText("cfs_rq.nr_running");
  await expect(page.locator("#parting pre")).toContainText("fairlab compare --explain --exact");
});

test("how it came about, with a digest of each run", async ({ page, answer }) => {
  await open(page, answer.html);
  const from = page.locator("section#provenance");
  await expect(from).toContainText("fairlab compare schbench -t 4 --machine qemu8-hres");
  await expect(from).toContainText("1-3");
  await from.getByText("6 runs of 2 kernels").click();
  await expect(from.locator("#digests tbody tr")).toHaveCount(6);
  await expect(from.locator("#digests tbody tr").first()).toContainText(/[0-9a-f]{32}/);
});

test("colours change, and stay changed", async ({ page, answer }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await open(page, answer.html);
  const dark = await background(page);
  await page.getByRole("button", { name: "Change to light colours" }).click();
  expect(await background(page)).not.toBe(dark);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  await page.keyboard.press("t");
  expect(await background(page)).toBe(dark);
  await page.emulateMedia({ colorScheme: "light" });
  expect(await background(page)).toBe(dark);
});

test("all of it can be reached by keyboard", async ({ page, answer }) => {
  await open(page, answer.html);
  await page.keyboard.press("Tab");
  await expect(page.locator(".skip")).toBeFocused();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
  await page.keyboard.press("j");
  await expect(page.locator("h2:focus")).toHaveText("Verdicts");
  // Behind the section's control comes its table, which is one stop.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await expect(page.locator("#verdicts thead th").first()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(page.locator("#verdicts tbody tr").first().locator("td").first()).toBeFocused();
  await page.keyboard.press("End");
  await expect(page.locator("#verdicts tbody tr").first().locator("td").last()).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.locator("#verdicts")).not.toContainText("no such");
  expect(await page.evaluate(() => document.activeElement?.closest("#verdicts"))).toBeNull();
});

test("a screen reader has a name for each image, and nothing that it cannot tell", async ({ page, answer }) => {
  // Looking at every element twice takes most of a minute on a machine that tests kernels beside it.
  test.slow();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await open(page, answer.html);
    const names = await page.locator("svg[role=img]").evaluateAll((charts) => charts.map((chart) => chart.getAttribute("aria-label") ?? ""));
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => name.length < 8)).toEqual([]);
    const found = await new AxeBuilder({ page }).analyze();
    expect(found.violations.map((one) => `${one.id}: ${one.nodes[0]?.html}`)).toEqual([]);
  }
});

test("it prints", async ({ page, answer }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await open(page, answer.html);
  const pdf = await page.pdf({ format: "A4" });
  expect(pdf.subarray(0, 5).toString()).toBe("%PDF-");
  expect(pdf.length).toBeGreaterThan(30_000);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await background(page)).toBe("rgb(255, 255, 255)");
  await expect(page.locator("#theme")).toBeHidden();
  await expect(page.locator("#verdicts tbody tr").first()).toBeVisible();
});

test("a narrow screen needs no sideways scrolling", async ({ page, answer }) => {
  await page.setViewportSize({ width: 400, height: 800 });
  await open(page, answer.html);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
  await expect(page.locator(".findings .finding .verdict").first()).toBeInViewport();
  // Each number has its label, the interval among them.
  const labels = await page.locator("#verdicts tbody tr").first().locator(".cell-label:visible").allInnerTexts();
  expect(labels).toEqual([...KERNELS, "ratio", "95 % interval"]);
});

test("one file, small, and equal for equal inputs", async ({ answer }) => {
  const first = readFileSync(answer.html);
  expect(statSync(answer.html).size).toBeLessThan(1 << 20);
  fairlab(...answer.words);
  expect(readFileSync(answer.html).equals(first)).toBe(true);
});
