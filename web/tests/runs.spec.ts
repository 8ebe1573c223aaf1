// Pages of runs, of gates, and of runs that are there already.

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "@playwright/test";
import { fairlab, open, reads, test } from "./program.js";

const SCHBENCH = ["schbench", "-m", "1", "-t", "6", "--machine", "vm4", "--duration", "1s"] as const;

/** A file's path, its folder made. */
function made(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  return path;
}

test("a gate is drawn, each rule with its bound and its interval", async ({ page, folder }) => {
  const path = join(folder, "gate.html");
  const rules = ["p99>+5%", "throughput<-2%", "switches_per_s>+10%", "p99.9>+1ms"];
  const kernels = ["--kernel", "v6.5", "--kernel", "v6.6", "--runs", "8"];
  const text = fairlab("compare", ...SCHBENCH, ...kernels, ...rules.flatMap((rule) => ["--fail-on", rule]), "--export", path);
  const told = text.split("\n").flatMap((line) => /^(passed|undecided|regression): /.exec(line)?.[1] ?? []);
  expect(told).toHaveLength(4);
  expect(new Set(told).size).toBe(3);
  await open(page, path);
  await expect(page.locator(".gate-line")).toContainText(`Gate: ✗ regression. 4 rules: `);
  // What is broken comes first, in words.
  const spoken = ["p99 wakeup latency", "throughput", "switches_per_s", "p999 wakeup latency"];
  await expect(page.locator(".findings .finding").nth(1)).toContainText(`v6.6: ${spoken[told.indexOf("regression")]} `);
  const rows = page.locator("#gate tbody tr");
  await expect(rows).toHaveCount(4);
  for (const [at, outcome] of told.entries()) {
    await expect(rows.nth(at)).toContainText(rules[at] ?? "");
    await expect(rows.nth(at).locator(".verdict")).toHaveText(new RegExp(`${outcome}$`));
  }
  // Where the outcome is sure, the whole interval lies on its side of the bound, as it is drawn.
  const drawn = await rows.evaluateAll((all) =>
    all.map((row) => {
      const lines = [...row.querySelectorAll("g[data-mark=rule] line")];
      const ends = (place: number): number[] => ["x1", "x2"].map((end) => Number(lines[place]?.getAttribute(end) ?? NaN));
      const outcome = row.querySelector(".verdict")?.textContent?.trim().split(" ").pop();
      return { outcome, lines: lines.length, bound: ends(1)[0], ends: ends(2), above: row.textContent?.includes(">") };
    }),
  );
  for (const { outcome, bound, ends, above } of drawn.filter((each) => each.lines === 3)) {
    const past = ends.map((end) => (above === true ? end > (bound ?? NaN) : end < (bound ?? NaN)));
    if (outcome === "passed") expect(past).toEqual([false, false]);
    if (outcome === "regression") expect(past).toEqual([true, true]);
  }
  expect(drawn.filter((each) => each.lines === 3).length).toBeGreaterThan(1);
  await reads(page);
});

test("runs have their metrics, distributions and longest wait", async ({ page, folder }) => {
  const path = join(folder, "run.html");
  const text = fairlab("run", ...SCHBENCH, "--kernel", "v6.5", "--kernel", "v6.6", "--seeds", "2", "--export", path);
  await open(page, path);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("schbench -m 1 -t 6 on vm4");
  await expect(page.locator("#metrics thead th")).toHaveText(["Metric", "v6.5, seed 1", "v6.5, seed 2", "v6.6, seed 1", "v6.6, seed 2"]);
  const told = /wakeup_latency_ns_p99 +(\S+ \S+)/.exec(text)?.[1] ?? "nothing";
  await expect(page.locator("#metrics tbody tr", { hasText: "wakeup_latency_ns_p99" }).first()).toContainText(told);
  await expect(page.locator("#distributions figure svg[role=img]")).toHaveCount(2);
  const excerpts = page.locator("#excerpts figure");
  await expect(excerpts).toHaveCount(2);
  expect(await excerpts.first().locator("svg").getAttribute("aria-label")).toMatch(/waited \S+ (us|ms)$/);
  await expect(page.locator("#excerpts pre").first()).toContainText("waited");
  // The picture comes before the tables, and tiles break no words.
  await expect(page.locator("main h2").first()).toHaveText("The longest waits");
  for (const tile of await page.locator(".figures dt").all()) expect((await tile.boundingBox())?.height).toBeLessThan(45);
  expect(await excerpts.first().locator("g[data-mark=bar] rect").count()).toBeGreaterThan(3);
  await expect(page.locator("#printed pre")).toContainText("Latency percentiles (usec)");
  await page.locator("#digests summary").click();
  await expect(page.locator("#digests tbody tr")).toHaveCount(4);
  await reads(page);
});

test("many runs are told by their means and ends, and a part of the tasks by its own times", async ({ page, folder }) => {
  const path = join(folder, "many.html");
  fairlab("run", ...SCHBENCH, "--kernel", "v6.6", "--seeds", "8", "--task", "schbench", "--export", path);
  await open(page, path);
  await expect(page.locator("#metrics thead th")).toHaveText(["Metric", "v6.6"]);
  await expect(page.locator("#metrics tbody")).toContainText(/ to /);
  await expect(page.locator("#distributions h3")).toHaveText(["Wakeup latency of schbench", "Waits after preemption of schbench"]);
});

test("hosts, and folders of traces, have distributions", async ({ page, folder }) => {
  const sides = ["old", "new"].map((side, at) => {
    const kernel = at === 0 ? "v6.5" : "v6.6";
    const [traces, counts] = [join(folder, `${side}-traces`), join(folder, `${side}-counts`)];
    for (const host of [1, 2]) {
      const trace = join(traces, `host=h${host}`, "a.dat");
      fairlab("run", ...SCHBENCH, "--kernel", kernel, "--seed", String(host), "--trace", made(trace));
      fairlab("summary", trace, "--counts", made(join(counts, `host=h${host}`, "counts.json")), "--label", `service=${host === 1 ? "web" : "db"}`);
    }
    return { traces, counts };
  });
  for (const [option, place] of [["--folder", "traces"], ["--counts", "counts"]] as const) {
    const path = join(folder, `${place}.html`);
    fairlab("compare", ...sides.flatMap((side) => [option, side[place]]), "--export", path);
    await open(page, path);
    await expect(page.locator("#distributions h3").first()).toHaveText("Wakeup latency");
    await expect(page.locator("#distributions figure svg[role=img]").first()).toBeVisible();
    await expect(page.locator("#distributions .legend li").first()).toContainText("old");
    await expect(page.locator("#runs h2")).toHaveText("Host by host");
    await expect(page.locator("section#provenance")).not.toContainText("Seeds");
  }
  // Only the times of the hosts that were asked for.
  const all = await page.locator("#distributions tbody tr").last().locator("td").allInnerTexts();
  const path = join(folder, "web.html");
  fairlab("compare", ...sides.flatMap((side) => ["--counts", side.counts]), "--label", "service=web", "--export", path);
  await open(page, path);
  const web = await page.locator("#distributions tbody tr").last().locator("td").allInnerTexts();
  const number = (text: string): number => Number(text.replace(/\D/g, ""));
  web.forEach((text, at) => expect(number(text)).toBeLessThan(number(all[at] ?? "0")));
  expect(web.length).toBe(2);
});

test("a sweep's folder of pages: cells, their longest waits and timelines lead to each other", async ({ page, folder }) => {
  const [file, out, pages] = [join(folder, "few.toml"), join(folder, "few"), join(folder, "few-pages")];
  writeFileSync(file, 'kernels = ["v6.5", "v6.12"]\nmachines = ["vm4"]\nworkloads = ["schbench -m 1 -t {threads} -c 2000 -s 1000 -r 0"]\nseeds = 2\nduration_ms = 100\noptions = { threads = [4, 8] }\n');
  fairlab("sweep", file, "--out", out, "--export", `${pages}/`);
  const names = readdirSync(pages).sort();
  const runs = [1, 2, 3, 4].flatMap((run) => [`run-${run}-timeline.html`, `run-${run}.html`]);
  expect(names).toEqual(["answer.json", "index.html", ...runs]);
  await open(page, join(pages, "index.html"));
  await expect(page.locator("#values figure svg[role=img]")).toHaveAttribute("aria-label", /along threads/);
  const row = page.locator("#values tbody tr").nth(3);
  await expect(row).toContainText("8");
  const links = await page.locator("#values tbody").getByRole("link").allInnerTexts();
  expect(new Set(links).size).toBe(4);
  for (const link of links) expect(link).toMatch(/threads [48]/);
  await row.getByRole("link").click();
  await expect(page.locator("html")).toHaveAttribute("data-drawn", "true");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("schbench -m 1 -t 8 -c 2000 -s 1000 -r 0 on vm4");
  await expect(page.locator(".legend").first()).toContainText("v6.12");
  await expect(page.locator("#excerpts figure svg[role=img]")).toHaveCount(1);
  await page.getByRole("link", { name: "Timeline of v6.12, seed 1" }).click();
  await expect(page.locator("html")).toHaveAttribute("data-drawn", "true");
  await expect(page.locator("h1")).toHaveText("v6.12, seed 1");
  await page.getByRole("link", { name: "schbench -m 1 -t 8" }).click();
  await page.getByRole("link", { name: "Sweep of" }).click();
  await expect(page.locator(".kicker")).toHaveText("Fairlab sweep");
  // Equal inputs give equal bytes, and what is there is not overwritten.
  const again = join(folder, "few-again");
  const bytes = (from: string, name: string): string => readFileSync(join(from, name), "latin1").replaceAll("few-again", "few-pages");
  fairlab("sweep", file, "--out", out, "--export", `${again}/`);
  for (const name of names) expect(bytes(again, name) === bytes(pages, name), name).toBe(true);
  expect(() => fairlab("sweep", file, "--out", out, "--export", `${pages}/`)).toThrow(/status 2: .*exists already/);
});

test("a run's folder of pages has its timelines", async ({ page, folder }) => {
  const pages = join(folder, "run-pages");
  fairlab("run", ...SCHBENCH, "--kernel", "v6.5", "--kernel", "v6.6", "--export", `${pages}/`);
  await open(page, join(pages, "index.html"));
  await page.getByRole("link", { name: "Timeline of v6.6, seed 1" }).click();
  await expect(page.locator("html")).toHaveAttribute("data-drawn", "true");
  await page.getByRole("link", { name: "schbench -m 1 -t 6 on vm4" }).click();
  await expect(page.locator(".kicker")).toHaveText("Fairlab run");
  // Only of runs that can be made again.
  expect(() => fairlab("latency", "testdata/perf-hackbench.data", "--export", `${pages}-too/`)).toThrow(/status 2: .*end it in \.json or \.html/);
});
