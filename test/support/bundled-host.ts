/**
 * Compiles `scripts/peer-host.js` with bundlers, on the packed package, and runs the result.
 * webpack has the version that Next.js 15 contains: it gives nothing but `default` for a CommonJS
 * package that is a class, as ioredis is. Later versions add the other names.
 */

import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { build, transformSync } from "esbuild";
import webpack from "webpack";
import { installPackedPackage } from "./packed-package.js";

const run = promisify(execFile);
const DRIVERS = ["ioredis", "nodemailer", "pg"];
/** A native addon stays outside of every bundle. */
const NATIVE = ["sharp"];
/** `pg` asks for it only when told to. It is not installed. */
const ABSENT = ["pg-native"];

/** `host.cjs` loads the CommonJS build of the package, `host.mjs` the other. */
const SOURCES = ["host.mjs", "host.cjs"] as const;

export const esbuildCases = (["esm", "cjs"] as const).flatMap((format) =>
  SOURCES.flatMap((source) =>
    (["bundled", "external"] as const).map((drivers) => ({ format, source, drivers })),
  ),
);
export const webpackCases = SOURCES.flatMap((source) =>
  (["bundled", "import", "commonjs"] as const).map((drivers) => ({ source, drivers })),
);

export function createBundledHost() {
  const { folder } = installPackedPackage(...DRIVERS, ...NATIVE);
  const text = readFileSync(resolve(import.meta.dirname, "../../scripts/peer-host.js"), "utf8");
  writeFileSync(join(folder, "host.mjs"), text);
  writeFileSync(join(folder, "host.cjs"), transformSync(text, { format: "cjs" }).code);

  return {
    remove: () => rmSync(folder, { recursive: true, force: true }),

    async withEsbuild({ format, source, drivers }: (typeof esbuildCases)[number]): Promise<string> {
      const file = `esbuild-${source}-${drivers}.${format === "esm" ? "mjs" : "cjs"}`;
      // An ES module of esbuild has no `require`, which drivers in CommonJS call.
      const require = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;
      await build({
        absWorkingDir: folder,
        entryPoints: [source],
        outfile: file,
        bundle: true,
        platform: "node",
        format,
        banner: { js: format === "esm" ? require : "" },
        external: [...NATIVE, ...ABSENT, ...(drivers === "external" ? DRIVERS : [])],
        logLevel: "error",
      });
      return file;
    },

    async withWebpack({ source, drivers }: (typeof webpackCases)[number]): Promise<string> {
      const file = `webpack-${source}-${drivers}.cjs`;
      const outside = [...NATIVE, ...(drivers === "bundled" ? [] : DRIVERS)];
      const form = drivers === "import" ? "import" : "commonjs";
      const compiler = webpack({
        context: folder,
        entry: `./${source}`,
        output: { path: folder, filename: file },
        target: "node20",
        mode: "production",
        plugins: [new webpack.optimize.LimitChunkCountPlugin({ maxChunks: 1 })],
        optimization: { minimize: false },
        externals: Object.fromEntries([
          ...outside.map((name) => [name, `${form} ${name}`]),
          ...ABSENT.map((name) => [name, `commonjs ${name}`]),
        ]),
      });
      const stats = await promisify(compiler.run.bind(compiler))();
      const errors = stats?.toJson({ all: false, errors: true }).errors ?? [];
      if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"));
      return file;
    },

    /** Returns the lines that the bundle printed. */
    async run(file: string, jobs: object): Promise<string[]> {
      const { stdout } = await run(process.execPath, [join(folder, file), JSON.stringify(jobs)], {
        cwd: folder,
      });
      return stdout.trim().split("\n");
    },
  };
}
