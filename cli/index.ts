#!/usr/bin/env node
/** `postbell`: what helps whoever receives webhooks, and brings a site in and out, from the command line. */

import { redisStorage } from "../storage/redis/index.js";
import { main } from "./main.js";

// Whoever reads has enough, as `head` has: an event without a listener would end the process with a stack trace.
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
// A pipe that nobody closes would keep the process.
process.stdin.unref?.();
