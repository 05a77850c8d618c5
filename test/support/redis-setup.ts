/** Once for a whole test run: the Redis server that all test files share. */

import type { TestProject } from "vitest/node";
import { startRedis } from "./redis-server.js";

declare module "vitest" {
  interface ProvidedContext {
    redis: { readonly url: string } | { readonly reason: string };
  }
}

/** A machine without a server still runs every test that needs none. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env["REDIS_URL"];
  if (given) {
    project.provide("redis", { url: given });
    return undefined;
  }
  try {
    const server = await startRedis();
    project.provide("redis", { url: server.url });
    return server.stop;
  } catch (error) {
    project.provide("redis", { reason: (error as Error).message });
    return undefined;
  }
}
