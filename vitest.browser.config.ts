import { defineConfig } from "vitest/config";
import base from "./vitest.config.js";

/** Tests that drive the portal in a real Chromium, one file at a time. */
export default defineConfig({
  plugins: base.plugins ?? [],
  test: {
    include: ["test/browser/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
