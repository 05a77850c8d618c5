/** Values that a schema of an OpenAPI document allows, and values that it does not. */

import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import type { Json, JsonObject, JsonType } from "../../src/schema/types.js";

/** No text of a random request is longer: lengths have tests of their own. */
const MAX_TEXT = 60;
const MAX_ITEMS = 4;

const ajv = new Ajv2020({ strict: false, validateFormats: false });

const forms = ({ anyOf, oneOf }: JsonObject): readonly JsonObject[] =>
  (anyOf ?? oneOf ?? []) as readonly JsonObject[];

/** Values that the schema allows. Numbers prefer `ids`, so that many name a record. */
export function allowedValues(schema: JsonObject, ids: readonly number[]): fc.Arbitrary<Json> {
  const alternatives = forms(schema);
  if (alternatives.length > 0) {
    const validate = ajv.compile(schema);
    // `oneOf` allows no value that several alternatives allow.
    return fc.oneof(...alternatives.map((one) => allowedValues(one, ids))).filter((value) => validate(value));
  }
  const choices = schema["enum"] as readonly Json[] | undefined;
  if (choices !== undefined) return fc.constantFrom(...choices);
  const { type = "string" } = schema;
  if (Array.isArray(type)) {
    return fc.oneof(...type.map((one: Json) => allowedValues({ ...schema, type: one }, ids)));
  }
  switch (type as JsonType) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return allowedIntegers(schema, ids);
    case "number":
      return allowedIntegers({ minimum: -100, maximum: 100, ...schema }, ids);
    case "array":
      return allowedLists(schema, ids);
    case "object":
      return allowedObjects(schema, ids);
    case "string":
      return allowedTexts(schema);
  }
}

interface Range {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
}

/** The smallest and the largest integer of a schema. */
function rangeOf(schema: JsonObject): readonly [number, number] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema as Range;
  return [
    minimum ?? (exclusiveMinimum === undefined ? Number.MIN_SAFE_INTEGER : exclusiveMinimum + 1),
    maximum ?? (exclusiveMaximum === undefined ? Number.MAX_SAFE_INTEGER : exclusiveMaximum - 1),
  ];
}

function allowedIntegers(schema: JsonObject, ids: readonly number[]): fc.Arbitrary<number> {
  const [min, max] = rangeOf(schema);
  const any = fc.maxSafeInteger().map((value) => Math.min(Math.max(value, min), max));
  const known = ids.filter((id) => id >= min && id <= max);
  return known.length === 0 ? any : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...known) }, any);
}

function allowedLists(schema: JsonObject, ids: readonly number[]): fc.Arbitrary<Json> {
  const { items = {}, minItems = 0, maxItems = MAX_ITEMS, uniqueItems } = schema;
  const bounds = { minLength: minItems as number, maxLength: Math.min(maxItems as number, MAX_ITEMS) };
  const item = allowedValues(items as JsonObject, ids);
  return uniqueItems === true ? fc.uniqueArray(item, bounds) : fc.array(item, bounds);
}

function allowedObjects(schema: JsonObject, ids: readonly number[]): fc.Arbitrary<Json> {
  const members = Object.entries((schema["properties"] ?? {}) as { readonly [name: string]: JsonObject });
  const model = Object.fromEntries(members.map(([name, member]) => [name, allowedValues(member, ids)]));
  return fc.record(model, { requiredKeys: (schema["required"] ?? []) as string[] }) as fc.Arbitrary<Json>;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** Days that every month has. */
const dates = fc
  .tuple(
    fc.integer({ min: 1970, max: 2060 }),
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 1, max: 28 }),
  )
  .chain(([year, month, day]) =>
    fc
      .constantFrom("", "Z", "+02:00", ".5Z", "-05")
      .map((zone) => `${year}-${two(month)}-${two(day)}T${two(day % 24)}:05:09${zone}`),
  );

const texts = (max: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom("", "word", "Two words", "<p>Text</p>", "Größe", "a,b"),
    fc.string({ maxLength: max, unit: "binary" }),
    fc.string({ maxLength: max }),
  );

function allowedTexts({ pattern, format, maxLength = MAX_TEXT }: JsonObject): fc.Arbitrary<string> {
  const max = Math.min(maxLength as number, MAX_TEXT);
  if (typeof pattern === "string") {
    if (pattern.includes("(?!0000)")) return dates;
    return fc.stringMatching(new RegExp(pattern)).filter((text) => text.length <= max);
  }
  if (format === "email") return fc.constantFrom("a@example.org", "b.c@mail.example.org");
  if (format === "uuid") return fc.uuid();
  if (format !== undefined) throw new Error(`No values of the format ${JSON.stringify(format)} are known.`);
  return texts(max).filter((text) => text.length <= max);
}

/** The longest text of an invalid value. */
const MAX_INVALID = 20_000;

/**
 * Values that the schema does not allow, and that no conversion turns into allowed ones. `isText`:
 * values of a query, which are texts.
 */
export function refusedValues(schema: JsonObject, isText: boolean): readonly Json[] {
  const alternatives = forms(schema);
  if (alternatives.length > 0) return refusedByAll(alternatives, isText);
  if (schema["enum"] !== undefined) return ["no such choice", ...(isText ? [] : [{ a: 1 }])];
  const types = [schema["type"]].flat();
  if (types.includes("string")) return refusedTexts(schema, isText);
  if (types.includes("integer") || types.includes("number")) {
    const [min, max] = rangeOf(schema);
    return [
      "many",
      ...(types.includes("integer") ? [1.5] : []),
      ...(min > Number.MIN_SAFE_INTEGER ? [min - 1] : []),
      ...(max < Number.MAX_SAFE_INTEGER ? [max + 1] : []),
    ];
  }
  if (types.includes("boolean")) return ["maybe"];
  if (types.includes("array")) {
    const items = refusedValues((schema["items"] ?? {}) as JsonObject, isText);
    return [...(isText ? [] : [{ a: "b" }]), ...items.filter(isOneItem).map((item) => [item])];
  }
  return types.includes("object") ? ["text"] : [];
}

/** A text with commas or spaces is several items. */
const isOneItem = (value: Json): boolean => typeof value !== "string" || !/[\s,]/.test(value);

const ODD_TEXTS: readonly string[] = ["not like that", "unknown:scheme"];

function refusedTexts({ pattern, maxLength, type }: JsonObject, isText: boolean): readonly Json[] {
  const isNullable = [type].flat().includes("null");
  const tooLong =
    typeof maxLength === "number" && maxLength <= MAX_INVALID ? ["x".repeat(maxLength + 1)] : [];
  return [
    ...(typeof pattern === "string" ? ODD_TEXTS.filter((text) => !new RegExp(pattern).test(text)) : []),
    ...(isText || isNullable ? [] : [{ a: 1 }]),
    ...(pattern === undefined ? tooLong : []),
  ];
}

/** For a single item or a list. WordPress ignores any value but a string or an object. */
function refusedByAll(alternatives: readonly JsonObject[], isText: boolean): readonly Json[] {
  const list = alternatives.find(({ type }) => type === "array");
  if (list !== undefined) return refusedValues(list, isText);
  const text = alternatives.find(({ type }) => type === "string");
  return text === undefined ? [] : refusedTexts(text, true);
}
