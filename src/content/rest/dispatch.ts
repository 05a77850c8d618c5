/**
 * Runs a matched call through its stages: validate, authorise, execute. Knows no HTTP message and
 * no record.
 */

import type { Logger } from "../../core/logger.js";
import { findRefusal, listAllowedMethods } from "./authorise.js";
import { noRoute, RestError } from "./error.js";
import { createErrorOutcomes } from "./error-outcome.js";
import { describePath } from "./index-routes.js";
import type { RouteCall, RouteOutcome, RouteRow, ValidatedCall } from "./route-call.js";
import type { RouteTable } from "./route-table.js";
import { validateCall } from "./validate-call.js";

export interface RouteDispatcher {
  readonly find: RouteTable["find"];
  /** Authorises and executes a call. Never rejects: an error becomes the outcome. */
  readonly run: (validated: ValidatedCall) => Promise<RouteOutcome>;
  /** Validates a call, then runs it. */
  readonly dispatch: (call: RouteCall) => Promise<RouteOutcome>;
  /** Returns the outcome for something that was thrown; logs what is not the caller's fault. */
  readonly fail: (error: unknown) => RouteOutcome;
}

export function createRouteDispatcher(
  { find }: Pick<RouteTable, "find">,
  { logger }: { readonly logger: Logger },
): RouteDispatcher {
  const fail = createErrorOutcomes(logger);

  const execute = async ({ call, endpoint, result }: ValidatedCall): Promise<RouteOutcome> => {
    if (endpoint === undefined) return fail(result.ok ? noRoute() : result.error);
    try {
      if (!result.ok) {
        const refusal = isTooLarge(call.fault) ? await findRefusal(call, endpoint) : undefined;
        return fail(refusal ?? result.error);
      }
      await endpoint.permit(result.request);
      return { ...(await endpoint.handle(result.sanitised())), isError: false };
    } catch (error) {
      return fail(error);
    }
  };

  const run = async (validated: ValidatedCall): Promise<RouteOutcome> => {
    const { call, endpoint } = validated;
    const row = call.match?.row;
    const isOptions = call.method === "OPTIONS";
    const outcome = isOptions ? describe(call, row) : await execute(validated);
    const isKnown = row !== undefined && (endpoint !== undefined || isOptions);
    if (!isKnown || outcome.status === 500 || outcome.status === 503) return outcome;
    const allow = await listAllowedMethods(validated, row, call.method === "GET" && !outcome.isError);
    return allow === "" ? outcome : { ...outcome, headers: { ...outcome.headers, allow } };
  };

  return { find, run, dispatch: (call) => run(validateCall(call)), fail };
}

const isTooLarge = (error: unknown): boolean => error instanceof RestError && error.status === 413;

/** The response to OPTIONS. For an unknown path it is an empty list, as in WordPress. */
const describe = (call: RouteCall, row: RouteRow | undefined): RouteOutcome => ({
  status: 200,
  headers: {},
  body: { json: row === undefined ? [] : describePath(row.route, call.baseUrl) },
  isError: false,
});
