/** Parses the command line: the table of commands, and the choice of one. */

import { backUpSqlite } from "./backup.js";
import {
  type Action,
  type CliIo,
  type Command,
  EXIT,
  type ExitCode,
  printable,
  toMessage,
} from "./command.js";
import { demo } from "./demo.js";
import { examine } from "./examine.js";
import { exportSite } from "./export.js";
import { importSite } from "./import.js";
import { listen } from "./listen.js";
import { migratePostgres } from "./migrate.js";
import { plan } from "./plan.js";
import { replay } from "./replay.js";
import { verify } from "./verify.js";

const COMMANDS: Record<string, Command> = {
  demo,
  listen,
  verify,
  examine,
  replay,
  plan,
  import: importSite,
  export: exportSite,
  migrate: migratePostgres,
  backup: backUpSqlite,
};

const EXIT_CODES =
  "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not valid (verify, examine), 130 interrupted.";

const HELP = `Usage:
${Object.values(COMMANDS)
  .map(({ usage, summary }) => `  postbell ${usage}\n      ${summary}`)
  .join("\n")}

postbell COMMAND --help lists the options of a command. With --json, a command that fails prints {"error": "..."}.
${EXIT_CODES}
`;

const formatHelp = ({ usage, summary, details }: Command): string =>
  `Usage: postbell ${usage}\n\n${summary}\n\n${details}\n\n${EXIT_CODES}\n`;

const isHelp = (word: string): boolean => word === "--help" || word === "-h";

const print =
  (text: string): Action =>
  async ({ stdout }) => {
    stdout.write(text);
    return EXIT.done;
  };

/** @throws `Error` whose message is for the user. */
function parseCommandLine(argv: readonly string[]): Action {
  const [word = "", ...args] = argv;
  if (isHelp(word)) return print(HELP);
  if (!Object.hasOwn(COMMANDS, word)) {
    const names = Object.keys(COMMANDS);
    const list = `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
    throw new Error(
      word === "" || word.startsWith("-")
        ? `The command is missing: begin with ${list}.`
        : `There is no command '${printable(word)}': use ${list}.`,
    );
  }
  const command = COMMANDS[word] as Command;
  return args.some(isHelp) ? print(formatHelp(command)) : command.prepare(args);
}

// Runs a command line. The process that it runs in is passed as an argument.

export type { CliIo } from "./command.js";

/** Resolves with the exit code; never rejects. */
export async function main(argv: readonly string[], io: CliIo): Promise<ExitCode> {
  const reportError = (message: string, more = ""): void => {
    io.stderr.write(`postbell: ${message}\n${more}`);
    if (argv.includes("--json")) io.stdout.write(`${JSON.stringify({ error: message })}\n`);
  };
  let action: Action;
  try {
    action = parseCommandLine(argv);
  } catch (error) {
    reportError(toMessage(error), "See postbell --help.\n");
    return EXIT.usage;
  }
  try {
    return await action(io);
  } catch (error) {
    if (io.signal.aborted) {
      reportError("stopped. Completed work is kept; run it again to continue.");
      return EXIT.interrupted;
    }
    reportError(toMessage(error));
    return isWrongUsage(error) ? EXIT.usage : EXIT.failed;
  }
}

const isWrongUsage = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "invalid_option";
