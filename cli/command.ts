/** What a command is: its words as data, and what it does in a process that is given to it. */

import { parseArgs } from "node:util";
import type { ContentStorage } from "../src/content/store.js";
import { PostbellError } from "../src/core/errors.js";
import type { Screen } from "./progress.js";

export interface CliIo {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean | undefined };
  readonly stderr: Screen;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly openStorage: (options: { readonly url: string; readonly prefix?: string }) => ContentStorage;
  /** Aborted when the user has had enough. */
  readonly signal: AbortSignal;
}

export const EXIT = { done: 0, failed: 1, usage: 2, invalid: 3, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Rejects with a sentence for whoever typed it, in the `message` of an Error. */
export type Action = (io: CliIo) => Promise<ExitCode>;

export interface Command {
  /** `import FILE --redis URL [options]`. */
  readonly usage: string;
  readonly summary: string;
  /** Of its options, for the help. */
  readonly details: string;
  /** Errors: Error with a sentence for whoever typed it. */
  readonly prepare: (args: readonly string[]) => Action;
}

interface OptionConfig {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  readonly default?: string | boolean | string[];
}
type Options = Readonly<Record<string, OptionConfig>>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>["values"];

/** A command of its options, of what it makes of them, and of what it does with that. */
export function command<const O extends Options, S>({
  options,
  read,
  run,
  ...words
}: Omit<Command, "prepare"> & {
  readonly options: O;
  /** Pure. Errors: Error with a sentence for whoever typed it. */
  readonly read: (values: Values<O>, operands: readonly string[]) => S;
  readonly run: (settings: S, io: CliIo) => Promise<ExitCode>;
}): Command {
  return Object.freeze({
    ...words,
    prepare(args: readonly string[]): Action {
      const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options });
      const settings = read(values as Values<O>, positionals);
      return (io) => run(settings, io);
    },
  });
}

export function readWholeNumber(
  text: string,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new Error(`${name} must be a whole number from ${min} to ${max}.`);
}

export function readUrl(text: string, name: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new Error(`${name} must be an http:// or https:// URL.`);
}

/** For what shows only when the command runs, such as an environment variable that is not set. */
export const wrongUsage = (message: string): PostbellError => new PostbellError("invalid_option", message);

export function NO_ARGUMENTS(operands: readonly string[]): void {
  if (operands.length > 0) throw new Error(`There is something too much: '${operands[0]}'.`);
}

/** What others wrote must not move the cursor of a terminal. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, "?");

export const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const COLOURS = { red: 31, green: 32, yellow: 33, dim: 2 } as const;

/** Colours a text where somebody looks at it who has not asked for none. */
export function painter({ stdout, env }: CliIo): (colour: keyof typeof COLOURS, text: string) => string {
  const isColoured = stdout.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return (colour, text) => (isColoured ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text);
}
