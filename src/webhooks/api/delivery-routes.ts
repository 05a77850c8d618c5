/** The rows of the registration API that show a webhook's deliveries and repair them. Knows no record: the log holds none. */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import type { Route } from "../../http/router.js";
import type { HttpRequest } from "../../http/types.js";
import { notFound } from "../call-arguments.js";
import { parseDeliveryId } from "../delivery/delivery-id.js";
import type { Deliveries, Delivery } from "../delivery/delivery-log.js";
import type { Registrations } from "../registrations/registrations.js";
import type { Webhook } from "../webhook.js";
import { type ApiRequest, invalidRequest, readFields, readPage, toJsonResponse } from "./call.js";
import { operations } from "./operations.js";

export interface DeliveryRoutesContext {
  readonly registrations: Registrations;
  readonly deliveries: Deliveries;
  readonly eventTypes: readonly string[];
  /** The webhook of the path, if it is the caller's account's; else it rejects with `not_found`. */
  readonly ownWebhook: (call: ApiRequest) => Promise<Webhook>;
  readonly readBody: (request: HttpRequest) => Promise<unknown>;
  /** The same where no body stands for one without fields. */
  readonly readOptionalBody: (request: HttpRequest) => Promise<unknown>;
}

/** A row of the list: the attempts, of which there may be many with long answers, are in the delivery itself. */
function toRow({ attempts, ...delivery }: Delivery) {
  const last = attempts.at(-1);
  return {
    ...delivery,
    attemptCount: attempts.length,
    lastAttempt: last ? { at: last.at, kind: last.kind, status: last.status, code: last.code } : null,
  };
}

/** Lets an error name the field as the request has it. */
const naming = async <T>(names: Readonly<Record<string, string>>, asked: Promise<T>): Promise<T> => {
  try {
    return await asked;
  } catch (error) {
    const name = isPostbellError(error) && names[error.field ?? ""];
    if (!name) throw error;
    const { code, message } = error;
    throw new PostbellError(code, message, { field: name, cause: error });
  }
};

const MOST_OVERLAP_SECONDS = 604_800;

function readOverlap(seconds: unknown): number | undefined {
  if (seconds === undefined) return undefined;
  if (Number.isInteger(seconds) && (seconds as number) >= 0 && (seconds as number) <= MOST_OVERLAP_SECONDS)
    return (seconds as number) * 1000;
  throw invalidRequest(
    "overlap_seconds",
    `overlap_seconds must be a whole number of seconds from 0 to ${MOST_OVERLAP_SECONDS}, which is 7 days.`,
  );
}

export function deliveryRoutes({
  registrations,
  deliveries,
  eventTypes,
  ownWebhook,
  readBody,
  readOptionalBody,
}: DeliveryRoutesContext): readonly Route<ApiRequest>[] {
  /** The id of the path, if it is one of a delivery of this webhook: one of another webhook is answered like one that does not exist. */
  const ownDelivery = async (call: ApiRequest): Promise<string> => {
    const webhook = await ownWebhook(call);
    const id = call.parameter("deliveryId");
    if (parseDeliveryId(id)?.webhookId !== webhook.id) throw notFound("delivery");
    return id;
  };

  return [
    {
      ...operations.listEventTypes,
      handle: async () => toJsonResponse(200, { eventTypes }),
    },
    {
      ...operations.listDeliveries,
      async handle(call) {
        const { id: webhookId } = await ownWebhook(call);
        const query = new URLSearchParams(call.request.query);
        // As the host: a row has no excerpts, so `canActFor` need not be asked about them.
        const page = await deliveries.list({
          webhookId,
          state: (query.get("state") ?? undefined) as Delivery["state"] | undefined,
          type: query.get("type") ?? undefined,
          since: query.get("since") ?? undefined,
          until: query.get("until") ?? undefined,
          ...readPage(query),
        });
        return toJsonResponse(200, { deliveries: page.deliveries.map(toRow), next: page.next });
      },
    },
    {
      ...operations.readDelivery,
      async handle(call) {
        return toJsonResponse(200, await deliveries.get(await ownDelivery(call), { as: call.subscriber }));
      },
    },
    {
      ...operations.resendDelivery,
      async handle(call) {
        return toJsonResponse(202, await deliveries.resend(await ownDelivery(call), { as: call.subscriber }));
      },
    },
    {
      ...operations.recoverDeliveries,
      async handle(call) {
        const { id: webhookId } = await ownWebhook(call);
        const { since } = readFields(await readBody(call.request), operations.recoverDeliveries.body);
        if (since === undefined)
          throw invalidRequest("since", "since is missing: from when on to recover, in ISO 8601.");
        return toJsonResponse(
          202,
          await deliveries.recover({ webhookId, since: since as string, as: call.subscriber }),
        );
      },
    },
    {
      ...operations.testWebhook,
      async handle(call) {
        const { id: webhookId } = await ownWebhook(call);
        const { event_type } = readFields(await readOptionalBody(call.request), operations.testWebhook.body);
        const type = event_type as string | undefined;
        const asked = deliveries.test({ webhookId, type, as: call.subscriber });
        return toJsonResponse(202, await naming({ type: "event_type" }, asked));
      },
    },
    {
      ...operations.rotateSecret,
      async handle(call) {
        const { id } = await ownWebhook(call);
        const { overlap_seconds } = readFields(
          await readOptionalBody(call.request),
          operations.rotateSecret.body,
        );
        const overlapMs = readOverlap(overlap_seconds);
        return toJsonResponse(200, await registrations.rotateSecret(id, { overlapMs, as: call.subscriber }));
      },
    },
    {
      ...operations.readStats,
      async handle(call) {
        const { id: webhookId } = await ownWebhook(call);
        return toJsonResponse(200, await deliveries.stats({ webhookId }));
      },
    },
  ];
}
