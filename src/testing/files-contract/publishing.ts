/** Staging, publishing and removing files. */

import assert from "node:assert/strict";
import {
  assertAbsent,
  buildBytes,
  type DeclareFilesTest,
  listNames,
  NAME,
  readWhole,
  storeFile,
  streamBytes,
} from "./fixture.js";

/** A file exists under its name from `publish` to `remove`. */
export function testPublishing(it: DeclareFilesTest): void {
  it("an empty store lists nothing and finds nothing", async (files) => {
    assert.deepEqual(await listNames(files), []);
    await assertAbsent(files, NAME);
    assert.equal(await files.remove(NAME), false);
  });

  for (const size of [0, 1, 65_536, 3_000_017]) {
    it(`a file of ${size} bytes is returned as it was stored`, async (files) => {
      const bytes = buildBytes(size);
      const staged = await files.stage(streamBytes(bytes, 70_001));
      assert.equal(staged.bytes, size);
      assert.equal(await staged.publish(NAME), true);
      assert.deepEqual(await readWhole(files.read(NAME)), bytes);
      const entry = await files.stat(NAME);
      assert.deepEqual({ ...entry, storedAt: 0 }, { name: NAME, bytes: size, storedAt: 0 });
      assert.ok(Number.isSafeInteger(entry?.storedAt));
    });
  }

  it("a staged file is invisible until it is published", async (files) => {
    const staged = await files.stage(streamBytes(buildBytes(5_000), 100));
    await assertAbsent(files, NAME);
    assert.deepEqual(await listNames(files), []);
    assert.equal(await files.remove(NAME), false);
    assert.equal(await staged.publish(NAME), true);
    assert.deepEqual(await listNames(files), [NAME]);
  });

  it("a file is invisible while it is being staged", async (files) => {
    async function* watched() {
      for (let round = 0; round < 3; round += 1) {
        yield buildBytes(100_000);
        assert.deepEqual(await listNames(files), []);
        await assertAbsent(files, NAME);
      }
    }
    const staged = await files.stage(watched());
    assert.equal(staged.bytes, 300_000);
    await staged.discard();
  });

  it("a discarded file is gone, and discarding it again or after publishing changes nothing", async (files) => {
    const discarded = await files.stage(streamBytes(buildBytes(10), 3));
    await discarded.discard();
    await discarded.discard();
    assert.deepEqual(await listNames(files), []);
    const published = await files.stage(streamBytes(buildBytes(10), 3));
    await published.publish(NAME);
    await published.discard();
    assert.deepEqual(await readWhole(files.read(NAME)), buildBytes(10));
  });

  it("a source that fails leaves nothing behind, and stage rejects with its error", async (files) => {
    const broken = new Error("the client has left");
    async function* cutOff() {
      yield buildBytes(200_000);
      throw broken;
    }
    await assert.rejects(files.stage(cutOff()), (error) => error === broken);
    assert.deepEqual(await listNames(files), []);
    await storeFile(files, NAME, buildBytes(10));
    assert.deepEqual(await readWhole(files.read(NAME)), buildBytes(10));
  });

  it("a removed file is gone and its name is free", async (files) => {
    await storeFile(files, NAME, buildBytes(100, 1));
    assert.equal(await files.remove(NAME), true);
    assert.equal(await files.remove(NAME), false);
    await assertAbsent(files, NAME);
    assert.deepEqual(await listNames(files), []);
    await storeFile(files, NAME, buildBytes(50, 2));
    assert.deepEqual(await readWhole(files.read(NAME)), buildBytes(50, 2));
  });
}

/** A name that is taken keeps its file. */
export function testTakenNames(it: DeclareFilesTest): void {
  it("publishing under a taken name changes nothing, and another name can be used then", async (files) => {
    await storeFile(files, NAME, buildBytes(100, 1));
    const second = await files.stage(streamBytes(buildBytes(200, 2), 64));
    assert.equal(await second.publish(NAME), false);
    assert.deepEqual(await readWhole(files.read(NAME)), buildBytes(100, 1));
    assert.equal(await second.publish("2026/11/heart-1.png"), true);
    assert.deepEqual(await readWhole(files.read("2026/11/heart-1.png")), buildBytes(200, 2));
    assert.deepEqual(await listNames(files), ["2026/11/heart-1.png", NAME].sort());
  });

  it("of many concurrent publications of one name, one succeeds", async (files) => {
    const staged = await Promise.all(
      Array.from({ length: 20 }, (_, at) => files.stage(streamBytes(buildBytes(1_000, at), 300))),
    );
    const results = await Promise.all(staged.map((file) => file.publish(NAME)));
    assert.equal(results.filter(Boolean).length, 1);
    assert.deepEqual(await readWhole(files.read(NAME)), buildBytes(1_000, results.indexOf(true)));
    await Promise.all(staged.map((file) => file.discard()));
    assert.deepEqual(await readWhole(files.read(NAME)), buildBytes(1_000, results.indexOf(true)));
  });
}
