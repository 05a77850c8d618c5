import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts", "adapters/**/*.ts", "storage/**/*.ts"],
      reporter: ["text", "json-summary"],
      thresholds: { "src/webhooks/**": { branches: 95 } },
    },
  },
});
