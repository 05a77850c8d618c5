/** Every code block of the README and of the guides does what it says. */

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { signatureHeader } from "../../src/signature/signature.js";
import {
  accepts,
  compile,
  isThere,
  type Program,
  prepare,
  programsOf,
  run,
  runShell,
  type Surroundings,
} from "../support/guide-programs.js";
import { guides } from "../support/markdown.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { wxrFile } from "../support/wxr-file.js";

const base = resolve(import.meta.dirname, "../.guides");
const programs = guides.flatMap(programsOf);
const SECRET = guides.map(({ text }) => /whsec_[\w+/=]{40,}/.exec(text)?.[0]).find(Boolean) ?? "";

/** Its own, since the blocks use names of keys that every run has in common. */
let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
beforeEach(() => redis.cli("flushall"));
afterAll(async () => {
  rmSync(base, { recursive: true, force: true });
  await redis.stop();
});

/** A folder for each guide, with what its reader is told to have there. */
function surroundingsOf({ path }: Program): Surroundings {
  const folder = join(base, basename(path, ".md").toLowerCase());
  mkdirSync(folder, { recursive: true });
  const surroundings = { folder, redisUrl: redis.url };
  prepare(surroundings);
  writeFileSync(join(folder, "site.xml"), wxrFile([{ id: 1 }, { id: 2 }]));
  return surroundings;
}

const register = async (origin: string): Promise<void> => {
  const response = await fetch(`${origin}/api/v1/webhooks`, {
    method: "POST",
    headers: { authorization: "Bearer s3cret", "content-type": "application/json" },
    body: JSON.stringify({ url: "https://hooks.example.com/in" }),
  });
  expect(response.status).toBe(201);
  expect(await response.json()).toMatchObject({
    webhook: { status: "ENABLED" },
    secret: expect.stringMatching(/^whsec_/),
  });
};

const ID = "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11";
const BODY = JSON.stringify({
  id: ID,
  timestamp: "2026-11-20T09:30:00.000Z",
  event: {
    "hub.topic": ID,
    "hub.event": "patient.updated",
    context: [{ key: "patient", resource: { resourceType: "Bundle", entry: [] } }],
  },
});
const spoilt = (header: string): string => header.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
const signed = (secret = SECRET, secondsAgo = 0): string =>
  signatureHeader({
    secret,
    timestamp: Math.floor(Date.now() / 1000) - secondsAgo,
    body: Buffer.from(BODY),
  });

const deliver = async (origin: string): Promise<void> => {
  const send = (header: string) =>
    fetch(origin, {
      method: "POST",
      headers: { "x-service-signature": header, "content-type": "application/json" },
      body: BODY,
    }).then(({ status }) => status);
  expect(await send(signed())).toBe(204);
  expect(await send(spoilt(signed()))).toBeGreaterThanOrEqual(400);
};

const browse =
  (namespace: string) =>
  async (origin: string): Promise<void> => {
    const response = await fetch(`${origin}/api/${namespace}/v2/posts`);
    expect(response.status).toBe(200);
    expect(await response.json()).toBeInstanceOf(Array);
  };

const look = async (origin: string): Promise<void> => {
  const statusFor = async (cookie: string): Promise<number> =>
    (await fetch(`${origin}/portal`, { headers: { cookie } })).status;
  expect(await statusFor("session=d1f0")).toBe(200);
  expect(await statusFor("session=other")).toBe(401);
};

/** Checks that a listening program does its work. */
const visitOf = ({ code }: Program): ((origin: string) => Promise<void>) => {
  if (code.includes("createReceiver")) return deliver;
  if (code.includes("createPortal")) return look;
  if (!code.includes("createContent")) return register;
  return browse(/namespace: "(\w+)"/.exec(code)?.[1] ?? "core");
};

const of = (languages: readonly string[], kind: "runs" | "verifies") =>
  programs
    .filter(({ language, note }) => languages.includes(language) && note === (kind === "runs" ? "" : kind))
    .map((program) => ({ ...program, name: `${program.path}:${program.line} ${program.title}` }));

/** Blocks for a reader with a machine of his own, each with its reason. */
const NOT_RUN: readonly string[] = [
  "README.md: not-run: it installs and builds this folder; CI runs it",
  "README.md: not-run: it installs and builds this folder; CI runs it",
  "docs/guides/edit-with-gutenberg.md: not-run: it runs in a browser, bundled with packages under the GPL",
  "docs/guides/edit-with-gutenberg.md: not-run: it becomes a style sheet, bundled with packages under the GPL",
  "docs/guides/edit-with-gutenberg.md: not-run: it installs packages under the GPL from the registry",
  "docs/guides/edit-with-gutenberg.md: not-run: it needs the folder of the bundled editor",
  "docs/guides/headless-site.md: not-run: it installs a framework from the registry",
  "docs/guides/headless-site.md: not-run: Astro loads it, in a project of its own",
  "docs/guides/headless-site.md: not-run: Astro loads it, in a project of its own",
  "docs/guides/headless-site.md: not-run: Astro compiles it",
  "docs/guides/headless-site.md: not-run: Astro compiles it",
  "docs/guides/headless-site.md: not-run: Astro compiles it",
  "docs/guides/headless-site.md: not-run: it builds the Astro project",
  "docs/guides/subscribe.md: not-run: it listens until it is interrupted; tests of the command run all four",
];

describe("the blocks of the guides", () => {
  it("are of languages that are run or parsed, and those that are not run say why", () => {
    const known = ["", "continues", "verifies", "postgres", "first-screen"];
    const notRun = programs.filter(({ note }) => !known.includes(note));
    expect(notRun.map(({ path, note }) => `${path}: ${note}`)).toEqual(NOT_RUN);
    const languages = new Set(programs.map(({ language }) => language));
    expect([...languages].sort()).toEqual([
      ...["astro", "go", "js", "json", "mermaid", "php", "python", "sh", "text", "ts"],
    ]);
  });

  it.each(of(["js"], "runs"))("run as they stand: $name", async (program) => {
    expect(await run(program, surroundingsOf(program), visitOf(program))).toBe("");
  });

  it.each(of(["sh"], "runs"))("print what they ask for: $name", async (program) => {
    const surroundings = surroundingsOf(program);
    const { host } = program;
    let printed = "";
    let wrong = "";
    if (!program.code.includes("http://localhost:3000")) printed = await runShell(program, surroundings, "");
    else if (!host) throw new Error("There is no host above it.");
    else
      wrong = await run(host, surroundings, async (origin) => {
        printed = await runShell(program, surroundings, origin);
      });
    expect([wrong, printed]).toEqual(["", expect.stringMatching(/\S/)]);
  });

  for (const program of of(["js", "sh", "python", "php", "go"], "verifies")) {
    it.runIf(isThere(program.language))(`accept what was signed and nothing else: ${program.name}`, () => {
      const surroundings = surroundingsOf(program);
      const received = { body: BODY, header: signed(), secret: SECRET };
      expect(accepts(program, surroundings, received)).toBe(true);
      for (const wrong of [
        { ...received, body: `${BODY} ` },
        { ...received, secret: `${SECRET}x` },
        { ...received, header: spoilt(received.header) },
        { ...received, header: signed(SECRET, 3_600) },
        { ...received, header: "" },
      ])
        expect([wrong, accepts(program, surroundings, wrong)]).toEqual([wrong, false]);
    });
  }

  // The one for openssl is used by hand.
  for (const program of of(["js", "python", "php", "go"], "verifies")) {
    it.runIf(isThere(program.language))(`take both secrets of a rotation: ${program.name}`, () => {
      const surroundings = surroundingsOf(program);
      const received = { body: BODY, header: signed() };
      for (const secret of [`${SECRET} ${SECRET}x`, `${SECRET}x ${SECRET}`])
        expect([secret, accepts(program, surroundings, { ...received, secret })]).toEqual([secret, true]);
      const secret = `${SECRET}x ${SECRET}y`;
      expect(accepts(program, surroundings, { ...received, secret })).toBe(false);
    });
  }

  it.each(of(["ts"], "runs"))("compile as they stand: $name", async (program) => {
    expect(await compile(program, surroundingsOf(program))).toBe("");
  });

  it.each(of(["json"], "runs"))("are valid JSON: $name", ({ code }) => {
    expect(() => JSON.parse(code) as unknown).not.toThrow();
  });
});
