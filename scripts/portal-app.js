// Compiles the page of the portal into one script and one style sheet, which the server module
// holds as strings. One plugin for tsup (esbuild), one for Vitest (Vite).

import { resolve } from "node:path";
import { build } from "esbuild";
import { loadSnippets } from "./verification-snippets.js";

const NAME = "virtual:portal-app";
// From the folder that both tools run in: tsup compiles this file into another one.
const folder = resolve("portal", "app");

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

/** The module behind `virtual:portal-app`: `script` and `style`. */
async function compile() {
  const { outputFiles, metafile } = await build({
    entryPoints: { app: resolve(folder, "main.tsx"), style: resolve(folder, "styles.css") },
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
  const code = `export const script = ${JSON.stringify(text("app.js"))};\nexport const style = ${JSON.stringify(text("style.css"))};\n`;
  return {
    code,
    files: Object.keys(metafile.inputs)
      .filter((path) => !path.startsWith("snippets:"))
      .map((path) => resolve(path)),
  };
}

export const portalAppForEsbuild = {
  name: "portal-app",
  setup(builder) {
    builder.onResolve({ filter: /^virtual:portal-app$/ }, ({ path }) => ({ path, namespace: "portal-app" }));
    builder.onLoad({ filter: /.*/, namespace: "portal-app" }, async () => {
      const { code, files } = await compile();
      return { contents: code, loader: "js", watchFiles: files };
    });
  },
};

export const portalAppForVite = {
  name: "portal-app",
  resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
  async load(id) {
    if (id !== `\0${NAME}`) return undefined;
    const { code, files } = await compile();
    for (const file of files) this.addWatchFile(file);
    return code;
  },
};
