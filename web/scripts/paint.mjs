// How soon a page is there, in a browser of its own each time:  scripts/with-browser node web/scripts/paint.mjs PAGE [RUNS]

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "@playwright/test";

const [page, runs = "9"] = process.argv.slice(2);
if (page === undefined) {
  console.error("paint: name a page, such as docs/history/index.html");
  process.exit(2);
}

const MARKS = ["responseEnd", "drawn", "first-contentful-paint"];
const times = [];
for (let run = 0; run < Number(runs); run += 1) {
  const browser = await chromium.launch({ executablePath: process.env["FAIRLAB_CHROMIUM"] });
  const tab = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await tab.goto(pathToFileURL(resolve(page)).href);
  await tab.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  times.push(
    await tab.evaluate((marks) => {
      const of = (name) => (name === "responseEnd" ? performance.getEntriesByType("navigation")[0]?.responseEnd : performance.getEntriesByName(name)[0]?.startTime);
      return marks.map((name) => of(name) ?? Number.NaN);
    }, MARKS),
  );
  await browser.close();
}
MARKS.forEach((name, at) => {
  const sorted = times.map((one) => one[at]).sort((one, other) => one - other);
  const shown = (time) => `${time.toFixed(0)} ms`;
  console.log(`${name}: median ${shown(sorted[Math.floor(sorted.length / 2)])}, ${shown(sorted[0])} to ${shown(sorted[sorted.length - 1])} in ${sorted.length} runs`);
});
