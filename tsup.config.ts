import { defineConfig } from "tsup";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    receiver: "src/receiver.ts",
    testing: "src/testing/index.ts",
    express: "adapters/express.ts",
    koa: "adapters/koa.ts",
    fastify: "adapters/fastify.ts",
    node: "adapters/node.ts",
    fetch: "adapters/fetch.ts",
    memory: "storage/memory/index.ts",
  },
  format: ["esm", "cjs"],
  platform: "node",
  target: "node20.19",
  // tsup 8.5.1 always passes `baseUrl`, which TypeScript 6 refuses without this flag.
  dts: { compilerOptions: { ignoreDeprecations: "6.0" } },
  // ESM-only helpers are compiled in, so that the CJS build also loads under Jest and old bundlers.
  noExternal: ["fastest-levenshtein", "lru-cache", "tinyqueue"],
  splitting: true,
  sourcemap: true,
  clean: true,
});
