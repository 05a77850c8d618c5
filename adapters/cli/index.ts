#!/usr/bin/env node
/**
 * `postbell`: the command for receivers of webhooks, for import and export of sites, and for the
 * databases of storages.
 */

import { redisStorage } from "../../storage/redis/index.js";
import { main } from "./command-line.js";

// The reader may close the pipe, as `head` does. Without a listener, the process would crash.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
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
  env: process.env,
  openStorage: (options) => redisStorage(options),
  signal: interrupt.signal,
});
// A pipe that nobody closes would keep the process alive.
process.stdin.unref?.();
