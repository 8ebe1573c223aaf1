// What readers of the page of traces stumbled over who had not seen it before: colours, names, words.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { fairlab, labelsOf, open, test } from "./program.js";

const LONG_GROUP = "/kubepods/burstable/pod7f3a-11ee-web";

/** A service whose group may use a fifth of a CPU, and a batch that may use half of one. */
const QUOTAS = `
[group."/kubepods"]
[group."/kubepods/burstable"]
[group."${LONG_GROUP}"]
cpu.max = "20000 100000"
[group."/batch"]
cpu.max = "50000 100000"

[[workload]]
name = "web"
[[workload.task]]
name = "api"
count = 4
group = "${LONG_GROUP}"
steps = ["run 2ms", "sleep 5ms", "reply"]

[[workload.task]]
name = "batch"
count = 3
group = "/batch"
steps = ["run 3ms", "reply"]
`;

/** The traces of a run of it on these kernels. */
function quotaTraces(folder: string, ...kernels: readonly string[]): string[] {
  const workload = join(folder, "quotas.toml");
  writeFileSync(workload, QUOTAS);
  return kernels.map((kernel) => {
    const trace = join(folder, `quotas-${kernel}.dat`);
    fairlab("run", workload, "--machine", "vm4", "--duration", "500ms", "--kernel", kernel, "--trace", trace);
    return trace;
  });
}

/** Notes what is written into canvases, and where: a canvas tells no text. */
async function noteTexts(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const written: string[] = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text: string, x: number, y: number) {
      written.push(text);
      write.call(this, text, x, y);
    };
    Object.assign(globalThis, { written });
  });
  return () => page.evaluate(() => (globalThis as unknown as { written: string[] }).written);
}

/** The colour of the picture at a place of the canvas that is the `at`th. */
async function colourAt(page: Page, x: number, y: number, at = 0): Promise<string> {
  return page.locator("canvas.lanes").nth(at).evaluate(
    (canvas, [left, top]) => {
      const lanes = canvas as HTMLCanvasElement;
      const ratio = lanes.width / lanes.clientWidth;
      const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
      context.drawImage(lanes, -Math.round(left! * ratio), -Math.round(top! * ratio));
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join(" ");
    },
    [x, y],
  );
}

const LEGEND = ".legend .key";

test("each stretch in which a task is throttled has its colour, its words and its sum", async ({ page, folder }) => {
  const [trace] = quotaTraces(folder, "v6.5") as [string];
  const path = join(folder, "throttled.html");
  fairlab("view", trace, "-o", path);
  await open(page, path);
  const key = page.locator(LEGEND, { hasText: "throttled: its group's quota is used up" });
  await expect(key).toBeVisible();
  const legend = await key.locator(".swatch").evaluate((swatch) => getComputedStyle(swatch).backgroundColor.replace(/[^\d ]/g, ""));
  // The page opens on a long wait for a quota: the selected task's row has the colour in the middle of the picture, outside of the band, too.
  const box = (await page.locator("canvas.lanes").boundingBox())!;
  const labels = await labelsOf(page);
  const middle = labels + (box.width - labels) / 2;
  await page.keyboard.press("Backspace");
  const head = page.locator('.head[title^="api:"]').first();
  const top = (await head.boundingBox())!.y - box.y;
  await expect.poll(() => colourAt(page, middle, top + 10)).toBe(legend);
  await page.mouse.move(box.x + middle, box.y + top + 10);
  await expect(page.locator(".tip")).toContainText(/api:\d+ is throttled for [\d.]+ ms: its group has used up its quota/);
  // In all: what blame sums of the waits that are over, and little more of those that go on.
  await page.keyboard.press("f");
  await page.getByText("What is visible, as a table").click();
  const sums = async (): Promise<number> => {
    const column = (await page.locator("#table thead th").allInnerTexts()).indexOf("Of it throttled");
    const rows = page.locator("#table tbody tr", { has: page.getByRole("rowheader", { name: /^(\/batch|\/kubepods)/ }) });
    const cells = await rows.locator(`:nth-child(${column + 1})`).allInnerTexts();
    return cells.reduce((sum, text) => sum + Number.parseFloat(text) * (text.endsWith(" s") ? 1e3 : 1), 0);
  };
  const blamed = JSON.parse(fairlab("blame", trace, "--format", "json")) as { sides?: unknown; waiting?: unknown };
  const culprits = JSON.stringify(blamed).match(/"behind":"throttled"[^}]*?"time_ns":(\d+)/)!;
  const told = Number(culprits[1]) / 1e6;
  await expect.poll(sums).toBeGreaterThan(told * 0.99);
  expect(await sums()).toBeLessThan(told * 1.25);
  // Without a quota there is nothing of it.
  const plain = join(folder, "plain.html");
  fairlab("view", "testdata/perf-hackbench.data", "-o", plain);
  await open(page, plain);
  await expect(page.locator(LEGEND).first()).toBeVisible();
  await expect(page.locator(LEGEND, { hasText: "throttled" })).toHaveCount(0);
});

test("a group's name keeps its end, and stands whole beside the pointer and the focus", async ({ page, folder }) => {
  const written = await noteTexts(page);
  const [trace] = quotaTraces(folder, "v6.5") as [string];
  const path = join(folder, "names.html");
  fairlab("view", trace, "-o", path);
  for (const [width, shown] of [[1280, /^…\/pod7f3a-11ee-web \(4\)$/], [420, /^….*-web$/]] as const) {
    await page.setViewportSize({ width, height: 1800 });
    await open(page, path);
    await expect.poll(written).toContainEqual(expect.stringMatching(shown));
    expect((await written()).filter((text) => text.startsWith("/kubepods/burst") && text.endsWith("…"))).toEqual([]);
  }
  // A wide window has room for all of it.
  await page.setViewportSize({ width: 2200, height: 900 });
  await expect.poll(written).toContain(`${LONG_GROUP} (4)`);
  await page.setViewportSize({ width: 1280, height: 900 });
  const head = page.locator(`.head[title="${LONG_GROUP} (4)"]`);
  await expect(head).toHaveAttribute("aria-expanded", "true");
  await expect(async () => {
    const box = (await head.boundingBox())!;
    await page.mouse.move(box.x + 60, box.y + 10);
    await expect(page.locator(".tip")).toHaveText(`${LONG_GROUP} (4)`, { timeout: 500 });
  }).toPass();
  await page.mouse.move(600, 5);
  await expect(page.locator(".tip")).toBeHidden();
  // By keys: one stop of Tab, arrows go on, Enter does what a click does.
  await page.locator("canvas.lanes").focus();
  await page.keyboard.press("Tab");
  await expect(page.locator(".head:focus")).toHaveCount(1);
  for (let turn = 0; turn < 20 && !(await head.evaluate((one) => one === document.activeElement)); turn += 1) await page.keyboard.press("ArrowDown");
  await expect(head).toBeFocused();
  await expect(page.locator(".tip")).toHaveText(`${LONG_GROUP} (4)`);
  await page.keyboard.press("Enter");
  await expect(head).toHaveAttribute("aria-expanded", "false");
  await expect(head).toBeFocused();
});

test("names take what they need, and leave three quarters to the picture", async ({ page, folder }) => {
  const [trace] = quotaTraces(folder, "v6.5") as [string];
  const [long, short] = [join(folder, "long.html"), join(folder, "short.html")];
  fairlab("view", trace, "-o", long);
  fairlab("view", "testdata/perf-hackbench.data", "-o", short);
  const widths = async (path: string, width: number): Promise<number> => {
    await page.setViewportSize({ width, height: 900 });
    await open(page, path);
    const box = (await page.locator("canvas.lanes").boundingBox())!;
    const labels = await labelsOf(page);
    expect(labels).toBeLessThanOrEqual(box.width * 0.25);
    return labels;
  };
  expect(await widths(long, 1280)).toBeGreaterThan(await widths(short, 1280));
  for (const path of [long, short]) expect(await widths(path, 420)).toBeLessThanOrEqual(105);
});

test("how closely time is drawn is said in words", async ({ page, folder }) => {
  const path = join(folder, "level.html");
  fairlab("view", "testdata/perf-hackbench.data", "-o", path);
  await open(page, path);
  const status = page.getByRole("status");
  await expect(status).toHaveText(/^[\d.]+ ms in view: each switch is drawn$/);
  await expect(status).toHaveAttribute("title", /Each run is a bar of its own/);
});

test("with two traces a task of one name has one colour, and the wait that is shown is of the list that stands first", async ({ page, folder }) => {
  // The same tasks with other ids, and those of one name in another group.
  const [before] = quotaTraces(folder, "v6.5") as [string];
  const workload = join(folder, "other.toml");
  writeFileSync(workload, QUOTAS.replaceAll('"/batch"', '"/nightly"').replace('[[workload]]', '[[workload]]\nname = "early"\n[[workload.task]]\nname = "early"\ncount = 3\nsteps = ["run 1ms", "sleep 50ms"]\n\n[[workload]]'));
  const after = join(folder, "other.dat");
  fairlab("run", workload, "--machine", "vm4", "--duration", "500ms", "--kernel", "v6.12", "--trace", after);
  const path = join(folder, "two.html");
  fairlab("view", before, after, "-o", path);
  await page.setViewportSize({ width: 1400, height: 2400 });
  await open(page, path);
  const first = await page.locator(".side h2", { hasText: "Worst waits" }).first().innerText();
  const letter = /of ([AB])$/.exec(first)![1]!;
  await expect(page.locator(".selection h2")).toHaveText(`Selected wait of ${letter}`);
  await expect(page.locator(".wait").first()).toHaveAttribute("aria-current", "true");
  const lengths = await page.locator(".side section:has(> .waits) .wait:first-child .long").allInnerTexts();
  const ms = lengths.map((text) => Number.parseFloat(text) * (text.endsWith(" s") ? 1e3 : 1));
  expect(ms[0]).toBe(Math.max(...ms));
  // The colour of each task's longest run in view.
  await page.keyboard.press("Backspace");
  await page.keyboard.press("f");
  const colours = async (pane: number): Promise<Map<string, string>> => {
    const found = new Map<string, string>();
    const canvas = page.locator("canvas.lanes").nth(pane);
    const heads = page.locator(".heads").nth(pane).locator('.head[title^="api:"], .head[title^="batch:"]');
    const labels = await labelsOf(page);
    for (const head of await heads.all()) {
      const [name] = (await head.getAttribute("title"))!.split(":");
      const tops = await head.evaluate((one) => (one as HTMLElement).offsetTop + one.clientHeight - 2);
      const tally = await canvas.evaluate(
        (one, [left, top]) => {
          const lanes = one as HTMLCanvasElement;
          const ratio = lanes.width / lanes.clientWidth;
          const width = lanes.width - Math.round(left! * ratio);
          const context = new OffscreenCanvas(width, 1).getContext("2d", { willReadFrequently: true })!;
          context.drawImage(lanes, -Math.round(left! * ratio), -Math.round(top! * ratio));
          const { data } = context.getImageData(0, 0, width, 1);
          const counts = new Map<string, number>();
          for (let at = 0; at < data.length; at += 4) {
            const [r, g, b] = [data[at]!, data[at + 1]!, data[at + 2]!];
            if (Math.max(r, g, b) - Math.min(r, g, b) > 40) counts.set(`${r} ${g} ${b}`, (counts.get(`${r} ${g} ${b}`) ?? 0) + 1);
          }
          return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
        },
        [labels, tops],
      );
      found.set(`${name} ${[...found.keys()].filter((key) => key.startsWith(name!)).length}`, tally);
    }
    return found;
  };
  const sorted = (of: Map<string, string>): string[] => [...of.values()].sort();
  await expect.poll(async () => (await colours(0)).size).toBe(7);
  const [one, other] = [await colours(0), await colours(1)];
  expect(sorted(one).every((colour) => colour !== "")).toBe(true);
  expect(sorted(other)).toEqual(sorted(one));
  expect(new Set(one.values()).size).toBeGreaterThan(3);
});
