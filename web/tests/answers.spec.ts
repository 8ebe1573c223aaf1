// Pages of any answer, and names of others in them.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { fairlab, open, test } from "./program.js";

const RUN = "schbench -t 2 --machine qemu8-hres --duration 200ms --warmup 0".split(" ");

/** Commands, and what their pages show at least. */
const ANSWERS: readonly (readonly [string, readonly string[], readonly RegExp[]])[] = [
  ["run", ["run", ...RUN, "--kernel", "v6.6", "--kernel", "v6.12"], [/wakeup_latency_ns_p99/, /v6\.12, seed 1/, /Distributions/]],
  ["latency", ["latency", "testdata/perf-hackbench.data"], [/hackbench/, /The longest waits, task by task/]],
  ["explain", ["explain", "testdata/ftrace-6.6-vhost-starved.txt.zst", "--worst", "2"], [/kworker\/2:1:80/, /What ended it/]],
  ["summary", ["summary", "testdata/perf-hackbench.data"], [/hackbench/]],
  ["verify", ["verify", "testdata/recordings/6.12-nice-2"], [/tick_preempt/, /debian-6\.12/]],
  ["bisect", ["bisect", ..."schbench -t 4 --machine qemu8-hres --duration 1s --good v6.5 --bad v6.6 --runs 4".split(" ")], [/wakeup_latency_ns_p99/]],
  [
    "attribute",
    ["compare", ..."schbench -t 4 --machine qemu8-hres --duration 1s --kernel v6.5 --kernel v6.6 --runs 3 --attribute".split(" ")],
    [/Which changes: wakeup_latency_ns_p99/, /changes lie between/, /Verdicts/, /switches_per_s/, /Distributions/, /digests/],
  ],
];

for (const [name, words, expected] of ANSWERS) {
  test(`the page of ${name}`, async ({ page, folder }) => {
    const path = join(folder, `${name}.html`);
    fairlab(...words, "--export", path);
    await open(page, path);
    for (const pattern of expected) await expect(page.locator("main")).toContainText(pattern);
    await expect(page.locator("main")).not.toContainText("undefined");
    await expect(page.locator("main")).not.toContainText("[object");
  });
}

test("a table is put in order by a click on a head", async ({ page, folder }) => {
  const path = join(folder, "order.html");
  fairlab("latency", "testdata/perf-hackbench.data", "--export", path);
  await open(page, path);
  const counts = async (): Promise<number[]> => {
    const head = page.locator("th[aria-sort]").first();
    const place = await head.evaluate((cell) => (cell as HTMLTableCellElement).cellIndex);
    const table = page.locator("table", { has: head });
    return (await table.locator(`tbody tr > :nth-child(${place + 1})`).allInnerTexts()).map((text) => Number(text.replace(/\D/g, "")));
  };
  await page.locator("#delays").getByRole("button", { name: /^Show all/ }).click();
  const button = page.getByRole("button", { name: "Waits" }).first();
  await button.click();
  const ascending = await counts();
  expect(ascending).toEqual([...ascending].sort((one, other) => one - other));
  await button.click();
  expect(await counts()).toEqual(ascending.reverse());
});

/** Names that a browser would obey, or that would lead a reader's eye. */
const LONG = "<img src=x onerror=alert(1)>";
const SHORT = ["</script>", "<b>bold</b>", "a\u2028b", "a\u202ecba", "\"'&lt;"];

async function expectText(page: Page): Promise<void> {
  expect(await page.locator("img, main b, main script, iframe, object").count()).toBe(0);
  expect(await page.evaluate(() => document.body.innerText.includes("\u202e") || document.body.innerText.includes("\u2028"))).toBe(false);
}

/** A trace whose tasks have these names: each wakes and runs once. */
function traceOf(names: readonly string[]): string {
  const lines = names.flatMap((name, at) => {
    const [time, pid] = [(stamp: number) => `10.${String(at * 1000 + stamp).padStart(6, "0")}`, 100 + at];
    return [
      `          <idle>-0     [000] dNh3.    ${time(10)}: sched_waking: comm=${name} pid=${pid} prio=120 target_cpu=000`,
      `          <idle>-0     [000] dNh4.    ${time(20)}: sched_wakeup: comm=${name} pid=${pid} prio=120 target_cpu=000`,
      `          <idle>-0     [000] d..2.    ${time(40)}: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=${name} next_pid=${pid} next_prio=120`,
      `            task-${pid}   [000] d..2.    ${time(90)}: sched_switch: prev_comm=${name} prev_pid=${pid} prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120`,
    ];
  });
  return `# tracer: nop\n#\n${lines.join("\n")}\n`;
}

test("names of tasks in a trace are text", async ({ page, folder }) => {
  const trace = join(folder, "names.txt");
  writeFileSync(trace, traceOf([LONG.slice(0, 15), ...SHORT]));
  for (const command of ["latency", "summary", "explain"]) {
    const path = join(folder, `names-${command}.html`);
    fairlab(command, trace, "--export", path);
    await open(page, path);
    await expect(page.locator("main")).toContainText("<b>bold</b>");
    await expect(page.locator("main")).toContainText("</script>");
    await expect(page.locator("main")).toContainText("a\\u{2028}b");
    await expect(page.locator("main")).toContainText("a\\u{202e}cba");
    await expectText(page);
  }
});

test("names of folders are text, in the title and in the rows", async ({ page, folder }) => {
  const names = [`${LONG} `, "<b>bold<script>alert(2)\u2028\u202e"];
  const sides = names.map((name, at) => {
    const side = join(folder, name.trim());
    fairlab("run", ...RUN, "--seeds", "3", "--kernel", at === 0 ? "v6.6" : "v6.12", "--out", side);
    return side;
  });
  const path = join(folder, "folders.html");
  fairlab("compare", ...sides.flatMap((side) => ["--folder", side]), "--export", path);
  await open(page, path);
  await expect(page.locator("h1")).toContainText("against");
  await expect(page.locator("main")).toContainText("<img src=x onerror=alert(1)>");
  // Of each folder: waits after wakeups, and first waits.
  await expect(page.locator("#distributions figure svg[role=img]")).toHaveCount(4);
  await expectText(page);
});

test("a page that holds nonsense says so", async ({ page, folder, watch }) => {
  const path = join(folder, "broken.html");
  fairlab("latency", "testdata/perf-hackbench.data", "--export", path);
  writeFileSync(path, readFileSync(path, "utf8").replace(/id="data">[^]*?<\/script>/, 'id="data">{"schema": "fairlab/compare/1"}</script>'));
  await page.goto(`file://${path}`);
  await expect(page.getByRole("alert")).toContainText("This page could not be drawn");
  expect(watch.trouble.splice(0).length).toBeGreaterThan(0);
});

test("what is no name for a page is refused before anything runs", async ({ folder }) => {
  mkdirSync(join(folder, "taken.html"));
  const run = ["run", ...RUN, "--kernel", "v6.6", "--export"];
  expect(() => fairlab(...run, join(folder, "page.pdf"))).toThrow(/status 2: .*end it in \.json, \.html or \//);
  expect(() => fairlab(...run, join(folder, "no such place", "page.html"))).toThrow(/status 2: .*cannot write/);
  expect(() => fairlab(...run, join(folder, "taken.html"))).toThrow(/status 2: .*cannot write/);
});
