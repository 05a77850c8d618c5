/** Publishes scheduled posts when their time has come: before a request is answered, and by a timer while the service is started. */

import type { Clock, Timer } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Site } from "../site.js";
import type { ContentRepository } from "./content-repository.js";

export interface ScheduledPosts {
  /** Publishes what is due. Nothing to wait for where nothing is. Never rejects: what could not be published stays unseen. */
  readonly publishDue: () => void | Promise<void>;
  readonly start: () => void;
  readonly stop: () => void;
}

/** The timer looks again at least this often: another process may have scheduled something sooner. After a failure not before that. */
const LOOK_EVERY_MS = 60_000;
/** Posts that are published in one change; the rest with the next request or look. */
const AT_ONCE = 500;

export interface ScheduledPostsOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createScheduledPosts({
  library,
  site,
  clock,
  logger,
}: ScheduledPostsOptions): ScheduledPosts {
  const { index } = library;
  let timer: Timer | undefined;
  let publishing: Promise<void> | undefined;

  async function publish(): Promise<void> {
    await library.change(async (draft) => {
      const now = library.now();
      const posts = await library.posts(index.due(now).slice(0, AT_ONCE));
      for (const post of posts) {
        if (post?.status !== "future") continue;
        draft.putPost({ ...post, status: "publish", modified: site.zone.toLocal(now), modifiedGmt: now });
      }
    });
  }

  const isDue = (): boolean => (index.nextDue() ?? Number.POSITIVE_INFINITY) <= library.now();

  function publishDue(): void | Promise<void> {
    if (!isDue()) return;
    publishing ??= publish()
      .catch((error: unknown) => {
        // Not the fault of whoever asks for something else meanwhile, and perhaps he is just making room.
        logger.warn({ error }, "scheduled posts could not be published; they are tried again");
      })
      .finally(() => {
        publishing = undefined;
      });
    return publishing;
  }

  async function look(): Promise<void> {
    try {
      await library.current();
      await publishDue();
    } catch (error) {
      logger.warn({ error }, "the content could not be looked at for scheduled posts");
    }
  }

  function arm(afterMs: number): void {
    timer = clock.setTimeout(() => {
      void look().then(() => {
        if (timer === undefined) return;
        // What is still due was refused.
        arm(isDue() ? LOOK_EVERY_MS : untilNext());
      });
    }, afterMs);
  }

  const untilNext = (): number =>
    Math.min(Math.max((index.nextDue() ?? Number.POSITIVE_INFINITY) - library.now(), 0), LOOK_EVERY_MS);

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
