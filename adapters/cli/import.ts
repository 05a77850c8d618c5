/** `postbell import`: imports a WXR file into a site. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { ImportSummary } from "../../src/content/wxr/options.js";
import { systemClock } from "../../src/core/clock.js";
import { defineCommand, EXIT, printable, refuseOperands } from "./command.js";
import { createProgressBar, formatImport, type Screen } from "./progress.js";
import { readSite, siteDetails, siteOptions, withSite } from "./site.js";

export const importSite = defineCommand({
  usage: "import FILE --redis URL [options]",
  summary: "import a WXR file, an export of WordPress, into a site",
  details: `FILE is a path, or - for standard input. You can repeat an import: unchanged records stay as they are.
After exit code 1 or 130, run it again to continue.

${siteDetails}
  --files DIR         folder of the uploaded files, as given to diskFiles()
  --fetch             download the files of media from the URLs in FILE into DIR; images get smaller
                      versions if the package sharp is installed
  --user ID           author of posts that no --author matches; default 1
  --author LOGIN=ID   user for an author in FILE; can be repeated
  --trust             keep scripts and frames in texts; only for a file of your own
  --json              print the summary as JSON`,
  options: {
    ...siteOptions,
    user: { type: "string", default: "1" },
    author: { type: "string", multiple: true, default: [] },
    fetch: { type: "boolean", default: false },
    trust: { type: "boolean", default: false },
  },
  read({ user, author, fetch, trust, json, quiet, ...options }, [file, ...more]) {
    refuseOperands(more);
    const site = readSite(options);
    if (file === undefined) throw new Error("The file to import is missing.");
    if (fetch && options.files === "") throw new Error("--fetch needs --files, the folder for the files.");
    const authors = Object.fromEntries(author.map(readAuthor));
    return { site, file, user: readId(user, "--user"), authors, fetch, trust, json, quiet };
  },
  async run({ site, file, user, authors, fetch, trust, json, quiet }, io) {
    const { signal, stderr } = io;
    const isStdin = file === "-";
    if (site.files !== "" && !fetch && !quiet)
      stderr.write("--files alone stores no files: add --fetch to download the files of media.\n");
    const summary = await withSite(site, io, async (content) => {
      const bytesTotal = isStdin ? undefined : (await stat(file)).size;
      const bar = createProgressBar(stderr, systemClock, formatImport);
      try {
        return await content.import(isStdin ? io.stdin : createReadStream(file), {
          as: user,
          authors,
          trust,
          signal,
          bytesTotal,
          files: fetch ? "fetch" : "skip",
          onProgress: quiet ? undefined : bar.show,
        });
      } finally {
        bar.end();
      }
    });
    if (!quiet) printSummary(summary, stderr);
    if (json) io.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
    return EXIT.done;
  },
});

function printSummary(summary: ImportSummary, { write }: Screen): void {
  write(`${formatImport(summary)}\n`);
  for (const [what, count] of Object.entries(summary.notHeld))
    write(`left out: ${printable(what)} (${count})\n`);
  for (const { line, message } of summary.warnings) write(`line ${line}: ${printable(message)}\n`);
  if (summary.moreWarnings > 0) write(`and ${summary.moreWarnings} more warnings\n`);
}

function readId(text: string, what: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Error(`${what} must be the id of a user, a whole number from 1 (got ${printable(text)}).`);
}

function readAuthor(text: string): [string, number] {
  const at = text.lastIndexOf("=");
  if (at < 1) throw new Error(`--author must be LOGIN=ID (got ${printable(text)}).`);
  return [text.slice(0, at), readId(text.slice(at + 1), "--author")];
}
