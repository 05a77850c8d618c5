/**
 * Publishes scheduled posts at their time: before each request, and by a timer in a started
 * service.
 */

import { AsyncResource } from "node:async_hooks";
import type { Clock, Timer } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { SiteZone } from "../text/dates.js";
import type { ContentRepository } from "./content-repository.js";

export interface ScheduledPosts {
  /**
   * Publishes what is due. Returns without a promise if nothing is. Never rejects: posts that could
   * not be published stay scheduled.
   */
  publishDue: () => void | Promise<void>;
  start: () => void;
  stop: () => void;
}

/**
 * The longest time between two checks: another process may have scheduled an earlier post. After a
 * failure this is also the shortest time.
 */
const CHECK_EVERY_MS = 60_000;
/** The most posts published in one change. The next request or check publishes the rest. */
const BATCH = 500;

export function createScheduledPosts({
  repository,
  site,
  clock,
  logger,
}: {
  repository: ContentRepository;
  site: { zone: SiteZone };
  clock: Clock;
  logger: Logger;
}): ScheduledPosts {
  const { index } = repository;
  let timer: Timer | undefined;
  let publishing: Promise<void> | undefined;

  async function publish(): Promise<void> {
    await repository.change(async (transaction) => {
      const now = repository.now();
      const posts = await repository.posts(index.due(now).slice(0, BATCH));
      for (const post of posts) {
        if (post?.status !== "future") continue;
        transaction.putPost({
          ...post,
          status: "publish",
          modified: site.zone.toLocal(now),
          modifiedGmt: now,
        });
      }
    });
  }

  const isDue = (): boolean => (index.nextDue() ?? Number.POSITIVE_INFINITY) <= repository.now();

  /** The hook `changed` and the log must not get the async context of the first request. */
  const beginPublishing = AsyncResource.bind(() =>
    publish()
      .catch((error: unknown) => {
        // The request that waits did not cause this, and it may be one that frees space.
        logger.warn({ error }, "scheduled posts could not be published and are retried");
      })
      .finally(() => {
        publishing = undefined;
      }),
  );

  function publishDue(): void | Promise<void> {
    if (!isDue()) return;
    publishing ??= beginPublishing();
    return publishing;
  }

  async function check(): Promise<void> {
    try {
      await repository.current();
      await publishDue();
    } catch (error) {
      logger.warn({ error }, "the content could not be read to find scheduled posts");
    }
  }

  function arm(afterMs: number): void {
    const current = clock.setTimeout(() => {
      void check().then(() => {
        // Stopped meanwhile, and perhaps started again, which has a separate timer.
        if (timer !== current) return;
        // A post that is still due was refused by the storage.
        arm(isDue() ? CHECK_EVERY_MS : untilNext());
      });
    }, afterMs);
    timer = current;
  }

  const untilNext = (): number =>
    Math.min(Math.max((index.nextDue() ?? Number.POSITIVE_INFINITY) - repository.now(), 0), CHECK_EVERY_MS);

  return {
    publishDue,
    start() {
      if (timer === undefined) arm(untilNext());
    },
    stop() {
      clock.clearTimeout(timer);
      timer = undefined;
    },
  };
}
