/** A host's Redis client whose replies a test holds back. */

import { Redis } from "ioredis";
import type { RedisClient } from "../../storage/redis/index.js";
import { redisUrl } from "./redis.js";

export interface HeldClient {
  readonly client: RedisClient;
  /** Names of the commands that Redis has answered, held or not. */
  readonly answered: string[];
  /**
   * From now on the replies to commands that `which` names are held, until the returned function is
   * called.
   */
  readonly hold: (which: (args: readonly unknown[]) => boolean) => () => void;
  readonly end: () => void;
}

/** Commands run at once; only their replies are held. */
export function heldClient(): HeldClient {
  const redis = new Redis(redisUrl());
  const send: RedisClient["call"] = redis.call.bind(redis);
  let isHeld = (_args: readonly unknown[]): boolean => false;
  let gate = Promise.resolve();
  const answered: string[] = [];
  const client = Object.assign(redis, {
    async call(command: string, ...args: (string | number)[]) {
      const own = isHeld([command, ...args]) ? gate : undefined;
      const reply = await send(command, ...args);
      answered.push(command);
      await own;
      return reply;
    },
  }) as unknown as RedisClient;
  return {
    client,
    answered,
    hold(which) {
      isHeld = which;
      let release = (): void => {};
      gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      return release;
    },
    end: () => redis.disconnect(),
  };
}

export const isScript = (args: readonly unknown[]): boolean => String(args[0]) === "FCALL";
