/**
 * The batch route: several requests in one. Each passes the stages of its route. Knows no
 * collection.
 */

import { nextTurn } from "../../core/next-turn.js";
import type { Argument, Arguments, Json, JsonObject, SchemaProblem } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import { RestError } from "./error.js";
import { estimateSize, type ListLimits } from "./lists.js";
import { type Pipeline, type ValidCall, validate } from "./pipeline.js";
import { mergeParameters, noJsonObject, readQuery } from "./request-input.js";
import { toWordPressNames } from "./rest-headers.js";
import { splitPath } from "./route-table.js";
import { chooseFields, parseFields, toJson } from "./serialise.js";
import type {
  Described,
  RestEndpoint,
  RestRequest,
  RestResponse,
  RestRoute,
  RouteCall,
  RouteOutcome,
} from "./types.js";

const DESCRIBED: Described = {
  summary: "Send several requests in one",
  status: 207,
  form: "json",
  schema: {
    type: "object",
    required: ["responses"],
    properties: {
      failed: { description: "Nothing was done.", type: "string", enum: ["validation"] },
      responses: {
        description: "In the order of the requests; null for one that was not run.",
        type: "array",
        items: {
          type: ["object", "null"],
          required: ["body", "status", "headers"],
          properties: {
            body: {},
            status: { type: "integer" },
            headers: { type: "object", additionalProperties: { type: "string" } },
          },
          additionalProperties: false,
        },
      },
    },
    additionalProperties: false,
  },
};

/**
 * `POST /batch/v1`. The items run one after another as the caller of the batch, whatever their
 * headers say. An item that fails has its error at its place. With `require-all-validate` no item
 * runs unless the arguments of all are valid. Only endpoints with `allowBatch` may be used.
 */
export function batchRoute({
  pipeline,
  ready,
  lists,
}: {
  /** Called per request, since the pipeline is made from the table that holds this route. */
  pipeline: () => Pipeline;
  /** Brings the content up to date before each item, which may depend on the one before it. */
  ready: () => void | Promise<void>;
  /** Bounds the size of all responses together. Items beyond it are not run. */
  lists: ListLimits;
}): RestRoute {
  const run = async ({ call, valid, error }: BatchItem, characters: number): Promise<RouteOutcome> => {
    try {
      lists.refuseBeyond(characters);
      await ready();
    } catch (failure) {
      return pipeline().fail(failure);
    }
    return valid === undefined ? pipeline().refuse(call, error) : pipeline().dispatch(call, valid);
  };

  const handle = async (request: RestRequest): Promise<RestResponse> => {
    const items = request.values["requests"] as JsonObject[];
    // As they were sent, since the schema turns a list into an object.
    const sent = Object.values((request.input["requests"] ?? []) as JsonObject[]);
    const calls = items.map((item, at) =>
      validateItem(pipeline().find, { ...item, body: sent[at]?.["body"] ?? null }, request),
    );
    const mayRun =
      request.values["validation"] !== "require-all-validate" ||
      calls.every(({ valid }) => valid !== undefined);
    const responses: Json[] = [];
    let characters = 0;
    for (const item of calls) {
      const response = mayRun || item.valid === undefined ? envelop(await run(item, characters), item) : null;
      responses.push(response);
      characters += estimateSize(response);
      await nextTurn();
    }
    const json: JsonObject = mayRun ? { responses } : { failed: "validation", responses };
    return { status: 207, headers: {}, body: { json } };
  };

  return {
    namespace: "",
    path: "/batch/v1",
    endpoints: [{ methods: ["POST"], args: BATCH_ARGUMENTS, described: DESCRIBED, permit: () => {}, handle }],
  };
}

function envelop({ status, headers, body, isError }: RouteOutcome, { call }: BatchItem): JsonObject {
  const input = mergeParameters(call.body, call.query);
  const fields = isError ? undefined : parseFields(input["_fields"]);
  return {
    body: fields === undefined ? toJson(body) : chooseFields(body, fields, input["_embed"] !== undefined),
    status,
    headers: toWordPressNames(headers),
  };
}

interface BatchItem {
  call: RouteCall;
  /** `undefined` if the item is not valid, for the reason in `error`. */
  valid?: ValidCall;
  error?: unknown;
}

/** Validates an item as a separate call, which shares nothing with the others but the caller. */
function validateItem(find: Pipeline["find"], item: JsonObject, request: RestRequest): BatchItem {
  const target = item["path"] as string;
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  const method = (item["method"] as string | undefined) ?? "POST";
  let call: RouteCall = {
    method,
    path,
    match: undefined,
    query: {},
    body: toMembers(item["body"]),
    headers: readHeaders(toMembers(item["headers"])),
    caller: request.caller,
    baseUrl: request.url(""),
    sanitised: request.sanitised,
  };
  try {
    if (ELSEWHERE.test(target)) throw new RestError(400, "parse_path_failed", "Could not parse the path.");
    const query = readQuery(mark === -1 ? "" : target.slice(mark + 1));
    const match = find(splitPath(path));
    call = { ...call, query, match };
    refuseItem(match?.row.byMethod.get(method), item["body"]);
    return { call, valid: validate(call) };
  } catch (error) {
    return { call, error };
  }
}

/** As outside a batch, a list is refused as a body; an empty one stands for an empty object. */
function refuseItem(endpoint: RestEndpoint | undefined, body: Json | undefined): void {
  if (endpoint === undefined) return;
  if (endpoint.allowBatch !== true) throw notAllowed();
  if (isFilledList(body)) throw (endpoint.noObject ?? noJsonObject)();
}

/** A URL with a scheme or a host. An item names a path of this interface. */
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;

const notAllowed = (): RestError =>
  new RestError(400, "rest_batch_not_allowed", "The requested route does not support batch requests.");

/** A list has no members. */
const toMembers = (value: Json | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? mergeParameters(value as JsonObject, {})
    : {};

function readHeaders(sent: JsonObject): RestRequest["headers"] {
  const headers: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(sent)) {
    headers[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : (value as string);
  }
  return headers;
}

// The arguments of the batch route and the check of its requests.

const FREE_FORM = {
  type: "object",
  additionalProperties: true,
  maxProperties: COUNTS.members,
} as const;

const REQUESTS: Argument = {
  type: "array",
  required: true,
  maxItems: 25,
  items: {
    type: "object",
    properties: {
      method: { type: "string", enum: ["POST", "PUT", "PATCH", "DELETE"], default: "POST" },
      path: { type: "string", required: true, maxLength: LENGTHS.batchPath },
      body: FREE_FORM,
      headers: {
        type: "object",
        maxProperties: COUNTS.names,
        additionalProperties: {
          type: ["string", "array"],
          maxLength: LENGTHS.header,
          itemLimit: COUNTS.names,
          items: { type: "string", maxLength: LENGTHS.header },
        },
      },
    },
  },
};

const BATCH_ARGUMENTS: Arguments = {
  validation: { type: "string", enum: ["require-all-validate", "normal"], default: "normal" },
  requests: { ...REQUESTS, validate: checkRequests },
};

/**
 * Adds to the schema that headers must be strings: the schema alone accepts a number for a string
 * and a list for an object, as WordPress does. An empty list counts as an empty object, because PHP
 * writes both alike.
 */
function checkRequests(value: Json, name: string): SchemaProblem | undefined {
  const problem = validateValue(value, REQUESTS, name);
  if (problem !== undefined) return problem;
  for (const [index, item] of Object.entries(value as JsonObject[])) {
    const { headers } = item;
    const at = `${name}[${index}]`;
    if (isFilledList(headers)) return notOfType(`${at}[headers]`, "object");
    const wrong = Object.entries((headers ?? {}) as JsonObject).find(([, header]) => !isHeader(header));
    if (wrong !== undefined) return notOfType(`${at}[headers][${wrong[0]}]`, "string or array");
  }
  return undefined;
}

const isFilledList = (value: Json | undefined): boolean => Array.isArray(value) && value.length > 0;

const isHeader = (value: Json): boolean =>
  typeof value === "string" ||
  (Array.isArray(value) && value.every((part: Json) => typeof part === "string"));

const notOfType = (param: string, type: string): SchemaProblem => ({
  code: "rest_invalid_type",
  message: `${param} is not of type ${type}.`,
  param,
});
