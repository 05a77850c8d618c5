/** File names. */

import assert from "node:assert/strict";
import { isPostbellError } from "../../core/errors.js";
import {
  assertAbsent,
  buildBytes,
  type DeclareFilesTest,
  listNames,
  NAME,
  storeFile,
  streamBytes,
} from "./fixture.js";

/** Invalid names: some leave the folder, some reach files that a store keeps for itself. */
const HOSTILE_NAMES = [
  "",
  ".",
  "..",
  "/",
  "../outside.png",
  "2026/../../outside.png",
  "2026/11/..",
  "/etc/passwd",
  "2026//heart.png",
  "2026/11/",
  "2026\\..\\outside.png",
  "..%2foutside.png",
  "C:\\outside.png",
  "file:///etc/passwd",
  "2026/.htaccess",
  ".staging",
  "2026/11/a\u0000.png",
  "2026/11/a\n.png",
  "2026/11/a\u202egnp.exe",
  "2026/11/a b.png",
  "2026/11/a\ud800.png",
  `2026/11/${"a".repeat(256)}`,
  `2026/11/${"ä".repeat(128)}`,
  "a/".repeat(8_000),
  "__proto__/../..",
] as const;

/** A name is kept as it is, or refused. */
export function testNames(it: DeclareFilesTest): void {
  it("names keep their characters, whatever the script", async (files) => {
    const all = ["2026/11/心臓.png", "2026/11/Ä.png", "2026/11/constructor.png", "__proto__"];
    for (const [at, name] of all.entries()) await storeFile(files, name, buildBytes(at + 1));
    assert.deepEqual(await listNames(files), all.sort());
    assert.equal((await files.stat("2026/11/心臓.png"))?.bytes, 1);
  });

  it("a folder is not a file", async (files) => {
    await storeFile(files, NAME, buildBytes(1));
    await assertAbsent(files, "2026/11");
    assert.equal(await files.remove("2026/11"), false);
    assert.deepEqual(await listNames(files), [NAME]);
  });

  it("a name that is not a valid file name is refused and reaches no other file", async (files) => {
    await storeFile(files, NAME, buildBytes(1));
    for (const name of HOSTILE_NAMES) {
      await assertAbsent(files, name);
      assert.equal(await files.remove(name), false);
      const staged = await files.stage(streamBytes(buildBytes(1), 1));
      await assert.rejects(staged.publish(name), (error) => isPostbellError(error, "invalid_argument"));
      await staged.discard();
    }
    assert.deepEqual(await listNames(files), [NAME]);
  });
}
