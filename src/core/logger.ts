/** The log: what a host gives for it, and what of an error may reach it. */

import { Console } from "node:console";
import { isPostbellError } from "./errors.js";

/** Where Postbell reports what an operator should know. pino, `fastify.log` and `console` fit as they are: an instance of Node's Console is given the message first. */
export interface Logger {
  /** What only somebody who looks for a cause wants to know. */
  debug(fields: object, message: string): void;
  /** What happened as it should. */
  info(fields: object, message: string): void;
  /** What an operator should look at. */
  warn(fields: object, message: string): void;
  /** What needs an operator. */
  error(fields: object, message: string): void;
}

const silent = (): void => {};

/** The default: Postbell never writes to the console by itself. */
export const silentLogger: Logger = Object.freeze({
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
});

/** What is logged of something that was thrown. */
export interface LoggedError {
  /** Of a value that is no error: its type. */
  readonly name: string;
  readonly code?: string | undefined;
  /** Only of Postbell's own errors. */
  readonly message?: string | undefined;
  /** The innermost calls, as the engine names them. */
  readonly stack?: readonly string[] | undefined;
  readonly cause?: LoggedError | undefined;
}

const SAFE_NAME = /^[A-Za-z]{1,64}$/;
const SAFE_CODE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
/** What V8 writes before the message: `TypeError [ERR_X]: `. */
const HEAD = /^[\w$.]*(?: \[\w+\])?(?:: )?$/;
const FRAME = /^ {4}at .{0,200}:[0-9]+:[0-9]+\)?$/;
const MAX_FRAMES = 5;
const MAX_CAUSES = 3;

const safe = (text: unknown, pattern: RegExp): string | undefined =>
  typeof text === "string" && pattern.test(text) ? text : undefined;

/** The calls in a stack. None where its message is not the error's: what another message ends with could pass for a call. */
function framesOf({ message, stack = "" }: Error): readonly string[] {
  const start = stack.indexOf(`${message}\n`);
  if (start === -1 || !HEAD.test(stack.slice(0, start))) return [];
  const lines = stack.slice(start + message.length).split("\n");
  return lines.filter((line) => FRAME.test(line)).slice(0, MAX_FRAMES);
}

/**
 * What is safe to log of something that was thrown. A message that is not Postbell's own stays out: a hook may quote a key or a
 * record in it, a database driver the command that failed.
 */
function describe(thrown: unknown, causes = MAX_CAUSES): LoggedError {
  try {
    if (!(thrown instanceof Error)) return { name: typeof thrown };
    const { cause } = thrown;
    return {
      name: safe(thrown.name, SAFE_NAME) ?? "Error",
      code: safe((thrown as { code?: unknown }).code, SAFE_CODE),
      message: isPostbellError(thrown) ? thrown.message : undefined,
      stack: framesOf(thrown).map((line) => line.trim()),
      cause: cause === undefined || causes === 0 ? undefined : describe(cause, causes - 1),
    };
  } catch {
    // A getter of the error threw in turn.
    return { name: "Error" };
  }
}

/**
 * The same logger, except that nothing the host's logger throws can reach the code that logs, and that of `fields.error` only what is
 * safe to log reaches the logger.
 */
export function guardedLogger(logger: Logger): Logger {
  const isConsole = logger instanceof Console;
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        const shown = "error" in fields ? { ...fields, error: describe(fields.error) } : fields;
        const returned: unknown = isConsole ? logger[level](message, shown) : logger[level](shown, message);
        if (returned instanceof Promise) returned.catch(() => {});
      } catch {
        // A broken logger must not fail a delivery, and there is nowhere left to report it.
      }
    };
  return Object.freeze({
    debug: guard("debug"),
    info: guard("info"),
    warn: guard("warn"),
    error: guard("error"),
  });
}
