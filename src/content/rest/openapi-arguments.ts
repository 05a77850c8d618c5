/** Describes arguments for OpenAPI: as query parameters and as fields of a body. Pure. */

import type { Argument, Json, JsonObject, Schema } from "../../schema/types.js";
import { toJsonSchema } from "./openapi-schema.js";

/** An argument with its name. */
export type NamedArgument = readonly [name: string, argument: Argument];

/**
 * Returns the query parameters of an argument.
 *
 * A list is separated by commas, and a single value needs none. An object uses brackets. An
 * argument that is a list or an object has one parameter for the list, and one for each member of
 * the object, such as `categories[terms]`: OpenAPI allows one style per parameter.
 */
export function describeQueryParameters([name, argument]: NamedArgument): readonly JsonObject[] {
  const { oneOf = [], description } = argument;
  if (!oneOf.some(isObjectSchema)) return [describeQueryParameter([name, argument])];
  return oneOf.flatMap((form) =>
    isObjectSchema(form)
      ? Object.entries(form.properties ?? {}).map(([member, schema]) =>
          describeQueryParameter([`${name}[${member}]`, toOptional(schema)]),
        )
      : [describeQueryParameter([name, { ...toOptional(form), ...(description && { description }) }])],
  );
}

const isObjectSchema = ({ type }: Schema): boolean => type === "object";

const toOptional = (schema: Schema): Argument => ({ ...schema, required: false });

function describeQueryParameter([name, argument]: NamedArgument): JsonObject {
  const { description, ...schema } = toJsonSchema(argument);
  const style = isObjectSchema(argument)
    ? { style: "deepObject", explode: true }
    : { style: "form", explode: false };
  return {
    name,
    in: "query",
    ...(description === undefined ? {} : { description }),
    required: argument.required === true,
    ...style,
    schema: schema["type"] === "array" ? allowSingleValue(schema) : schema,
  };
}

/** One value is a list of one. */
function allowSingleValue({ default: initial, ...list }: JsonObject): JsonObject {
  const { items } = list;
  if (items === undefined) return { ...(initial === undefined ? {} : { default: initial }), ...list };
  return { ...(initial === undefined ? {} : { default: initial }), anyOf: [items, list] };
}

/** Returns the media types of a body that is JSON or a form. */
export function describeFields(args: readonly NamedArgument[]): JsonObject {
  const schema = describeObject(args);
  return {
    "application/json": { schema },
    "application/x-www-form-urlencoded": { schema, ...describeEncoding(schema) },
  };
}

/** Returns the media types of an upload: a form with a file, or the file alone. */
export function describeUpload(args: readonly NamedArgument[]): JsonObject {
  const schema = describeObject(args);
  return {
    "multipart/form-data": {
      schema: {
        ...schema,
        required: ["file"],
        properties: { file: FILE, ...(schema["properties"] as JsonObject) },
      },
      ...describeEncoding(schema),
    },
    "*/*": { schema: FILE },
  };
}

const FILE: JsonObject = {
  description: "The bytes of the file. Outside a form, `Content-Disposition` contains its name.",
  type: "string",
  contentMediaType: "application/octet-stream",
};

const describeObject = (args: readonly NamedArgument[]): JsonObject =>
  toJsonSchema({ type: "object", properties: Object.fromEntries(args) });

/** In a form, a list is separated by commas, and an object uses brackets. */
function describeEncoding({ properties }: JsonObject): JsonObject {
  const encoding = Object.entries(properties as { readonly [name: string]: JsonObject }).flatMap(
    ([name, schema]): readonly (readonly [string, Json])[] => {
      if (listForms(schema).some(({ type }) => type === "object"))
        return [[name, { style: "deepObject", explode: true }]];
      return schema["type"] === "array" ? [[name, { style: "form", explode: false }]] : [];
    },
  );
  return encoding.length === 0 ? {} : { encoding: Object.fromEntries(encoding) };
}

const listForms = (schema: JsonObject): readonly JsonObject[] => [
  schema,
  ...((schema["anyOf"] ?? schema["oneOf"] ?? []) as readonly JsonObject[]),
];
