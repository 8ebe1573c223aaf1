// The page of a watch, as a reader uses it: on a screen, by keyboard, by ear, on paper, on a phone; and how soon a large one is there.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import AxeBuilder from "@axe-core/playwright";
import { expect, type Locator, type Page } from "@playwright/test";
import type { Finding, WatchAnswer } from "../src/watch/types.js";
import { fairlab, open, test as watched } from "./program.js";

const CASES: Readonly<Record<string, string>> = {
  quota: `title = "Jobs in a group with a quota"
source = "usual"
machine = "vm4"
workload = "cgroup 'cpu.max=30000 50000' jobs sleep -n 12"
duration_ms = 200
warmup_ms = 0
metrics = ["p99"]
`,
  schbench: `title = "schbench on a laptop"
source = "usual"
machine = "laptop8"
workload = "schbench -m 1 -t 10 -c 2000 -s 500"
duration_ms = 200
warmup_ms = 0
metrics = ["p99", "switches_per_work"]
`,
};

interface Pages {
  /** What the program wrote. */
  readonly real: string;
  readonly answer: WatchAnswer;
  /** The same page of another answer. */
  readonly of: (name: string, answer: unknown) => string;
}

/** One watch over a short range, made once for all tests of a worker. */
const test = watched.extend<object, { pages: Pages }>({
  pages: [
    async ({ folder }, use) => {
      const [catalogue, out] = [join(folder, "catalogue"), join(folder, "out")];
      mkdirSync(catalogue);
      for (const [name, text] of Object.entries(CASES)) writeFileSync(join(catalogue, `${name}.toml`), text);
      writeFileSync(join(catalogue, "no-case.toml"), "sauce = 1\n");
      fairlab("watch", "--quick", "--over", "v6.5..v6.7", catalogue, "--out", out);
      const real = join(out, "index.html");
      const of = (name: string, answer: unknown): string => {
        const path = join(folder, `${name}.html`);
        const text = JSON.stringify(answer).replaceAll("<", "\\u003c");
        writeFileSync(path, readFileSync(real, "utf8").replace(/id="data">[^]*?<\/script>/, () => `id="data">${text}</script>`));
        return path;
      };
      await use({ real, answer: JSON.parse(readFileSync(join(out, "watch.json"), "utf8")) as WatchAnswer, of });
    },
    { scope: "worker" },
  ],
});

/** Numbers that follow from a seed alone. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
}

const SUBJECTS = ["sched/fair: Add lag based placement", "sched/topology: Align group flags when removing degenerate domain", "sched/core: Fix RQCF_ACT_SKIP leak"];
const METRICS = ["wakeup_latency_ns_p99", "switches_per_work", "throughput"];
const MEANS = [2e6, 1.9, 950];

/** A made-up answer: a commit makes a case differ now and then, and a third of these differences is a change. */
function made(kernelCount: number, caseCount: number): WatchAnswer {
  const next = numbers(7);
  const release = (at: number): string => `v${5 + Math.floor((at * 20) / kernelCount / 10)}.${Math.floor((at * 20) / kernelCount) % 10}`;
  const commit = (at: number): string => (0xabc_def_012_345 + at * 7_919).toString(16).slice(-12);
  const kernels = Array.from({ length: kernelCount }, (_, at) =>
    at === 0 ? { name: "v5.0", step: null } : { name: commit(at), step: { commit: commit(at), subject: SUBJECTS[at % SUBJECTS.length]!, release: release(at), date: "2024-08-17" } },
  );
  const findings: Finding[] = [];
  const cases = Array.from({ length: caseCount }, (_, place) => {
    const metrics = METRICS.slice(0, 1 + (place % 3));
    let means = MEANS.slice(0, metrics.length);
    const classes: { kernel: string; runs: number; metrics: { mean: number; half: number }[] }[] = [];
    const line = kernels.map(({ name, step }, at) => {
      if (at > 0 && next() > 0.06) return classes.length - 1;
      const which = Math.floor(next() * metrics.length);
      const ratio = Math.exp((next() - 0.5) * (next() < 0.2 ? 6 : 0.4));
      if (step !== null && next() < 0.35) {
        const found = { runs: 9, means: [means[which]!, means[which]! * ratio] as const, ratio, low: ratio * 0.98, high: ratio * 1.02, p: 1e-5, q: 1e-3 };
        const verdict = which === 1 ? "changed" : ratio > 1 === (which === 0) ? "worse" : "better";
        const before = kernels[at - 1]!.name;
        findings.push({ case: `case-${place}`, metric: metrics[which]!, positions: [at - 1, at], steps: [step], kernels: [before, name], verdict, found, fresh: found, confirmed: next() < 0.9, taken_back_by: null, parting: null, command: `fairlab compare schbench --kernel ${before} --kernel ${name}` });
        means = means.map((mean, metric) => (metric === which ? mean * ratio : mean));
      }
      classes.push({ kernel: name, runs: 9, metrics: means.map((mean) => ({ mean, half: mean * 0.02 })) });
      return classes.length - 1;
    });
    return { name: `case-${place}`, title: `Case number ${place}`, source: "made up", machine: "vm4", workload: "schbench", margin: 0.01, metrics, line, classes };
  });
  findings.sort((one, other) => one.positions[1] - other.positions[1]);
  return { schema: "fairlab/watch/1", range: "v5.0..v6.9", kernels, runs: 1, questions: 1, false_discovery_rate: 0.05, cases, findings, skipped: [], partial: false };
}

/** A small answer with all that a page tells apart: worse, better, changed, from nothing, taken back, not confirmed, left out. */
function told(answer: WatchAnswer): WatchAnswer {
  const [finding] = made(475, 40).findings;
  const { cases, kernels } = answer;
  const change = (at: number, name: string, metric: string, verdict: string, means: readonly [number, number], more: Partial<Finding> = {}): Finding => {
    const ratio = means[0] === 0 ? null : means[1] / means[0];
    const fresh = { runs: 9, means, ratio, low: ratio === null ? null : ratio * 0.98, high: ratio === null ? null : ratio * 1.02, p: 1e-5, q: 1e-3 };
    return { ...finding!, case: name, metric, positions: [at - 1, at], steps: [kernels[at]!.step!], kernels: [kernels[at - 1]!.name!, kernels[at]!.name!], verdict, found: fresh, fresh, confirmed: true, ...more };
  };
  const parting = {
    seed: 1,
    time_ns: 159_400,
    cpu: 1,
    baseline: "sched_wakeup: comm=schbench pid=1001",
    kernel: "sched_migrate_task: comm=schbench pid=1001",
    baseline_decisions: ["decided_cpu: pid=1001 cpu=2 reason=NoIdle"],
    decisions: ["decided_preempt: cpu=1 preempt=1 reason=WouldBePicked"],
    state: [{ member: "CPU 1 rq.nr_running", baseline: "3", kernel: "4" }],
    command: "fairlab compare --explain --exact",
  };
  const findings = [
    change(6, "schbench", "wakeup_latency_ns_p99", "worse", [155e3, 12.5e6], { taken_back_by: 3, parting }),
    change(6, "schbench", "switches_per_work", "changed", [1.9, 1.8]),
    change(7, "quota", "wakeup_latency_ns_p99", "worse", [0, 2e6]),
    change(12, "schbench", "wakeup_latency_ns_p99", "better", [12.5e6, 156e3], { positions: [10, 12], steps: [kernels[11]!.step!, kernels[12]!.step!] }),
    change(14, "quota", "wakeup_latency_ns_p99", "worse", [2e6, 2.1e6], { confirmed: false }),
  ];
  return { ...answer, cases, findings, skipped: [{ case: "no-case.toml", why: "line 1: unknown field" }] };
}

async function chart(page: Page): Promise<string> {
  return (await page.locator("#case figure svg[role=img]").getAttribute("aria-label")) ?? "";
}

async function columnOf(button: Locator): Promise<string | null> {
  return button.getAttribute("data-column");
}

test("what the program found stands on the page", async ({ page, pages }) => {
  const { answer } = pages;
  await open(page, pages.real);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("What changed in v6.5..v6.7");
  await expect(page).toHaveTitle("What changed in v6.5..v6.7");
  const confirmed = answer.findings.filter((finding) => finding.confirmed);
  await expect(page.locator(".summary")).toContainText(`${answer.kernels.length} kernels, 2 cases: ${confirmed.length} confirmed change`);
  const cells = new Set(confirmed.map((finding) => `${finding.positions[1]} ${finding.case}`));
  await expect(page.locator(".matrix .change")).toHaveCount(cells.size);
  await expect(page.locator("#findings tbody tr")).toHaveCount(confirmed.length);
  await expect(page.locator("#skipped")).toContainText("no-case.toml");
  await expect(page.locator("#provenance")).toContainText("fairlab watch --quick --over v6.5..v6.7");
  await expect(page.locator("main")).not.toContainText("undefined");
});

test("a case's line has a step for each class of its kernels, whose means are those of the answer", async ({ page, pages }) => {
  await open(page, pages.real);
  for (const of of pages.answer.cases) {
    await page.locator(".matrix").getByRole("button", { name: of.name, exact: true }).click();
    await expect(page.locator("#case h2")).toHaveText(of.name);
    for (const metric of of.metrics) {
      await page.getByLabel("Metric", { exact: true }).selectOption(metric);
      expect(await chart(page)).toContain(`${of.name}: ${metric} over ${pages.answer.kernels.length} kernels`);
      const path = (await page.locator("#case svg g[data-mark=line] path").getAttribute("d")) ?? "";
      const stretches = of.line.filter((number, at) => number !== null && (at === 0 || number !== of.line[at - 1])).length;
      expect(path.split(/[ML]/).length - 1).toBe(2 * stretches);
    }
    await page.keyboard.press("Escape");
    await expect(page.locator("#case")).toBeHidden();
  }
});

test("a cell tells its change in words, with the largest of several first, and opens it", async ({ page, pages }) => {
  await open(page, pages.of("told", told(pages.answer)));
  await expect(page.locator(".summary")).toContainText("4 confirmed changes");
  for (const words of ["2 worse", "1 better", "1 changed"]) await expect(page.locator(".summary")).toContainText(words);
  const cell = page.locator(".matrix .change").first();
  const words = "schbench p99 wakeup latency 155 us → 12.5 ms, 80.6 times; schbench switches_per_work 1.90 each → 1.80 each, -5.3 %";
  await expect(cell).toHaveAttribute("title", words);
  await expect(cell).toHaveAccessibleName(`${words}, worse`);
  await expect(page.locator(".matrix .change").nth(1)).toHaveAttribute("title", /0 ns → 2\.00 ms, no ratio to 0/);
  await cell.click();
  const panel = page.locator("#case");
  const [first, back] = [told(pages.answer).findings[0]!, told(pages.answer).findings[3]!];
  await expect(panel.locator("h2")).toBeFocused();
  await expect(panel.locator(".finding")).toContainText(
    `p99 wakeup latency 155 us → 12.5 ms at ${first.steps[0]!.commit}, 9 fresh runs, confirmed; taken back at ${back.steps[0]!.commit} to ${back.steps[1]!.commit}, 2 commits. ▼ worse`,
  );
  await expect(panel).toContainText(first.steps[0]!.subject);
  await expect(panel).toContainText("v6.6, 2023-07-19");
  await expect(panel.locator(".parted")).toHaveCount(2);
  await expect(panel).toContainText("reason=NoIdle");
  await expect(panel.locator(".repeat")).toHaveText(first.command);
  const mail = await panel.getByLabel("As a mail").inputValue();
  expect(mail).toContain(`Subject: [REGRESSION] ${first.steps[0]!.subject}: p99 wakeup latency 80.6 times`);
  expect(mail).toContain(first.command);
  expect(mail).toMatch(/model of the scheduler, not of a machine\.$/);
  await panel.getByRole("button", { name: "Copy" }).click();
  await expect(panel.locator(".copyable button")).toHaveText(/^(Copied|Marked: press Ctrl-C)$/);
  expect(await panel.getByLabel("As a mail").evaluate((box: HTMLTextAreaElement) => box.selectionEnd - box.selectionStart)).toBe(mail.length);
  await panel.getByLabel("Metric", { exact: true }).focus();
  await panel.getByLabel("Metric", { exact: true }).selectOption("switches_per_work");
  await expect(panel.getByLabel("Metric", { exact: true })).toBeFocused();
  await expect(panel.locator(".finding")).toContainText("1.90 each → 1.80 each");
  expect(await panel.getByLabel("As a mail").inputValue()).not.toContain("REGRESSION");
  await panel.locator(".goto").last().click();
  await expect(panel.locator(".finding")).toContainText(`takes back ${first.steps[0]!.commit}`);
});

test("a stretch without changes opens and closes, and an empty cell opens its case", async ({ page, pages }) => {
  await open(page, pages.of("told", told(pages.answer)));
  const rows = page.locator(".matrix tbody tr");
  const before = await rows.count();
  const fold = page.locator(".fold").first();
  await expect(fold).toHaveText("5 commits, no change found");
  await fold.click();
  await expect(rows).toHaveCount(before + 5);
  await expect(rows.nth(1)).toContainText(pages.answer.kernels[1]!.step!.subject);
  const gap = (await rows.nth(1).locator(".gap").boundingBox())!;
  await page.mouse.click(gap.x + gap.width * 0.75, gap.y + gap.height / 2);
  await expect(page.locator("#case h2")).toHaveText("schbench");
  await expect(page.locator("#case .finding")).toContainText(`nothing was found at ${pages.answer.kernels[1]!.step!.commit}`);
  await fold.click();
  await expect(rows).toHaveCount(before);
});

test("findings are put in order, and a reader may ask for some alone", async ({ page, pages }) => {
  const answer = made(120, 20);
  const confirmed = answer.findings.filter((finding) => finding.confirmed);
  await open(page, pages.of("medium", answer));
  const rows = page.locator("#findings tbody tr");
  const more = page.locator("#findings").getByRole("button", { name: `Show all ${confirmed.length} rows` });
  if (await more.isVisible()) await more.click();
  await expect(rows).toHaveCount(confirmed.length);
  const ratio = page.locator("#findings").getByRole("button", { name: /^Ratio/ });
  await ratio.click();
  await ratio.click();
  const sizes = (await rows.locator("td:nth-child(7)").allInnerTexts()).map((text) => Math.abs(Math.log(parseFloat(text))));
  sizes.slice(1).forEach((size, at) => expect(size).toBeLessThanOrEqual(sizes[at]! + 0.01));
  await page.getByLabel("Verdict", { exact: true }).selectOption("worse");
  await expect(rows).toHaveCount(confirmed.filter((finding) => finding.verdict === "worse").length);
  await expect(page.locator("#findings th[aria-sort=descending]")).toContainText("Ratio");
  await page.getByLabel("Verdict", { exact: true }).selectOption("");
  await page.getByLabel("Case", { exact: true }).selectOption(confirmed[0]!.case);
  await expect(rows).toHaveCount(confirmed.filter((finding) => finding.case === confirmed[0]!.case).length);
  await page.getByLabel("Case", { exact: true }).selectOption("");
  await page.getByLabel(/^Commit, subject/).fill("no such commit");
  await expect(page.locator("#findings")).toContainText("None is like that.");
  // The name of a commit in the matrix asks for its findings.
  const { commit } = confirmed[0]!.steps[0]!;
  await page.locator(".matrix").getByRole("button", { name: commit }).click();
  await expect(rows).toHaveCount(confirmed.filter((finding) => finding.steps[0]!.commit === commit).length);
  await rows.first().locator(".open").click();
  await expect(page.locator("#case h2")).toHaveText(confirmed[0]!.case);
});

test("what was not confirmed stands apart, and what is partial says so", async ({ page, pages }) => {
  await open(page, pages.of("told", told(pages.answer)));
  await expect(page.locator("#unconfirmed tbody tr")).toHaveCount(1);
  await expect(page.locator("#skipped li")).toHaveText("no-case.toml: line 1: unknown field");
  await page.locator("#unconfirmed .open").click();
  await expect(page.locator("#case .finding")).toContainText("9 fresh runs did not confirm it");
  const findings = told(pages.answer).findings.map((finding) => ({ ...finding, fresh: null, confirmed: false, taken_back_by: null }));
  await open(page, pages.of("partial", { ...pages.answer, findings, partial: true }));
  await expect(page.locator(".summary")).toContainText("0 confirmed changes. Partial");
  await expect(page.locator(".matrix .change")).toHaveCount(0);
  await expect(page.locator(".fold")).toHaveText(`${pages.answer.kernels.length - 1} commits up to v6.7, no change found`);
  await page.locator("#unconfirmed .open").first().click();
  await expect(page.locator("#case .finding")).toContainText("not looked at again before the stop");
});

test("all of it can be reached by keyboard", async ({ page, pages }) => {
  await open(page, pages.of("told", told(pages.answer)));
  const focused = page.locator(":focus");
  await page.keyboard.press("Tab");
  await expect(page.locator(".skip")).toBeFocused();
  for (let turn = 0; turn < 3; turn += 1) await page.keyboard.press("Tab");
  await expect(page.locator(".matrix .change").first()).toBeFocused();
  const column = await columnOf(focused);
  await page.keyboard.press("ArrowDown");
  await expect(focused).toHaveAttribute("title", /12\.5 ms → 156 us/);
  expect(await columnOf(focused)).toBe(column);
  await page.keyboard.press("Home");
  await expect(focused).toContainText("sched/");
  await page.keyboard.press("ArrowUp");
  await expect(focused).toHaveClass("fold");
  await page.keyboard.press("Enter");
  await expect(focused).toHaveAttribute("aria-expanded", "true");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("PageDown");
  await page.keyboard.press("PageUp");
  await page.keyboard.press("PageUp");
  await page.keyboard.press("ArrowDown");
  await expect(focused).toHaveClass("commit-name");
  await page.locator(".matrix .change").first().focus();
  await page.keyboard.press("Enter");
  await expect(page.locator("#case h2")).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.locator(".matrix .change").first()).toBeFocused();
  // Behind the matrix come the filters, then the list, whose rows open by Enter.
  for (let turn = 0; turn < 4; turn += 1) await page.keyboard.press("Tab");
  await expect(page.locator("#findings thead th").first()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expect(page.locator("#case h2")).toBeFocused();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
});

test("a screen reader has a name for all, in light and dark colours", async ({ page, pages }) => {
  test.setTimeout(180_000);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const path of [pages.real, pages.of("told", told(pages.answer))]) {
      await open(page, path);
      if ((await page.locator(".matrix .change").count()) > 0) await page.locator(".matrix .change").first().click();
      const found = await new AxeBuilder({ page }).analyze();
      expect(found.violations.map((one) => `${one.id}: ${one.nodes[0]?.html}`)).toEqual([]);
    }
  }
});

test("it prints the matrix and the whole list", async ({ page, pages }) => {
  const answer = made(475, 40);
  await page.emulateMedia({ colorScheme: "dark" });
  await open(page, pages.of("large", answer));
  const pdf = await page.pdf({ preferCSSPageSize: true });
  expect(pdf.subarray(0, 5).toString()).toBe("%PDF-");
  await expect(page.locator("#findings tbody tr")).toHaveCount(answer.findings.filter((finding) => finding.confirmed).length);
  // A4 across, without its margins.
  await page.setViewportSize({ width: Math.floor(((297 - 30) / 25.4) * 96), height: 700 });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toBe("rgb(255, 255, 255)");
  const [matrix, width] = await page.evaluate(() => [document.querySelector(".matrix")!.getBoundingClientRect().right, innerWidth] as const);
  expect(matrix).toBeLessThanOrEqual(width);
  await expect(page.locator("#theme")).toBeHidden();
});

test("a phone scrolls the matrix within its box, and has the panel below it", async ({ page, pages }) => {
  await page.setViewportSize({ width: 420, height: 800 });
  for (const path of [pages.of("told", told(pages.answer)), pages.of("large", made(475, 40))]) {
    await open(page, path);
    const cell = page.locator(".matrix .change").first();
    await cell.click();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(420);
    const [box, panel] = await Promise.all([page.locator(".matrix-box").boundingBox(), page.locator("#case").boundingBox()]);
    expect(panel!.y).toBeGreaterThanOrEqual(box!.y + box!.height);
    // Nothing sticks out of the page, but for what scrolls by itself.
    const out = await page.evaluate(() =>
      [...document.querySelectorAll("main *")].filter((one) => one.closest(".matrix-box, .scroll, svg") === null && one.getBoundingClientRect().right > 421).map((one) => one.outerHTML.slice(0, 80)),
    );
    expect(out).toEqual([]);
  }
});

test("names of others are text", async ({ page, pages }) => {
  const bad = "</script><img src=x onerror=alert(1)>\u202ecba";
  const answer = told(pages.answer);
  const hostile = JSON.parse(JSON.stringify(answer).replaceAll('"schbench"', JSON.stringify(bad)).replaceAll('"vm4"', JSON.stringify(bad))) as WatchAnswer;
  const kernels = hostile.kernels.map((kernel) => (kernel.step === null ? kernel : { ...kernel, step: { ...kernel.step, subject: bad, commit: bad } }));
  const findings = hostile.findings.map((finding) => ({ ...finding, steps: finding.steps.map((step) => ({ ...step, subject: bad, commit: bad, date: bad })), command: bad }));
  await open(page, pages.of("hostile", { ...hostile, kernels, findings, skipped: [{ case: bad, why: bad }] }));
  await page.locator(".matrix .change").first().click();
  await expect(page.locator("#case h2")).toContainText("<img src=x onerror=alert(1)>\\u{202e}cba");
  expect(await page.locator("img, main script, iframe").count()).toBe(0);
  expect(await page.evaluate(() => document.body.innerText.includes("\u202e"))).toBe(false);
});

test("475 kernels and 40 cases are there soon", async ({ page, pages }) => {
  const answer = made(475, 40);
  const path = pages.of("large", answer);
  await open(page, path);
  const cells = await page.locator("main :is(td, th)").count();
  expect(cells).toBeLessThan(6_000);
  await expect.poll(() => page.evaluate(() => performance.getEntriesByName("first-contentful-paint").length)).toBe(1);
  const [drawn, paint] = await page.evaluate(() => ["drawn", "first-contentful-paint"].map((name) => performance.getEntriesByName(name)[0]!.startTime));
  console.log(`475 kernels, 40 cases, ${answer.findings.length} findings, ${cells} cells: drawn after ${drawn!.toFixed(0)} ms, first paint after ${paint!.toFixed(0)} ms`);
});
