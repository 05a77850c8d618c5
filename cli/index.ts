#!/usr/bin/env node
/** `postbell`: imports and exports a site from the command line. */

import type { ContentStorage } from "../src/content/store.js";
import { redisStorage } from "../storage/redis/index.js";
import { main } from "./main.js";

const interrupt = new AbortController();
process.once("SIGINT", () => interrupt.abort());
process.once("SIGTERM", () => interrupt.abort());

process.exitCode = await main(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: {
    write: (text) => process.stderr.write(text),
    isTTY: process.stderr.isTTY,
  },
  // The one place that waits for content on Redis: the storage's type does not say `content` yet.
  openStorage: (options) => redisStorage(options) as unknown as ContentStorage,
  signal: interrupt.signal,
});
// A pipe that nobody closes would keep the process.
process.stdin.unref?.();
