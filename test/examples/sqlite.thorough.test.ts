import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..", "..");

it("loses nothing to kill -9, and sends nothing for a record that was rolled back", () => {
  const said = execFileSync(process.execPath, [join(root, "examples/sqlite.js"), "--once"], {
    encoding: "utf8",
  });
  expect(said).toBe(
    [
      "ada: 204",
      "nobody, rolled back: 400",
      "grace, killed before the commit: SIGKILL",
      "joan, killed after the commit: SIGKILL",
      "mary: 204",
      "Delivered: ada, joan, mary. Sent for what was not committed: nothing.",
      "",
    ].join("\n"),
  );
});
