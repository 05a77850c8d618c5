import { execFile } from "node:child_process";
import { createConnection } from "node:net";
import { join, resolve } from "node:path";
import { describe, it } from "vitest";
import { redisUrl } from "../support/redis.js";

const root = resolve(import.meta.dirname, "../..");
/** Longer than the half minute after which an example gives up by itself. */
const LIMIT_MS = 180_000;

function runOnce(
  example: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly exitCode: unknown; readonly output: string }> {
  return new Promise((done) => {
    const args = [join(root, "examples", example), "--once"];
    const options = { env: { ...process.env, ...environment }, timeout: LIMIT_MS - 5_000 };
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      done({ exitCode: error ? error.code : 0, output: stdout + stderr });
    });
  });
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = createConnection(port, "127.0.0.1");
    socket.once("error", () => done(false));
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
  });

describe.concurrent("the examples with Redis, run once", () => {
  it(
    "has two processes deliver what one emits, and one take over when the other is killed",
    async ({ expect }) => {
      const { exitCode, output } = await runOnce("two-processes.js", { REDIS_URL: redisUrl() });
      expect([exitCode, output]).toEqual([0, expect.stringContaining("Done: both delivered")]);
      const deliverers = [...output.matchAll(/ {2}p\d+: verified, delivered by process (\d+)/g)];
      expect(deliverers).toHaveLength(12);
      expect(new Set(deliverers.map(([, pid]) => pid)).size).toBe(2);
      const [, killed, survivor] =
        /Process (\d+) tried another event, .* was killed\.\n {2}retried: .* by process (\d+)/.exec(output) ??
        [];
      expect(deliverers.map(([, pid]) => pid)).toEqual(expect.arrayContaining([killed, survivor]));
      expect(survivor).not.toBe(killed);
    },
    LIMIT_MS,
  );

  it(
    "delivers on a Cluster of three masters that it starts, and leaves none of them behind",
    async ({ expect }) => {
      const { exitCode, output } = await runOnce("cluster.js", { REDIS_CLUSTER: "" });
      expect([exitCode, output]).toEqual([0, expect.stringContaining("Done: delivered and verified.")]);
      expect(output.match(/verified and accepted/g)).toHaveLength(6);
      const ports = [...output.matchAll(/master on port (\d+): [1-9]\d* keys/g)].map(([, port]) =>
        Number(port),
      );
      expect(ports).toHaveLength(3);
      expect(await Promise.all(ports.map(isListening))).toEqual([false, false, false]);
    },
    LIMIT_MS,
  );
});
