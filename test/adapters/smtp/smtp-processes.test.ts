/**
 * The notifier in real processes on one Redis: who mails, and what a kill leaves. Each process has
 * a clock that stands at a time of its own.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type MailServer, type MailServerOptions, startMailServer } from "../../support/mail-server.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { HOUR, MINUTE, START } from "../../support/webhook-harness.js";

const HOST = resolve(import.meta.dirname, "../../support/mailing-host.mjs");
const LIMIT = { timeout: 180_000 };

async function scene(options: MailServerOptions = {}) {
  const server: MailServer = await startMailServer(options);
  onTestFinished(() => server.close());
  const prefix = freshPrefix();
  const begin = (part: "register" | "look", at: number): { child: ChildProcess; ended: Promise<unknown> } => {
    const args = [HOST, redisUrl(), prefix, server.url, part, String(START + at)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    return {
      child,
      ended: new Promise((done) => child.once("exit", (code, signal) => done(signal ?? code))),
    };
  };
  const subjects = (): readonly unknown[] => server.mails.map(({ mail }) => mail.subject);
  return { server, begin, subjects };
}

describe("processes on one Redis", () => {
  it("send one warning and one mail of the disabling between them", LIMIT, async () => {
    const { begin, subjects } = await scene();
    expect(await begin("register", 0).ended).toBe(0);
    for (const at of [72 * HOUR, 72 * HOUR + 5 * MINUTE, 96 * HOUR, 96 * HOUR + 5 * MINUTE]) {
      const both = [begin("look", at), begin("look", at)];
      expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([0, 0]);
    }
    expect(subjects()).toEqual([
      "Webhook endpoint hooks.example.com is failing and will be disabled in 24 hours",
      "Webhook endpoint hooks.example.com was disabled",
    ]);
  });

  it(
    "send the mail again under the same Message-ID where one was killed before it heard that it was taken",
    LIMIT,
    async () => {
      const running: { child?: ChildProcess } = {};
      let isFirst = true;
      const { server, begin } = await scene({
        message: async () => {
          if (!isFirst) return undefined;
          isFirst = false;
          const { child } = running;
          const gone = new Promise((done) => child?.once("exit", done));
          child?.kill("SIGKILL");
          await gone;
          return undefined;
        },
      });
      expect(await begin("register", 0).ended).toBe(0);
      const killed = begin("look", 72 * HOUR);
      running.child = killed.child;
      expect(await killed.ended).toBe("SIGKILL");
      // Within the lease of the dead one nobody else mails.
      expect(await begin("look", 72 * HOUR + MINUTE / 2).ended).toBe(0);
      expect(server.mails).toHaveLength(1);
      expect(await begin("look", 72 * HOUR + 2 * MINUTE).ended).toBe(0);
      expect(await begin("look", 72 * HOUR + 5 * MINUTE).ended).toBe(0);
      const ids = server.mails.map(({ mail }) => mail.messageId);
      expect(ids).toHaveLength(2);
      expect(ids[0]).toBe(ids[1]);
    },
  );
});
