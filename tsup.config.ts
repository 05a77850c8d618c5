import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { build, type Plugin } from "esbuild";
import { defineConfig, type Options } from "tsup";
import { portalAppForEsbuild } from "./scripts/portal-app.js";

/** The lines stay, so that an error of Redis names the line of the source. */
const luaWithoutComments: Plugin = {
  name: "lua-without-comments",
  setup(compilation) {
    compilation.onLoad({ filter: /\.lua$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/^[ \t]*--.*$/gm, ""),
      loader: "text",
    }));
  },
};

const shared: Options = {
  entry: {
    index: "src/index.ts",
    content: "src/content/index.ts",
    storage: "src/ports.ts",
    files: "storage/files/index.ts",
    images: "adapters/sharp/index.ts",
    s3: "adapters/s3.ts",
    smtp: "adapters/smtp/index.ts",
    receiver: "src/receiver/index.ts",
    testing: "src/testing/index.ts",
    express: "adapters/express.ts",
    koa: "adapters/koa.ts",
    fastify: "adapters/fastify.ts",
    node: "adapters/node.ts",
    fetch: "adapters/fetch.ts",
    portal: "src/portal/index.ts",
    memory: "storage/memory/index.ts",
    redis: "storage/redis/index.ts",
    postgres: "storage/postgres/index.ts",
    sqlite: "storage/sqlite/index.ts",
    opentelemetry: "adapters/opentelemetry.ts",
    prometheus: "adapters/prometheus.ts",
    orm: "adapters/orm.ts",
    outbox: "storage/outbox/index.ts",
    received: "storage/received/index.ts",
  },
  platform: "node",
  target: "node20.19",
  loader: { ".sql": "text" },
  esbuildPlugins: [portalAppForEsbuild, luaWithoutComments],
};

const javascript: Options = {
  ...shared,
  // The command is run, not required, so it has no other form.
  entry: { ...(shared.entry as Record<string, string>), cli: "adapters/cli/index.ts" },
  format: "esm",
  splitting: true,
  // Without source maps: the code is not minified, and the sources are not in the package.
  onSuccess: writeCommonJs,
};

/**
 * These exist as ES modules only. The CommonJS build contains them, so that it also loads where
 * `require` cannot load ES modules (Jest, old bundlers).
 */
const COMPILED_IN = /^p-(?:queue|retry)$/;

const onlyCompiledIn: Plugin = {
  name: "only-compiled-in",
  setup(compilation) {
    compilation.onResolve({ filter: /./ }, ({ path, kind, importer }) => {
      const isCompiledIn =
        kind === "entry-point" ||
        COMPILED_IN.test(path) ||
        relative(".", importer).startsWith("node_modules");
      return isCompiledIn ? null : { path: path.replace(/^(\.\/.+)\.js$/, "$1.cjs"), external: true };
    });
  },
};

/**
 * Translates the ES modules, file by file, so that the entries share their chunks in both forms.
 * esbuild itself splits ES modules only, and tsup 8.5.1 exports a class of a shared CommonJS chunk
 * before it is defined.
 */
async function writeCommonJs(): Promise<void> {
  const modules = readdirSync("dist").filter((name) => name.endsWith(".js") && name !== "cli.js");
  await build({
    entryPoints: modules.map((name) => `dist/${name}`),
    outdir: "dist",
    outExtension: { ".js": ".cjs" },
    bundle: true,
    plugins: [onlyCompiledIn],
    format: "cjs",
    platform: "node",
    target: shared.target as string,
  });
}

/**
 * ES modules have the types of the CommonJS build, which TypeScript lets both import, so that the
 * package holds them once.
 */
function shareTypes(): void {
  for (const entry of Object.keys(shared.entry as object))
    writeFileSync(`dist/${entry}.d.ts`, `export * from "./${entry}.cjs";\n`);
}

// The compiler takes longer than everything else.
const declarations: Options = {
  ...shared,
  format: "cjs",
  dts: {
    only: true,
    compilerOptions: {
      // tsup 8.5.1 always passes `baseUrl`, which TypeScript 6 refuses without this flag.
      ignoreDeprecations: "6.0",
      // `npm run typecheck` checks; the declarations are the same without it, in half the time.
      noCheck: true,
    },
  },
};

// `npm start` builds with `--no-dts`: running the examples needs no types.
export default defineConfig(({ dts }) => {
  if (dts === false) return javascript;
  const onSuccess = async (): Promise<void> => {
    await writeCommonJs();
    shareTypes();
  };
  return [{ ...javascript, onSuccess }, declarations];
});
