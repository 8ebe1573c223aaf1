// Builds one script and one style sheet a kind of page into crates/page/bundle:  node scripts/build.mjs [--check]
//
// The bundles are committed, so that cargo alone builds the program. What is built depends on the sources and on the
// versions in package-lock.json alone; --check says which committed file is not what the sources give.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const KINDS = ["compare", "timeline", "watch"];

/** Licences that code in a page may have, for the page is part of a program under the GPL. */
const LICENCES = new Set(["ISC", "MIT", "BSD-3-Clause", "BSD-2-Clause", "0BSD"]);

/** A page is one file: its script and style must stay small beside its data. */
const BYTES_MAX = 500 * 1024;

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const bundle = join(web, "..", "crates", "page", "bundle");

/** The folder of the package that a source comes from, or undefined for our own. */
function packageOf(path) {
  const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path);
  return found?.[1];
}

/** The notices that the licences of packages ask for; packages with equal words share them. */
function notices(inputs) {
  const packages = [...new Set(inputs.map(packageOf).filter((path) => path !== undefined))].sort();
  const byText = new Map();
  for (const path of packages) {
    const about = JSON.parse(readFileSync(join(web, path, "package.json"), "utf8"));
    if (!LICENCES.has(about.license)) {
      throw new Error(`${about.name}: its licence is ${about.license}, and only ${[...LICENCES].join(", ")} may be built in`);
    }
    const file = readdirSync(join(web, path)).find((name) => /^licen[cs]e/i.test(name));
    const text = file === undefined ? about.license : readFileSync(join(web, path, file), "utf8").trim();
    const lines = text.split(/\r?\n/);
    const holders = lines.filter((line) => /^\s*copyright/i.test(line)).map((line) => line.trim());
    const words = lines.filter((line) => !/^\s*copyright/i.test(line)).join("\n").trim();
    const entry = byText.get(words) ?? [];
    entry.push(`${about.name} ${about.version}: ${holders.join("; ") || about.license}`);
    byText.set(words, entry);
  }
  const parts = [...byText].map(([words, names]) => `${names.join("\n")}\n\n${words}`);
  return parts.length === 0 ? "" : `/*! Contains\n\n${parts.join("\n\n").replaceAll("*/", "* /")}\n*/\n`;
}

/** Hash of a script as a Content-Security-Policy names it. */
function hashOf(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

async function built(kind) {
  const result = await build({
    absWorkingDir: web,
    entryPoints: { [kind]: `src/${kind}/main.ts` },
    outdir: "out",
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: ["es2022"],
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
  });
  const part = (end) => result.outputFiles.find((file) => file.path.endsWith(end))?.text ?? "";
  // In a page the script must not end before its end, whatever strings it holds.
  const script = (notices(Object.keys(result.metafile.inputs)) + part(".js")).replaceAll("</script", "<\\/script");
  return new Map([
    [`${kind}.js`, script],
    [`${kind}.js.sha256`, hashOf(script)],
    [`${kind}.css`, part(".css").replaceAll("</style", "<\\/style")],
  ]);
}

function trouble(files) {
  const expected = new Set(files.keys());
  const found = existsSync(bundle) ? readdirSync(bundle) : [];
  const extra = found.filter((name) => !expected.has(name)).map((name) => `${name} is not built from any source`);
  const differing = [...files].filter(([name, text]) => {
    const path = join(bundle, name);
    return !existsSync(path) || readFileSync(path, "utf8") !== text;
  });
  return [...extra, ...differing.map(([name]) => `${name} is not what web/src gives; cure: make web`)];
}

const files = new Map();
for (const kind of KINDS) {
  for (const [name, text] of await built(kind)) {
    if (Buffer.byteLength(text) > BYTES_MAX) throw new Error(`${name} has ${Buffer.byteLength(text)} bytes, of ${BYTES_MAX}`);
    files.set(name, text);
  }
}
if (process.argv.includes("--check")) {
  const violations = trouble(files);
  violations.forEach((line) => console.error(`crates/page/bundle: ${line}`));
  process.exitCode = violations.length === 0 ? 0 : 1;
} else {
  rmSync(bundle, { recursive: true, force: true });
  mkdirSync(bundle, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(bundle, name), text);
}
for (const [name, text] of files) {
  if (!name.endsWith(".sha256")) console.log(`${name}: ${Buffer.byteLength(text)} bytes`);
}
