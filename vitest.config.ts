import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { portalAppForVite } from "./scripts/portal-app.js";
import { watchedModules } from "./test/support/watched-modules.js";

/** Repeats on further topologies what one test of `npm test` holds, or searches widely. */
const THOROUGH = "test/**/*.thorough.test.ts";
/**
 * These change something of their process: they replace a module, a global, a timer or a method of a
 * prototype, listen to events of the process, or measure its heap or the code that runs.
 */
const ISOLATED = "test/**/*.isolated.test.ts";
/** Suites with a command of their own: `npm run test:faults` and so on. `npm test` leaves them out. */
const OTHER_SUITES = ["test/faults/**", "test/databases/**", "test/browser/**", THOROUGH];

/** Ends what hangs and judges nothing: a busy machine may take a hundred times as long as a quiet one. */
const LIMIT_MS = 900_000;

const plugins: Plugin[] = [
  {
    name: "lua-and-sql-text",
    transform: (text, id) =>
      /\.(?:lua|sql)$/.test(id) ? `export default ${JSON.stringify(text)}` : undefined,
  },
  portalAppForVite,
];

// The projects do not extend this configuration: each would start a Redis server of its own and overrule `--maxWorkers`.
const inEvery = {
  testTimeout: LIMIT_MS,
  hookTimeout: LIMIT_MS,
  setupFiles: ["test/support/compare-answers.ts", "test/support/secrecy-watch.ts"],
};

export default defineConfig({
  plugins,
  test: {
    globalSetup: ["test/support/redis-setup.ts"],
    maxWorkers: "100%",
    // The default logger writes to the console. Only what a failed test wrote is of interest.
    silent: "passed-only",
    // Loading and compiling the package costs more than most files do with it. So there is one process per core, and
    // files share it, except the isolated ones.
    projects: [
      {
        plugins: [...plugins, watchedModules],
        test: {
          ...inEvery,
          name: "shared",
          isolate: false,
          include: ["test/**/*.test.ts"],
          exclude: [...OTHER_SUITES, ISOLATED],
        },
      },
      {
        plugins: [...plugins, watchedModules],
        test: { ...inEvery, name: "isolated", include: [ISOLATED], exclude: OTHER_SUITES },
      },
      { plugins, test: { ...inEvery, name: "thorough", include: [THOROUGH] } },
      // These start, kill and cut off real processes and servers, so their files run one at a time.
      {
        plugins,
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 60_000,
          disableConsoleIntercept: true,
        },
      },
      {
        plugins,
        test: {
          name: "databases",
          include: ["test/databases/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          disableConsoleIntercept: true,
        },
      },
      {
        plugins,
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts", "adapters/**/*.ts", "storage/**/*.ts"],
      exclude: ["src/portal/app/**", "adapters/cli/**"],
      reporter: ["text", "json-summary"],
      thresholds: { "src/webhooks/**": { branches: 95 } },
    },
  },
});
