/** Records with fixed fields: schema, arguments and JSON from one table. Knows no record type. */

import type { Argument, Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { RestRequest } from "./types.js";

export interface RecordField<T> {
  /** `context`: the contexts that show the field. `readonly`: writes do not accept it. */
  schema: Schema;
  read: (record: T) => Json;
}

/** By name, in the order of the response. */
export type RecordFields<T> = { [name: string]: RecordField<T> };

export const ALL: Context[] = ["view", "embed", "edit"];
export const FULL: Context[] = ["view", "edit"];
export const EDIT: Context[] = ["edit"];

/** The meta fields of a record type without any. WordPress shows them as an empty list. */
export const NO_META: RecordField<unknown> = {
  schema: {
    description: "Meta fields.",
    type: "object",
    context: FULL,
    properties: {},
    answered: { type: "array", maxItems: 0 },
  },
  read: () => [],
};

export const contextArgument = {
  description: "Scope under which the request is made; determines fields present in response.",
  type: "string",
  enum: ALL,
  default: "view",
} as const;

/** Reads {@link contextArgument}; `view` if the route has no such argument. */
export const readContext = ({ values }: RestRequest): Context => (values["context"] ?? "view") as Context;

/** Arguments of every list that has pages. */
export const pageArguments: Arguments = {
  page: { description: "Current page of the collection.", type: "integer", default: 1, minimum: 1 },
  per_page: {
    description: "Maximum number of items to be returned in result set.",
    type: "integer",
    default: 10,
    minimum: 1,
    maximum: 100,
  },
};

export const searchArgument: Argument = {
  description: "Limit results to those matching a string.",
  type: "string",
  maxLength: LENGTHS.search,
};

export const offsetArgument: Argument = {
  description: "Offset the result set by a specific number of items.",
  type: "integer",
};

/** Returns the argument for the direction of a list. */
export const orderArgument = (direction: "asc" | "desc"): Argument => ({
  description: "Order sort attribute ascending or descending.",
  type: "string",
  default: direction,
  enum: ["asc", "desc"],
});

/** Returns the arguments that choose records by their ids. `ids`: how ids are written. */
export const idArguments = (ids: Argument): Arguments => ({
  exclude: { description: "Ensure result set excludes specific IDs.", ...ids },
  include: { description: "Limit result set to specific IDs.", ...ids },
});

export const recordSchema = <T>(title: string, fields: RecordFields<T>): Schema => ({
  title,
  type: "object",
  properties: Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema])),
});

/** Returns the fields that `context` shows. */
export const selectRecordFields = <T>(record: T, fields: RecordFields<T>, context: Context): JsonObject =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([, { schema }]) => schema.context?.includes(context))
      .map(([name, { read }]) => [name, read(record)]),
  );

/** Returns an argument for each writable field. */
export const writableArguments = <T>(fields: RecordFields<T>): Arguments =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { schema }]) => {
      const { context: _, ...argument } = schema;
      return argument.readonly === true ? [] : [[name, argument as Arguments[string]]];
    }),
  );
