/** Records whose fields are answered as they stand: schema, arguments and answer from one table. Knows no record type. */

import type { Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import type { RestRequest } from "./types.js";

export interface RecordField<T> {
  /** `context`: where it is answered. `readonly`: it is no argument of a write. */
  readonly schema: Schema;
  readonly read: (record: T) => Json;
}

/** By name, in the order they are answered. */
export type RecordFields<T> = { readonly [name: string]: RecordField<T> };

export const ALL: readonly Context[] = ["view", "embed", "edit"];
export const FULL: readonly Context[] = ["view", "edit"];
export const EDIT: readonly Context[] = ["edit"];

/** Registered meta fields of a record that has none: the reference answers an empty list. */
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

/** What was asked for with {@link contextArgument}; as a reader sees it where the route has no such argument. */
export const readContext = ({ values }: Pick<RestRequest, "values">): Context =>
  (values["context"] ?? "view") as Context;

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

export const recordSchema = <T>(title: string, fields: RecordFields<T>): Schema => ({
  title,
  type: "object",
  properties: Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema])),
});

/** The fields that `context` shows. */
export const selectRecordFields = <T>(record: T, fields: RecordFields<T>, context: Context): JsonObject =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([, { schema }]) => schema.context?.includes(context))
      .map(([name, { read }]) => [name, read(record)]),
  );

/** An argument for each field that can be written. */
export const writableArguments = <T>(fields: RecordFields<T>): Arguments =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { schema }]) => {
      const { context: _, ...argument } = schema;
      return argument.readonly === true ? [] : [[name, argument as Arguments[string]]];
    }),
  );
