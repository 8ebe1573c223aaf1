// The page of traces, as a reader uses it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { fairlab, labelsOf, open, test } from "./program.js";

const HACKBENCH = "testdata/perf-hackbench.data";

interface Seen {
  readonly from: number;
  readonly to: number;
}

/** What is looked at, as the address says it. */
async function view(page: Page): Promise<Seen> {
  await expect.poll(() => page.url()).toContain("#v=");
  const [from, to] = /#v=(-?\d+),(-?\d+)/.exec(page.url())!.slice(1).map(Number) as [number, number];
  return { from, to };
}

/** Waits until the view has come to rest and each switch is drawn. */
async function settled(page: Page): Promise<void> {
  await expect(page.getByRole("status")).toContainText("each switch is drawn");
}

test("a trace opens from a file, on its worst wait, with its CPUs", async ({ page, folder }) => {
  const path = join(folder, "hackbench.html");
  const said = fairlab("view", HACKBENCH, "-o", path);
  expect(said).toContain("open it in a browser");
  await open(page, path);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("perf-hackbench.data");
  const explained = JSON.parse(fairlab("explain", HACKBENCH, "--worst", "1", "--format", "json")) as {
    stories: { task: { comm: string; pid: number }; wait_ns: number }[];
    measured: number;
  };
  const worst = explained.stories[0]!;
  await expect(page.locator(".wait").first()).toContainText(`${worst.task.comm}:${worst.task.pid}`);
  await expect(page.locator(".wait").first()).toContainText(`${(worst.wait_ns / 1e6).toFixed(1)} ms`);
  await expect(page.locator(".wait").first()).toContainText(/behind \w+/);
  await expect(page.locator('.wait[aria-current="true"]')).toHaveCount(1);
  await expect(page.locator(".story")).toContainText("Who ran instead:");
  await expect.poll(async () => (await view(page)).to - (await view(page)).from).toBeLessThan(2 * worst.wait_ns);
  await page.getByText("What is visible, as a table").click();
  await expect(page.locator("#table").getByRole("rowheader", { name: "CPU 0", exact: true })).toBeVisible();
});

/** A service whose group has used up its quota for most of its wait. */
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

test("a wait for a quota says so, and is behind who ran without one", async ({ page, folder }) => {
  for (const [name, lines, words] of [
    ["quota", THROTTLED, "4.00 ms for its group's quota"],
    ["no-quota", THROTTLED.filter((line) => !line.includes("throttle_cfs_rq")), "behind z:9"],
  ] as const) {
    const [trace, path] = [join(folder, `${name}.txt`), join(folder, `${name}.html`)];
    writeFileSync(trace, `# tracer: nop\n#\n${lines.join("\n")}\n`);
    fairlab("view", trace, "-o", path);
    await open(page, path);
    await expect(page.locator(".wait", { hasText: "api:65" }).locator(".behind").first()).toHaveText(words);
  }
});

test("one zooms down to a microsecond, by wheel and by keys, and back", async ({ page, folder }) => {
  const path = join(folder, "zoom.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  await page.keyboard.press("f");
  await expect.poll(async () => (await view(page)).from).toBe(0);
  const whole = await view(page);
  const lanes = page.locator("canvas.lanes");
  const box = (await lanes.boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  for (let turn = 0; turn < 60; turn += 1) await page.mouse.wheel(0, -120);
  await expect.poll(async () => (await view(page)).to - (await view(page)).from).toBeLessThanOrEqual(1_000);
  await settled(page);
  const close = await view(page);
  expect(close.from).toBeGreaterThanOrEqual(whole.from);
  await page.keyboard.press("f");
  await expect.poll(async () => await view(page)).toEqual(whole);
  await page.keyboard.press("w");
  await expect.poll(async () => (await view(page)).to - (await view(page)).from).toBeLessThan(0.7 * (whole.to - whole.from));
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toContainText("The next wait");
});

test("one of the worst waits is one click away, with its story", async ({ page, folder }) => {
  const path = join(folder, "wait.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  await page.locator(".wait").nth(1).click();
  await settled(page);
  const story = page.locator(".story");
  await expect(story).toContainText("Who ran instead:");
  const told = /waited (\d+\.\d+) ms/.exec(await story.innerText())!;
  const length = Number(told[1]) * 1e6;
  // The way there is drawn; on a busy machine it takes its time.
  await expect.poll(async () => (await view(page)).to - (await view(page)).from).toBeLessThan(2 * length);
  const seen = await view(page);
  expect(seen.to - seen.from).toBeGreaterThan(length);
  // The address brings another reader to the place.
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await expect(page.locator(".story")).toContainText(told[0]);
  await page.keyboard.press("n");
  await expect(page.locator('.wait[aria-current="true"]')).toContainText((await page.locator(".wait").nth(2).innerText()).split("\n")[0]!);
});

test("a task is found, and a slice tells its facts", async ({ page, folder }) => {
  const path = join(folder, "find.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  await page.keyboard.press("/");
  await page.keyboard.type("no such task");
  await expect(page.locator(".found")).toContainText("No task is called");
  await page.locator("#search").fill("hackbench");
  await expect(page.locator(".result").first()).toContainText("hackbench:");
  await page.locator("#search").press("Enter");
  await expect(page.locator(".selection")).toContainText("Selected task");
  await page.locator(".wait").first().click();
  await settled(page);
  const box = (await page.locator("canvas.lanes").boundingBox())!;
  // Below ruler and heading stands the task; in the middle of the view it waits.
  const labels = await labelsOf(page);
  await page.mouse.click(box.x + labels + (box.width - labels) / 2, box.y + 26 + 26 + 10);
  await expect(page.locator(".selection")).toContainText("Selected slice");
  await expect(page.locator(".selection")).toContainText("Thread id");
  await expect(page.locator(".selection")).toContainText("Waited");
});

test("a time is measured", async ({ page, folder }) => {
  const path = join(folder, "measure.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  const seen = await view(page);
  const box = (await page.locator("canvas.lanes").boundingBox())!;
  const labels = await labelsOf(page);
  const quarter = (box.width - labels) / 4;
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + labels + quarter, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + labels + 2 * quarter, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await expect(page.locator(".selection")).toContainText("Measured");
  const words = await page.locator(".selection p").first().innerText();
  const measured = Number(/([\d.]+) s/.exec(words)?.[1] ?? Number(/([\d.]+) ms/.exec(words)![1]) / 1e3) * 1e9;
  expect(Math.abs(measured / ((seen.to - seen.from) / 4) - 1)).toBeLessThan(0.03);
});

test("what was lost is unknown on the page, too", async ({ page, folder }) => {
  const path = join(folder, "lost.html");
  const trace = join(folder, "lost.txt");
  const line = (task: string, cpu: number, time: string, what: string): string => `  ${task} [00${cpu}] d..2. ${time}: ${what}\n`;
  const change = (prev: string, state: string, next: string): string => {
    const [a, b] = [prev.split(":"), next.split(":")];
    return `sched_switch: prev_comm=${a[0]} prev_pid=${a[1]} prev_prio=120 prev_state=${state} ==> next_comm=${b[0]} next_pid=${b[1]} next_prio=120`;
  };
  writeFileSync(
    trace,
    `${line("<idle>-0", 0, "1.000000", change("swapper/0:0", "R", "first:65"))}${line("first-65", 0, "1.001000", "sched_waking: comm=other pid=66 prio=120 target_cpu=000")}CPU:0 [LOST 12 EVENTS]\n${line("other-66", 0, "1.004000", change("other:66", "S", "swapper/0:0"))}${line("<idle>-0", 0, "1.005000", change("swapper/0:0", "R", "first:65"))}`,
  );
  fairlab("view", trace, "-o", path);
  await open(page, path);
  await settled(page);
  await page.getByText("What is visible, as a table").click();
  const row = page.locator("#table tbody tr", { has: page.getByRole("rowheader", { name: "CPU 0", exact: true }) });
  await expect(row).toContainText("3.00 ms");
});

test("two traces stand on one line of time, aligned and linked", async ({ page, folder }) => {
  const path = join(folder, "two.html");
  fairlab("view", HACKBENCH, "testdata/perf-make.data", "-o", path);
  await open(page, path);
  await expect(page.locator("canvas.lanes")).toHaveCount(2);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("A perf-hackbench.data");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("B perf-make.data");
  await expect(page.getByRole("heading", { name: "Worst waits of B" })).toBeVisible();
  await page.getByText("What is visible, as a table").click();
  const before = await page.locator("#table caption").allInnerTexts();
  const box = (await page.locator("canvas.lanes").first().boundingBox())!;
  await page.mouse.move(box.x + 400, box.y + 60);
  for (let turn = 0; turn < 5; turn += 1) await page.mouse.wheel(0, -120);
  await expect.poll(async () => (await page.locator("#table caption").allInnerTexts())[1]).not.toEqual(before[1]);
});

test("rows of two runs stand in one order, and the help names each key once", async ({ page, folder }) => {
  const traces = ["v6.5", "v6.6"].map((kernel) => {
    const trace = join(folder, `${kernel}.dat`);
    fairlab("run", ..."schbench -m 1 -t 6 --machine vm4 --duration 300ms --kernel".split(" "), kernel, "--trace", trace);
    return trace;
  });
  const path = join(folder, "order.html");
  fairlab("view", ...traces, "-o", path);
  await page.setViewportSize({ width: 1200, height: 2000 });
  await open(page, path);
  await page.keyboard.press("Backspace");
  await page.getByText("What is visible, as a table").click();
  const rows = async (place: number): Promise<string[]> => (await page.locator("#table table").nth(place).getByRole("rowheader").allInnerTexts()).filter((name) => /^schbench:\d+$/.test(name));
  await expect.poll(async () => (await rows(0)).length).toBeGreaterThan(5);
  expect(await rows(1)).toEqual(await rows(0));
  await page.keyboard.press("?");
  const keys = await page.getByRole("dialog").locator("dt").allInnerTexts();
  const help = await page.getByRole("dialog").locator("dd").allInnerTexts();
  expect(new Set(keys).size).toBe(keys.length);
  expect(new Set(help).size).toBe(help.length);
});

test("names of tasks cannot become markup", async ({ page, folder }) => {
  const path = join(folder, "names.html");
  const trace = join(folder, "names.txt");
  const evil = "<img src=x>";
  const change = (time: number, prev: string, prevPid: number, next: string, nextPid: number): string =>
    `  ${prev}-${prevPid} [000] d..2. 1.00${time}000: sched_switch: prev_comm=${prev} prev_pid=${prevPid} prev_prio=120 prev_state=R ==> next_comm=${next} next_pid=${nextPid} next_prio=120\n`;
  writeFileSync(trace, change(1, "swapper/0", 0, evil, 65) + change(3, evil, 65, "</script>", 66) + change(6, "</script>", 66, evil, 65) + change(8, evil, 65, "swapper/0", 0));
  fairlab("view", trace, "-o", path);
  expect(readFileSync(path, "utf8")).not.toContain("<img");
  await open(page, path);
  await page.keyboard.press("n");
  await expect(page.locator(".story")).toContainText("<img src=x>:65");
  await page.locator("#search").fill("script");
  await expect(page.locator(".result")).toContainText("</script>:66");
  await expect(page.locator("img")).toHaveCount(0);
});

test("dark colours, and paper", async ({ page, folder }) => {
  const path = join(folder, "colours.html");
  fairlab("view", HACKBENCH, "-o", path);
  await open(page, path);
  const corner = (): Promise<number[]> =>
    page.locator("canvas.lanes").evaluate((canvas) => {
      const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
      const lanes = canvas as HTMLCanvasElement;
      context.drawImage(lanes, -2, 3 - lanes.height);
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    });
  const light = await corner();
  await page.keyboard.press("t");
  await expect.poll(corner).not.toEqual(light);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await expect.poll(corner).toEqual(light);
  await expect(page.locator("#table caption")).toBeVisible();
  await expect(page.locator("#search")).toBeHidden();
});
