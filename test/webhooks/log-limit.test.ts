/** A failure that repeats with every delivery fills the log with few lines. */

import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/testing/manual-clock.js";
import { limitLogger } from "../../src/webhooks/log-limit.js";
import { recordingLogger } from "../support/registration-api.js";
import { MINUTE, SECOND, START, startHarness } from "../support/webhook-harness.js";

const LINE = "a delivery attempt failed";

function limited() {
  const clock = manualClock(START);
  const { logger, log } = recordingLogger();
  return { clock, log, limit: limitLogger(logger, clock) };
}

describe("lines of the same message about the same webhook", () => {
  it("are limited to 60 a minute, and the next one tells how many were left out", async () => {
    const { clock, log, limit } = limited();
    for (let count = 0; count < 10_000; count++) limit.info({ webhook: "a", count }, LINE);
    expect(log.map(({ fields }) => fields)).toEqual(
      Array.from({ length: 60 }, (_, count) => ({ webhook: "a", count })),
    );
    await clock.advance(SECOND);
    limit.info({ webhook: "a" }, LINE);
    limit.info({ webhook: "a" }, LINE);
    await clock.advance(MINUTE);
    limit.info({ webhook: "a" }, LINE);
    limit.info({ webhook: "a" }, LINE);
    expect(log.slice(60).map(({ fields }) => fields)).toEqual([
      { webhook: "a", omitted: 9_940 },
      { webhook: "a", omitted: 1 },
      { webhook: "a" },
    ]);
  });

  it("leave room for other webhooks, accounts, messages and levels", () => {
    const { log, limit } = limited();
    for (let count = 0; count < 100; count++) limit.info({ webhook: "a", account: "one" }, LINE);
    log.length = 0;
    const others = [
      () => limit.info({ webhook: "b", account: "one" }, LINE),
      () => limit.info({ account: "one" }, LINE),
      () => limit.info({ account: "two" }, LINE),
      () => limit.info({}, LINE),
      () => limit.info({ webhook: "a" }, "another message"),
      () => limit.warn({ webhook: "a" }, LINE),
      () => limit.error({ webhook: "a" }, LINE),
      () => limit.debug({ webhook: "a" }, LINE),
    ];
    for (const other of others) other();
    expect(log.map(({ level }) => level)).toEqual([
      "info",
      "info",
      "info",
      "info",
      "info",
      "warn",
      "error",
      "debug",
    ]);
  });
});

describe("the log of a service", () => {
  it("has few lines of an endpoint that refuses hundreds of events, and some of each other one", async () => {
    const { logger, log } = recordingLogger();
    const harness = await startHarness({ answer: () => 500, options: { logger } });
    const bad = await harness.register();
    for (let count = 0; count < 300; count++) await harness.emit();
    await harness.quiet();
    const other = await harness.register("https://hooks.example.com/b", "other");
    await harness.emit({ account: "other" });
    await harness.run(0);
    const about = (webhook: string) =>
      log.filter(({ fields }) => (fields as { webhook?: string }).webhook === webhook).length;
    expect(harness.sent).toHaveLength(301);
    expect([about(bad.id), about(other.id)]).toEqual([60, 1]);
  });

  it("has few lines of a hook that fails for every delivery", async () => {
    const { logger, log } = recordingLogger();
    const canRead = () => {
      throw new Error("no database");
    };
    const harness = await startHarness({
      options: { logger, access: { authenticate: () => null, canRead } },
    });
    await harness.register();
    for (let count = 0; count < 300; count++) await harness.emit();
    await harness.quiet();
    expect(log).toHaveLength(60);
  });
});
