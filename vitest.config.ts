import { defineConfig } from "vitest/config";
import { portalAppForVite } from "./scripts/portal-app.js";

export default defineConfig({
  plugins: [
    {
      name: "lua-text",
      transform: (text, id) => (id.endsWith(".lua") ? `export default ${JSON.stringify(text)}` : undefined),
    },
    portalAppForVite,
  ],
  test: {
    include: ["test/**/*.test.ts"],
    // They kill real processes and servers, one after another, or need a browser: `npm run test:faults`, `test:databases`, `test:browser`.
    exclude: ["test/faults/**", "test/databases/**", "test/browser/**"],
    // Days that pass on the injected clock take seconds on a busy machine.
    testTimeout: 30_000,
    globalSetup: ["test/support/redis-setup.ts"],
    setupFiles: ["test/support/compare-answers.ts", "test/support/secrecy-watch.ts"],
    coverage: {
      provider: "v8",
      include: [
        "src/**/*.ts",
        "adapters/**/*.ts",
        "notify/**/*.ts",
        "outbox/**/*.ts",
        "portal/*.ts",
        "storage/**/*.ts",
        "telemetry/**/*.ts",
      ],
      reporter: ["text", "json-summary"],
      thresholds: { "src/webhooks/**": { branches: 95 } },
    },
  },
});
