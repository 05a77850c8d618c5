import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliIo, main } from "../../../adapters/cli/command-line.js";
import { createProgressBar, formatExport, formatImport } from "../../../adapters/cli/progress.js";
import type { ContentStorage } from "../../../src/content/store.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { fileLeaks } from "../../support/leak-check.js";
import { bytesOf, seededSite, wxrFile } from "../../support/wxr-file.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postbell-cli-"));
  writeFileSync(join(folder, "types.json"), '{ "types": { "recipe": {} } }');
  writeFileSync(join(folder, "site.xml"), wxrFile([{ id: 1 }, { id: 2, type: "product\u001b[2J" }]));
  writeFileSync(join(folder, "broken.xml"), "<html><body>Not found</body></html>");
  writeFileSync(join(folder, "cut.xml"), wxrFile([{ id: 1 }]).slice(0, -40));
  writeFileSync(
    join(folder, "large.xml"),
    [...seededSite({ count: 2_000, seed: 1, words: 5 }).file()].join(""),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the command in this process, on a storage that survives the run. */
async function run(line: string, storage: ContentStorage = memoryStorage(), io: Partial<CliIo> = {}) {
  let out = "";
  let errors = "";
  const opened: unknown[] = [];
  const code = await main(
    line
      .split(" ")
      .filter(Boolean)
      .map((word) => word.replace("@", `${folder}/`)),
    {
      stdin: bytesOf(""),
      stdout: new Writable({
        write(chunk, _, done) {
          out += String(chunk);
          done();
        },
      }),
      stderr: { write: (text) => (errors += text) },
      env: {},
      openStorage: (options) => {
        opened.push(options);
        return { content: (context) => storage.content(context), close: async () => {} };
      },
      signal: new AbortController().signal,
      ...io,
    },
  );
  fileLeaks.note("postbell", [out, errors]);
  return { code, out, errors, opened };
}

describe("postbell import", () => {
  it("warns that a folder alone stores no files", async () => {
    const { code, errors } = await run("import @site.xml --redis redis://h --files @up");
    expect(code).toBe(0);
    expect(errors).toContain("--files alone stores no files");
  });

  it("imports a file and prints a summary", async () => {
    const { code, out, errors, opened } = await run("import @site.xml --redis redis://h --prefix p --json");
    expect(code).toBe(0);
    expect(opened).toEqual([{ url: "redis://h", prefix: "p" }]);
    expect(JSON.parse(out)).toMatchObject({ created: 1, skipped: 1, kinds: { posts: { created: 1 } } });
    expect(errors).toContain("1 new");
    expect(errors).not.toContain("\u001b");
  });

  it("takes the URL of Redis from the environment, so that no list of processes shows its password", async () => {
    const env = { POSTBELL_REDIS: "redis://:hidden@h" };
    const { code, opened } = await run("import @site.xml", memoryStorage(), { env });
    expect({ code, opened }).toEqual({ code: 0, opened: [{ url: "redis://:hidden@h" }] });
    const named = await run("import @site.xml --redis redis://other", memoryStorage(), { env });
    expect(named.opened).toEqual([{ url: "redis://other" }]);
  });

  it("reads standard input, and can be repeated", async () => {
    const storage = memoryStorage();
    const stdin = (): AsyncIterable<Uint8Array> => bytesOf(readFileSync(join(folder, "site.xml")));
    expect((await run("import - --redis redis://h --quiet", storage, { stdin: stdin() })).errors).toBe("");
    const again = await run("import - --redis redis://h --quiet --json", storage, { stdin: stdin() });
    expect(JSON.parse(again.out)).toMatchObject({ created: 0, unchanged: 1 });
  });

  it("ends with 1 for a file that cannot be read, and names the line", async () => {
    expect(await run("import @broken.xml --redis redis://h")).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/line \d+: it is not a WXR file/),
    });
    expect((await run("import @none.xml --redis redis://h")).code).toBe(1);
  });

  it("imports a file that is cut off, and says where it ends", async () => {
    expect(await run("import @cut.xml --redis redis://h")).toMatchObject({
      code: 0,
      errors: expect.stringMatching(/line \d+/),
    });
  });

  it("ends with 130 when it is interrupted, and continues when it is run again", async () => {
    const storage = memoryStorage();
    const stop = new AbortController();
    async function* piped(): AsyncGenerator<Uint8Array> {
      let pieces = 0;
      for await (const piece of bytesOf(readFileSync(join(folder, "large.xml")))) {
        pieces += 1;
        if (pieces === 20) stop.abort();
        yield piece;
      }
    }
    const stopped = await run("import - --redis redis://h", storage, { stdin: piped(), signal: stop.signal });
    expect(stopped).toMatchObject({ code: 130, errors: expect.stringContaining("run it again") });
    const { out } = await run("import @large.xml --redis redis://h --json", storage);
    const { created, unchanged } = JSON.parse(out) as { created: number; unchanged: number };
    expect(unchanged).toBeGreaterThan(0);
    expect(created).toBeGreaterThan(0);
    expect(created + unchanged).toBe(2_400);
  });

  it.each([
    ["", /listen, verify, examine, replay, plan, import, export, migrate or backup/],
    ["remove", /no command 'remove'/],
    ["remove import", /no command 'remove'/],
    ["--prefix export import @site.xml --redis redis://h", /command is missing/],
    ["import --redis redis://h", /file to import/],
    ["import @site.xml", /--redis is missing/],
    ["import @site.xml more --redis redis://h", /unexpected argument: 'more'/],
    ["import @site.xml --redis redis://h --user x", /--user/],
    ["import @site.xml --redis redis://h --author anna", /LOGIN=ID/],
    ["import @site.xml --redis redis://h --fetch", /--fetch needs --files/],
    ["import @site.xml --redis redis://h --colour", /colour/],
    ["import @site.xml --redis redis://h --flies x", /no option '--flies'; did you mean '--files'\?/],
    ["export --redis redis://h --sites https://a.example", /no option '--sites'; did you mean '--site'\?/],
    ["export --redis redis://h", /--site is missing/],
    ["export --redis redis://h --site https://a.example --json", /--json needs --output/],
    ["export --redis redis://h --site https://a.example --fetch", /--fetch/],
    ["import @site.xml --redis redis://h --timezone Nowhere/Land", /timezone/],
    ["import @site.xml --redis redis://h --types @site.xml", /--types must be a JSON file/],
    ["import @site.xml --redis redis://h --types @types.json", /types\.recipe\.labels\.name/],
  ])("ends with 2 for a wrong line: %s", async (line, message) => {
    expect(await run(line)).toMatchObject({ code: 2, errors: expect.stringMatching(message) });
  });
});

describe("postbell export", () => {
  it("ends quietly with 0 when its reader closes the pipe", async () => {
    const storage = memoryStorage();
    await run("import @large.xml --redis redis://h", storage);
    const stdout = new Writable({
      write: (_chunk, _, done) => done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
    });
    const { code, errors } = await run("export --redis redis://h --site https://a.example", storage, {
      stdout,
    });
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
  });

  it("shows its progress on a terminal, except with --quiet or if the file goes to the same terminal", async () => {
    const storage = memoryStorage();
    await run("import @large.xml --redis redis://h", storage);
    const shown = async (more: string, isTTY: boolean): Promise<string> => {
      let text = "";
      const stdout = Object.assign(new Writable({ write: (_chunk, _, done) => done() }), { isTTY });
      const stderr = { isTTY: true, write: (part: string) => (text += part) };
      const line = `export --redis redis://h --site https://a.example ${more}`;
      expect((await run(line, storage, { stdout, stderr })).code).toBe(0);
      return text;
    };
    expect(await shown("--output @shown.xml", true)).toMatch(/\[#{30}\] 100 % (\d+) of \1 items written\n$/);
    expect(await shown("", false)).toContain("100 %");
    expect(await shown("", true)).toBe("");
    expect(await shown("--output @shown.xml --quiet", true)).toBe("");
  });

  it("writes an imported site to a file or to standard output", async () => {
    const storage = memoryStorage();
    await run("import @site.xml --redis redis://h --author anna=7", storage);
    const { code, out } = await run("export --redis redis://h --site https://example.org/", storage);
    expect(code).toBe(0);
    expect(out).toContain("<wp:base_blog_url>https://example.org</wp:base_blog_url>");
    expect(out).toContain("user-7");
    expect(
      (await run("export --redis redis://h --site https://example.org --output @out.xml", storage)).code,
    ).toBe(0);
    expect(readFileSync(join(folder, "out.xml"), "utf8")).toBe(out);
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
  });

  it("writes a file that only its owner may read, even over an existing file, and follows no link", async () => {
    const storage = memoryStorage();
    const path = (name: string): string => join(folder, name);
    const line = "export --redis redis://h --site https://example.org --output";
    const modeOf = (name: string): number => lstatSync(path(name)).mode & 0o777;
    expect((await run(`${line} @new.xml`, storage)).code).toBe(0);
    expect(modeOf("new.xml")).toBe(0o600);

    // A part that an interrupted export left, and a link that somebody put in its place.
    for (const name of ["old.xml", "old.xml.part", "elsewhere"]) {
      writeFileSync(path(name), "earlier");
      chmodSync(path(name), 0o644);
    }
    symlinkSync(path("elsewhere"), path("linked.xml.part"));
    expect((await run(`${line} @old.xml`, storage)).code).toBe(0);
    expect((await run(`${line} @linked.xml`, storage)).code).toBe(0);
    expect([modeOf("old.xml"), modeOf("linked.xml")]).toEqual([0o600, 0o600]);
    expect(readFileSync(path("elsewhere"), "utf8")).toBe("earlier");
    expect(readFileSync(path("old.xml"), "utf8")).toBe(readFileSync(path("new.xml"), "utf8"));
  });
});

describe("the command", () => {
  it("prints its help", async () => {
    expect(await run("--help")).toMatchObject({ code: 0, out: expect.stringContaining("Exit codes: 0") });
  });

  it.each([
    ["remove --json", 2],
    ["import @site.xml --json", 2],
    ["import @none.xml --redis redis://h --json", 1],
    ["import @broken.xml --redis redis://h --json --quiet", 1],
  ])("prints errors as JSON with --json: %s", async (line, code) => {
    const { out, errors, ...rest } = await run(line);
    expect(rest.code).toBe(code);
    const { error } = JSON.parse(out) as { error: string };
    expect(errors).toContain(`postbell: ${error}\n`);
  });

  it("draws a bar on a terminal, and writes a line now and then elsewhere", () => {
    const progress = {
      bytesRead: 500,
      bytesTotal: 1_000,
      items: 3,
      created: 1,
      updated: 1,
      unchanged: 1,
      skipped: 0,
    };
    const texts = [() => formatImport(progress), () => formatExport({ items: 5, itemsTotal: 10 })];
    for (const isTTY of [true, false])
      for (const textOf of texts) {
        let now = 0;
        let text = "";
        const screen = { isTTY, write: (more: string) => (text += more) };
        const bar = createProgressBar(screen, { monotonic: () => now }, textOf);
        for (; now < 10_000; now += 10) bar.show(undefined);
        bar.end();
        expect(text.includes("\r")).toBe(isTTY);
        expect(text).toContain("[###############---------------]  50 %");
        expect(text.match(/\n/g)).toHaveLength(1);
      }
  });
});
