// What readers of answers' pages stumbled over who had not seen them before: headlines, units, words for what is alike and is not.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "@playwright/test";
import { difference } from "../src/base/format.js";
import { fairlab, open, reads, test } from "./program.js";

const HACKBENCH = "testdata/perf-hackbench.data";

test("a difference of durations has its sign, and a unit that stands beside what it is a difference of", () => {
  for (const [nanoseconds, beside, told] of [
    [1_500, 4_000, "+1.50 us"],
    [-1_500, 4_000, "-1.50 us"],
    [0, 4_000, "0 us"],
    [12_000_000, 12_000_000, "+12.0 ms"],
    // Less than a thousandth of what stands beside it is told in that one's unit, if three digits show it.
    [-900_000, 7_220_000_000, "-0.001 s"],
    [2_000_000, 7_220_000_000, "+0.002 s"],
    [100, 7_220_000_000, "0 s"],
    [-999, 1_000_000, "-0.001 ms"],
    [1_000, 1_000_000, "+1.00 us"],
    [5, 0, "+5.00 ns"],
    [0, 0, "0 ns"],
  ] as const) {
    expect(difference(nanoseconds, beside), `${nanoseconds} beside ${beside}`).toBe(told);
  }
});

test("what two traces differ in is told as its numbers are, and every column can be read on a narrow screen", async ({ page, folder }) => {
  const [path, json] = [join(folder, "blame.html"), join(folder, "blame.json")];
  fairlab("blame", HACKBENCH, "testdata/perf-make.data", "--export", path, "--export", json);
  await open(page, path);
  const { change } = JSON.parse(readFileSync(json, "utf8")) as {
    change: { by_run_time: boolean; culprits: { added_ns: number; before_ns_per_s: number; after_ns_per_s: number; before_ns_per_wait: number; after_ns_per_wait: number }[] };
  };
  const side = change.by_run_time ? "s" : "wait";
  const cells = page.locator("#changes table").first().locator("tbody tr > :nth-child(2)");
  for (const [at, row] of change.culprits.slice(0, await cells.count()).entries()) {
    const beside = Math.max(row[`before_ns_per_${side}`] ?? 0, row[`after_ns_per_${side}`] ?? 0);
    await expect(cells.nth(at)).toHaveText(difference(row.added_ns, beside));
  }
  await page.setViewportSize({ width: 420, height: 900 });
  const rows = page.locator("#changes table").first().locator("tbody tr");
  for (const cell of await rows.first().locator("td").all()) {
    const box = (await cell.boundingBox())!;
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(420);
    const label = await cell.evaluate((one) => getComputedStyle(one, "::before").content);
    expect(label).toBe(`"${await cell.getAttribute("data-label")}"`);
  }
  const labels = await rows.first().locator("td").evaluateAll((all) => all.map((one) => one.getAttribute("data-label")));
  expect(labels).toEqual(["Change", "Before", "After"]);
  // Heads still put rows in order.
  const order = await rows.locator("th").allInnerTexts();
  await page.locator("#changes table").first().getByRole("button", { name: "Before" }).click();
  expect(await rows.locator("th").allInnerTexts()).not.toEqual(order);
});

/** With little work v6.12 makes the longest waits longer, with much of it shorter: both are told. */
const SWEEP = `
kernels = ["v6.5", "v6.12"]
machines = ["vm4"]
workloads = ["schbench -m 1 -t {threads} -c {work} -s 1000 -r 0"]
seeds = 6
duration_ms = 200
options = { threads = [4, 5], work = [4000, 30000] }
`;

test("a sweep's headline tells where a kernel is better and where it is worse, for sure", async ({ page, folder }) => {
  const [file, out, pages] = [join(folder, "both.toml"), join(folder, "both"), join(folder, "both-pages")];
  writeFileSync(file, SWEEP);
  fairlab("sweep", file, "--out", out, "--export", `${pages}/`);
  await open(page, join(pages, "index.html"));
  const sure = page.locator(".kernels");
  await expect(sure.locator(".finding")).toHaveText(/^v6\.12 against v6\.5, for sure: better in [1-9]\d* of 4 settings, worse in [1-9]/);
  const told = sure.locator("li");
  await expect(told).toHaveCount(2);
  await expect(told.first()).toContainText(/p99 wakeup latency .* lower \(.*\) than v6\.5's, .* instead of .*, with threads \d, work \d+/);
  await expect(told.first().locator(".verdict-better")).toBeVisible();
  await expect(told.last()).toContainText(/(times|higher) .*, with threads \d, work \d+/);
  await expect(told.last().locator(".verdict-worse")).toBeVisible();
  // A link says that it leads to one of the cells alone.
  await expect(page.locator("#values caption")).toContainText("the run of its first seed");
  for (const link of await page.locator("#values tbody").getByRole("link").allInnerTexts()) expect(link).toMatch(/, first seed$/);
  await reads(page);
});

test("a sweep of one run a setting has nothing that is sure, and one of one kernel compares none", async ({ page, folder }) => {
  for (const [name, text, words] of [
    ["once", SWEEP.replace("seeds = 6", "seeds = 1"), "v6.12: no difference from v6.5 is sure in any of 4 settings."],
    ["alone", SWEEP.replace('"v6.5", ', "").replace("seeds = 6", "seeds = 1"), ""],
  ] as const) {
    const [file, path] = [join(folder, `${name}.toml`), join(folder, `${name}.html`)];
    writeFileSync(file, text);
    fairlab("sweep", file, "--out", join(folder, name), "--export", path);
    await open(page, path);
    await expect(page.locator(".kernels")).toHaveText(words);
  }
});

test("a run's figures say what they count, and a wait that is no wakeup latency says so", async ({ page, folder }) => {
  const path = join(folder, "run.html");
  fairlab("run", "schbench", "-m", "1", "-t", "6", "--machine", "vm4", "--duration", "500ms", "--kernel", "v6.5", "--export", path);
  await open(page, path);
  const tile = (name: string) => page.locator(".figures dt", { hasText: name });
  await expect(tile("throughput")).toContainText("units of work per second");
  await expect(tile("max wakeup latency")).toContainText("from wakeup to running");
  await expect(page.locator("#metrics tbody th", { hasText: /^throughput/ })).toContainText("units of work per second");
  await expect(page.locator("#excerpts > p")).toContainText("waits of any kind: after a wakeup, after a preemption, or for a group's quota");
  const kind = await page.locator("#excerpts .kind").innerText();
  const story = await page.locator("#excerpts .story").innerText();
  const woken = /Woken by/.test(story);
  expect(kind).toMatch(woken ? /^A wakeup latency of / : /no wakeup latency counts it\.$/);
  await reads(page);
});

/** A task that waits for its group's quota for most of its wait. */
const THROTTLED = [
  "x-1 [000] ..... 0.000001: cgroup_mkdir: root=0 id=7 level=1 path=/a",
  "x-1 [000] ..... 0.000003: cgroup_attach_task: dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=65 comm=api",
  "x-1 [000] d..2. 0.000010: sched_switch: prev_comm=x prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=api next_pid=65 next_prio=120",
  "api-65 [000] dN.2. 0.001000: throttle_cfs_rq: cg=7 cpu=0",
  "api-65 [000] dN.2. 0.001000: sched_switch: prev_comm=api prev_pid=65 prev_prio=120 prev_state=R ==> next_comm=z next_pid=9 next_prio=120",
  "z-9 [000] d..2. 0.005000: unthrottle_cfs_rq: cg=7 cpu=0",
  "z-9 [000] d..2. 0.006000: sched_switch: prev_comm=z prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=api next_pid=65 next_prio=120",
  "api-65 [000] d..2. 0.007000: sched_switch: prev_comm=api prev_pid=65 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120",
];

test("time for a quota and throttled time are told apart where they are shown", async ({ page, folder }) => {
  const trace = join(folder, "quota.txt");
  writeFileSync(trace, `# tracer: nop\n#\n${THROTTLED.join("\n")}\n`);
  for (const command of ["blame", "summary"]) {
    const path = join(folder, `${command}.html`);
    fairlab(command, trace, "--export", path);
    await open(page, path);
    const caption = page.locator("#culprits caption");
    await expect(caption).toContainText("Time for a group's quota: the part of these waits in which it was throttled.");
    await expect(caption).toContainText("how long the group was, whether or not a task waited");
  }
  const explained = join(folder, "explain.html");
  fairlab("explain", trace, "--export", explained);
  await open(page, explained);
  await expect(page.locator(".findings")).toContainText("for its group's quota, which was used up for 4.00 ms of it, behind z:9, which ran for 5.00 ms of it");
  await open(page, join(folder, "summary.html"));
  // The text that summary prints has both columns, each with its words.
  await page.getByText("As the program prints it").click();
  await expect(page.locator("main")).toContainText("for quota: the part of their waits in which their group was throttled");
  await expect(page.locator("main")).toContainText("throttled: how long the group was, each CPU by itself");
});

test("a ratio beside two means says which ratio it is, on the page and in the text", async ({ page, folder }) => {
  const path = join(folder, "ratio.html");
  const kernels = ["--kernel", "v6.5", "--kernel", "v6.6"];
  const text = fairlab("compare", "schbench", "-m", "1", "-t", "6", "--machine", "vm4", "--duration", "300ms", "--runs", "4", ...kernels, "--export", path);
  const words = "the geometric mean of the paired runs' ratios";
  expect(text.split("\n").filter((line) => line.startsWith(`ratio: ${words}`))).toHaveLength(1);
  await open(page, path);
  await expect(page.locator("#verdicts caption")).toContainText(`Ratio: ${words}`);
  await expect(page.locator("#verdicts thead th", { hasText: /^Ratio$/ })).toHaveAttribute("title", new RegExp(`^Ratio: ${words}.*so their ratio may differ`));
  const single = fairlab("compare", "schbench", "-m", "1", "-t", "6", "--machine", "vm4", "--duration", "300ms", "--runs", "1", ...kernels);
  expect(single).not.toContain("geometric");
});
