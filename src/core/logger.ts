/** The host's logger, and which parts of an error may reach it. */

import { AsyncResource } from "node:async_hooks";
import { Console } from "node:console";
import { isPostbellError } from "./errors.js";

/**
 * Receives what an operator should know. pino, `fastify.log` and `console` fit. Node's Console gets
 * the message before the fields.
 *
 * @example
 * const webhooks = createWebhooks({ storage, access, logger: pino() });
 */
export interface Logger {
  /** Details for finding a cause. */
  debug(fields: object, message: string): void;
  /** Normal events. */
  info(fields: object, message: string): void;
  /** Something that an operator should look at. */
  warn(fields: object, message: string): void;
  /** Something that needs an operator. */
  error(fields: object, message: string): void;
}

const silent = (): void => {};

/** Logs nothing. Hosts choose it with `logger: false`. */
export const silentLogger: Logger = Object.freeze({
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
});

/** One line, so that collectors of logs keep it together. */
const toLine = (fields: object, message: string): string =>
  `postbell: ${message}${Object.keys(fields).length === 0 ? "" : ` ${JSON.stringify(fields)}`}`;

/** True unless `NODE_ENV` says that the process runs in production or in tests. */
const isDevelopment = (): boolean => ["development", "", undefined].includes(process.env["NODE_ENV"]);

/**
 * The default logger. A host that has not chosen one still learns of what went wrong: warnings and
 * errors always, and in development also each failed attempt and other normal events.
 */
export const consoleLogger: Logger = Object.freeze({
  debug: silent,
  info(fields: object, message: string): void {
    if (isDevelopment()) console.info(toLine(fields, message));
  },
  warn: (fields: object, message: string) => console.warn(toLine(fields, message)),
  error: (fields: object, message: string) => console.error(toLine(fields, message)),
});

/**
 * Returns the logger for lines that no single request causes, such as those about an outage. They
 * have the async context of this call, so they do not name the tenant of the request that came
 * first.
 */
export function toServiceLogger(logger: Logger): Logger {
  const bind = (level: keyof Logger) =>
    AsyncResource.bind((fields: object, message: string): void => logger[level](fields, message));
  return Object.freeze({
    debug: bind("debug"),
    info: bind("info"),
    warn: bind("warn"),
    error: bind("error"),
  });
}

/** The value of a `logger` option: a logger, or `false` to log nothing. */
export type LoggerOption = Logger | false;

/**
 * True if a debug line of this logger may reach somebody. pino and winston say if it does; for
 * other loggers it is assumed.
 */
export function isDebugEnabled(option: LoggerOption): boolean {
  if (option === false || option === silentLogger || option === consoleLogger) return false;
  try {
    const { isLevelEnabled } = option as { isLevelEnabled?: unknown };
    return typeof isLevelEnabled !== "function" || isLevelEnabled.call(option, "debug") === true;
  } catch {
    return false;
  }
}

/** The parts of a thrown value that are logged. */
export interface LoggedError {
  /** The name of the error, or the type of a thrown value that is not an error. */
  name: string;
  code?: string | undefined;
  /** Only for Postbell's errors. */
  message?: string | undefined;
  /** The innermost calls, as the engine names them. */
  stack?: string[] | undefined;
  cause?: LoggedError | undefined;
}

const SAFE_NAME = /^[A-Za-z]{1,64}$/;
const SAFE_CODE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
/** Matches the text that V8 writes before the message: `TypeError [ERR_X]: `. */
const HEAD = /^[\w$.]*(?: \[\w+\])?(?:: )?$/;
const FRAME = /^ {4}at .{0,200}:[0-9]+:[0-9]+\)?$/;
const MAX_FRAMES = 5;
const MAX_CAUSES = 3;

const safe = (text: unknown, pattern: RegExp): string | undefined =>
  typeof text === "string" && pattern.test(text) ? text : undefined;

/**
 * Returns the calls in a stack. Empty if the stack does not contain the error's message, because
 * lines of another message could look like calls.
 */
function readFrames({ message, stack = "" }: Error): string[] {
  const start = stack.indexOf(`${message}\n`);
  if (start === -1 || !HEAD.test(stack.slice(0, start))) return [];
  const lines = stack.slice(start + message.length).split("\n");
  return lines.filter((line) => FRAME.test(line)).slice(0, MAX_FRAMES);
}

/**
 * Returns the parts of a thrown value that are safe to log. Messages of other code are left out: a
 * hook may quote a key or a record, a database driver the command that failed.
 */
function toLoggedError(thrown: unknown, causes = MAX_CAUSES): LoggedError {
  try {
    if (!(thrown instanceof Error)) return { name: typeof thrown };
    const { cause } = thrown;
    return {
      name: safe(thrown.name, SAFE_NAME) ?? "Error",
      code: safe((thrown as { code?: unknown }).code, SAFE_CODE),
      message: isPostbellError(thrown) ? thrown.message : undefined,
      stack: readFrames(thrown).map((line) => line.trim()),
      cause: cause === undefined || causes === 0 ? undefined : toLoggedError(cause, causes - 1),
    };
  } catch {
    // A getter of the error threw.
    return { name: "Error" };
  }
}

/**
 * Returns a logger that never throws, and that passes only the safe parts of `fields.error` to the
 * host's logger.
 */
export function guardedLogger(option: LoggerOption): Logger {
  const logger = option === false ? silentLogger : option;
  const isConsole = logger instanceof Console;
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        const shown = "error" in fields ? { ...fields, error: toLoggedError(fields.error) } : fields;
        const returned: unknown = isConsole ? logger[level](message, shown) : logger[level](shown, message);
        if (returned instanceof Promise) returned.catch(() => {});
      } catch {
        // A broken logger must not fail a delivery, and there is no place to report it.
      }
    };
  return Object.freeze({
    debug: guard("debug"),
    info: guard("info"),
    warn: guard("warn"),
    error: guard("error"),
  });
}
