/** The stores of files in memory and on disk: their contract, and what each promises beyond it. */

import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { filesContract } from "../../../src/testing/files-contract.js";
import { diskFiles, memoryFiles } from "../../../storage/files/index.js";

const DAY_MS = 86_400_000;

async function* bytesOf(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

async function withFolder(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "postbell-files-"));
  try {
    await run(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe("files in memory keep the files contract:", () => {
  filesContract({ test, create: () => ({ files: memoryFiles() }) });
});

describe("files on disk keep the files contract:", () => {
  filesContract({
    test,
    async create() {
      const directory = await mkdtemp(join(tmpdir(), "postbell-files-"));
      return {
        files: diskFiles({ directory: join(directory, "made", "on demand") }),
        destroy: () => rm(directory, { recursive: true, force: true }),
      };
    },
  });
});

describe("the bound of files in memory", () => {
  test("what would pass it is refused and freed; discarding and removing make room", async () => {
    const files = memoryFiles({ limits: { bytes: 10 } });
    const staged = await files.stage(bytesOf("12345", "678"));
    await expect(files.stage(bytesOf("1", "23"))).rejects.toMatchObject({ code: "storage_full" });
    await staged.discard();
    await staged.discard();
    const first = await files.stage(bytesOf("1234567890"));
    await first.publish("a.txt");
    await first.discard();
    await expect(files.stage(bytesOf("1"))).rejects.toMatchObject({ code: "storage_full" });
    await files.remove("a.txt");
    await files.remove("a.txt");
    await expect(files.stage(bytesOf("1234567890", "1"))).rejects.toMatchObject({ code: "storage_full" });
    expect((await files.stage(bytesOf("1234567890"))).bytes).toBe(10);
  });

  test.each([0, 1.5, "1", null])("a bound of %j is refused", (bytes) => {
    expect(() => memoryFiles({ limits: { bytes: bytes as number } })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "limits.bytes" }),
    );
  });
});

describe("the folder of files on disk", () => {
  test("is not made before the first file", () =>
    withFolder(async (directory) => {
      const files = diskFiles({ directory: join(directory, "uploads") });
      expect(await files.stat("a.txt")).toBeUndefined();
      for await (const entry of files.list()) expect(entry).toBeUndefined();
      expect(await readdir(directory)).toEqual([]);
    }));

  test("holds nothing aside once files are published, discarded or cut off", () =>
    withFolder(async (directory) => {
      const files = diskFiles({ directory });
      await (await files.stage(bytesOf("a"))).publish("a.txt");
      await (await files.stage(bytesOf("b"))).discard();
      const cut = files.stage(
        (async function* () {
          yield Buffer.from("c");
          throw new Error("cut off");
        })(),
      );
      await expect(cut).rejects.toThrow("cut off");
      const all = await readdir(directory, { recursive: true });
      expect(all.sort()).toEqual([".staging", "a.txt"]);
    }));

  test("is shared: what one store publishes the other sees, and one name goes to one of them", () =>
    withFolder(async (directory) => {
      const [one, other] = [diskFiles({ directory }), diskFiles({ directory })];
      const results = await Promise.all(
        Array.from({ length: 10 }, async (_, at) =>
          (await (at % 2 ? one : other).stage(bytesOf(String(at)))).publish("a.txt"),
        ),
      );
      expect(results.filter(Boolean)).toHaveLength(1);
      expect((await one.stat("a.txt"))?.bytes).toBe(1);
      expect(await other.remove("a.txt")).toBe(true);
      expect(await one.stat("a.txt")).toBeUndefined();
    }));

  test("is cleared of files that a dead process left a day ago, and keeps those of a write in progress", () =>
    withFolder(async (directory) => {
      const staging = join(directory, ".staging");
      await mkdir(staging);
      for (const name of ["old", "new"]) await writeFile(join(staging, name), "left behind");
      const old = (Date.now() - DAY_MS - 60_000) / 1_000;
      await utimes(join(staging, "old"), old, old);
      const staged = await diskFiles({ directory }).stage(bytesOf("a"));
      const left = await readdir(staging);
      expect(left).toContain("new");
      expect(left).not.toContain("old");
      await staged.publish("a.txt");
      expect(await readdir(staging)).toEqual(["new"]);
    }));

  test("does not list what is hidden or no file name", () =>
    withFolder(async (directory) => {
      const files = diskFiles({ directory });
      await (await files.stage(bytesOf("a"))).publish("2026/a.txt");
      await writeFile(join(directory, ".hidden"), "");
      await writeFile(join(directory, "not ours"), "");
      const listed = [];
      for await (const { name } of files.list()) listed.push(name);
      expect(listed).toEqual(["2026/a.txt"]);
    }));

  test("has to be named", () => {
    for (const options of [
      {},
      { directory: "" },
      { directory: "uploads\ud800" },
      { directory: 5 },
      { directory: "x", dir: "y" },
      undefined,
    ]) {
      expect(() => diskFiles(options as { directory: string })).toThrow(
        expect.objectContaining({ code: "invalid_option" }),
      );
    }
  });
});
