import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { contentOptions } from "../src/content/options.js";
import type { Option, OptionTable } from "../src/options.js";
import { receiverOptions } from "../src/receiver/options.js";
import { webhooksOptions } from "../src/webhooks/options.js";
import { signatureHeader, verifySignature } from "../src/webhooks/signature.js";
import { sharpImagesOptions } from "../storage/images/options.js";
import { memoryStorageOptions } from "../storage/memory/options.js";
import { redisStorageOptions } from "../storage/redis/options.js";
import { type RedisServer, startRedis } from "./support/redis-server.js";

const root = resolve(import.meta.dirname, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", code = ""]) => ({
  language,
  code,
}));
const programs = blocks
  .filter(({ language }) => language === "js")
  .map(({ code }, index) => ({ code, index, title: titleOf(code) }));
/** Inside the package, so that it finds itself by its name. */
const folder = join(root, "test", ".readme");

function titleOf(code: string): string {
  const imported = [...code.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
  return imported.join(", ");
}

const freePort = (): Promise<number> =>
  new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => done(typeof address === "object" && address ? address.port : 0));
    });
  });

const answers = async (url: string, child: ChildProcess, stderr: () => string): Promise<void> => {
  while (child.exitCode === null) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return;
  }
  throw new Error(`The program ended before it listened:\n${stderr()}`);
};

/** Its own, since the blocks use names of keys that every run has in common. */
let redis: RedisServer;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  redis = await startRedis();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await redis.stop();
});

/** Runs a block to its end, or until it listens and was visited. Returns what went wrong: nothing, it is to be hoped. */
async function run(
  { code, index }: (typeof programs)[number],
  visit: (base: string) => Promise<void>,
): Promise<string> {
  const file = join(folder, `block-${index}.mjs`);
  writeFileSync(file, code);
  const port = await freePort();
  const child = spawn(process.execPath, [file], {
    env: {
      ...process.env,
      PORT: String(port),
      REDIS_URL: redis.url,
      SEAL_KEY: randomBytes(32).toString("base64"),
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<number | null>((done) => child.once("exit", (exitCode) => done(exitCode)));
  if (!/\.listen\(/.test(code)) return (await ended) === 0 ? stderr : `It failed: ${stderr}`;
  try {
    await answers(`http://localhost:${port}/`, child, () => stderr);
    await visit(`http://localhost:${port}`);
    return stderr;
  } finally {
    child.kill();
    await ended;
  }
}

const register = async (base: string): Promise<void> => {
  const response = await fetch(`${base}/api/v1/webhooks`, {
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

const deliver = async (base: string): Promise<void> => {
  const id = "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11";
  const event = {
    "hub.topic": id,
    "hub.event": "patient.updated",
    context: [{ key: "patient", resource: { resourceType: "Bundle", entry: [] } }],
  };
  const body = Buffer.from(JSON.stringify({ id, timestamp: "2026-11-20T09:30:00.000Z", event }));
  const secret = /whsec_[^"]+/.exec(readme)?.[0] ?? "";
  const signed = signatureHeader({ secret, timestamp: Math.floor(Date.now() / 1000), body });
  const send = (header: string) =>
    fetch(base, { method: "POST", headers: { "x-service-signature": header }, body }).then(
      ({ status }) => status,
    );
  expect(await send(signed)).toBe(204);
  expect(await send(signed.replace(/.$/, (last) => (last === "0" ? "1" : "0")))).toBeGreaterThanOrEqual(400);
};

const browse = async (base: string): Promise<void> => {
  const response = await fetch(`${base}/api/core/v2/posts`);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject([{ slug: "open-again", title: { rendered: "Open again" } }]);
};

/** What shows that a block that listens does what it is there for. */
const visitOf = (code: string): ((base: string) => Promise<void>) => {
  if (code.includes("createReceiver")) return deliver;
  return code.includes("createContent") ? browse : register;
};

describe("the README", () => {
  it("has code to run", () => {
    expect(programs.length).toBeGreaterThanOrEqual(8);
    expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["js", "sh", "json", "text"]));
  });

  it("shows working code within its first 20 lines", () => {
    const start = readme.split("\n").slice(0, 20).join("\n");
    expect(start).toContain(`${programs[0]?.code}\`\`\``);
  });

  it.each(programs)(
    "runs as it stands: $title",
    async (program) => {
      expect(await run(program, visitOf(program.code))).toBe("");
    },
    20_000,
  );

  it("shows curl lines that work against its first example", async () => {
    const [first] = programs;
    const lines = blocks
      .filter(({ language }) => language === "sh")
      .flatMap(({ code }) => code.split("\n").filter((line) => line.startsWith("curl ")));
    expect(lines.length).toBeGreaterThanOrEqual(2);
    if (!first) return;
    await run(first, async (base) => {
      const outputs: string[] = [];
      for (const line of lines) {
        const created = outputs[0] && (JSON.parse(outputs[0]) as { webhook: { id: string } }).webhook.id;
        outputs.push(
          execFileSync("sh", ["-c", line.replaceAll("http://localhost:3000", base)], {
            encoding: "utf8",
            env: { ...process.env, ID: created },
          }),
        );
      }
      expect(JSON.parse(outputs[0] ?? "")).toHaveProperty("secret");
      expect(JSON.parse(outputs[1] ?? "")).toMatchObject({
        webhooks: [{ url: "https://hooks.example.com/in" }],
      });
      expect(JSON.parse(outputs[2] ?? "")).toEqual({ deliveries: [], next: null });
      expect(JSON.parse(outputs[3] ?? "")).toHaveProperty("count");
    });
  }, 20_000);

  it("signs its example body as the receiving side expects it", () => {
    const example = blocks.find(({ language }) => language === "json")?.code ?? "";
    const header = /X-Service-Signature: (.*)/.exec(readme)?.[1];
    const secrets = /whsec_[^"]+/.exec(readme)?.[0] ?? "";
    const body = JSON.stringify(JSON.parse(example));
    const now = Date.parse("2026-11-20T09:30:00.000Z");
    expect(verifySignature({ body, header, secrets, now })).toMatchObject({ ok: true });
  });

  it("links to files that exist", () => {
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path = ""]) => path);
    expect(links.length).toBeGreaterThan(1);
    for (const link of links) expect(existsSync(join(root, link)), link).toBe(true);
  });

  it("holds valid JSON examples, and commands that package.json has", () => {
    for (const { code } of blocks.filter(({ language }) => language === "json"))
      expect(() => JSON.parse(code) as unknown).not.toThrow();
    expect(readme).toContain("```sh\nnpm ci && npm start\n```");
    expect(readme).toContain("```sh\nnpm ci && npm test\n```");
  });

  it("lists every option with its default and unit, and none besides", () => {
    const rows = [...readme.matchAll(/^\| `([\w.]+)` \| (.*?) \| (.*?) \| .*\|$/gm)].map(
      ([, name, shown, unit]) => ({ name, shown, unit }),
    );
    const tables = [
      webhooksOptions,
      memoryStorageOptions,
      redisStorageOptions,
      receiverOptions,
      contentOptions,
      sharpImagesOptions,
    ];
    const expected = tables.flatMap((table) => rowsOf(table));
    expect(rows.map(({ name, unit }) => [name, unit])).toEqual(
      expected.map(({ name, unit }) => [name, unit]),
    );
    const inWords = expected.map(({ shown }, index) => shown ?? rows[index]?.shown);
    expect(rows.map(({ shown }) => shown)).toEqual(inWords);
  });
});

interface Row {
  readonly name: string;
  readonly unit: string;
  /** `undefined` where the default is a value that only words describe. */
  readonly shown: string | undefined;
}

function rowsOf(table: OptionTable, path = ""): Row[] {
  return Object.entries(table).flatMap(([key, entry]): Row[] => {
    const name = path + key;
    const { default: preset, unit } = entry as Option<unknown>;
    if (typeof entry["expected"] !== "function") return rowsOf(entry as OptionTable, `${name}.`);
    return [{ name, unit, shown: shownDefault(preset) }];
  });
}

const grouped = (value: number): string =>
  String(value).replace(/\B(?=(\d{3})+$)/g, value >= 1000 ? "_" : "");

function shownDefault(preset: unknown): string | undefined {
  if (preset === undefined) return "–";
  if (typeof preset === "number") return `\`${grouped(preset)}\``;
  if (typeof preset === "string" || typeof preset === "boolean") return `\`${preset}\``;
  if (Array.isArray(preset)) return `\`[${preset.map(grouped).join(", ")}]\``;
  return undefined;
}
