/** The installed command in separate processes, against a real Redis. */

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { redisStorage } from "../../../storage/redis/index.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { eventually } from "../../support/eventually.js";
import { fileLeaks } from "../../support/leak-check.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { seededSite } from "../../support/wxr-file.js";

const COMMAND = resolve(import.meta.dirname, "../../../dist/cli.js");
const POSTS = 1_500;
/** Real processes on a busy machine. */
const LIMIT = { timeout: 180_000 };

let folder: string;
let file: string;
const seeded = seededSite({ count: POSTS, seed: 7, words: 30 });
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postbell-cli-redis-"));
  file = join(folder, "site.xml");
  writeFileSync(file, [...seeded.file()].join(""));
});
afterAll(() => rmSync(folder, { recursive: true }));

const run = (...args: readonly string[]): Promise<{ code: unknown; out: string; errors: string }> =>
  new Promise((done) => {
    const options = { timeout: LIMIT.timeout, maxBuffer: 100_000_000 };
    execFile(process.execPath, [COMMAND, ...args], options, (error, out, errors) => {
      fileLeaks.note(`postbell ${args[0]}`, errors);
      done({ code: error ? error.code : 0, out, errors });
    });
  });

const target = (prefix: string): readonly string[] => ["--redis", redisUrl(), "--prefix", prefix];
const importTo = (prefix: string) => run("import", file, ...target(prefix), "--json", "--quiet");

/** Lists the slugs of all posts, newest first, through a server on the same Redis. */
async function slugsOf(prefix: string): Promise<readonly string[]> {
  const storage = redisStorage({ url: redisUrl(), prefix });
  onTestFinished(() => storage.close());
  const call = callsOf(contentSite({ storage }));
  const slugs: string[] = [];
  for (let page = 1; slugs.length < POSTS; page += 1) {
    const { body } = await call("GET /posts", { query: { per_page: 100, page, _fields: "slug" } });
    if (!Array.isArray(body) || body.length === 0) break;
    slugs.push(...body.map(({ slug }: { slug: string }) => slug));
  }
  return slugs;
}

const newestFirst = (): readonly string[] =>
  seeded.posts.toSorted((a, b) => b.date.localeCompare(a.date) || b.id - a.id).map(({ slug }) => slug);

describe("postbell, on Redis", () => {
  it("imports a site in one command, and a server lists it by date", LIMIT, async () => {
    const prefix = freshPrefix();
    const { code, out } = await importTo(prefix);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      updated: 0,
      kinds: { posts: { created: POSTS }, media: { created: seeded.media.length } },
    });
    expect(await slugsOf(prefix)).toEqual(newestFirst());
    expect(JSON.parse((await importTo(prefix)).out)).toMatchObject({ created: 0, updated: 0 });
  });

  it(
    "killed in the middle and run again, ends as if it had run once; what it exports is the same",
    LIMIT,
    async () => {
      const [killed, whole] = [freshPrefix(), freshPrefix()];
      const child = spawn(process.execPath, [COMMAND, "import", file, ...target(killed)], {
        stdio: "ignore",
      });
      const ended = new Promise((done) => child.once("exit", (_, signal) => done(signal)));
      const storage = redisStorage({ url: redisUrl(), prefix: killed });
      onTestFinished(() => storage.close());
      const call = callsOf(contentSite({ storage }));
      const total = async (): Promise<number> =>
        Number((await call("GET /posts", { query: { per_page: 1 } })).headers["X-WP-Total"]);
      await eventually(async () => (await total()) >= 300, "300 imported posts");
      child.kill("SIGKILL");
      expect(await ended).toBe("SIGKILL");
      expect((await slugsOf(killed)).length).toBeLessThan(POSTS);
      expect((await importTo(killed)).code).toBe(0);
      expect((await importTo(whole)).code).toBe(0);
      expect(await slugsOf(killed)).toEqual(await slugsOf(whole));
      const exported = await run("export", ...target(killed), "--site", "https://www.example.org");
      expect(exported.code).toBe(0);
      expect(exported.out.match(/<wp:post_type>(?:<!\[CDATA\[)?post[\]<]/g)).toHaveLength(POSTS);
    },
  );

  it.each([
    ["no server responds", "redis://127.0.0.1:1", /Redis .*ECONNREFUSED 127\.0\.0\.1:1/],
    [
      "the password is wrong",
      redisUrl().replace("//", "//nobody:wr0ng@"),
      /WRONGPASS.*Correct the user name and the password/,
    ],
  ])("explains that %s at a URL, and ends with 1", LIMIT, async (_, url, cause) => {
    const { code, errors } = await run("import", file, "--redis", url, "--quiet");
    expect(code).toBe(1);
    expect(errors.trimEnd().split("\n").at(-1)).toMatch(cause);
    expect(errors).not.toMatch(/\n\s+at |wr0ng/);
  });
});
