/**
 * The commands for receivers of webhooks: installed, in separate processes, and their parts as
 * functions.
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { main } from "../../../adapters/cli/command-line.js";
import { readMessage, writeMessage } from "../../../adapters/cli/http-message.js";
import { toLocalPort } from "../../../adapters/cli/listen.js";
import { drawTimeAxis } from "../../../adapters/cli/plan.js";
import { checkSignature } from "../../../adapters/cli/signature-report.js";
import { signatureHeader } from "../../../src/signature/signature.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { issue, makeAuthority } from "../../support/certificates.js";
import { reply, startEndpoint } from "../../support/https-endpoint.js";
import { fileLeaks } from "../../support/leak-check.js";

const COMMAND = resolve(import.meta.dirname, "../../../dist/cli.js");
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
const SIGNED_AT = Date.parse("2026-11-20T09:30:00Z");
/** Real processes on a busy machine. */
const LIMIT = { timeout: 180_000 };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postbell-cli-webhooks-"));
  writeFileSync(join(folder, "secret"), `${SECRET}\n`);
});
afterAll(() => rmSync(folder, { recursive: true }));

const secretFile = (): string => join(folder, "secret");

function bodyOf({ id = randomUUID(), type = "patient.updated", name = "Zoë \u001b[2J" } = {}): Buffer {
  const resource = { resourceType: "Patient", name: [{ family: name }] };
  const bundle = { resourceType: "Bundle", type: "collection", entry: [{ fullUrl: "urn:uuid:1", resource }] };
  const event = { "hub.topic": "topic", "hub.event": type, context: [{ key: "patient", resource: bundle }] };
  return Buffer.from(JSON.stringify({ id, timestamp: "2026-11-20T09:29:00.000Z", event }));
}

const signatureOf = (body: Uint8Array, at = Date.now(), secret = SECRET): string =>
  signatureHeader({ secret, timestamp: Math.floor(at / 1000), body });

interface Ended {
  readonly code: unknown;
  readonly out: string;
  readonly errors: string;
}

const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}, stdin = ""): Promise<Ended> =>
  new Promise((done) => {
    const child = execFile(
      process.execPath,
      [COMMAND, ...args],
      { timeout: LIMIT.timeout, env: { ...process.env, ...env } },
      (error, out, errors) => {
        fileLeaks.note(`postbell ${args[0]}`, [out, errors]);
        done({ code: error ? error.code : 0, out, errors });
      },
    );
    child.stdin?.end(stdin);
  });

/** Runs a command line in this process, if it starts no server. */
async function told(args: readonly string[]): Promise<Ended> {
  const [out, errors] = [new PassThrough(), new PassThrough()];
  const code = await main(args, {
    stdin: Readable.from([]),
    stdout: out,
    stderr: errors,
    env: {},
    openStorage: () => memoryStorage(),
    signal: new AbortController().signal,
  });
  const textOf = async (stream: PassThrough): Promise<string> =>
    Buffer.concat(await stream.end().toArray()).toString();
  const ended = { code, out: await textOf(out), errors: await textOf(errors) };
  fileLeaks.note(`postbell ${args[0]}`, ended);
  return ended;
}

interface Listening {
  readonly url: string;
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly errors: () => string;
  readonly interrupt: () => Promise<unknown>;
}

const listening = (...args: readonly string[]): Promise<Listening> =>
  listeningWithInput("", "--port", "0", ...args);

async function listeningWithInput(stdin: string, ...args: readonly string[]): Promise<Listening> {
  const child = spawn(process.execPath, [COMMAND, "listen", ...args]);
  child.stdin.end(stdin);
  const ended = new Promise((done) => child.once("exit", (code, signal) => done(signal ?? code)));
  let [out, errors] = ["", ""];
  onTestFinished(() => {
    child.kill("SIGKILL");
    // The command shows records, but must never show the secrets that it verifies with.
    fileLeaks.note("postbell listen", [out.replaceAll('"resourceType"', ""), errors]);
  });
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  const url = await new Promise<string>((done, fail) => {
    child.once("exit", () => fail(new Error(errors)));
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString();
      const [found] = /https?:\/\/[\d.]+:\d+\//.exec(errors) ?? [];
      if (found) done(found);
    });
  });
  const interrupt = (): Promise<unknown> => {
    child.kill("SIGINT");
    return ended;
  };
  return { url, child, out: () => out, errors: () => errors, interrupt };
}

const post = async (url: string, body: Buffer, header?: string): Promise<number> => {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (header !== undefined) headers["x-service-signature"] = header;
  return (await fetch(url, { method: "POST", headers, body: new Uint8Array(body) })).status;
};

const linesOf = (text: string): readonly Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("postbell listen", () => {
  it(
    "verifies what comes, shows type, id, age and record type, but not the record, and ends with 130",
    LIMIT,
    async () => {
      const { url, out, errors, interrupt } = await listening("--secret-file", secretFile());
      const id = randomUUID();
      const body = bodyOf({ id });
      expect(await post(url, body, signatureOf(body))).toBe(204);
      expect(await post(url, body, signatureOf(body))).toBe(204);
      expect(await post(url, body, signatureOf(body, Date.now(), "whsec_other"))).toBe(400);
      expect(await post(url, body)).toBe(400);
      expect((await fetch(url)).status).toBe(405);
      expect(await interrupt()).toBe(130);
      const lines = out().split("\n");
      expect(lines[0]).toMatch(
        new RegExp(
          `^\\d\\d:\\d\\d:\\d\\d valid patient\\.updated ${id}, Patient, signature \\d+ s old, \\d+ bytes, response 204$`,
        ),
      );
      expect(lines[1]).toContain("repeated");
      expect(lines[2]).toContain("no_match");
      expect(lines[3]).toContain("does not match this body and secret");
      expect(out()).toContain("missing_header");
      expect(out()).toContain("method_not_allowed GET /");
      expect(out()).not.toContain("Zo");
      expect(out() + errors()).not.toContain(SECRET);
      expect(out()).not.toContain("\u001b");
    },
  );

  it(
    "takes the secret from the response of a registration, on the standard input or in a file",
    LIMIT,
    async () => {
      const response = JSON.stringify({ webhook: { id: randomUUID(), status: "ENABLED" }, secret: SECRET });
      const file = join(folder, "response.json");
      writeFileSync(file, response);
      const body = bodyOf();
      for (const [stdin, from] of [
        [response, "-"],
        [`${SECRET}\n`, "-"],
        ["", file],
      ] as const) {
        const { url, out, errors, interrupt } = await listeningWithInput(
          stdin,
          "--port",
          "0",
          "--secret-file",
          from,
        );
        expect(await post(url, body, signatureOf(body))).toBe(204);
        expect(await interrupt()).toBe(130);
        expect(out()).toContain(" valid patient.updated");
        expect(errors()).not.toContain("Nothing is verified");
      }
    },
  );

  it("listens on the port of the URL that was registered, unless --port says otherwise", LIMIT, async () => {
    const taken = await startEndpoint({ respond: () => {} });
    await taken.close();
    const registered = `http://127.0.0.1:${taken.port}/`;
    const response = JSON.stringify({ webhook: { id: randomUUID(), url: registered }, secret: SECRET });
    const { url, interrupt } = await listeningWithInput(response, "--secret-file", "-");
    expect(url).toBe(registered);
    const body = bodyOf();
    expect(await post(registered, body, signatureOf(body))).toBe(204);
    const other = await listeningWithInput(response, "--secret-file", "-", "--port", "0");
    expect(other.url).not.toBe(registered);
    await Promise.all([interrupt(), other.interrupt()]);
  });

  it.each([
    ["http://localhost:3001/in", 3001],
    ["http://127.0.0.1:9/", 9],
    ["http://127.9.9.9:3001", 3001],
    ["http://[::1]:3001/", 3001],
    ["http://localhost/", undefined],
    ["https://localhost/in", undefined],
    ["https://hooks.example.com/", undefined],
    ["https://localhost.example.com:3001/", undefined],
    ["http://10.0.0.7:3001/", undefined],
    ["nonsense", undefined],
    [undefined, undefined],
  ])("takes the port of %s: %s, for only a URL of this machine that names a port has one", (url, port) => {
    expect(toLocalPort(url)).toBe(port);
  });

  it.each([
    [
      '{"error":{"code":"unauthorized","message":"The key is\\u001b[2J unknown."}}',
      /has no secret\. It is an error: The key is\?\[2J unknown\./,
    ],
    ['{"webhook":{}}', /^postbell: The response in the standard input has no secret\.$/m],
    ['{"secret":', /^postbell: The JSON in the standard input cannot be parsed\.$/m],
    ["", /^postbell: There is no secret in the standard input\.$/m],
  ])("ends with a clear error if the standard input has no secret: %s", LIMIT, async (stdin, message) => {
    const { code, errors } = await run(["listen", "--port", "0", "--secret-file", "-"], {}, stdin);
    expect(errors).toMatch(message);
    expect(code).toBe(1);
    expect(await told(["verify", "-", "--secret-file", "-"])).toMatchObject({
      code: 2,
      errors: expect.stringContaining("cannot be both the request and the secret"),
    });
  });

  it(
    "responds with the given statuses in turn, and prints JSON, with the record if asked",
    LIMIT,
    async () => {
      const { url, out, errors, interrupt } = await listening("--status", "500,503,200", "--json", "--body");
      const body = bodyOf();
      const statuses: number[] = [];
      for (let count = 0; count < 4; count++) statuses.push(await post(url, body));
      expect(statuses).toEqual([500, 503, 200, 200]);
      await interrupt();
      const lines = linesOf(out());
      expect(lines).toMatchObject([
        {
          code: "unverified",
          status: 500,
          type: "patient.updated",
          resourceType: "Patient",
          ageSeconds: null,
          repeated: false,
        },
        { status: 503, repeated: false },
        { status: 200, repeated: false },
        { status: 200, repeated: true, bytes: body.length },
      ]);
      expect(JSON.stringify(lines[0]?.["body"])).toContain("Zoë");
      expect(errors()).toContain("Nothing is verified");
    },
  );

  it(
    "saves each request, which verify reads and replay sends again: unchanged, or with a new signature",
    LIMIT,
    async () => {
      const saved = join(folder, "saved");
      const { url, interrupt } = await listening("--save", saved);
      const body = bodyOf({ type: "../../etc/passwd" });
      const old = signatureOf(body, SIGNED_AT);
      expect(await post(url, body, old)).toBe(204);
      await interrupt();
      const [name = "", ...more] = readdirSync(saved);
      expect(more).toEqual([]);
      expect(name).toMatch(/^0001-[A-Za-z0-9-]+\.http$/);
      const file = join(saved, name);
      expect(statSync(file).mode & 0o077).toBe(0);

      const late = await told(["verify", file, "--secret-file", secretFile()]);
      expect(late).toMatchObject({ code: 3, out: expect.stringContaining("timestamp_out_of_tolerance") });
      const then = await run(["verify", file, "--secret", SECRET, "--at", "2026-11-20T09:30:07Z", "--json"]);
      expect(then.code).toBe(0);
      expect(JSON.parse(then.out)).toMatchObject({
        valid: true,
        ageSeconds: 7,
        type: "../../etc/passwd",
        notes: [],
      });

      const endpoint = await startEndpoint({
        respond: (socket) => socket.write(reply(endpoint.requests.length === 3 ? 500 : 204)),
      });
      onTestFinished(() => endpoint.close());
      const to = `http://127.0.0.1:${endpoint.port}/hooks?x=1`;
      expect(await run(["replay", file, "--to", to])).toMatchObject({
        code: 0,
        out: expect.stringContaining("204"),
      });
      expect((await run(["replay", file, "--to", to, "--json"], { POSTBELL_SECRET: SECRET })).code).toBe(0);
      const failed = await told(["replay", file, file, "--to", to, "--json"]);
      expect(failed.code).toBe(1);
      expect(linesOf(failed.out)).toMatchObject([{ status: 500, signedAnew: false }, { status: 204 }]);
      const [unchanged, resigned] = endpoint.requests;
      expect(unchanged?.body.equals(body)).toBe(true);
      expect(unchanged?.head).toContain(`x-service-signature: ${old}`);
      expect(unchanged?.head).toMatch(/^POST \/hooks\?x=1 HTTP\/1\.1/);
      expect(resigned?.body.equals(body)).toBe(true);
      const header = /x-service-signature: (.*)/i.exec(resigned?.head ?? "")?.[1];
      const check = { secrets: [SECRET], toleranceMs: 60_000, signatureHeader: "X-Sig", now: Date.now() };
      const message = { method: "POST", path: "/", headers: [["X-Sig", header ?? ""]] as const, body };
      expect(checkSignature(message, check).code).toBe("valid");
      const absent = join(folder, "absent");
      const one = await told(["replay", absent, file, "--to", to, "--json"]);
      expect(one.code).toBe(1);
      expect(linesOf(one.out)).toMatchObject([
        { file: absent, error: expect.stringContaining("ENOENT") },
        { file, status: 204 },
      ]);
      expect(await told(["replay", file, "--to", "http://127.0.0.1:1/"])).toMatchObject({
        code: 1,
        out: expect.stringContaining("ECONNREFUSED"),
      });
    },
  );

  it("forwards requests unchanged, and responds with the status of the target", LIMIT, async () => {
    const app = await startEndpoint({ respond: (socket) => socket.write(reply(418)) });
    const { url, out, interrupt } = await listening("--forward", `http://127.0.0.1:${app.port}/in`, "--json");
    const body = bodyOf();
    const header = signatureOf(body);
    expect(await post(url, body, header)).toBe(418);
    expect(app.requests[0]?.body.equals(body)).toBe(true);
    expect(app.requests[0]?.head).toContain(header);
    await app.close();
    expect(await post(url, body, header)).toBe(502);
    await interrupt();
    expect(linesOf(out())).toMatchObject([
      { status: 418 },
      { status: 502, forwardError: expect.any(String) },
    ]);
  });

  it("receives over HTTPS", LIMIT, async () => {
    const authority = await makeAuthority();
    const { cert, key } = await issue({ authority, names: ["127.0.0.1"] });
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    const { url } = await listening("--tls-cert", certFile, "--tls-key", keyFile);
    const status = await new Promise((done, fail) => {
      const sent = request(url, { method: "POST", ca: authority.cert }, (response) =>
        done(response.statusCode),
      );
      sent.on("error", fail);
      sent.end(bodyOf());
    });
    expect(status).toBe(204);
  });

  it("responds 413 to a request that is larger than any notification, and keeps running", LIMIT, async () => {
    const { url, out, errors, interrupt } = await listening("--json");
    expect(await post(url, Buffer.alloc(18_000_000, "x"))).toBe(413);
    expect(await post(url, bodyOf())).toBe(204);
    await interrupt();
    expect(linesOf(out())).toHaveLength(1);
    expect(errors()).toContain("larger than 17 MiB");
  });

  it("ends with 1 if the port is taken, and with 0 once its reader closes the pipe", LIMIT, async () => {
    const first = await listening();
    const taken = await run(["listen", "--port", new URL(first.url).port]);
    expect(taken).toMatchObject({ code: 1, errors: expect.stringContaining("EADDRINUSE") });
    first.child.stdout?.destroy();
    const ended = new Promise((done) => first.child.once("exit", done));
    const body = bodyOf();
    // The pipe breaks with the first or the second line.
    await post(first.url, body)
      .then(() => post(first.url, body))
      .catch(() => {});
    expect(await ended).toBe(0);
  });
});

describe("postbell verify", () => {
  const body = bodyOf({ id: "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11", name: "Zoë" });
  const message = (changed: Uint8Array, headers: readonly (readonly [string, string])[]) => ({
    ...{ method: "POST", path: "/", headers, body: changed },
  });
  const check = {
    secrets: [SECRET],
    toleranceMs: 300_000,
    signatureHeader: "X-Service-Signature",
    now: SIGNED_AT,
  };
  const signed = [["x-service-signature", signatureOf(body, SIGNED_AT)]] as const;

  it.each<[string, Uint8Array, object, RegExp]>([
    ["an added line end", Buffer.concat([body, Buffer.from("\r\n")]), {}, /line end was added/],
    [
      "a body that was serialised again",
      Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 1)),
      {},
      /parsed and written again/,
    ],
    ["a byte order mark", Buffer.concat([Buffer.from("\ufeff"), body]), {}, /byte order mark/],
    ["a secret without its beginning", body, { secrets: [SECRET.slice(6)] }, /whsec_ is part of it/],
    ["a secret in quotation marks", body, { secrets: [`"${SECRET}" `] }, /quotation marks/],
    ["another secret", body, { secrets: ["whsec_x"] }, /secret belongs to another webhook/],
  ])("explains a signature that does not match: %s", (_, changed, options, advice) => {
    const report = checkSignature(message(changed, signed), { ...check, ...options });
    expect(report).toMatchObject({ code: "no_match", message: expect.stringMatching(advice) });
  });

  it("explains other failures: no header, a malformed one, a wrong time, a body that is not a notification", () => {
    const report = (headers: readonly (readonly [string, string])[], options = {}) =>
      checkSignature(message(body, headers), { ...check, ...options });
    expect(report([])).toMatchObject({ code: "missing_header", message: expect.stringContaining("proxy") });
    expect(report([["Webhook-Signature", "v1,x"]]).message).toContain("There is Webhook-Signature");
    expect(report([["X-Service-Signature", "t=1"]]).code).toBe("malformed_header");
    expect(report(signed, { now: SIGNED_AT + 301_000 })).toMatchObject({
      code: "timestamp_out_of_tolerance",
      ageSeconds: 301,
      message: expect.stringContaining("301 s ago"),
    });
    expect(report(signed, { now: SIGNED_AT - 400_000 }).message).toContain("400 s in the future");
    const other = Buffer.from("[]");
    const header = [["X-Service-Signature", signatureOf(other, SIGNED_AT)]] as const;
    expect(checkSignature(message(other, header), check).code).toBe("invalid_notification");
  });

  it("reads its own files byte for byte, and the output of curl -v", () => {
    const bytes = Buffer.concat([body, Buffer.from([0, 255, 10, 13, 10])]);
    const written = {
      ...message(bytes, [
        ["A", "1"],
        ["a", "ü\u00ff"],
        ["Transfer-Encoding", "chunked"],
      ]),
      path: "/x?y",
    };
    const read = readMessage(writeMessage(written));
    expect(read).toMatchObject({ method: "POST", path: "/x?y", notes: [] });
    expect(Buffer.from(read.body).equals(bytes)).toBe(true);
    expect(read.headers).toEqual([
      ["A", "1"],
      ["a", "ü\u00ff"],
      ["Content-Length", String(bytes.length)],
    ]);
    const pasted = `* Connected to localhost\n> POST /in HTTP/1.1\n> Host: localhost\n> X-Service-Signature: ${signed[0][1]}\n>\n} [99 bytes data]\n< HTTP/1.1 400 Bad Request\n<\n${body.toString()}\n`;
    expect(checkSignature(readMessage(Buffer.from(pasted)), check).code).toBe("valid");
    expect(() => readMessage(Buffer.from("POST / HTTP/1.1\nno header\n\n{}"))).toThrow("Line 2");
    expect(readMessage(Buffer.from("Content-Length: 9\n\nshort")).notes).toEqual([
      expect.stringContaining("5 of the 9"),
    ]);
    expect(readMessage(Buffer.from("Content-Length: 2\n\n{}\n"))).toMatchObject({
      body: Buffer.from("{}"),
      notes: [expect.any(String)],
    });
  });

  it(
    "reads standard input, and ends with 2 without a secret and with 1 for a file that cannot be read",
    LIMIT,
    async () => {
      const text = writeMessage(message(body, signed)).toString();
      const args = ["verify", "-", "--at", "2026-11-20T09:30:00Z"];
      expect(await run([...args, "--secret-file", secretFile()], {}, text)).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^valid: The signature is correct\. The signature is \d+ s old\.$/m),
      });
      const early = await run(
        ["verify", "-", "--at", new Date(SIGNED_AT - 3_000).toISOString(), "--secret-file", secretFile()],
        {},
        text,
      );
      expect(early.out).toContain("The signature is 3 s in the future.");
      expect((await told(args)).code).toBe(2);
      expect((await told(["verify", join(folder, "none"), "--secret", SECRET])).code).toBe(1);
      expect(readFileSync(secretFile(), "utf8").trim()).toBe(SECRET);
    },
  );
});

describe("postbell", () => {
  it("ends quietly with its own code if nobody reads its output", LIMIT, async () => {
    for (const args of [["plan"], ["plan", "--json"], ["--help"], ["listen", "--help"]]) {
      const child = spawn(process.execPath, [COMMAND, ...args], { stdio: ["ignore", "pipe", "pipe"] });
      child.stdout.destroy();
      let errors = "";
      child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
      const code = await new Promise((done) => child.once("close", done));
      expect({ args, code, errors }).toEqual({ args, code: 0, errors: "" });
    }
  });
});

describe("postbell plan", () => {
  it(
    "prints the schedule in local time, with the warning, the disabling and a time axis",
    LIMIT,
    async () => {
      const { code, out } = await run(["plan", "--from", "2026-01-01T00:00:00Z"], { TZ: "Europe/Berlin" });
      expect(code).toBe(0);
      const lines = out.split("\n");
      expect(lines[0]).toContain("Europe/Berlin");
      expect(lines[2]).toMatch(/^ 0:00 {2}Thu,? 0?1 Jan 2026, 01:00:00 {2}attempt 1$/);
      expect(out).toMatch(
        /\n71:45 .* attempt 14, by 72:00 at the latest\n72:00 .*operator is warned.*\n96:00 .*disabled/,
      );
      expect(out).toContain(`${drawTimeAxis([0, 900_000], 259_200_000, 345_600_000).split("\n")[1]}`);
      expect(out).not.toContain("\u001b");
    },
  );

  it("prints a policy of the host as JSON", LIMIT, async () => {
    const args = [
      "--intervals",
      "10s,1m",
      "--every",
      "1h",
      "--window",
      "2h",
      "--jitter",
      "0",
      "--warn",
      "3h",
      "--disable",
      "1d",
    ];
    const { out } = await told(["plan", ...args, "--from", "2026-01-01", "--json"]);
    expect(JSON.parse(out)).toMatchObject({
      attempts: [
        { offsetMs: 0 },
        { offsetMs: 10_000, latestAt: "2026-01-01T00:00:10.000Z" },
        { offsetMs: 70_000 },
        { number: 4, offsetMs: 3_670_000 },
      ],
      warning: { at: "2026-01-01T03:00:00.000Z" },
      disabled: { at: "2026-01-02T00:00:00.000Z" },
    });
  });

  it("draws attempts that fall together as their number", () => {
    const [axis, labels] = drawTimeAxis([0, 0.1, 0.2, 50], 75, 100).split("\n");
    expect(axis).toMatch(/^3-{1,3}.*o.*W.*D$/);
    expect(axis?.indexOf("o")).toBe(36);
    expect(axis?.indexOf("W")).toBe(54);
    expect(labels?.startsWith("0:00")).toBe(true);
  });

  it.each([
    [["plan", "--every", "8"], /number with a unit/],
    [
      ["plan", "--every", "1s"],
      /^postbell: --every must be at least --window \/ 1000, 259200 ms \(got 1000 ms\)\.\n/,
    ],
    [
      ["plan", "--warn", "2d", "--disable", "1d"],
      /^postbell: --disable must be at least --warn, 172800000 ms \(got 86400000 ms\)\.\n/,
    ],
    [["plan", "--jitter", "5"], /^postbell: --jitter must be a number from 0 to 1/],
    [["plan", "--intervals", "0s"], /^postbell: --intervals must be a list/],
    [
      ["plan", "--max-jitter", "1d", "--window", "1ms"],
      /^postbell: --window must leave time for at least one retry \(got 1 ms\)/,
    ],
    [["plan", "--from", "tomorrow"], /--from/],
    [["listen", "--tls-cert", "x"], /go together/],
    [["listen", "--status", "99"], /--status/],
    [["listen", "--secret", ""], /--secret is empty/],
    [["replay", "x"], /--to is missing/],
    [["replay", "--to", "ftp://x"], /file to send is missing/],
    [["verify"], /file to verify is missing/],
  ])("ends with 2 for a wrong line: %j", async (args, message) => {
    expect(await told(args)).toMatchObject({ code: 2, errors: expect.stringMatching(message) });
  });

  it("and the other commands print their help, with the exit codes", async () => {
    for (const name of ["listen", "verify", "replay", "plan", "import", "export"]) {
      const { code, out } = await told([name, "--help"]);
      expect(code).toBe(0);
      expect(out).toContain(`Usage: postbell ${name}`);
      expect(out).toContain("--json");
      expect(out).toContain("3 not valid");
    }
  });
});
