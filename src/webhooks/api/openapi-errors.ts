/** Describes the error responses of the registration API for the OpenAPI document. Pure. */

import { componentRef, defineErrors, describeErrorResponse } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { type ErrorStatus, errorCodes } from "./error-codes.js";

/** 405 belongs to a path, not to one of its operations. */
const STATUSES = (Object.keys(errorCodes).map(Number) as ErrorStatus[]).filter((status) => status !== 405);

const DESCRIPTIONS: { readonly [status in ErrorStatus]: string } = {
  400: "The request is invalid. `field` names the part at fault.",
  401: "The API key is missing or invalid.",
  403: "Another API key of the account owns the webhook.",
  404: "The account has nothing with this id.",
  405: "The path does not support this method.",
  408: "The body did not arrive in time.",
  409: "The current state of the account does not allow it.",
  413: "The body is too large.",
  415: "The body is not JSON in UTF-8, or is compressed.",
  429: "Too many requests were sent.",
  500: "The server is misconfigured and cannot read the body.",
  503: "The service is temporarily unavailable. The request may or may not have taken effect.",
};

const ERROR_HEADERS: { readonly [status in ErrorStatus]?: string } = {
  401: "WWW-Authenticate",
  429: "Retry-After",
  503: "Retry-After",
};

function describeError(status: ErrorStatus): JsonObject {
  const codes = errorCodes[status];
  const header = ERROR_HEADERS[status];
  return describeErrorResponse({
    description: DESCRIPTIONS[status],
    headers: {
      "Cache-Control": componentRef("headers", "NoStore"),
      ...(header === undefined ? {} : { [header]: componentRef("headers", header) }),
    },
    properties: {
      error: { type: "object", properties: { code: { enum: codes }, message: {}, field: {} } },
    },
    example: { error: { code: codes[0], message: DESCRIPTIONS[status] } },
  });
}

export const errorResponses: JsonObject = defineErrors(STATUSES, describeError);
