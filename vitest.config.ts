import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    {
      name: "lua-text",
      transform: (text, id) => (id.endsWith(".lua") ? `export default ${JSON.stringify(text)}` : undefined),
    },
  ],
  test: {
    include: ["test/**/*.test.ts"],
    // They kill real processes and servers, one after another: `npm run test:faults` and `npm run test:databases`.
    exclude: ["test/faults/**", "test/databases/**"],
    // Days that pass on the injected clock take seconds on a busy machine.
    testTimeout: 30_000,
    globalSetup: ["test/support/redis-setup.ts"],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts", "adapters/**/*.ts", "storage/**/*.ts", "outbox/**/*.ts"],
      reporter: ["text", "json-summary"],
      thresholds: { "src/webhooks/**": { branches: 95 } },
    },
  },
});
