// Draws the pictures of documents from the data that scenarios leave:  node scripts/pictures.mjs [--check]
//
// docs/reports/NAME.json becomes docs/reports/NAME.svg, by the code that draws bars on pages. --check says which committed
// picture is not what its data give.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { parseHTML } from "linkedom";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const reports = join(web, "..", "docs", "reports");

const built = await build({
  absWorkingDir: web,
  entryPoints: ["src/base/picture.ts"],
  bundle: true,
  write: false,
  format: "esm",
  platform: "node",
  logLevel: "warning",
});
const code = built.outputFiles[0].text;
const { pictureFile } = await import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
const { document } = parseHTML("<!DOCTYPE html><html><body></body></html>");

const names = readdirSync(reports).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
const unmade = readdirSync(reports).filter((name) => name.endsWith(".svg") && !names.includes(name.slice(0, -".svg".length)));
const violations = unmade.map((name) => `${name} has no data beside it`);
for (const name of names) {
  const svg = pictureFile(JSON.parse(readFileSync(join(reports, `${name}.json`), "utf8")), document);
  const path = join(reports, `${name}.svg`);
  if (!process.argv.includes("--check")) writeFileSync(path, svg);
  else if (!existsSync(path) || readFileSync(path, "utf8") !== svg) violations.push(`${name}.svg is not what ${name}.json gives; cure: make pictures`);
}
violations.forEach((line) => console.error(`docs/reports: ${line}`));
process.exitCode = violations.length === 0 ? 0 : 1;
console.log(`${names.length} pictures`);
