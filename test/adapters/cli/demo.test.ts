/** `postbell demo`, in this process: what a visitor sees in the terminal and in the portal. */

import { request } from "node:http";
import { PassThrough } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { main } from "../../../adapters/cli/command-line.js";
import { memoryStorage } from "../../../storage/memory/index.js";

function startDemo(args: readonly string[]) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const interrupt = new AbortController();
  let output = "";
  const waiting = new Set<() => void>();
  for (const stream of [stdout, stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      for (const look of waiting) look();
    });
  const exit = main(["demo", ...args], {
    stdin,
    stdout,
    stderr,
    env: {},
    openStorage: () => memoryStorage(),
    signal: interrupt.signal,
  });
  onTestFinished(async () => {
    interrupt.abort();
    await exit;
  });
  const shows = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = pattern.exec(output);
        if (found === null) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  return { shows, exit, stdin, interrupt: () => interrupt.abort(), output: () => output };
}

const statusFor = (origin: string, host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request(`${origin}/portal/`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });

it("delivers to one endpoint, fails at the other until Enter, and sends from the portal what it missed", async () => {
  const demo = startDemo(["--port", "0"]);
  const [, origin = ""] = await demo.shows(/The portal: {2}(http:\/\/127\.0\.0\.1:\d+)\/portal\//);
  await demo.shows(/verified {2}\/orders {5}order\.paid {2}\{"order":"A-1001"/);
  await demo.shows(/failed {4}\/warehouse {2}responds 503/);
  demo.stdin.write("\n");
  await demo.shows(/\/warehouse is repaired/);

  const ask = async (path: string, method = "GET") => {
    const response = await fetch(`${origin}/portal/api/v1/${path}`, {
      method,
      headers: { "x-postbell-portal": "1", "content-type": "application/json" },
    });
    return (await response.json()) as {
      webhooks: { id: string; url: string }[];
      deliveries: { id: string }[];
    };
  };
  const { webhooks } = await ask("webhooks");
  const warehouse = webhooks.find(({ url }) => url === `${origin}/warehouse`);
  const { deliveries } = await ask(`webhooks/${warehouse?.id}/deliveries?state=pending`);
  await ask(`webhooks/${warehouse?.id}/deliveries/${deliveries.at(-1)?.id}/resend`, "POST");
  await demo.shows(/verified {2}\/warehouse {2}order\.paid {2}\{"order":"A-1001"/);

  demo.interrupt();
  expect(await demo.exit).toBe(130);
});

it("serves no page that resolves a name of its own to this machine", async () => {
  const demo = startDemo(["--port", "0"]);
  const [, origin = ""] = await demo.shows(/The portal: {2}(http:\/\/127\.0\.0\.1:\d+)\/portal\//);
  const statuses = await Promise.all([
    statusFor(origin, new URL(origin).host),
    statusFor(origin, "evil.example"),
  ]);
  expect(statuses).toEqual([200, 421]);
});

it("names a port that is in use, and what to do", async () => {
  const first = startDemo(["--port", "0"]);
  const [, port = ""] = await first.shows(/127\.0\.0\.1:(\d+)/);
  const second = startDemo(["--port", port]);
  expect(await second.exit).toBe(1);
  expect(second.output()).toBe(
    `postbell: Port ${port} is in use: choose another with --port, or any free one with --port 0.\n`,
  );
});
