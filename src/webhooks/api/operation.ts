/** The form in which the registration API describes an operation, for routes and for OpenAPI. */

import type { JsonObject } from "../../schema/types.js";
import type { ErrorStatus } from "./error-codes.js";

/** A JSON object. Clients may send a `readOnly` property back as received; it is ignored. */
export interface BodySchema {
  readonly description?: string;
  readonly required?: readonly string[];
  /** A missing body counts as an empty object. */
  readonly isOptional?: true;
  readonly properties: { readonly [name: string]: JsonObject };
  readonly example: JsonObject;
}

export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** As in the route table. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** True if the operation needs no API key. */
  readonly isPublic?: true;
  /** OpenAPI parameter objects, without those of the path. */
  readonly parameters?: readonly JsonObject[];
  readonly body?: BodySchema;
  readonly response: {
    readonly status: number;
    readonly description: string;
    readonly schema: JsonObject;
    readonly example?: JsonObject;
    /** OpenAPI header objects, or references to them. */
    readonly headers?: JsonObject;
  };
  /** Error statuses of this operation. Operations with an API key also have 401, 429 and 503. */
  readonly errors: readonly ErrorStatus[];
}

/** The groups of operations in the OpenAPI document, with their descriptions. */
export const tags = {
  Webhooks: "The endpoints that an account has registered.",
  Deliveries: "The deliveries to an endpoint, their attempts, and ways to send them again.",
  Interface: "The description of this interface.",
} as const;

export type Tag = keyof typeof tags;

/** The error statuses of every operation that reads a request body. */
export const BODY_ERRORS = [400, 408, 413, 415, 500] as const;
