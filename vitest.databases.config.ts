import { defineConfig } from "vitest/config";
import base from "./vitest.config.js";

/** Tests of the outbox on servers that they start and kill: one file at a time, and each takes as long as real processes do. */
export default defineConfig({
  plugins: base.plugins ?? [],
  test: {
    include: ["test/databases/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    globalSetup: ["test/support/redis-setup.ts"],
  },
});
