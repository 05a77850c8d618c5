/** The API routes for webhooks: the same calls that the host has in-process, for webhooks of the visitor's account only. */

import type { Clock } from "../src/core/clock.js";
import { PostbellError } from "../src/core/errors.js";
import { createRateLimit } from "../src/http/rate-limit.js";
import { notFound } from "../src/webhooks/call-arguments.js";
import type { DeliveryState, WebhookStatus } from "../src/webhooks/store.js";
import type { Webhook } from "../src/webhooks/webhook.js";
import { type ApiCall, type ApiRoute, invalidField, jsonResponse } from "./api.js";
import type { PortalWebhooks } from "./options.js";
import type { WebhookJson } from "./shapes.js";

const toJson = ({ id, url, status, eventTypes, createdDate, updatedDate }: Webhook): WebhookJson => ({
  id,
  url,
  status,
  eventTypes,
  createdDate,
  updatedDate,
});

/** A filter of a list, where one is given: an empty field of a form is none. */
const filterOf = (query: URLSearchParams, name: string): string | undefined => query.get(name) || undefined;

function limitOf(query: URLSearchParams): number | undefined {
  const limit = filterOf(query, "limit");
  if (limit === undefined) return undefined;
  if (!/^[0-9]{1,3}$/.test(limit)) throw invalidField("limit", "limit must be a whole number from 1 to 100.");
  return Number(limit);
}

/** Of the fields of a body those that are known, so that a slip of the pen does not subscribe to everything. */
async function known(call: ApiCall, names: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const fields = await call.fields();
  const other = Object.keys(fields).find((name) => !names.includes(name));
  if (other !== undefined)
    throw invalidField(other.slice(0, 40), `There is no field '${other.slice(0, 40)}'.`);
  return fields;
}

export function webhookRoutes(
  webhooks: PortalWebhooks,
  { clock, requestsPerMinute }: { readonly clock: Clock; readonly requestsPerMinute: number },
): readonly ApiRoute[] {
  const { registrations, deliveries, schedule } = webhooks;
  const accounts = createRateLimit({ perMinute: requestsPerMinute, clock });

  /** Every route begins with it, before it reads a body or the storage, so that each request counts once. */
  const subscriberOf = ({ visitor }: ApiCall) => {
    if (!visitor.subscriber) throw notFound("webhook");
    const seconds = accounts.take(visitor.subscriber.account);
    if (seconds === 0) return visitor.subscriber;
    throw new PostbellError(
      "rate_limited",
      `This account sends too many requests; try again in ${seconds} s.`,
      { retryAfterSeconds: seconds },
    );
  };

  /** The webhook of the path, if it is the visitor's account's, and as whom to go on. */
  const own = async (call: ApiCall) => {
    const as = subscriberOf(call);
    return { webhook: await registrations.get(call.parameter("webhookId"), { as }), as };
  };

  const ownDelivery = async (call: ApiCall) => {
    const { webhook, as } = await own(call);
    const delivery = await deliveries.get(call.parameter("deliveryId"), { as });
    if (delivery.webhookId !== webhook.id) throw notFound("delivery");
    return { webhook, delivery, as };
  };

  const withStats = async (webhook: Webhook) => ({
    webhook: toJson(webhook),
    stats: await deliveries.stats({ webhookId: webhook.id }),
  });

  return [
    {
      method: "GET",
      path: "/api/event-types",
      async handle(call) {
        subscriberOf(call);
        return jsonResponse(200, { eventTypes: webhooks.eventTypes() });
      },
    },
    {
      method: "GET",
      path: "/api/webhooks",
      async handle(call) {
        const { account } = subscriberOf(call);
        const { webhooks: found, next } = await registrations.list({
          account,
          cursor: filterOf(call.query, "cursor"),
          limit: limitOf(call.query),
        });
        // Each row reads the figures of its webhook, as a request for that webhook does.
        accounts.charge(account, found.length);
        return jsonResponse(200, { webhooks: await Promise.all(found.map(withStats)), next });
      },
    },
    {
      method: "POST",
      path: "/api/webhooks",
      async handle(call) {
        const subscriber = subscriberOf(call);
        const { url, eventTypes: types } = await known(call, ["url", "eventTypes"]);
        const { webhook, secret } = await registrations.create(subscriber, {
          url: url as string,
          eventTypes: types as readonly string[] | undefined,
        });
        return jsonResponse(201, { webhook: toJson(webhook), secret });
      },
    },
    {
      method: "GET",
      path: "/api/webhooks/:webhookId",
      async handle(call) {
        const found = await withStats((await own(call)).webhook);
        return jsonResponse(200, { ...found, schedule, now: new Date(clock.now()).toISOString() });
      },
    },
    {
      method: "PUT",
      path: "/api/webhooks/:webhookId",
      async handle(call) {
        const { webhook, as } = await own(call);
        const { url, status, eventTypes: types } = await known(call, ["url", "status", "eventTypes"]);
        const change = {
          url: url as string | undefined,
          status: status as WebhookStatus | undefined,
          eventTypes: types as readonly string[] | undefined,
        };
        return jsonResponse(200, toJson(await registrations.update(webhook.id, change, { as })));
      },
    },
    {
      method: "DELETE",
      path: "/api/webhooks/:webhookId",
      async handle(call) {
        await registrations.remove(call.parameter("webhookId"), { as: subscriberOf(call) });
        return jsonResponse(200, {});
      },
    },
    {
      method: "POST",
      path: "/api/webhooks/:webhookId/rotate",
      async handle(call) {
        const { webhook, as } = await own(call);
        const { overlapMs } = await known(call, ["overlapMs"]);
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
        const { webhook, as } = await own(call);
        const { type } = await known(call, ["type"]);
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
        const { webhook, as } = await own(call);
        const { since } = await known(call, ["since"]);
        if (typeof since !== "string") throw invalidField("since", "since is missing: say from when on.");
        return jsonResponse(202, await deliveries.recover({ webhookId: webhook.id, since, as }));
      },
    },
    {
      method: "GET",
      path: "/api/webhooks/:webhookId/deliveries",
      async handle(call) {
        const { webhook, as } = await own(call);
        const { query } = call;
        const page = await deliveries.list({
          webhookId: webhook.id,
          state: filterOf(query, "state") as DeliveryState | undefined,
          type: filterOf(query, "type"),
          since: filterOf(query, "since"),
          until: filterOf(query, "until"),
          cursor: filterOf(query, "cursor"),
          limit: limitOf(query),
          as,
        });
        return jsonResponse(200, page);
      },
    },
    {
      method: "GET",
      path: "/api/webhooks/:webhookId/deliveries/:deliveryId",
      async handle(call) {
        const { webhook, delivery } = await ownDelivery(call);
        return jsonResponse(200, { webhook: toJson(webhook), delivery });
      },
    },
    {
      method: "POST",
      path: "/api/webhooks/:webhookId/deliveries/:deliveryId/resend",
      async handle(call) {
        const { delivery, as } = await ownDelivery(call);
        return jsonResponse(202, await deliveries.resend(delivery.id, { as }));
      },
    },
  ];
}
