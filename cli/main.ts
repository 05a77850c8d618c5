/** What the command does, apart from the process it runs in: that is given to it. */

import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { systemClock } from "../src/clock.js";
import { type Content, createContent } from "../src/content/service.js";
import type { ContentStorage } from "../src/content/store.js";
import type { ImportSummary } from "../src/content/wxr/options.js";
import { diskFiles } from "../storage/files/index.js";
import { type Command, HELP, readArguments } from "./arguments.js";
import { imageTool } from "./images.js";
import { createProgressBar, progressText, type Screen } from "./progress.js";

export interface CliIo {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: Screen;
  readonly openStorage: (options: { readonly url: string; readonly prefix?: string }) => ContentStorage;
  /** Aborted when the user has had enough. */
  readonly signal: AbortSignal;
}

export const EXIT = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** Resolves with the exit code; never rejects. */
export async function main(given: readonly string[], io: CliIo): Promise<number> {
  let command: Command;
  try {
    command = readArguments(given);
  } catch (error) {
    io.stderr.write(`postbell: ${messageOf(error)}\nSee postbell --help.\n`);
    return EXIT.usage;
  }
  if (command.name === "help") {
    io.stdout.write(HELP);
    return EXIT.done;
  }
  let storage: ContentStorage | undefined;
  try {
    const { redis: url, prefix } = command;
    storage = io.openStorage({ url, ...(prefix === undefined ? {} : { prefix }) });
    const content = openContent(command, storage);
    await (command.name === "import" ? runImport(content, command, io) : runExport(content, command, io));
    return EXIT.done;
  } catch (error) {
    if (io.signal.aborted) {
      io.stderr.write("postbell: stopped. What was done stays; run it again to go on.\n");
      return EXIT.interrupted;
    }
    io.stderr.write(`postbell: ${messageOf(error)}\n`);
    return isUsage(error) ? EXIT.usage : EXIT.failed;
  } finally {
    await storage?.close().catch(() => {});
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const isUsage = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "invalid_option";

/** The people of the site are the host's, who is not here: every id is somebody, and nobody is found by his name. */
function openContent({ site, timezone, files }: Command, storage: ContentStorage): Content {
  return createContent({
    storage,
    ...(files === "" ? {} : { files: diskFiles({ directory: files }), images: imageTool() }),
    site: { url: site || "http://localhost", name: site, timezone },
    authenticate: () => null,
    users: {
      get: (id) => ({ id, slug: `user-${id}`, name: `User ${id}`, roles: ["administrator"] }),
      list: () => ({ users: [], total: 0 }),
    },
  });
}

async function runImport(content: Content, command: Command, io: CliIo): Promise<void> {
  const { file, user, authors, trust, fetch, quiet, json } = command;
  const { signal, stderr } = io;
  const isStdin = file === "-";
  if (command.files !== "" && !fetch && !quiet) {
    stderr.write("--files alone stores no bytes: give --fetch to get the files of media.\n");
  }
  const bytesTotal = isStdin ? undefined : (await stat(file)).size;
  const bar = createProgressBar(stderr, systemClock);
  let summary: ImportSummary;
  try {
    summary = await content.import(isStdin ? io.stdin : createReadStream(file), {
      ...{ as: user, authors, trust, signal, bytesTotal },
      files: fetch ? "fetch" : "skip",
      onProgress: quiet ? undefined : bar.show,
    });
  } finally {
    bar.end();
  }
  if (!quiet) tell(summary, stderr);
  if (json) io.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
}

function tell(summary: ImportSummary, { write }: Screen): void {
  write(`${progressText(summary)}\n`);
  for (const [what, count] of Object.entries(summary.notHeld))
    write(`left out: ${printable(what)} (${count})\n`);
  for (const { line, message } of summary.warnings) write(`line ${line}: ${printable(message)}\n`);
  if (summary.moreWarnings > 0) write(`and ${summary.moreWarnings} more warnings\n`);
}

/** What a file says must not move the cursor of a terminal. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, "?");

async function runExport(content: Content, { output }: Command, { stdout, signal }: CliIo): Promise<void> {
  const source = Readable.from(content.export({ signal }));
  if (output === "") {
    return pipeline(source, stdout, { end: false, signal }).catch((error: unknown) => {
      // Whoever reads has enough, as `head` has.
      if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) throw error;
    });
  }
  const part = `${output}.part`;
  try {
    await pipeline(source, createWriteStream(part), { signal });
    await rename(part, output);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
