// Compiles the page of the portal into one script and one style sheet, which the server module
// imports as strings. One plugin for tsup (esbuild), one for Vitest (Vite).

import { mkdir, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { build } from "esbuild";
import { loadSnippets } from "./verification-snippets.js";

const NAME = "virtual:portal-app";
// From the folder that both tools run in: tsup compiles this file into another one.
const folder = resolve("src", "portal", "app");

const snippets = {
  name: "verification-snippets",
  setup(builder) {
    const filter = /^virtual:verification-snippets$/;
    builder.onResolve({ filter }, ({ path }) => ({ path, namespace: "snippets" }));
    builder.onLoad({ filter: /.*/, namespace: "snippets" }, async () => {
      const { file, code } = await loadSnippets();
      return { contents: code, loader: "js", watchFiles: [file] };
    });
  },
};

/** Returns `script` and `style`, the exports of `virtual:portal-app`, and the files behind them. */
async function compile() {
  const { outputFiles, metafile } = await build({
    entryPoints: { app: resolve(folder, "main.tsx") },
    outdir: folder,
    plugins: [snippets],
    bundle: true,
    write: false,
    minify: true,
    metafile: true,
    format: "esm",
    target: ["es2022", "chrome120", "firefox128", "safari17.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    legalComments: "none",
    tsconfigRaw: {},
  });
  const text = (end) => outputFiles.find(({ path }) => path.endsWith(end)).text;
  return {
    script: text("app.js"),
    style: text("app.css"),
    files: Object.keys(metafile.inputs)
      .filter((path) => !path.startsWith("snippets:"))
      .map((path) => resolve(path)),
  };
}

/**
 * Writes the page as a file of its own, in CommonJS: both forms of the package import it, so it is
 * packed once.
 */
export const portalAppForEsbuild = {
  name: "portal-app",
  setup(builder) {
    builder.onResolve({ filter: /^virtual:portal-app$/ }, async () => {
      const { script, style } = await compile();
      const code = `exports.script = ${JSON.stringify(script)};\nexports.style = ${JSON.stringify(style)};\n`;
      await mkdir(resolve("dist"), { recursive: true });
      await writeFile(resolve("dist", "portal-app.cjs"), code);
      return { path: "./portal-app.cjs", external: true };
    });
  },
};

export const portalAppForVite = {
  name: "portal-app",
  resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
  async load(id) {
    if (id !== `\0${NAME}`) return undefined;
    const { script, style, files } = await compile();
    for (const file of files) this.addWatchFile(file);
    return `export const script = ${JSON.stringify(script)};\nexport const style = ${JSON.stringify(style)};\n`;
  },
};
