// The page of a comparison, as a reader uses it.

import { join } from "node:path";
import { expect } from "@playwright/test";
import { fairlab, open, test } from "./program.js";

test("a comparison's page opens from a file", async ({ page, folder }) => {
  const path = join(folder, "compare.html");
  fairlab(
    ..."compare schbench -t 4 --machine qemu8-hres --kernel v6.5 --kernel v6.6 --runs 3 --duration 1s --warmup 0".split(" "),
    "--export",
    path,
  );
  await open(page, path);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("v6.6");
  await expect(page.getByText("fairlab compare schbench -t 4").first()).toBeVisible();
});
