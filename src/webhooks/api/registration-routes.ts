/** The routes that register, list, change and delete webhooks. */

import { isPostbellError } from "../../core/errors.js";
import type { Route } from "../../http/router.js";
import type { HttpRequest } from "../../http/types.js";
import type { Deliveries } from "../delivery/deliveries.js";
import type { Registrations } from "../registrations/registrations.js";
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

export interface RegistrationRoutesContext {
  readonly registrations: Registrations;
  readonly deliveries: Pick<Deliveries, "stats">;
  /** Returns the webhook of the path. Rejects with `not_found` if it belongs to another account. */
  readonly findWebhook: (call: ApiRequest) => Promise<Webhook>;
  readonly bodies: BodyReader;
}

/** The webhook with the properties of the OpenAPI document, and no others. */
const toResource = ({ id, status, url, createdDate, updatedDate }: Webhook) => ({
  id,
  status,
  url,
  createdDate,
  updatedDate,
});

function readIdempotencyKey(headers: HttpRequest["headers"]): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw invalidRequest("Idempotency-Key", "Idempotency-Key must be 1 to 255 visible ASCII characters.");
}

const MAX_OVERLAP_SECONDS = 604_800;

/** Converts `overlap_seconds` to milliseconds. */
function parseOverlap(seconds: unknown): number | undefined {
  if (seconds === undefined) return undefined;
  if (Number.isInteger(seconds) && (seconds as number) >= 0 && (seconds as number) <= MAX_OVERLAP_SECONDS)
    return (seconds as number) * 1000;
  throw invalidRequest(
    "overlap_seconds",
    `overlap_seconds must be a whole number of seconds from 0 to ${MAX_OVERLAP_SECONDS} (7 days).`,
  );
}

type Change = Parameters<Registrations["update"]>[1];

function parseChange(body: unknown): Change {
  const { url, status, event_types } = parseBodyFields(body, operations.updateWebhook.body);
  if (url === undefined) throw invalidRequest("url", "url is missing: an update needs url and status.");
  if (status === undefined) throw invalidRequest("status", "status is missing: ENABLED or DISABLED.");
  return {
    url: url as string,
    status: status as Webhook["status"],
    eventTypes: event_types as readonly string[] | undefined,
  };
}

const INCLUDED = ["stats", "event_types"] as const;
type Included = Readonly<Record<(typeof INCLUDED)[number], boolean>>;

/** The webhook with what a request asked to include. */
async function toFullResource(deliveries: Pick<Deliveries, "stats">, webhook: Webhook, include: Included) {
  return {
    ...toResource(webhook),
    // In the form that an update accepts, so that a record that was read can be sent back.
    ...(include.event_types && { event_types: webhook.eventTypes ?? ["*"] }),
    ...(include.stats && { stats: await deliveries.stats({ webhookId: webhook.id }) }),
  };
}

/** Leaves out webhooks that were deleted since the list was read. */
async function toFullResources(
  deliveries: Pick<Deliveries, "stats">,
  webhooks: readonly Webhook[],
  include: Included,
) {
  const read = async (webhook: Webhook) => {
    try {
      return [await toFullResource(deliveries, webhook, include)];
    } catch (error) {
      if (isPostbellError(error, "not_found")) return [];
      throw error;
    }
  };
  return (await Promise.all(webhooks.map(read))).flat();
}

export function registrationRoutes({
  registrations,
  deliveries,
  findWebhook,
  bodies,
}: RegistrationRoutesContext): readonly Route<ApiRequest>[] {
  return [
    {
      ...operations.createWebhook,
      async handle({ request, subscriber }) {
        const idempotencyKey = readIdempotencyKey(request.headers);
        const { url, event_types } = parseBodyFields(
          await bodies.read(request),
          operations.createWebhook.body,
        );
        const { webhook, secret } = await registrations.create(subscriber, {
          url: url as string,
          eventTypes: event_types as readonly string[] | undefined,
          idempotencyKey,
        });
        const location = `${request.baseUrl}/v1/webhooks/${webhook.id}`;
        return toJsonResponse(201, { webhook: toResource(webhook), secret }, { location });
      },
    },
    {
      ...operations.listWebhooks,
      async handle({ request, subscriber, charge }) {
        const query = new URLSearchParams(request.query);
        const include = parseInclude(query, INCLUDED);
        const page = { account: subscriber.account, ...parsePage(query) };
        const { webhooks, next } = await registrations.list(page);
        if (include.stats) charge(webhooks.length);
        return toJsonResponse(200, { webhooks: await toFullResources(deliveries, webhooks, include), next });
      },
    },
    {
      ...operations.readWebhook,
      async handle(call) {
        const include = parseInclude(new URLSearchParams(call.request.query), INCLUDED);
        return toJsonResponse(200, await toFullResource(deliveries, await findWebhook(call), include));
      },
    },
    {
      ...operations.updateWebhook,
      async handle(call) {
        const { id } = await findWebhook(call);
        const change = parseChange(await bodies.read(call.request));
        const webhook = await registrations.update(id, change, { as: call.subscriber });
        return toJsonResponse(200, toResource(webhook));
      },
    },
    {
      ...operations.deleteWebhook,
      async handle(call) {
        await registrations.remove(call.parameter("webhookId"), { as: call.subscriber });
        return toJsonResponse(200, { message: "The webhook was deleted." });
      },
    },
    {
      ...operations.rotateSecret,
      async handle(call) {
        const { id } = await findWebhook(call);
        const body = await bodies.readOptional(call.request);
        const { overlap_seconds } = parseBodyFields(body, operations.rotateSecret.body);
        const overlapMs = parseOverlap(overlap_seconds);
        return toJsonResponse(200, await registrations.rotateSecret(id, { overlapMs, as: call.subscriber }));
      },
    },
    {
      ...operations.finishRotation,
      async handle(call) {
        const { id } = await findWebhook(call);
        await registrations.finishRotation(id, { as: call.subscriber });
        return toJsonResponse(200, { message: "Only the new secret signs from now on." });
      },
    },
  ];
}
