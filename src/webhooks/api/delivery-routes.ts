/** The routes that show and repair the deliveries of a webhook. The log contains no records. */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import type { Route } from "../../http/router.js";
import { notFound } from "../call-arguments.js";
import type { Deliveries, Delivery } from "../delivery/deliveries.js";
import { parseDeliveryId } from "../delivery/delivery-id.js";
import type { Webhook } from "../webhook.js";
import {
  type ApiRequest,
  invalidRequest,
  parseBodyFields,
  parseInclude,
  parsePage,
  toJsonResponse,
} from "./api-request.js";
import { operations } from "./operations.js";
import type { BodyReader } from "./request-body.js";

export interface DeliveryRoutesContext {
  readonly deliveries: Deliveries;
  /** Returns the webhook of the path. Rejects with `not_found` if it belongs to another account. */
  readonly findWebhook: (call: ApiRequest) => Promise<Webhook>;
  readonly bodies: BodyReader;
}

/**
 * A delivery in a list. Its attempts are left out unless they were asked for, and excerpts of
 * responses in any case: they can be long.
 */
function toRow({ attempts, ...delivery }: Delivery, isWithAttempts: boolean) {
  const withoutExcerpts = attempts.map((attempt) => ({ ...attempt, excerpt: null }));
  const last = attempts.at(-1);
  return {
    ...delivery,
    attemptCount: attempts.length,
    lastAttempt: last
      ? { at: last.at, kind: last.kind, status: last.status, code: last.code, durationMs: last.durationMs }
      : null,
    ...(isWithAttempts && { attempts: withoutExcerpts }),
  };
}

/** Renames the field of an error to the name that the request uses. */
async function renameErrorField<T>(names: Readonly<Record<string, string>>, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const name = isPostbellError(error) && names[error.field ?? ""];
    if (!name) throw error;
    const { code, message } = error;
    throw new PostbellError(code, message, { field: name, cause: error });
  }
}

export function deliveryRoutes({
  deliveries,
  findWebhook,
  bodies,
}: DeliveryRoutesContext): readonly Route<ApiRequest>[] {
  /** Returns the id of the path. Throws `not_found` for a delivery of another webhook. */
  const findDeliveryId = async (call: ApiRequest): Promise<string> => {
    const webhook = await findWebhook(call);
    const id = call.parameter("deliveryId");
    if (parseDeliveryId(id)?.webhookId !== webhook.id) throw notFound("delivery");
    return id;
  };

  return [
    {
      ...operations.listDeliveries,
      async handle(call) {
        const { id: webhookId } = await findWebhook(call);
        const query = new URLSearchParams(call.request.query);
        const { attempts: isWithAttempts } = parseInclude(query, ["attempts"]);
        const page = deliveries.list({
          webhookId,
          eventId: query.get("event_id") ?? undefined,
          state: (query.get("state") ?? undefined) as Delivery["state"] | undefined,
          type: query.get("type") ?? undefined,
          since: query.get("since") ?? undefined,
          until: query.get("until") ?? undefined,
          ...parsePage(query),
          as: call.subscriber,
        });
        const { deliveries: found, next } = await renameErrorField({ eventId: "event_id" }, page);
        const rows = found.map((delivery) => toRow(delivery, isWithAttempts));
        return toJsonResponse(200, { deliveries: rows, next });
      },
    },
    {
      ...operations.readDelivery,
      async handle(call) {
        const id = await findDeliveryId(call);
        return toJsonResponse(200, await deliveries.get(id, { as: call.subscriber }));
      },
    },
    {
      ...operations.readDeliveryRequest,
      async handle(call) {
        const id = await findDeliveryId(call);
        const { body: includeBody } = parseInclude(new URLSearchParams(call.request.query), ["body"]);
        return toJsonResponse(200, await deliveries.request(id, { includeBody, as: call.subscriber }));
      },
    },
    {
      ...operations.resendDelivery,
      async handle(call) {
        const id = await findDeliveryId(call);
        const body = await bodies.readOptional(call.request);
        const { force } = parseBodyFields(body, operations.resendDelivery.body);
        const resent = deliveries.resend(id, {
          force: force as boolean | undefined,
          as: call.subscriber,
        });
        return toJsonResponse(202, await resent);
      },
    },
    {
      ...operations.recoverDeliveries,
      async handle(call) {
        const { id: webhookId } = await findWebhook(call);
        const body = await bodies.read(call.request);
        const { since } = parseBodyFields(body, operations.recoverDeliveries.body);
        if (since === undefined) {
          throw invalidRequest("since", "since is missing: the time to recover from, in ISO 8601.");
        }
        const recovery = { webhookId, since: since as string, as: call.subscriber };
        return toJsonResponse(202, await deliveries.recover(recovery));
      },
    },
    {
      ...operations.testWebhook,
      async handle(call) {
        const { id: webhookId } = await findWebhook(call);
        const body = await bodies.readOptional(call.request);
        const { event_type } = parseBodyFields(body, operations.testWebhook.body);
        const type = event_type as string | undefined;
        const test = deliveries.test({ webhookId, type, as: call.subscriber });
        return toJsonResponse(202, await renameErrorField({ type: "event_type" }, test));
      },
    },
    {
      ...operations.readStats,
      async handle(call) {
        const { id: webhookId } = await findWebhook(call);
        return toJsonResponse(200, await deliveries.stats({ webhookId }));
      },
    },
  ];
}
