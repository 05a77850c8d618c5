/**
 * Reads the JSON Schema that a host wrote for the data of events: copies it, checks every keyword,
 * and finds what its references mean. Whatever could not be checked later is refused here.
 */

import { joinPath, type SchemaMistake } from "../schema/describe-arguments.js";
import type { Json, JsonObject } from "../schema/types.js";
import { findKeywordMistake, isJsonObject, listInnerSchemas, showJson } from "./keywords.js";
import { isLibrarySchema, isLiteral } from "./library-schema.js";

/** A schema that can be compiled. */
export interface ReadSchema {
  schema: JsonObject;
  /** By each schema with a `$ref`: the schema that it means. */
  references: Map<JsonObject, Json>;
}

/** Reads the schema of a host, or returns the first mistake. */
export function readSchema(value: unknown): ReadSchema | { mistake: SchemaMistake } {
  try {
    const schema = copyPlainJson(value);
    if (!isJsonObject(schema)) throw new MistakeError("", "must be a JSON Schema, an object");
    const found = findSchemas(schema);
    const references = resolveReferences(found);
    refuseCycles(found, references);
    return { schema, references };
  } catch (error) {
    if (error instanceof MistakeError) return { mistake: error.mistake };
    throw error;
  }
}

/** Ends the reading at the first mistake. */
class MistakeError extends Error {
  mistake: SchemaMistake;

  constructor(path: string, message: string) {
    super(message);
    this.mistake = { path, message };
  }
}

// Copies what stands in a program as JSON, and refuses what JSON would change without a word.

const MAX_LEVELS = 64;
const MAX_VALUES = 20_000;

function describeKind(value: unknown): string {
  if (value === undefined) return "undefined";
  if (typeof value !== "object" || value === null) return `a ${typeof value}`;
  const made: unknown = value.constructor;
  return typeof made === "function" && made.name !== "" ? `a ${made.name}` : "an object";
}

function refuseLibrary(value: unknown, path: string): void {
  if (!isLibrarySchema(value)) return;
  throw new MistakeError(
    path,
    "is a schema of a library (it has '~standard') within a JSON Schema; write all of it with the library, or none",
  );
}

/** A key whose value is `undefined` is left out, as in JSON. */
function copyPlainJson(value: unknown): Json {
  try {
    return copyValues(value);
  } catch (error) {
    if (error instanceof MistakeError) throw error;
    throw new MistakeError("", "cannot be read: one of its fields throws");
  }
}

function copyValues(input: unknown): Json {
  let seen = 0;
  const copy = (value: unknown, path: string, level: number): Json => {
    seen += 1;
    if (seen > MAX_VALUES) throw new MistakeError(path, `is one of more than ${MAX_VALUES} values`);
    if (level > MAX_LEVELS) throw new MistakeError(path, `is nested deeper than ${MAX_LEVELS} levels`);
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    refuseLibrary(value, path);
    if (Array.isArray(value)) {
      return Array.from(value, (one: unknown, index) => copy(one, joinPath(path, String(index)), level + 1));
    }
    if (typeof value !== "object" || !isLiteral(value))
      throw new MistakeError(path, `must be JSON (got ${describeKind(value)})`);
    // Defines the keys, so that `__proto__` is an ordinary name.
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([name, member]) => [name, copy(member, joinPath(path, name), level + 1)]),
    );
  };
  return copy(input, "", 1);
}

// Finds the schemas within the schema.

/** Schemas within a schema, itself included. */
const MAX_SCHEMAS = 5_000;

interface FoundSchema {
  path: string;
  /** The nearest schema around it, or itself, that has an `$id`; the outermost if none has. */
  resource: JsonObject;
}

type FoundSchemas = Map<JsonObject, FoundSchema>;

const isResourceId = (id: Json | undefined): id is string => typeof id === "string" && !id.startsWith("#");

function findSchemas(root: JsonObject): FoundSchemas {
  const found = new Map<JsonObject, FoundSchema>();
  const find = (schema: Json, path: string, around: JsonObject): void => {
    if (typeof schema === "boolean") return;
    if (!isJsonObject(schema)) throw new MistakeError(path, `must be a schema (got ${showJson(schema)})`);
    if (found.size >= MAX_SCHEMAS) throw new MistakeError(path, `is one of more than ${MAX_SCHEMAS} schemas`);
    const resource = isResourceId(schema["$id"]) ? schema : around;
    found.set(schema, { path, resource });
    for (const [keyword, value] of Object.entries(schema)) {
      const mistake = findKeywordMistake(keyword, value);
      const below = joinPath(path, keyword);
      if (mistake !== undefined) throw new MistakeError(below, mistake);
      for (const [name, inner] of listInnerSchemas(keyword, value))
        find(inner, joinPath(below, name), resource);
    }
  };
  find(root, "", root);
  return found;
}

// Finds what references mean.

/** Returns the name of a schema for references: `$anchor`, or `$id: "#name"` in draft 7. */
function getAnchor({ $anchor: anchor, $id: id }: JsonObject): string | undefined {
  if (typeof anchor === "string") return anchor;
  return typeof id === "string" && id.startsWith("#") ? id.slice(1) : undefined;
}

function resolveReferences(found: FoundSchemas): Map<JsonObject, Json> {
  const resources = new Map<string, JsonObject>();
  const anchors = new Map<JsonObject, Map<string, JsonObject>>();
  for (const [schema, { resource }] of found) {
    const id = schema["$id"];
    const anchor = getAnchor(schema);
    if (isResourceId(id)) resources.set(id.replace(/#$/, ""), schema);
    if (anchor === undefined) continue;
    const names = anchors.get(resource) ?? new Map<string, JsonObject>();
    anchors.set(resource, names.set(anchor, schema));
  }
  const resolve = (reference: string, around: JsonObject): Json | undefined => {
    const hash = reference.indexOf("#");
    const base = hash === -1 ? reference : reference.slice(0, hash);
    const resource = base === "" ? around : resources.get(base);
    const fragment = hash === -1 ? "" : decodeFragment(reference.slice(hash + 1));
    if (resource === undefined || fragment === "") return resource;
    return fragment?.startsWith("/")
      ? followPointer(resource, fragment)
      : anchors.get(resource)?.get(fragment ?? "");
  };
  const references = new Map<JsonObject, Json>();
  for (const [schema, { path, resource }] of found) {
    const { $ref: reference } = schema;
    if (typeof reference !== "string") continue;
    const target = resolve(reference, resource);
    const isSchema = typeof target === "boolean" || (isJsonObject(target) && found.has(target));
    if (target === undefined || !isSchema) {
      const what = "must lead to a schema within this one, such as '#/$defs/name'";
      throw new MistakeError(joinPath(path, "$ref"), `${what} (got ${showJson(reference)})`);
    }
    references.set(schema, target);
  }
  return references;
}

function decodeFragment(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

function followPointer(resource: JsonObject, pointer: string): Json | undefined {
  let value: Json | undefined = resource;
  for (const token of pointer.slice(1).split("/")) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as JsonObject)[name];
  }
  return value;
}

/** Schemas that apply to one value, each because of the one before. */
const MAX_CHAIN = 200;

/** The keywords whose schemas apply to the same value. */
const IN_PLACE = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/** A schema may contain itself through a property or an item. Otherwise no check would end. */
function refuseCycles(found: FoundSchemas, references: Map<JsonObject, Json>): void {
  const finished = new Set<JsonObject>();
  const chain = new Set<JsonObject>();
  const visit = (schema: Json | undefined, path: string): void => {
    if (!isJsonObject(schema) || finished.has(schema)) return;
    if (chain.has(schema)) throw new MistakeError(path, "leads back to itself without a property or an item");
    if (chain.size >= MAX_CHAIN)
      throw new MistakeError(path, `is one of more than ${MAX_CHAIN} for one value`);
    chain.add(schema);
    const schemaPath = found.get(schema)?.path ?? path;
    visit(references.get(schema), joinPath(schemaPath, "$ref"));
    for (const keyword of IN_PLACE) {
      const value = schema[keyword];
      if (value === undefined) continue;
      for (const [name, inner] of listInnerSchemas(keyword, value))
        visit(inner, joinPath(joinPath(schemaPath, keyword), name));
    }
    chain.delete(schema);
    finished.add(schema);
  };
  for (const [schema, { path }] of found) visit(schema, path);
}
