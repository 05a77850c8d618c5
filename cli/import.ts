/** `postbell import`: brings a WXR file into a site. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { ImportSummary } from "../src/content/wxr/options.js";
import { systemClock } from "../src/core/clock.js";
import { command, EXIT, NO_ARGUMENTS, printable } from "./command.js";
import { createProgressBar, importText, type Screen } from "./progress.js";
import { readSite, siteDetails, siteOptions, withSite } from "./site.js";

export const importSite = command({
  usage: "import FILE --redis URL [options]",
  summary: "bring a WXR file, WordPress's export, into a site",
  details: `FILE is a path, or - for standard input. An import may be repeated: what is the same stays as it is.
After the exit codes 1 and 130 run it again: it goes on.

${siteDetails}
  --files DIR         folder of the uploaded files, as given to diskFiles()
  --fetch             get the files of media from the addresses in FILE, into DIR; images get
                      smaller versions where the package sharp is installed
  --user ID           the author of what no --author names; default 1
  --author LOGIN=ID   the user who is that author in FILE; may be repeated
  --trust             keep scripts and frames in texts: for a file of your own
  --json              print the summary as JSON`,
  options: {
    ...siteOptions,
    user: { type: "string", default: "1" },
    author: { type: "string", multiple: true, default: [] },
    fetch: { type: "boolean", default: false },
    trust: { type: "boolean", default: false },
  },
  read({ user, author, fetch, trust, json, quiet, ...given }, [file, ...more]) {
    NO_ARGUMENTS(more);
    const site = readSite(given);
    if (file === undefined) throw new Error("The file to import is missing.");
    if (fetch && given.files === "") throw new Error("--fetch needs --files: the folder to put them in.");
    const authors = Object.fromEntries(author.map(readAuthor));
    return { site, file, user: readId(user, "--user"), authors, fetch, trust, json, quiet };
  },
  async run({ site, file, user, authors, fetch, trust, json, quiet }, io) {
    const { signal, stderr } = io;
    const isStdin = file === "-";
    if (site.files !== "" && !fetch && !quiet)
      stderr.write("--files alone stores no bytes: give --fetch to get the files of media.\n");
    const summary = await withSite(site, io, async (content) => {
      const bytesTotal = isStdin ? undefined : (await stat(file)).size;
      const bar = createProgressBar(stderr, systemClock, importText);
      try {
        return await content.import(isStdin ? io.stdin : createReadStream(file), {
          ...{ as: user, authors, trust, signal, bytesTotal },
          files: fetch ? "fetch" : "skip",
          onProgress: quiet ? undefined : bar.show,
        });
      } finally {
        bar.end();
      }
    });
    if (!quiet) tell(summary, stderr);
    if (json) io.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
    return EXIT.done;
  },
});

function tell(summary: ImportSummary, { write }: Screen): void {
  write(`${importText(summary)}\n`);
  for (const [what, count] of Object.entries(summary.notHeld))
    write(`left out: ${printable(what)} (${count})\n`);
  for (const { line, message } of summary.warnings) write(`line ${line}: ${printable(message)}\n`);
  if (summary.moreWarnings > 0) write(`and ${summary.moreWarnings} more warnings\n`);
}

function readId(text: string, what: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Error(`${what} must be the id of a user, a whole number from 1.`);
}

function readAuthor(text: string): readonly [string, number] {
  const at = text.lastIndexOf("=");
  if (at < 1) throw new Error("--author must be LOGIN=ID.");
  return [text.slice(0, at), readId(text.slice(at + 1), "--author")];
}
