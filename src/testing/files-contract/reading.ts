/** Reading and listing files. */

import assert from "node:assert/strict";
import { buildBytes, type DeclareFilesTest, NAME, readWhole, storeFile } from "./fixture.js";

/** A reader gets the bytes that were stored. */
export function testReading(it: DeclareFilesTest): void {
  it("any range of a file is returned as it was stored", async (files) => {
    const bytes = buildBytes(200_000);
    await storeFile(files, NAME, bytes);
    const ranges = [
      [0, 0],
      [0, 1],
      [199_999, 200_000],
      [200_000, 200_000],
      [65_535, 65_537],
      [1, 199_999],
      [0, 200_000],
      [70_000, 140_001],
    ] as const;
    for (const [start, end] of ranges) {
      assert.deepEqual(await readWhole(files.read(NAME, { start, end })), bytes.slice(start, end));
    }
  });

  it("a reader that stops or mutates its chunks does not affect the file", async (files) => {
    const bytes = buildBytes(600_000);
    await storeFile(files, NAME, bytes);
    for await (const chunk of files.read(NAME)) {
      chunk.fill(0);
      break;
    }
    assert.deepEqual(await readWhole(files.read(NAME)), bytes);
  });

  it("every file is listed once, with the same entry as stat returns", async (files) => {
    const expected = ["a.txt", "2026/11/a.png", "2026/11/a.png.txt", "2026/12/a.png", "a/b/c/d/e/f/g/h.png"];
    for (const [at, name] of expected.entries()) await storeFile(files, name, buildBytes(at));
    const listed = [];
    for await (const entry of files.list()) {
      assert.deepEqual(entry, await files.stat(entry.name));
      listed.push(entry.name);
    }
    assert.deepEqual(listed.sort(), expected.sort());
  });
}
