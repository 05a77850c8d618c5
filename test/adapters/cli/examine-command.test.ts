/** `postbell examine`, in this process, against receivers on loopback. */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { main } from "../../../adapters/cli/command-line.js";
import { nodeAdapter } from "../../../adapters/node.js";
import { createReceiver } from "../../../src/receiver/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { fileLeaks } from "../../support/leak-check.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
/** The slow body takes two seconds. */
const LIMIT = { timeout: 60_000 };

async function told(...args: readonly string[]) {
  const [out, errors] = [new PassThrough(), new PassThrough()];
  const code = await main(["examine", ...args], {
    stdin: Readable.from([]),
    stdout: out,
    stderr: errors,
    env: { POSTBELL_SECRET: SECRET },
    openStorage: () => memoryStorage(),
    signal: new AbortController().signal,
  });
  const textOf = async (stream: PassThrough): Promise<string> =>
    Buffer.concat(await stream.end().toArray()).toString();
  const ended = { code, out: await textOf(out), errors: await textOf(errors) };
  fileLeaks.note("postbell examine", ended);
  return ended;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}/hooks`;
}

const serveReceiver = (body: "notification" | "plain"): Promise<string> => {
  const onEvent = (): void => {};
  const receiver =
    body === "plain"
      ? createReceiver({ secrets: SECRET, logger: false, body, onEvent })
      : createReceiver({ secrets: SECRET, logger: false, onEvent });
  return serve(nodeAdapter(receiver, { prefix: "/hooks" }));
};

describe("postbell examine", () => {
  it("passes a receiver of createReceiver in all ten checks, and ends with 0", LIMIT, async () => {
    const { code, out } = await told(await serveReceiver("notification"));
    expect(out.match(/^pass/gm)).toHaveLength(10);
    expect(code).toBe(0);
  });

  it("sends plain events with --plain", LIMIT, async () => {
    const { code, out } = await told(await serveReceiver("plain"), "--plain", "--json");
    const report = JSON.parse(out) as Record<string, unknown>;
    expect(Object.keys(report)).toEqual(["at", "isPassed", "checks"]);
    expect(report).toMatchObject({ isPassed: true, at: expect.stringMatching(/^\d{4}-.*Z$/) as unknown });
    expect(code).toBe(0);
  });

  it("says how to repair an endpoint that accepts everything, and ends with 3", LIMIT, async () => {
    const url = await serve((request, response) => {
      request.resume().on("end", () => response.writeHead(200).end());
    });
    const { code, out } = await told(url);
    expect(out.match(/^FAIL/gm)).toHaveLength(4);
    expect(out).toMatch(/FAIL {2}No signature +status 200, \d+ ms\n {6}Expected a 4xx.*createReceiver\(/);
    expect(code).toBe(3);
  });

  it("refuses another machine without --live, and wrong usage", LIMIT, async () => {
    const refused = await told("https://hooks.example.com/a");
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.errors).toContain("hooks.example.com is not this machine");
    expect((await told()).errors).toContain("The URL of the endpoint is missing.");
    const unreachable = await told("http://127.0.0.1:1/hooks", "--json");
    expect(unreachable.code).toBe(3);
    const { checks } = JSON.parse(unreachable.out) as { checks: { problem: string | null }[] };
    expect(checks[0]?.problem).toBe("unreachable");
  });
});
