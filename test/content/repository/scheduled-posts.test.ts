import { describe, expect, it } from "vitest";
import type { ContentRepository } from "../../../src/content/repository/content-repository.js";
import { createScheduledPosts } from "../../../src/content/repository/scheduled-posts.js";
import { createSiteZone } from "../../../src/content/text/dates.js";
import { silentLogger } from "../../../src/core/logger.js";
import { manualClock } from "../../../src/testing/manual-clock.js";

const MINUTE = 60_000;

describe("the checks for scheduled posts", () => {
  it("go on once a minute after a stop and a start during a check", async () => {
    const clock = manualClock(0);
    let checks = 0;
    let release = () => {};
    let wait: Promise<void> | undefined = new Promise((resolve) => {
      release = resolve;
    });
    const repository = {
      index: { nextDue: () => undefined, due: () => [] },
      now: () => clock.now(),
      current: () => {
        checks += 1;
        return wait;
      },
    } as unknown as ContentRepository;
    const scheduled = createScheduledPosts({
      repository,
      site: { zone: createSiteZone("UTC") },
      clock,
      logger: silentLogger,
    });
    scheduled.start();
    await clock.advance(MINUTE);
    expect(checks).toBe(1);
    scheduled.stop();
    scheduled.start();
    wait = undefined;
    release();
    await clock.advance(5 * MINUTE);
    expect(checks).toBe(6);
    scheduled.stop();
    await clock.advance(5 * MINUTE);
    expect(checks).toBe(6);
  });
});
