/**
 * The API routes for webhooks: the calls that a host has in-process, restricted to the webhooks of
 * the visitor's account.
 */

import type { Clock } from "../src/core/clock.js";
import { invalidField } from "../src/core/invalid-field.js";
import type { DeliveryState, WebhookStatus } from "../src/webhooks/store.js";
import { type ApiCall, type ApiRoute, jsonResponse } from "./api.js";
import type { PortalWebhooks } from "./options.js";
import { createWebhookAccess, toWebhookJson, type WebhookAccess } from "./webhook-access.js";

/** Returns a filter of a list, or `undefined` if it is missing or an empty form field. */
const getFilter = (query: URLSearchParams, name: string): string | undefined => query.get(name) || undefined;

function parseLimit(query: URLSearchParams): number | undefined {
  const limit = getFilter(query, "limit");
  if (limit === undefined) return undefined;
  if (!/^[0-9]{1,3}$/.test(limit)) throw invalidField("limit", "limit must be a whole number from 1 to 100.");
  return Number(limit);
}

/**
 * Reads the fields of a body, which must all be known: a misspelt `eventTypes` must not subscribe
 * to everything.
 */
async function readFields(
  call: ApiCall,
  names: readonly string[],
): Promise<Readonly<Record<string, unknown>>> {
  const fields = await call.fields();
  const other = Object.keys(fields).find((name) => !names.includes(name));
  if (other !== undefined)
    throw invalidField(other.slice(0, 40), `There is no field '${other.slice(0, 40)}'.`);
  return fields;
}

/** The routes of the collection: event types, list, create. */
function collectionRoutes({ webhooks, admit, charge, withStats }: WebhookAccess): readonly ApiRoute[] {
  const { registrations } = webhooks;
  return [
    {
      method: "GET",
      path: "/api/event-types",
      async handle(call) {
        admit(call);
        return jsonResponse(200, { eventTypes: webhooks.eventTypes() });
      },
    },
    {
      method: "GET",
      path: "/api/webhooks",
      async handle(call) {
        const { account } = admit(call);
        const { webhooks: found, next } = await registrations.list({
          account,
          cursor: getFilter(call.query, "cursor"),
          limit: parseLimit(call.query),
        });
        // Each row reads the counts of its webhook, as a request for that webhook does.
        charge(account, found.length);
        return jsonResponse(200, { webhooks: await Promise.all(found.map(withStats)), next });
      },
    },
    {
      method: "POST",
      path: "/api/webhooks",
      async handle(call) {
        const subscriber = admit(call);
        const { url, eventTypes: types } = await readFields(call, ["url", "eventTypes"]);
        const { webhook, secret } = await registrations.create(subscriber, {
          url: url as string,
          eventTypes: types as readonly string[] | undefined,
        });
        return jsonResponse(201, { webhook: toWebhookJson(webhook), secret });
      },
    },
  ];
}

/** The routes of one webhook: read, change, remove. */
function registrationRoutes({
  webhooks,
  clock,
  admit,
  readWebhook,
  withStats,
}: WebhookAccess): readonly ApiRoute[] {
  const { registrations, schedule } = webhooks;
  return [
    {
      method: "GET",
      path: "/api/webhooks/:webhookId",
      async handle(call) {
        const found = await withStats((await readWebhook(call)).webhook);
        return jsonResponse(200, { ...found, schedule, now: new Date(clock.now()).toISOString() });
      },
    },
    {
      method: "PUT",
      path: "/api/webhooks/:webhookId",
      async handle(call) {
        const { webhook, as } = await readWebhook(call);
        const { url, status, eventTypes: types } = await readFields(call, ["url", "status", "eventTypes"]);
        const change = {
          url: url as string | undefined,
          status: status as WebhookStatus | undefined,
          eventTypes: types as readonly string[] | undefined,
        };
        return jsonResponse(200, toWebhookJson(await registrations.update(webhook.id, change, { as })));
      },
    },
    {
      method: "DELETE",
      path: "/api/webhooks/:webhookId",
      async handle(call) {
        await registrations.remove(call.parameter("webhookId"), { as: admit(call) });
        return jsonResponse(200, {});
      },
    },
  ];
}

/** The actions of one webhook: rotate, test, recover. */
function actionRoutes({
  webhooks: { registrations, deliveries },
  readWebhook,
}: WebhookAccess): readonly ApiRoute[] {
  return [
    {
      method: "POST",
      path: "/api/webhooks/:webhookId/rotate",
      async handle(call) {
        const { webhook, as } = await readWebhook(call);
        const { overlapMs } = await readFields(call, ["overlapMs"]);
        const { secret } = await registrations.rotateSecret(webhook.id, {
          overlapMs: overlapMs as number | undefined,
          as,
        });
        return jsonResponse(200, { secret });
      },
    },
    {
      method: "POST",
      path: "/api/webhooks/:webhookId/test",
      async handle(call) {
        const { webhook, as } = await readWebhook(call);
        const { type } = await readFields(call, ["type"]);
        return jsonResponse(
          202,
          await deliveries.test({ webhookId: webhook.id, type: type as string | undefined, as }),
        );
      },
    },
    {
      method: "POST",
      path: "/api/webhooks/:webhookId/recover",
      async handle(call) {
        const { webhook, as } = await readWebhook(call);
        const { since } = await readFields(call, ["since"]);
        if (typeof since !== "string")
          throw invalidField("since", "since is missing: give the time from which to recover.");
        return jsonResponse(202, await deliveries.recover({ webhookId: webhook.id, since, as }));
      },
    },
  ];
}

/** The routes of the delivery log: list, read, resend. */
function deliveryRoutes({
  webhooks: { deliveries },
  readWebhook,
  readDelivery,
}: WebhookAccess): readonly ApiRoute[] {
  return [
    {
      method: "GET",
      path: "/api/webhooks/:webhookId/deliveries",
      async handle(call) {
        const { webhook, as } = await readWebhook(call);
        const { query } = call;
        const page = await deliveries.list({
          webhookId: webhook.id,
          state: getFilter(query, "state") as DeliveryState | undefined,
          type: getFilter(query, "type"),
          since: getFilter(query, "since"),
          until: getFilter(query, "until"),
          cursor: getFilter(query, "cursor"),
          limit: parseLimit(query),
          as,
        });
        return jsonResponse(200, page);
      },
    },
    {
      method: "GET",
      path: "/api/webhooks/:webhookId/deliveries/:deliveryId",
      async handle(call) {
        const { webhook, delivery } = await readDelivery(call);
        return jsonResponse(200, { webhook: toWebhookJson(webhook), delivery });
      },
    },
    {
      method: "POST",
      path: "/api/webhooks/:webhookId/deliveries/:deliveryId/resend",
      async handle(call) {
        const { delivery, as } = await readDelivery(call);
        return jsonResponse(202, await deliveries.resend(delivery.id, { as }));
      },
    },
  ];
}

/** Returns the API routes for webhooks. `requestsPerMinute` is the limit of an account. */
export function webhookRoutes(
  webhooks: PortalWebhooks,
  limits: { readonly clock: Clock; readonly requestsPerMinute: number },
): readonly ApiRoute[] {
  const access = createWebhookAccess(webhooks, limits);
  return [
    ...collectionRoutes(access),
    ...registrationRoutes(access),
    ...actionRoutes(access),
    ...deliveryRoutes(access),
  ];
}
