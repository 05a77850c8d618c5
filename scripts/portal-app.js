// Compiles the page of the portal into one script and one style sheet, which the server module
// holds as strings. One plugin for tsup (esbuild), one for Vitest (Vite).

import { resolve } from "node:path";
import { build } from "esbuild";

const NAME = "virtual:portal-app";
// From the folder that both tools run in: tsup compiles this file into another one.
const folder = resolve("portal", "app");

/** The module behind `virtual:portal-app`: `script` and `style`. */
async function compile() {
  const { outputFiles, metafile } = await build({
    entryPoints: { app: resolve(folder, "main.ts"), style: resolve(folder, "styles.css") },
    outdir: folder,
    bundle: true,
    write: false,
    minify: true,
    metafile: true,
    format: "esm",
    target: ["es2022", "chrome109", "firefox115", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
    tsconfigRaw: {},
  });
  const text = (end) => outputFiles.find(({ path }) => path.endsWith(end)).text;
  const code = `export const script = ${JSON.stringify(text("app.js"))};\nexport const style = ${JSON.stringify(text("style.css"))};\n`;
  return { code, files: Object.keys(metafile.inputs).map((path) => resolve(path)) };
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
