/** The command line as data. Pure. */

import { parseArgs } from "node:util";

export interface Command {
  readonly name: "import" | "export" | "help";
  /** Of the file that is read; `-`: standard input. */
  readonly file: string;
  readonly redis: string;
  readonly prefix: string | undefined;
  /** Folder of the uploaded files; empty where there is none. */
  readonly files: string;
  readonly site: string;
  readonly timezone: string;
  readonly user: number;
  readonly authors: { readonly [login: string]: number };
  readonly fetch: boolean;
  readonly trust: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  /** Where an export is written; empty: standard output. */
  readonly output: string;
}

export const HELP = `Usage:
  postbell import FILE --redis URL [options]   bring a WXR file, WordPress's export, into a site
  postbell export --redis URL --site URL       write a site as a WXR file

FILE is a path, or - for standard input. An import may be repeated: what is the same stays as it is.

Options of both:
  --redis URL         where the site's content is kept: redis://, rediss:// or the path of a socket
  --prefix NAME       the prefix of its keys, as given to redisStorage()
  --site URL          address of the website; an export needs it
  --timezone NAME     of the site, as given to createContent(); default UTC
  --quiet             no progress and no warnings

Options of import:
  --files DIR         folder of the uploaded files, as given to diskFiles()
  --fetch             get the files of media from the addresses in FILE, into DIR; images get
                      smaller versions where the package sharp is installed
  --user ID           the author of what no --author names; default 1
  --author LOGIN=ID   the user who is that author in FILE; may be repeated
  --trust             keep scripts and frames in texts: for a file of your own
  --json              print the summary as JSON

Options of export:
  --output FILE       default: standard output

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. After 1 and 130 run an import again: it goes on.
`;

/** Errors: Error with a sentence for whoever typed it. */
export function readArguments(given: readonly string[]): Command {
  const { values, positionals } = parseArgs({
    args: [...given],
    allowPositionals: true,
    options: {
      redis: { type: "string", default: "" },
      prefix: { type: "string" },
      files: { type: "string", default: "" },
      site: { type: "string", default: "" },
      timezone: { type: "string", default: "UTC" },
      user: { type: "string", default: "1" },
      author: { type: "string", multiple: true, default: [] },
      output: { type: "string", default: "" },
      fetch: { type: "boolean", default: false },
      trust: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      quiet: { type: "boolean", default: false },
      help: { type: "boolean", default: false, short: "h" },
    },
  });
  const { prefix, user, author, help, site, ...rest } = values;
  const [name, file = "", ...more] = positionals;
  const command = {
    ...rest,
    prefix,
    file,
    user: readId(user, "--user"),
    authors: Object.fromEntries(author.map(readAuthor)),
    site: site.replace(/\/+$/, ""),
  };
  if (help) return { ...command, name: "help" };
  if (name !== "import" && name !== "export") {
    throw new Error(
      name === undefined ? "Say what to do: import or export." : `There is no command '${name}'.`,
    );
  }
  if (more.length > 0) throw new Error(`There is something too much: '${more[0]}'.`);
  if (command.redis === "") throw new Error("--redis is missing: it says where the content is kept.");
  if (name === "import" && file === "") throw new Error("The file to import is missing.");
  if (name === "export" && file !== "")
    throw new Error("An export reads no file; --output names the one it writes.");
  if (name === "export" && site === "")
    throw new Error("--site is missing: addresses in the file begin with it.");
  if (command.fetch && command.files === "")
    throw new Error("--fetch needs --files: the folder to put them in.");
  return { ...command, name };
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
