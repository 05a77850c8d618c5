/** The batch route: several requests in one, each judged by its own route, method and permission. Knows no collection. */

import type { Argument, Arguments, Json, JsonObject, SchemaProblem } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import type { RouteCall, RouteDispatcher, RouteOutcome, ValidatedCall } from "./dispatch.js";
import { RestError } from "./error.js";
import { estimateSize } from "./list-limits.js";
import { mergeParameters, noJsonObject, readQuery } from "./request-input.js";
import { splitPath } from "./route-tree.js";
import type { Described, RestEndpoint, RestRequest, RestResponse, RestRoute } from "./types.js";

export interface BatchOptions {
  readonly dispatcher: () => Pick<RouteDispatcher, "find" | "judge" | "run" | "failure">;
  /** Brings what is read up to date; before each item, which may depend on the one before it. */
  readonly ready: () => void | Promise<void>;
  /** Errors: RestError for answers that are together too large: what is left is not run. */
  readonly mayGoOn: (characters: number) => void;
  /** The JSON of an answer to a request with this `_fields`. */
  readonly present: (outcome: RouteOutcome, fields: Json | undefined) => Json;
}

const FREE_FORM = {
  type: "object",
  properties: {},
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
        properties: {},
        maxProperties: COUNTS.names,
        additionalProperties: {
          type: ["string", "array"],
          maxLength: LENGTHS.header,
          mostItems: COUNTS.names,
          items: { type: "string", maxLength: LENGTHS.header },
        },
      },
    },
  },
};

/**
 * Headers must be texts: the schema alone would take a number for one, and a list for an object, as WordPress does. An empty list stands for an empty
 * object, because PHP writes both alike.
 */
function checkRequests(value: Json, name: string): SchemaProblem | undefined {
  const problem = validateValue(value, REQUESTS, name);
  if (problem !== undefined) return problem;
  for (const [index, item] of Object.entries(value as readonly JsonObject[])) {
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

const ARGUMENTS: Arguments = {
  validation: { type: "string", enum: ["require-all-validate", "normal"], default: "normal" },
  requests: { ...REQUESTS, validate: checkRequests },
};

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
 * `POST /batch/v1`. The items run one after another, as the caller of the batch whatever their headers say; one that fails says so at its place. With
 * `require-all-validate` nothing runs unless the arguments of all are valid. Only endpoints with `allowBatch` may be used, so no batch in a batch.
 */
export function batchRoute({ dispatcher, ready, mayGoOn, present }: BatchOptions): RestRoute {
  const envelope = (outcome: RouteOutcome, { call }: ValidatedCall): Json => ({
    body: present(outcome, mergeParameters(call.body, call.query)["_fields"]),
    status: outcome.status,
    headers: outcome.headers,
  });

  const run = async (judged: ValidatedCall, characters: number): Promise<RouteOutcome> => {
    try {
      mayGoOn(characters);
      await ready();
    } catch (error) {
      return dispatcher().failure(error);
    }
    return dispatcher().run(judged);
  };

  const handle = async (request: RestRequest): Promise<RestResponse> => {
    const items = request.values["requests"] as readonly JsonObject[];
    // As they came: the schema makes an object of a list.
    const given = Object.values((request.given["requests"] ?? []) as readonly JsonObject[]);
    const judged = items.map((item, at) =>
      judge(dispatcher(), { ...item, body: given[at]?.["body"] ?? null }, request),
    );
    const mayRun =
      request.values["validation"] !== "require-all-validate" || judged.every(({ verdict }) => verdict.ok);
    const responses: Json[] = [];
    let characters = 0;
    for (const item of judged) {
      const response = mayRun || !item.verdict.ok ? envelope(await run(item, characters), item) : null;
      responses.push(response);
      characters += estimateSize(response);
    }
    const json: JsonObject = mayRun ? { responses } : { failed: "validation", responses };
    return { status: 207, headers: {}, body: { json } };
  };

  return {
    namespace: "",
    path: "/batch/v1",
    endpoints: [{ methods: ["POST"], args: ARGUMENTS, described: DESCRIBED, permit: () => {}, handle }],
  };
}

/** An item as a call of its own: its answer depends on nothing but itself and the caller. */
function judge(
  dispatcher: Pick<RouteDispatcher, "find" | "judge">,
  item: JsonObject,
  request: RestRequest,
): ValidatedCall {
  const target = item["path"] as string;
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  const match = dispatcher.find(splitPath(path));
  const method = (item["method"] as string | undefined) ?? "POST";
  const call: RouteCall = {
    method,
    path,
    match,
    query: {},
    body: objectOf(item["body"]),
    headers: headersOf(objectOf(item["headers"])),
    caller: request.caller,
    baseUrl: request.url(""),
    fault: faultOf(match?.row.byMethod.get(method), item["body"]),
  };
  try {
    if (ELSEWHERE.test(target)) throw new RestError(400, "parse_path_failed", "Could not parse the path.");
    const query = readQuery(mark === -1 ? "" : target.slice(mark + 1));
    return dispatcher.judge({ ...call, query });
  } catch (error) {
    return { call, endpoint: undefined, verdict: { ok: false, error } };
  }
}

/** Why the item cannot be answered whatever its arguments are. A list as its body is refused as it is outside of a batch, unless it is empty. */
function faultOf(endpoint: RestEndpoint | undefined, body: Json | undefined): RestError | undefined {
  if (endpoint?.allowBatch !== true) return notAllowed();
  return isFilledList(body) ? (endpoint.noObject ?? noJsonObject)() : undefined;
}

/** A URL with a scheme or a host: an item names a path of this interface. */
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;

const notAllowed = (): RestError =>
  new RestError(400, "rest_batch_not_allowed", "The requested route does not support batch requests.");

/** A list has no members. */
const objectOf = (value: Json | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? mergeParameters(value as JsonObject, {})
    : {};

function headersOf(given: JsonObject): RestRequest["headers"] {
  const headers: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(given)) {
    headers[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : (value as string);
  }
  return headers;
}
