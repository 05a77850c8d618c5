/**
 * Argument and item schemas: the subset of JSON Schema draft 4 that the content interface uses to
 * validate and to describe itself. Plain data.
 */

/** A value of JSON. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
/** An object of JSON. */
export interface JsonObject {
  readonly [name: string]: Json;
}

export type JsonType = "string" | "integer" | "number" | "boolean" | "array" | "object" | "null";

export type Context = "view" | "embed" | "edit";

export interface Schema {
  title?: string;
  description?: string;
  type?: JsonType | readonly JsonType[];
  format?: "date-time" | "uri" | "email" | "ip" | "uuid" | "hex-color";
  enum?: readonly (string | number | boolean | null)[];
  default?: Json;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  minLength?: number;
  /** A regular expression of ECMAScript. For OpenAPI only: no value is checked against it. */
  pattern?: string;
  /**
   * In characters. On a schema of several types, or without a type, it limits the value if that is
   * a text.
   */
  maxLength?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  /**
   * The limit of a list for which WordPress states none. It is checked like `maxItems`. OPTIONS
   * writes it as `x-maxItems`, because clients compare the keywords of WordPress. OpenAPI writes it
   * as `maxItems`.
   */
  itemLimit?: number;
  uniqueItems?: boolean;
  maxProperties?: number;
  properties?: { readonly [name: string]: Schema };
  additionalProperties?: boolean | Schema;
  /**
   * A boolean on a property (draft 3, as in WordPress), or the names of the required properties of
   * an object (draft 4).
   */
  required?: boolean | readonly string[];
  oneOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  /** For a field of an item: the contexts that include it. */
  context?: readonly Context[];
  readonly?: boolean;
  /**
   * For a field of an item: the schema of the response, if WordPress's description says less or
   * something else. For OpenAPI only.
   */
  answered?: Schema;
  /**
   * For an argument: the schema of its valid values, if WordPress's description says less or
   * something else. For OpenAPI only.
   */
  accepted?: Schema;
  /** For a field of an item: true if some items do not have it. For OpenAPI only. */
  sometimes?: true;
  /** True if WordPress returns the field, or accepts the argument, without describing it. */
  undescribed?: true;
}

/**
 * Why a value does not fit, in WordPress's codes: `rest_invalid_type`, `rest_not_in_enum`,
 * `rest_out_of_bounds` …
 */
export interface SchemaProblem {
  /**
   * Empty if the message only says that the value is invalid. Such a problem is left out of an
   * error's `details`.
   */
  code: string;
  /** For a person. It names the parameter and quotes nothing longer than 100 characters. */
  message: string;
  /** For a wrong type: the part of the parameter that has it, such as `requests[0][path]`. */
  param?: string;
}

/** One argument of an endpoint. `required: true` refuses a request without it. */
export interface Argument extends Schema {
  required?: boolean;
  /**
   * Replaces the check against the schema. `values` has all arguments as they were received,
   * including those of the path.
   */
  validate?: (value: Json, name: string, values: JsonObject) => SchemaProblem | undefined;
  /**
   * Replaces the coercion by the schema. It runs after every argument was found valid, and must not
   * reject anything: that is the task of `validate`.
   */
  sanitize?: (value: Json, name: string) => Json;
  /**
   * True if the argument is validated only after all others are valid; `null` is then an ordinary
   * value. WordPress treats arguments without a separate check like this, such as those of a
   * list besides `context`, `page`, `per_page` and `search`. If it is not `true`, `null` means the
   * empty value.
   */
  late?: boolean;
}

export type Arguments = { readonly [name: string]: Argument };
