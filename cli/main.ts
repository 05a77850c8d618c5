/** Runs what the command line says, apart from the process it runs in: that is given to it. */

import { type Action, type CliIo, EXIT, type ExitCode, toMessage } from "./command.js";
import { parseCommandLine } from "./command-line.js";

export { type CliIo, EXIT } from "./command.js";

/** Resolves with the exit code; never rejects. */
export async function main(given: readonly string[], io: CliIo): Promise<ExitCode> {
  const complain = (message: string, more = ""): void => {
    io.stderr.write(`postbell: ${message}\n${more}`);
    if (given.includes("--json")) io.stdout.write(`${JSON.stringify({ error: message })}\n`);
  };
  let action: Action;
  try {
    action = parseCommandLine(given);
  } catch (error) {
    complain(toMessage(error), "See postbell --help.\n");
    return EXIT.usage;
  }
  try {
    return await action(io);
  } catch (error) {
    if (io.signal.aborted) {
      complain("stopped. What was done stays; run it again to go on.");
      return EXIT.interrupted;
    }
    complain(toMessage(error));
    return isUsage(error) ? EXIT.usage : EXIT.failed;
  }
}

const isUsage = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "invalid_option";
