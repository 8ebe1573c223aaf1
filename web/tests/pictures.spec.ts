// Pages that draw their answers: searches, patches, sweeps, traces. Each says the answer in words, then draws what the numbers say.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { fairlab, open, reads, repository, test } from "./program.js";

/** An answer's page and its JSON, written by one call. */
function exported(folder: string, name: string, words: readonly string[]): { readonly page: string; readonly answer: any } {
  const [page, json] = [join(folder, `${name}.html`), join(folder, `${name}.json`)];
  fairlab(...words, "--export", page, "--export", json);
  return { page, answer: JSON.parse(readFileSync(json, "utf8")) };
}

/** Where the marks of a chart stand, by their kind. */
async function points(page: Page, chart: string): Promise<{ readonly x: number; readonly y: number }[]> {
  return page.locator(`${chart} svg g[data-mark=dot] > *`).evaluateAll((marks) =>
    marks.map((mark) => {
      const { left, top, width, height } = mark.getBoundingClientRect();
      return { x: left + width / 2, y: top + height / 2 };
    }),
  );
}

/** Nothing stands in the page that no reader wants. */
async function isClean(page: Page): Promise<void> {
  for (const text of ["undefined", "[object", "NaN"]) await expect(page.locator("main")).not.toContainText(text);
}

test("a bisection names the commit, and draws its steps on the line of commits", async ({ page, folder }) => {
  const words = "schbench -t 4 --machine qemu8-hres --duration 1s --good v6.5 --bad v6.6 --runs 20".split(" ");
  const { page: path, answer } = exported(folder, "bisect", ["bisect", ...words]);
  await open(page, path);
  const [crossing] = answer.crossings;
  const findings = page.locator(".findings");
  await expect(findings).toContainText(crossing.commit);
  await expect(findings).toContainText(crossing.subject);
  await expect(findings).toContainText(/instead of \d/);
  const placed = answer.steps.filter((step: any) => step.position !== null);
  expect(placed.length).toBeGreaterThan(3);
  const chart = "#search figure";
  await expect(page.locator(`${chart} svg[role=img]`)).toHaveAttribute("aria-label", /wakeup_latency_ns_p99 of each kernel that was judged/);
  const drawn = await points(page, chart);
  expect(drawn).toHaveLength(placed.length);
  // From left to right in the order of commits, from low to high as the means are.
  const order = [...placed].sort((one: any, other: any) => one.position - other.position);
  drawn.slice(1).forEach((point, at) => expect(point.x).toBeGreaterThanOrEqual(drawn[at]?.x ?? Infinity));
  const least = order.reduce((best: number, step: any, at: number) => (step.mean < order[best].mean ? at : best), 0);
  const most = order.reduce((best: number, step: any, at: number) => (step.mean > order[best].mean ? at : best), 0);
  expect(drawn[least]?.y).toBeGreaterThan(drawn[most]?.y ?? Infinity);
  const rows = page.locator("#search tbody tr");
  await expect(rows).toHaveCount(answer.steps.length);
  await expect(rows.first()).toContainText("v6.5");
  await expect(rows.last()).toContainText("v6.6");
  await expect(page.locator("#again pre").first()).toContainText("fairlab compare schbench");
  await isClean(page);
  await reads(page);
});

/** A patch's answer as one was: its page is drawn by the data alone, and a tree takes minutes to build. */
test("a patch: partial first, the largest change in words, all cases as one forest", async ({ page, folder, watch }) => {
  const path = join(folder, "try.html");
  fairlab("latency", "testdata/perf-hackbench.data", "--export", path);
  const answer = readFileSync(join(repository, "web/tests/try.json"), "utf8").replaceAll("<", "\\u003c");
  const written = readFileSync(path, "utf8").replace(/id="data">[^]*?<\/script>/, () => `id="data">${answer}</script>`);
  writeFileSync(path, written.replace(/<title>[^<]*</, "<title>What wakeup.patch does to debian:6.12<"));
  await open(page, path);
  const findings = page.locator(".findings");
  await expect(findings.locator("p").first()).toContainText("Partial: stopped after 3 of 4 cases");
  await expect(findings).toContainText("Largest change for sure: W1 on vm4: p99 wakeup latency 3.20 times");
  await expect(findings).toContainText("6.40 ms instead of 2.00 ms");
  await expect(page.locator("#cases table")).toHaveCount(1);
  await expect(page.locator("#cases thead th")).toHaveCount(3);
  await expect(page.locator("#cases tbody svg[role=img]")).toHaveCount(5);
  await expect(page.locator("#cases")).toContainText("Equal, event by event: vm4.");
  // Numbers stand at the axis, and which way is better beside the metric.
  expect(await page.locator("#cases thead svg text").count()).toBeGreaterThan(3);
  await expect(page.locator("#cases tbody tr").first()).toContainText("lower is better");
  // What is undecided comes last; what both hold alike is left out.
  await expect(page.locator("#cases tbody tr").last()).toContainText("undecided");
  await expect(page.locator("#parting tbody tr")).toHaveCount(1);
  await expect(page.locator("#parting")).toContainText("Of 3 values that were held just before");
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(2600);
  await isClean(page);
  await reads(page);
  expect(watch.trouble).toEqual([]);
});

const SWEEP = `
kernels = ["v6.5", "v6.12,base_slice_ns={slice}"]
machines = ["vm4"]
workloads = ["schbench -m 1 -t {threads} -c 2000 -s 1000 -r 0"]
seeds = 2
duration_ms = 200
options = { threads = [4, 16, 8], slice = [3000000] }
`;

test("a sweep is a line along its parameter, numbers in their order", async ({ page, folder }) => {
  const [file, out] = [join(folder, "line.toml"), join(folder, "line")];
  writeFileSync(file, SWEEP);
  const { page: path } = exported(folder, "sweep", ["sweep", file, "--out", out]);
  await open(page, path);
  await expect(page.locator(".kicker")).toHaveText("Fairlab sweep");
  await expect(page.locator("#values")).toContainText("p99 wakeup latency is least with");
  await expect(page.locator("#values figure svg[role=img]")).toHaveAttribute("aria-label", /along threads, for v6\.5; v6\.12,base_slice_ns=3000000/);
  await expect(page.locator("#values figure g[data-mark=line] path")).toHaveCount(2);
  expect(await points(page, "#values figure")).toHaveLength(6);
  const head = await page.locator("#values thead th").allInnerTexts();
  const at = head.findIndex((text) => text.startsWith("threads"));
  const threads = await page.locator(`#values tbody tr > :nth-child(${at + 1})`).allInnerTexts();
  expect(threads).toEqual(["4", "8", "16", "4", "8", "16"]);
  const mean = await page.locator(`#values tbody tr > :nth-child(${head.indexOf("mean") + 1})`).allInnerTexts();
  for (const value of mean) expect(value).toMatch(/^\d\S* (us|ms)$/);
  await isClean(page);
  await reads(page);
});

test("a sweep of two parameters is a grid; a query draws any metric of its columns", async ({ page, folder }) => {
  const [file, out] = [join(folder, "grid.toml"), join(folder, "grid")];
  writeFileSync(file, SWEEP.replace("slice = [3000000]", "slice = [1000000, 6000000]"));
  const { page: path } = exported(folder, "grid", ["sweep", file, "--out", out]);
  await open(page, path);
  await expect(page.locator("#values h3")).toHaveText(["v6.5", "v6.12,base_slice_ns={slice}"]);
  await expect(page.locator("#values figure g[data-mark=cell] rect")).toHaveCount(12);
  const query = exported(folder, "query", ["query", out, "--by", "kernel,threads", "--metric", "p99", "--metric", "throughput"]);
  await open(page, query.page);
  await expect(page.locator(".kicker")).toHaveText("Fairlab query");
  await page.getByLabel("Metric", { exact: true }).selectOption("throughput");
  await expect(page.locator("#values figure svg[role=img]")).toHaveAttribute("aria-label", /^throughput along threads/);
  await isClean(page);
});

test("each explained wait has the stretch of the timeline that its story tells", async ({ page, folder }) => {
  const { page: path, answer } = exported(folder, "explain", ["explain", "testdata/ftrace-6.6-vhost-starved.txt.zst", "--worst", "3"]);
  await open(page, path);
  await expect(page.locator(".findings")).toContainText("kworker/2:1:80 waited 157 ms for CPU 2, behind vhost-2:143");
  const excerpts = page.locator("#excerpts figure");
  await expect(excerpts).toHaveCount(answer.stories.length);
  for (const [at, story] of answer.stories.entries()) {
    await expect(excerpts.nth(at).locator("svg[role=img]")).toHaveAttribute("aria-label", new RegExp(`${story.task.comm}:${story.task.pid} waited`));
    expect(await excerpts.nth(at).locator("g[data-mark=bar] rect").count()).toBeGreaterThan(1);
  }
  await expect(page.locator("#excerpts pre").first()).toContainText("What ended it: migration/2:22 took vhost-2:143 away");
  await isClean(page);
  await reads(page);
});

test("who made tasks wait, as bars by their share", async ({ page, folder }) => {
  const { page: path, answer } = exported(folder, "blame", ["blame", "testdata/perf-hackbench.data"]);
  await open(page, path);
  await expect(page.locator(".findings")).toContainText("98 % behind its own 'hackbench'");
  const { culprits } = answer.sides[0].waiting;
  const bars = page.locator("#culprits tbody tr td:nth-child(2) .share-bar");
  const widths = await bars.evaluateAll((all) => all.map((bar) => Number((bar as HTMLElement).style.getPropertyValue("--share").replace("%", ""))));
  expect(widths).toHaveLength(Math.min(10, culprits.length));
  widths.forEach((width, at) => expect(Math.abs(width - culprits[at].share * 100)).toBeLessThan(0.1));
  await expect(page.locator("#culprits tbody tr").first()).toContainText("hackbench (its own name)");
  await expect(page.locator("#waiters")).toContainText("Who woke whom");
  await isClean(page);
  await reads(page);
  const two = exported(folder, "blames", ["blame", "testdata/perf-hackbench.data", "testdata/perf-pipe.data"]);
  await open(page, two.page);
  await expect(page.locator("#changes")).toContainText("Waiting in each second that the tasks ran");
  for (const table of await page.locator("#changes table, #culprits table").all()) {
    const begins = await table.locator("tbody .share-bar").evaluateAll((all) => all.map((bar) => Math.round(bar.getBoundingClientRect().left)));
    const columns = await table.locator("tbody tr").first().locator(".share-bar").count();
    expect(new Set(begins).size).toBe(columns);
  }
  await isClean(page);
});

for (const command of ["summary", "latency"]) {
  test(`the page of ${command}: how waits are distributed, and who ran instead`, async ({ page, folder }) => {
    const { page: path } = exported(folder, `waits-${command}`, [command, "testdata/perf-hackbench.data"]);
    await open(page, path);
    await expect(page.locator(".findings")).toContainText("98 % behind its own 'hackbench'");
    await expect(page.locator("#culprits tbody tr").first()).toContainText("hackbench (its own name)");
    await expect(page.locator("#distributions h3")).toHaveText(["Waits", "Wakeup latency by name"]);
    await expect(page.locator("#distributions figure svg[role=img]")).toHaveCount(4);
    await expect(page.locator(command === "summary" ? "#names" : "#delays")).toContainText("hackbench");
    // The text and the fields wait to be opened.
    await expect(page.locator("#full pre")).toHaveCount(0);
    await page.getByText("As the program prints it").click();
    await expect(page.locator("#full pre")).toContainText("hackbench");
    await isClean(page);
    await reads(page);
  });
}
