/** Argument and item schemas: the subset of JSON Schema draft 4 that the content interface speaks and describes itself with. Plain data. */

/** A value of JSON. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
/** An object of JSON. */
export interface JsonObject {
  readonly [name: string]: Json;
}

export type JsonType = "string" | "integer" | "number" | "boolean" | "array" | "object" | "null";

export type Context = "view" | "embed" | "edit";

export interface Schema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: JsonType | readonly JsonType[];
  readonly format?: "date-time" | "uri" | "email" | "ip" | "uuid" | "hex-color";
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly default?: Json;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly minLength?: number;
  /** In characters. On a schema of several types, or of none, it bounds the value when that is a text. */
  readonly maxLength?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  /**
   * The bound on a list for which WordPress states none. Checked like `maxItems`. OPTIONS writes it as `x-maxItems`, because clients compare the keywords
   * of WordPress; OpenAPI writes it as `maxItems`.
   */
  readonly mostItems?: number;
  readonly uniqueItems?: boolean;
  readonly maxProperties?: number;
  readonly properties?: { readonly [name: string]: Schema };
  readonly additionalProperties?: boolean | Schema;
  /** A boolean on a property (draft 3, as the reference writes it), or the names of the required properties of an object (draft 4). */
  readonly required?: boolean | readonly string[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  /** Of an item's field: the contexts in which it is answered. */
  readonly context?: readonly Context[];
  readonly readonly?: boolean;
  /** Of an item's field: what is answered, where the rest, which is the reference's, says less or something else. For OpenAPI; OPTIONS does not tell it. */
  readonly answered?: Schema;
  /** Of an item's field: there are items without it. For OpenAPI. */
  readonly sometimes?: true;
  /** Of an item's field: the reference answers it, and does not describe it. */
  readonly undescribed?: true;
}

/** Why a value does not fit, in the reference's codes: `rest_invalid_type`, `rest_not_in_enum`, `rest_out_of_bounds` … */
export interface SchemaProblem {
  /** Empty where there is no more to say than that the value is invalid; such a problem has no place in an error's `details`. */
  readonly code: string;
  /** For a person; names the parameter, quotes nothing longer than 100 characters. */
  readonly message: string;
  /** Of a wrong type: the part of the parameter that has it, `requests[0][path]`. */
  readonly param?: string;
}

/** One argument of an endpoint. `required: true` refuses a request without it. */
export interface Argument extends Schema {
  readonly required?: boolean;
  /** Instead of the check against the schema. `given` are all arguments as they came, those of the path too. */
  readonly validate?: (value: Json, name: string, given: JsonObject) => SchemaProblem | undefined;
  /** Instead of the coercion by the schema; runs after every argument was found valid. Refuses nothing: that is up to `validate`. */
  readonly sanitize?: (value: Json, name: string) => Json;
  /**
   * Looked at only when every other argument is valid, and `null` is then a value like any other. So the reference treats arguments that have no check of
   * their own, such as those of a list beside `context`, `page`, `per_page` and `search`. Where it is not `true`, `null` is taken for the empty value.
   */
  readonly late?: boolean;
}

export type Arguments = { readonly [name: string]: Argument };
