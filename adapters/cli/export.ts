/** `postbell export`: writes a site as a WXR file. */

import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Content } from "../../src/content/service.js";
import type { ExportOptions } from "../../src/content/wxr/export.js";
import { systemClock } from "../../src/core/clock.js";
import { type CliIo, defineCommand, EXIT } from "./command.js";
import { createProgressBar, formatExport } from "./progress.js";
import { readSite, siteDetails, siteOptions, withSite } from "./site.js";

export const exportSite = defineCommand({
  usage: "export --redis URL --site URL [options]",
  summary: "write a site as a WXR file",
  details: `${siteDetails}
  --output FILE       default: standard output; only its owner may read FILE, because it contains drafts and
                      passwords of posts
  --json              print the path and size of FILE as JSON`,
  options: { ...siteOptions, output: { type: "string", default: "" } },
  read({ output, json, quiet, ...options }, operands) {
    const site = readSite(options);
    if (operands.length > 0) throw new Error("export takes no file: give the file to write with --output.");
    if (site.url === "") throw new Error("--site is missing: URLs in the file begin with it.");
    if (json && output === "")
      throw new Error("--json needs --output: without it, the export goes to standard output.");
    return { site, output, json, quiet };
  },
  async run({ site, output, json, quiet }, io) {
    // Not shown between the lines of the file, if both go to one terminal.
    const isShown = !quiet && (output !== "" || io.stdout.isTTY !== true);
    const bar = createProgressBar(io.stderr, systemClock, formatExport);
    await withSite(site, io, async (content) => {
      try {
        await writeExport(content, output, io, isShown ? bar.show : undefined);
      } finally {
        bar.end();
      }
    });
    if (json) io.stdout.write(`${JSON.stringify({ output, bytes: (await stat(output)).size })}\n`);
    return EXIT.done;
  },
});

async function writeExport(
  content: Content,
  output: string,
  { stdout, signal }: CliIo,
  onProgress: ExportOptions["onProgress"],
): Promise<void> {
  const source = Readable.from(content.export({ signal, onProgress }));
  if (output === "") {
    return pipeline(source, stdout, { end: false, signal }).catch((error: unknown) => {
      // The reader has closed the pipe, as `head` does.
      if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) throw error;
    });
  }
  const part = `${output}.part`;
  // The mode applies to new files only. An existing file, whoever put it there, must not be reused.
  await rm(part, { force: true });
  try {
    await pipeline(source, createWriteStream(part, { flags: "wx", mode: 0o600 }), { signal });
    await rename(part, output);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
