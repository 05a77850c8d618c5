/**
 * Compares a request that was accepted with what the OpenAPI document says of its arguments: a
 * document that refuses what the service accepts keeps generated clients from sending it.
 */

import { parseQuery } from "../../src/schema/query-string.js";
import type { Json, JsonObject } from "../../src/schema/types.js";
import { type Described, describedBy, methodOf, type Template, templatesOf } from "./described-answers.js";

export interface AcceptedRequest {
  readonly method: string;
  /** Below the mount point. */
  readonly path: string;
  readonly query: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const object = (json: Json | undefined): JsonObject => (json ?? {}) as JsonObject;

/** Returns a function that lists the arguments of a request that the document does not allow. */
export function undescribedArguments(
  document: JsonObject,
): (request: AcceptedRequest) => Promise<readonly string[]> {
  const { fits } = describedBy(document);
  const templates = templatesOf(object(document["paths"]));
  return async (request) => {
    const method = methodOf(request, new URLSearchParams(request.query));
    const template = templates.find(({ pattern }) => pattern.test(request.path));
    const operation = object(template?.item[method]);
    if (template === undefined || operation === undefined) return [];
    const schemas = schemasOf(template, operation, request.headers["content-type"] ?? "application/json");
    const given = { ...queryOf(request.query), ...(await fieldsOf(request)) };
    return Object.entries(given)
      .flatMap(([name, value]) => spreadObject(name, value, schemas))
      .filter(([name, value]) => !isAllowed(value, schemas.get(name), method, fits))
      .map(([name, value]) => `${method} ${template.text}: ${name}=${JSON.stringify(value)}`);
  };
}

type Schemas = ReadonlyMap<string, JsonObject>;

/** By name of the argument, wherever it is sent. */
function schemasOf({ item }: Template, operation: JsonObject, contentType: string): Schemas {
  const parameters = [item["parameters"], operation["parameters"]].flat() as (JsonObject | undefined)[];
  const content = object(object(operation["requestBody"])["content"]);
  const media = object(content[contentType.split(";")[0]?.trim() ?? ""] ?? content["multipart/form-data"]);
  const found = media["schema"] ?? object(content["application/json"])["schema"];
  const fields = object(object(found)["properties"]);
  return new Map([
    ...parameters.flatMap((one): (readonly [string, JsonObject])[] =>
      typeof one?.["name"] === "string" ? [[one["name"], object(one["schema"])]] : [],
    ),
    ...Object.entries(fields).map(([name, schema]) => [name, object(schema)] as const),
  ]);
}

const queryOf = (text: string): JsonObject => {
  const result = parseQuery(text);
  return result.ok ? result.values : {};
};

async function fieldsOf({ headers, body }: AcceptedRequest): Promise<JsonObject> {
  const type = headers["content-type"] ?? "";
  if (body.length === 0) return {};
  if (type.startsWith("application/x-www-form-urlencoded")) return queryOf(Buffer.from(body).toString());
  if (type.startsWith("multipart/form-data")) {
    const form = await new Response(Buffer.from(body), { headers: { "content-type": type } }).formData();
    const texts = [...form].filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return queryOf(new URLSearchParams(texts).toString());
  }
  const json: unknown = type.includes("json") ? JSON.parse(Buffer.from(body).toString()) : {};
  return typeof json === "object" && json !== null && !Array.isArray(json) ? (json as JsonObject) : {};
}

/** `categories[terms]` is a parameter of its own. */
function spreadObject(name: string, value: Json, schemas: Schemas): readonly (readonly [string, Json])[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [[name, value]];
  const members = Object.entries(value).map(([member, one]) => [`${name}[${member}]`, one] as const);
  return members.some(([member]) => schemas.has(member)) ? members : [[name, value]];
}

/** Arguments that the document does not name are ignored by the service. */
function isAllowed(
  value: Json,
  schema: JsonObject | undefined,
  method: string,
  fits: Described["fits"],
): boolean {
  if (schema === undefined) return true;
  if (value === null && method !== "get" && method !== "delete") return true;
  return readings(value, schema).some((one) => fits(one, schema).length === 0);
}

/** The values that the introduction of the document says a value may stand for. */
function readings(value: Json, { anyOf, oneOf, ...own }: JsonObject): readonly Json[] {
  const found: Json[] = [value, convertTexts(value, toNumber), convertTexts(value, toBoolean)];
  const forms = [own, ...((anyOf ?? oneOf ?? []) as readonly JsonObject[])];
  if (forms.some(({ type }) => type === "array")) {
    const items = isContainer(value) ? Object.values(value) : splitList(String(value));
    found.push(items, convertTexts(items, toNumber));
  }
  if (Array.isArray(value)) found.push(Object.fromEntries(value.entries()));
  return found;
}

const isContainer = (value: Json): value is JsonObject | readonly Json[] =>
  typeof value === "object" && value !== null;

const splitList = (text: string): readonly string[] => text.split(/[\s,]+/).filter((part) => part !== "");

/** Applies to the scalars at every level. */
function convertTexts(value: Json, convert: (scalar: Json) => Json): Json {
  if (Array.isArray(value)) return value.map((one: Json) => convertTexts(one, convert));
  if (!isContainer(value)) return convert(value);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, convertTexts(one, convert)]));
}

const toNumber = (scalar: Json): Json =>
  typeof scalar === "string" && scalar.trim() !== "" && Number.isFinite(Number(scalar))
    ? Number(scalar)
    : scalar;

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

const toBoolean = (scalar: Json): Json =>
  BOOLEANS.get(JSON.stringify(scalar).replaceAll('"', "").toLowerCase()) ?? scalar;
