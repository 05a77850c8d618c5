import { defineConfig } from "vitest/config";
import base from "./vitest.config.js";

/** Tests that kill processes and servers: one file at a time, and each takes as long as real processes do. */
export default defineConfig({
  plugins: base.plugins ?? [],
  test: {
    include: ["test/faults/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 60_000,
    disableConsoleIntercept: true,
  },
});
