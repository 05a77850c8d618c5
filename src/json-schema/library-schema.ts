/**
 * Validates the data of events with a schema of zod, valibot, arktype or another library that has
 * the interface Standard Schema. The libraries are known by that interface alone.
 *
 * Source: Standard Schema 1 and Standard JSON Schema 1, standardschema.dev.
 */

import { isPromiseLike } from "../core/next-turn.js";
import type { SchemaMistake } from "../schema/describe-arguments.js";
import type { Json } from "../schema/types.js";

/** A schema of a library, with the type of its input. */
export interface StandardSchema<Input = unknown> {
  "~standard": {
    version: 1;
    vendor: string;
    validate: (value: unknown) => unknown;
    types?: { input: Input } | undefined;
  };
}

/** The first issues that a library found, in words. */
export interface LibraryMistake {
  /** Of the first issue: `.lines.0.total`. */
  path: string;
  message: string;
}

/** A schema of a library, ready to validate data. */
export class LibrarySchema {
  #standard: StandardSchema["~standard"];
  #validate: StandardSchema["~standard"]["validate"];

  constructor(standard: StandardSchema["~standard"]) {
    this.#standard = standard;
    this.#validate = standard.validate;
  }

  /**
   * Returns the mistakes of data that JSON.parse returned, or a promise if the library returns one.
   * The library may change the data.
   *
   * @throws whatever the library throws, and a TypeError if its result has another form.
   */
  findMistake(data: Json): LibraryMistake | undefined | PromiseLike<LibraryMistake | undefined> {
    const result = this.#validate.call(this.#standard, data);
    return isPromiseLike(result) ? result.then(readResult) : readResult(result);
  }

  /**
   * Returns the JSON Schema of the values that the library accepts; `undefined` if it writes none.
   *
   * @throws whatever the library throws, such as for a type that JSON does not have.
   */
  toJsonSchema(): unknown {
    const { jsonSchema } = this.#standard as { jsonSchema?: unknown };
    if (!isObject(jsonSchema) || typeof jsonSchema["input"] !== "function") return undefined;
    return (jsonSchema["input"] as (options: object) => unknown)({ target: "draft-2020-12" });
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  (typeof value === "object" && value !== null) || typeof value === "function";

/** True for an object literal, also one of another realm. */
export function isLiteral(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * True for a schema of a library. False for a JSON Schema, also for one that `z.toJSONSchema`
 * wrote: that has a hidden reference to the schema that it was written from.
 */
export function isLibrarySchema(value: unknown): value is object {
  if (!isObject(value) || !("~standard" in value)) return false;
  return !isLiteral(value) || Object.getOwnPropertyDescriptor(value, "~standard")?.enumerable !== false;
}

/** Reads a schema of a library, or says why it cannot be used; `undefined` if it is not one. */
export function parseLibrarySchema(
  value: unknown,
): { schema: LibrarySchema } | { mistake: SchemaMistake } | undefined {
  try {
    if (!isLibrarySchema(value)) return undefined;
    const standard: unknown = (value as Record<string, unknown>)["~standard"];
    if (isStandard(standard)) return { schema: new LibrarySchema(standard) };
  } catch {
    return { mistake: { path: "", message: "cannot be read: one of its fields throws" } };
  }
  const message = "must have '~standard' with version 1 and validate(), as Standard Schema defines it";
  return { mistake: { path: "", message } };
}

const isStandard = (value: unknown): value is StandardSchema["~standard"] =>
  isObject(value) && value["version"] === 1 && typeof value["validate"] === "function";

// Reads what a library found. Its messages and paths may repeat the data, which may be hostile.

const MAX_ISSUES = 3;
const MAX_MESSAGE = 200;
const MAX_SEGMENTS = 20;
const MAX_PATH = 120;

function readResult(result: unknown): LibraryMistake | undefined {
  if (!isObject(result)) throw new TypeError("validate() did not return a result");
  const { issues } = result;
  if (issues === undefined) return undefined;
  if (!Array.isArray(issues)) throw new TypeError("validate() returned issues that are no list");
  const first = issues.slice(0, MAX_ISSUES).map(readIssue);
  const lines = first.map(({ path, message }) => `data${path}: ${message}`);
  const further = issues.length - first.length;
  if (further > 0) lines.push(`and ${further} more`);
  return { path: first[0]?.path ?? "", message: lines.join("; ") };
}

function readIssue(issue: unknown): LibraryMistake {
  if (!isObject(issue)) throw new TypeError("validate() returned an issue that is no object");
  const { message, path } = issue;
  const text = typeof message === "string" && message !== "" ? message : "is refused";
  const segments = Array.isArray(path) ? path.slice(0, MAX_SEGMENTS) : [];
  return {
    path: shorten(segments.map((segment) => `.${showSegment(segment)}`).join(""), MAX_PATH),
    message: shorten(text, MAX_MESSAGE),
  };
}

function showSegment(segment: unknown): string {
  const key = isObject(segment) ? segment["key"] : segment;
  const text = typeof key === "symbol" ? key.description : key;
  return typeof text === "string" || typeof text === "number" ? String(text).slice(0, MAX_PATH) : "*";
}

/** Cuts a text, and replaces what could break a line of a log. */
function shorten(text: string, most: number): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(/[\p{Cc}\u2028\u2029]/gu, " ").toWellFormed();
}
