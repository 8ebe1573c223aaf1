// How pages are tested: in Debian's Chromium, from files, on both CPUs of a small machine.

import { defineConfig } from "@playwright/test";

const chromium = process.env["FAIRLAB_CHROMIUM"];
if (chromium === undefined) throw new Error("FAIRLAB_CHROMIUM names no browser; cure: scripts/with-browser npm test, or make test");

export default defineConfig({
  testDir: "tests",
  outputDir: "../target/web/results",
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  retries: 0,
  timeout: 60_000,
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    locale: "en-GB",
    timezoneId: "UTC",
    // A container's Chromium has no user namespaces for its sandbox, and the pages are our own.
    launchOptions: { executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] },
  },
});
