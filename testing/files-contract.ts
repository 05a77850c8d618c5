/** The tests that every store of files has to pass. They run in any test runner and know nothing of how a store works. */

import assert from "node:assert/strict";
import type { FileStore } from "../src/content/files.js";
import { isPostbellError } from "../src/core/errors.js";
import type { ReadableBody } from "../src/http/types.js";

/** A file store with nothing in it. */
export interface FilesUnderTest {
  readonly files: FileStore;
  /** Called at the end of the test. */
  readonly destroy?: (() => void | Promise<void>) | undefined;
}

/** What {@link filesContract} takes. */
export interface FilesContractOptions {
  /** The runner's function that declares a test: `test` of vitest, `node:test` or Jest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** Makes a store with nothing in it. Called once in each test. */
  readonly create: () => FilesUnderTest | Promise<FilesUnderTest>;
}

const NAME = "2026/11/heart.png";

/** None of them can name a file; some lead out of a folder, some to what a store may keep aside. */
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

/** Bytes that differ at every place, so that none can be lost or doubled unseen. */
const pattern = (length: number, seed = 7): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 8) * seed + seed) & 255);

/** One buffer for all chunks: a store that keeps a chunk instead of its bytes stores other bytes. */
async function* streamed(bytes: Uint8Array, chunkBytes: number): ReadableBody & AsyncGenerator<Uint8Array> {
  const shared = new Uint8Array(chunkBytes);
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const part = bytes.subarray(at, at + chunkBytes);
    shared.set(part);
    await Promise.resolve();
    yield shared.subarray(0, part.length);
    shared.fill(0);
  }
}

async function collected(body: ReadableBody): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(Uint8Array.from(chunk));
  return Uint8Array.from(Buffer.concat(chunks));
}

async function names(files: FileStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of files.list()) found.push(name);
  return found.sort();
}

async function store(files: FileStore, name: string, bytes: Uint8Array): Promise<void> {
  const staged = await files.stage(streamed(bytes, 1_000));
  assert.equal(await staged.publish(name), true);
}

async function assertAbsent(files: FileStore, name: string): Promise<void> {
  assert.equal(await files.stat(name), undefined);
  await assert.rejects(collected(files.read(name)), (error) => isPostbellError(error, "not_found"));
}

/**
 * Declares the tests that hold a store of files to the page of its port, `FileStore`.
 *
 * @example
 * import { test } from "node:test";
 * import { memoryFiles } from "postbell/files";
 * import { filesContract } from "postbell/testing";
 *
 * filesContract({ test, create: () => ({ files: memoryFiles() }) });
 */
export function filesContract({ test, create }: FilesContractOptions): void {
  const declare = (name: string, run: (files: FileStore) => Promise<void>): void => {
    test(name, async () => {
      const { files, destroy } = await create();
      try {
        await run(files);
      } finally {
        await destroy?.();
      }
    });
  };

  declare("a store with nothing in it lists nothing and finds nothing", async (files) => {
    assert.deepEqual(await names(files), []);
    await assertAbsent(files, NAME);
    assert.equal(await files.remove(NAME), false);
  });

  for (const size of [0, 1, 65_536, 3_000_017]) {
    declare(`a file of ${size} bytes comes back as it went in`, async (files) => {
      const bytes = pattern(size);
      const staged = await files.stage(streamed(bytes, 70_001));
      assert.equal(staged.bytes, size);
      assert.equal(await staged.publish(NAME), true);
      assert.deepEqual(await collected(files.read(NAME)), bytes);
      const entry = await files.stat(NAME);
      assert.deepEqual({ ...entry, storedAt: 0 }, { name: NAME, bytes: size, storedAt: 0 });
      assert.ok(Number.isSafeInteger(entry?.storedAt));
    });
  }

  declare("what is staged is not to be seen until it is published", async (files) => {
    const staged = await files.stage(streamed(pattern(5_000), 100));
    await assertAbsent(files, NAME);
    assert.deepEqual(await names(files), []);
    assert.equal(await files.remove(NAME), false);
    assert.equal(await staged.publish(NAME), true);
    assert.deepEqual(await names(files), [NAME]);
  });

  declare("while a file is being staged, there is nothing of it", async (files) => {
    async function* watched() {
      for (let round = 0; round < 3; round += 1) {
        yield pattern(100_000);
        assert.deepEqual(await names(files), []);
        await assertAbsent(files, NAME);
      }
    }
    const staged = await files.stage(watched());
    assert.equal(staged.bytes, 300_000);
    await staged.discard();
  });

  declare(
    "what was discarded is gone; discarding again, or after a publication, changes nothing",
    async (files) => {
      const discarded = await files.stage(streamed(pattern(10), 3));
      await discarded.discard();
      await discarded.discard();
      assert.deepEqual(await names(files), []);
      const published = await files.stage(streamed(pattern(10), 3));
      await published.publish(NAME);
      await published.discard();
      assert.deepEqual(await collected(files.read(NAME)), pattern(10));
    },
  );

  declare("a name that is taken keeps its file, and what was staged can have another name", async (files) => {
    await store(files, NAME, pattern(100, 1));
    const second = await files.stage(streamed(pattern(200, 2), 64));
    assert.equal(await second.publish(NAME), false);
    assert.deepEqual(await collected(files.read(NAME)), pattern(100, 1));
    assert.equal(await second.publish("2026/11/heart-1.png"), true);
    assert.deepEqual(await collected(files.read("2026/11/heart-1.png")), pattern(200, 2));
    assert.deepEqual(await names(files), ["2026/11/heart-1.png", NAME].sort());
  });

  declare("of many who publish one name at once, one succeeds", async (files) => {
    const staged = await Promise.all(
      Array.from({ length: 20 }, (_, at) => files.stage(streamed(pattern(1_000, at), 300))),
    );
    const results = await Promise.all(staged.map((file) => file.publish(NAME)));
    assert.equal(results.filter(Boolean).length, 1);
    assert.deepEqual(await collected(files.read(NAME)), pattern(1_000, results.indexOf(true)));
    await Promise.all(staged.map((file) => file.discard()));
    assert.deepEqual(await collected(files.read(NAME)), pattern(1_000, results.indexOf(true)));
  });

  declare("a source that breaks off leaves nothing, and its error comes back", async (files) => {
    const broken = new Error("the client has left");
    async function* cutOff() {
      yield pattern(200_000);
      throw broken;
    }
    await assert.rejects(files.stage(cutOff()), (error) => error === broken);
    assert.deepEqual(await names(files), []);
    await store(files, NAME, pattern(10));
    assert.deepEqual(await collected(files.read(NAME)), pattern(10));
  });

  declare("any range of a file is read as it is", async (files) => {
    const bytes = pattern(200_000);
    await store(files, NAME, bytes);
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
      assert.deepEqual(await collected(files.read(NAME, { start, end })), bytes.slice(start, end));
    }
  });

  declare("a reader may leave, and what it does to its chunks reaches nobody else", async (files) => {
    const bytes = pattern(600_000);
    await store(files, NAME, bytes);
    for await (const chunk of files.read(NAME)) {
      chunk.fill(0);
      break;
    }
    assert.deepEqual(await collected(files.read(NAME)), bytes);
  });

  declare("a file that is removed is gone, and its name is free", async (files) => {
    await store(files, NAME, pattern(100, 1));
    assert.equal(await files.remove(NAME), true);
    assert.equal(await files.remove(NAME), false);
    await assertAbsent(files, NAME);
    assert.deepEqual(await names(files), []);
    await store(files, NAME, pattern(50, 2));
    assert.deepEqual(await collected(files.read(NAME)), pattern(50, 2));
  });

  declare("all files are listed, each once, with what stat says of them", async (files) => {
    const expected = ["a.txt", "2026/11/a.png", "2026/11/a.png.txt", "2026/12/a.png", "a/b/c/d/e/f/g/h.png"];
    for (const [at, name] of expected.entries()) await store(files, name, pattern(at));
    const listed = [];
    for await (const entry of files.list()) {
      assert.deepEqual(entry, await files.stat(entry.name));
      listed.push(entry.name);
    }
    assert.deepEqual(listed.sort(), expected.sort());
  });

  declare("names keep their letters, whatever the script", async (files) => {
    const all = ["2026/11/心臓.png", "2026/11/Ä.png", "2026/11/constructor.png", "__proto__"];
    for (const [at, name] of all.entries()) await store(files, name, pattern(at + 1));
    assert.deepEqual(await names(files), all.sort());
    assert.equal((await files.stat("2026/11/心臓.png"))?.bytes, 1);
  });

  declare("a folder is no file", async (files) => {
    await store(files, NAME, pattern(1));
    await assertAbsent(files, "2026/11");
    assert.equal(await files.remove("2026/11"), false);
    assert.deepEqual(await names(files), [NAME]);
  });

  declare("no name leads anywhere else", async (files) => {
    await store(files, NAME, pattern(1));
    for (const name of HOSTILE_NAMES) {
      await assertAbsent(files, name);
      assert.equal(await files.remove(name), false);
      const staged = await files.stage(streamed(pattern(1), 1));
      await assert.rejects(staged.publish(name), (error) => isPostbellError(error, "invalid_argument"));
      await staged.discard();
    }
    assert.deepEqual(await names(files), [NAME]);
  });
}
