/** Runs a command line. The process that it runs in is passed as an argument. */

import { type Action, type CliIo, EXIT, type ExitCode, toMessage } from "./command.js";
import { parseCommandLine } from "./command-line.js";

export { type CliIo, EXIT } from "./command.js";

/** Resolves with the exit code; never rejects. */
export async function main(given: readonly string[], io: CliIo): Promise<ExitCode> {
  const reportError = (message: string, more = ""): void => {
    io.stderr.write(`postbell: ${message}\n${more}`);
    if (given.includes("--json")) io.stdout.write(`${JSON.stringify({ error: message })}\n`);
  };
  let action: Action;
  try {
    action = parseCommandLine(given);
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
