/** Runs what the command line says, apart from the process it runs in: that is given to it. */

import { readArguments } from "./arguments.js";
import { type Action, type CliIo, EXIT, type ExitCode, messageOf } from "./command.js";

export { type CliIo, EXIT } from "./command.js";

/** Resolves with the exit code; never rejects. */
export async function main(given: readonly string[], io: CliIo): Promise<ExitCode> {
  let action: Action;
  try {
    action = readArguments(given);
  } catch (error) {
    io.stderr.write(`postbell: ${messageOf(error)}\nSee postbell --help.\n`);
    return EXIT.usage;
  }
  try {
    return await action(io);
  } catch (error) {
    if (io.signal.aborted) {
      io.stderr.write("postbell: stopped. What was done stays; run it again to go on.\n");
      return EXIT.interrupted;
    }
    io.stderr.write(`postbell: ${messageOf(error)}\n`);
    return isUsage(error) ? EXIT.usage : EXIT.failed;
  }
}

const isUsage = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "invalid_option";
