/** Defines commands: their help, their options, and the action that they run. */

import { parseArgs } from "node:util";
import type { ContentStorage } from "../../src/content/store.js";
import { PostbellError } from "../../src/core/errors.js";
import { findNearest } from "../../src/core/known-names.js";
import type { Screen } from "./progress.js";

/** The process that a command runs in. */
export interface CliIo {
  stdin: AsyncIterable<Uint8Array>;
  stdout: NodeJS.WritableStream & { isTTY?: boolean | undefined };
  stderr: Screen;
  env: Record<string, string | undefined>;
  openStorage: (options: { url: string; prefix?: string }) => ContentStorage;
  /** Aborted when the user interrupts the command. */
  signal: AbortSignal;
}

export const EXIT = { done: 0, failed: 1, usage: 2, invalid: 3, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Runs a command. Rejects with an `Error` whose message is for the user. */
export type Action = (io: CliIo) => Promise<ExitCode>;

export interface Command {
  /** Such as `import FILE --redis URL [options]`. */
  usage: string;
  summary: string;
  /** Describes the options in the help. */
  details: string;
  /** @throws `Error` whose message is for the user, if the arguments are wrong. */
  prepare: (args: string[]) => Action;
}

interface OptionConfig {
  type: "string" | "boolean";
  multiple?: boolean;
  default?: string | boolean | string[];
}
type Options = Record<string, OptionConfig>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>["values"];

/**
 * Defines a command. `read` turns options into settings, and `run` executes the command with them.
 */
export function defineCommand<const O extends Options, S>({
  options,
  read,
  run,
  ...words
}: Omit<Command, "prepare"> & {
  options: O;
  /** Pure. @throws `Error` whose message is for the user. */
  read: (values: Values<O>, operands: string[]) => S;
  run: (settings: S, io: CliIo) => Promise<ExitCode>;
}): Command {
  return Object.freeze({
    ...words,
    prepare(args: string[]): Action {
      const { values, positionals } = parseOptions(args, options);
      const settings = read(values as Values<O>, positionals);
      return (io) => run(settings, io);
    },
  });
}

/** Parses arguments. @throws `Error` that names the option that an unknown one is near to. */
function parseOptions(args: string[], options: Options) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    const unknown = /^Unknown option '--(\w[^']*)'/.exec(toMessage(error))?.[1];
    const nearest = unknown === undefined ? undefined : findNearest(unknown, Object.keys(options));
    if (nearest === undefined) throw error;
    throw new Error(`There is no option '--${printable(unknown ?? "")}'; did you mean '--${nearest}'?`);
  }
}

export function readWholeNumber(
  text: string,
  name: string,
  { min, max }: { min: number; max: number },
): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new Error(`${name} must be a whole number from ${min} to ${max} (got ${printable(text)}).`);
}

export function readUrl(text: string, name: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new Error(`${name} must be an http:// or https:// URL.`);
}

/**
 * For wrong usage that shows only when the command runs, such as a missing environment variable.
 */
export const wrongUsage = (message: string): PostbellError => new PostbellError("invalid_option", message);

export function refuseOperands(operands: string[]): void {
  if (operands.length > 0)
    throw new Error(`There is an unexpected argument: '${printable(operands[0] ?? "")}'.`);
}

/** Replaces control characters, so that texts of others cannot control the terminal. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, "?");

export const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const COLOURS = { red: 31, green: 32, yellow: 33, dim: 2 } as const;

/**
 * Creates a function that colours text if the output is a terminal and colours are not turned off.
 */
export function createPainter({
  stdout,
  env,
}: CliIo): (colour: keyof typeof COLOURS, text: string) => string {
  const isColoured = stdout.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return (colour, text) => (isColoured ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text);
}

/** Waits until the user interrupts, or until nobody reads the output, as with `| head`. */
export const waitForEnd = ({ signal, stdout }: CliIo): Promise<typeof EXIT.interrupted | typeof EXIT.done> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(EXIT.interrupted);
    signal.addEventListener("abort", () => resolve(EXIT.interrupted), { once: true });
    stdout.once("error", () => resolve(EXIT.done));
  });
