/**
 * The form of the operations table: what a row holds for the router and for the OpenAPI document,
 * what its handler receives, and the errors of the interface.
 */

import type { PathParameter } from "../../http/router.js";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Operator, Subscriber } from "../access.js";
import type { WebhooksConfig } from "../config/config.js";
import type { Deliveries } from "../delivery/deliveries.js";
import type { Catalogue } from "../event-types/catalogue.js";
import type { SubscriberRegistrations } from "../registrations/registrations.js";
import type { SubscriberAuditLog } from "../webhook.js";

/** A JSON object. Clients may send a `readOnly` property back as received; it is ignored. */
export interface BodySchema {
  required?: string[];
  /** A missing body counts as an empty object. */
  isOptional?: true;
  properties: { [name: string]: JsonObject };
  /** True if it also takes the settings that the option `registrations` turns on. */
  takesSettings?: true;
  example: JsonObject;
}

/** A request of a known subscriber. */
export interface SubscriberCall {
  request: HttpRequest;
  parameter: PathParameter;
  subscriber: Subscriber | Operator;
  /** The calls of the service with the subscriber's rights. */
  webhooks: SubscriberCalls;
  /** Charges the account's limit for what costs as much as so many further requests. */
  charge: (count: number) => void;
  /** Reads the body, and returns the fields that the operation accepts. */
  readBody: () => Promise<Record<string, unknown>>;
}

/** The calls of the webhook service, bound to a subscriber. */
export interface SubscriberCalls {
  /** Manages the webhooks of the subscriber's account. */
  registrations: SubscriberRegistrations;
  /** The delivery log of the subscriber's account. */
  deliveries: Deliveries;
  /** The audit log of the subscriber's account. Kept with `limits.auditEntries`. */
  audit: SubscriberAuditLog;
}

/** The parts of the webhook service that do not depend on the subscriber. */
export interface ApiService {
  catalogue: Catalogue;
  /** Which settings of endpoints are offered. */
  offered: WebhooksConfig["registrations"];
  getDocument: (baseUrl: string) => PublicDocument;
  /** The public keys of the signatures, as a JSON Web Key Set. */
  keySet: PublicDocument;
}

/** The text of a document that everybody may read, and its validator. */
export interface PublicDocument {
  body: string;
  etag: string;
}

/** A row of the table. */
export type Operation = {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** `/v1/webhooks/:webhookId`: each parameter is one whole segment. */
  path: string;
  tag: keyof typeof tags;
  summary: string;
  description?: string;
  /** OpenAPI parameter objects, without those of the path. */
  parameters?: JsonObject[];
  body?: BodySchema;
  response: {
    status: number;
    description: string;
    schema: JsonObject;
    example?: JsonObject;
    /** OpenAPI header objects, or references to them. */
    headers?: JsonObject;
  };
  /** False if a service with these options has no such route. Default: every service has it. */
  isOffered?: (config: WebhooksConfig) => boolean;
  /** Error statuses, without those that every API key can get and those of reading a body. */
  errors: ErrorStatus[];
} & (
  | {
      isPublic?: never;
      handle: (call: SubscriberCall, service: ApiService) => Promise<HttpResponse>;
    }
  | {
      /** The operation needs no API key. */
      isPublic: true;
      handle: (request: HttpRequest, service: ApiService) => Promise<HttpResponse>;
    }
);

/** Operations by their id. */
export type Operations = { [operationId: string]: Operation };

/** The groups of operations in the OpenAPI document, with their descriptions. */
export const tags = {
  Webhooks: "The endpoints that an account has registered.",
  Deliveries: "The deliveries to an endpoint, their attempts, and ways to send them again.",
  Interface: "The description of this interface.",
} as const;

/** The error responses, by status, with their codes. An error with any other code becomes 503. */
export const apiErrors = {
  400: {
    description: "The request is invalid. `field` names the part at fault.",
    codes: [
      "invalid_json",
      "invalid_request",
      "invalid_argument",
      "invalid_url",
      "unknown_event_type",
      "request_aborted",
    ],
  },
  401: {
    description: "The API key is missing or invalid.",
    codes: ["unauthorized"],
    header: "WWW-Authenticate",
  },
  403: {
    description: "Another API key of the account owns the webhook.",
    codes: ["webhook_owned_by_another_key", "record_not_readable"],
  },
  404: { description: "The account has nothing with this id.", codes: ["not_found"] },
  405: { description: "The path does not support this method.", codes: ["method_not_allowed"] },
  408: { description: "The body did not arrive in time.", codes: ["request_timeout"] },
  409: {
    description: "The current state of the account does not allow it.",
    codes: [
      "webhook_limit_reached",
      "idempotency_key_reused",
      "webhook_deleted",
      "secret_rotated",
      "webhook_disabled",
      "webhook_enabled",
      "attempt_in_flight",
      "resend_limit_reached",
    ],
  },
  413: { description: "The body is too large.", codes: ["body_too_large"] },
  415: {
    description: "The body is not JSON in UTF-8, or is compressed.",
    codes: ["unsupported_media_type"],
  },
  429: { description: "Too many requests were sent.", codes: ["rate_limited"], header: "Retry-After" },
  500: {
    description: "The server is misconfigured and cannot read the body.",
    codes: ["raw_body_unavailable"],
  },
  503: {
    description: "The service is temporarily unavailable. The request may or may not have taken effect.",
    codes: ["unavailable"],
    header: "Retry-After",
  },
} as const satisfies { [status: number]: ErrorDescription };

/** The error responses of one status. */
export interface ErrorDescription {
  description: string;
  codes: string[];
  /** A header that the responses have. */
  header?: string;
}

export type ErrorStatus = keyof typeof apiErrors;
