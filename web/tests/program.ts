// Pages for tests: the program writes them, as users have it do.

import { execFileSync, type ExecFileSyncOptions } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import AxeBuilder from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";

export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The program's path. */
export function program(): string {
  const path = process.env["FAIRLAB"];
  if (path === undefined) throw new Error("FAIRLAB names no program; cure: scripts/with-browser scripts/test-pages PROGRAM");
  return path;
}

/** What the program prints for these words, in the repository's folder; 1 and 3 are answers, too. */
export function fairlab(...words: readonly string[]): string {
  // Each call makes its runs: what was kept from the one before would be said.
  const env = { ...process.env, FAIRLAB_RUNS: "" };
  const options: ExecFileSyncOptions = { cwd: repository, encoding: "utf8", env, maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] };
  try {
    return String(execFileSync(program(), words, options));
  } catch (error) {
    const { status, stdout, stderr } = error as { status?: number; stdout?: string; stderr?: string };
    if (status === 1 || status === 3) return String(stdout);
    throw new Error(`fairlab ${words.join(" ")}: status ${status}: ${stderr}`);
  }
}

/** What a page did that none may: errors, and requests beside the file itself. */
interface Watch {
  readonly trouble: string[];
}

/** Tests with a folder of their own, whose page is watched: it asks for nothing, and nothing goes wrong in it. */
export const test = base.extend<{ watch: Watch }, { folder: string }>({
  folder: [
    async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), "fairlab-pages-"));
      await use(folder);
      rmSync(folder, { recursive: true });
    },
    { scope: "worker" },
  ],
  watch: [
    async ({ page }, use) => {
      const trouble: string[] = [];
      page.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning") trouble.push(`console: ${message.text()}`);
      });
      page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
      page.on("dialog", (dialog) => {
        trouble.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith("file:") && !url.startsWith("blob:file:")) trouble.push(`request: ${url}`);
      });
      await use({ trouble });
      expect(trouble).toEqual([]);
    },
    { auto: true },
  ],
});

/** Opens a page's file and waits until it is drawn. */
export async function open(page: Page, path: string): Promise<void> {
  await page.goto(pathToFileURL(path).href);
  await expect(page.locator("html")).toHaveAttribute("data-drawn", "true");
}

/** How wide the names of a page of traces are. */
export async function labelsOf(page: Page): Promise<number> {
  return (await page.locator(".heads").first().boundingBox())!.width;
}

/** It can be read in both colours, and on a narrow screen. */
export async function reads(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const found = await new AxeBuilder({ page }).analyze();
    expect(found.violations.map((one) => `${one.id}: ${one.nodes[0]?.html}`)).toEqual([]);
  }
  await page.setViewportSize({ width: 400, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
}
