/** The calls of the webhook API that the views share. */

import type {
  AttemptJson,
  DeliveryJson,
  DeliveryPageJson,
  DeliveryRequestJson,
  DeliveryRowJson,
  DeliveryStateJson,
  SubscriptionPageJson,
  WebhookJson,
  WebhookListJson,
  WebhookWithStatsJson,
} from "../../shapes.js";
import type { Api } from "../api.js";
import type { Target } from "../tone.js";
import { nameWebhook, needsAttention, splitUrl } from "./wording.js";

/** The parts of a webhook that the page reads in addition to the documented record. */
export const WEBHOOK_PARTS = "stats,details";

export const webhookPath = (webhookId: string): string => `v1/webhooks/${encodeURIComponent(webhookId)}`;
export const deliveryPath = (webhookId: string, deliveryId: string): string =>
  `${webhookPath(webhookId)}/deliveries/${encodeURIComponent(deliveryId)}`;
/** The address of a delivery on this page. */
export const deliveryLink = ({ webhookId, id }: { webhookId: string; id: string }): string =>
  `#/webhooks/${webhookId}/deliveries/${encodeURIComponent(id)}`;

export interface DeliveryFilter {
  state?: DeliveryStateJson | undefined;
  type?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  eventId?: string | undefined;
  /** Exactly as the event has it. The service finds it by an index. */
  subject?: string | undefined;
}

/**
 * A page may be short or empty before the end. Twenty pages examine ten thousand events, the most
 * that an account keeps by default.
 */
const MAX_PAGES = 20;

interface PageOptions {
  limit: number;
  cursor?: string | undefined;
  /** Reads the attempts of each delivery too. */
  withAttempts?: boolean;
}

/** Reads one page, which may be short before the end. */
export const readPage = (
  { get }: { get: Api["get"] },
  webhookId: string | undefined,
  { eventId, ...filter }: DeliveryFilter,
  { limit, cursor, withAttempts = false }: PageOptions,
): Promise<DeliveryPageJson> =>
  get(webhookId === undefined ? "v1/deliveries" : `${webhookPath(webhookId)}/deliveries`, {
    ...filter,
    event_id: eventId,
    include: withAttempts ? "attempts" : undefined,
    cursor,
    limit,
  });

/**
 * Finds up to `limit` deliveries, newest first, page by page. Without a `webhookId`: of all
 * webhooks of the account.
 */
export async function findDeliveries(
  api: { get: Api["get"] },
  webhookId: string | undefined,
  filter: DeliveryFilter,
  options: PageOptions,
): Promise<DeliveryPageJson> {
  const deliveries: DeliveryRowJson[] = [];
  let { cursor } = options;
  for (let pages = 1; ; pages += 1) {
    const limit = options.limit - deliveries.length;
    const page = await readPage(api, webhookId, filter, { ...options, cursor, limit });
    deliveries.push(...page.deliveries);
    if (page.next === null || deliveries.length >= options.limit || pages === MAX_PAGES)
      return { deliveries, next: page.next };
    cursor = page.next;
  }
}

/** Reads all webhooks of the account, by id. */
export async function readAllWebhooks({ get }: Api): Promise<Map<string, WebhookWithStatsJson>> {
  const found = new Map<string, WebhookWithStatsJson>();
  let cursor: string | undefined;
  do {
    const query = { include: WEBHOOK_PARTS, cursor, limit: 100 };
    const page: WebhookListJson = await get("v1/webhooks", query);
    for (const webhook of page.webhooks) found.set(webhook.id, webhook);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return found;
}

/** Reads the webhooks of the account with their event types. */
export async function readSubscriptions({
  get,
}: {
  get: Api["get"];
}): Promise<SubscriptionPageJson["webhooks"]> {
  const webhooks: SubscriptionPageJson["webhooks"][number][] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const query = { include: "event_types,details", cursor, limit: 100 };
    const page: SubscriptionPageJson = await get("v1/webhooks", query);
    webhooks.push(...page.webhooks);
    if (page.next === null) break;
    cursor = page.next;
  }
  return webhooks;
}

/** Counts the webhooks that need attention, on the first page of the account's webhooks. */
export async function countTroubled({ get }: Api): Promise<number> {
  const { webhooks } = await get<WebhookListJson>("v1/webhooks", { include: WEBHOOK_PARTS, limit: 100 });
  return webhooks.filter(({ stats }) => needsAttention(stats)).length;
}

/** Reads the endpoints of the account for the jump box. */
export async function readEndpointTargets(api: Api): Promise<Target[]> {
  const webhooks = await readSubscriptions(api);
  return webhooks.map(({ id, description, url }) => {
    const { host, path } = splitUrl(url);
    const { name, isNamed } = nameWebhook({ description, url });
    return { label: name, ...(isNamed && { detail: host + path }), path: `/webhooks/${id}` };
  });
}

const POLL_MS = 400;
/** Longer than the slowest attempt, which is cut off after 15 s unless the host says otherwise. */
const PATIENCE_MS = 40_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Waits for the next attempt of a delivery that has `count` attempts. Returns `undefined` if it
 * does not come in time, because the delivery waits for a free slot.
 */
async function waitForAttempt({ get }: Api, path: string, count: number): Promise<AttemptJson | undefined> {
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_MS) {
    const { attempts } = await get<DeliveryJson>(path);
    if (attempts.length > count) return attempts.at(-1);
    await pause(POLL_MS);
  }
  return undefined;
}

/** A delivery that was sent at the visitor's request, with its result. */
export interface SentDelivery {
  id: string;
  attempt: AttemptJson | undefined;
}

/**
 * Sends a delivery again and waits for the result. A pending delivery gets one more attempt, a
 * completed one a successor.
 */
export async function resendDelivery(api: Api, webhookId: string, deliveryId: string): Promise<SentDelivery> {
  const path = deliveryPath(webhookId, deliveryId);
  const before = await api.get<DeliveryJson>(path);
  const { id } = await api.send<{ id: string }>("POST", `${path}/resend`);
  const count = id === deliveryId ? before.attempts.length : 0;
  return { id, attempt: await waitForAttempt(api, deliveryPath(webhookId, id), count) };
}

/** Sends a test and waits for the result. */
export async function sendTest(api: Api, webhookId: string, type: string | undefined): Promise<SentDelivery> {
  const body = type === undefined ? {} : { event_type: type };
  const { id } = await api.send<{ id: string }>("POST", `${webhookPath(webhookId)}/test`, body);
  return { id, attempt: await waitForAttempt(api, deliveryPath(webhookId, id), 0) };
}

/** Sends what a webhook missed, or what waits. Returns how many deliveries that is. */
export const recoverDeliveries = async (
  api: Api,
  webhookId: string,
  selection: { since: string; state?: "undelivered" },
): Promise<number> =>
  (await api.send<{ count: number }>("POST", `${webhookPath(webhookId)}/recover`, selection)).count;

/**
 * Changes a webhook. Absent fields stay as they are now, not as they were when the page
 * was read.
 */
export async function updateWebhook(
  { get, send }: Api,
  webhookId: string,
  change: {
    url?: string;
    status?: WebhookJson["status"];
    event_types?: string[];
    description?: string | null;
    filter?: object | null;
    headers?: Record<string, string> | null;
    per_second?: number | null;
  },
): Promise<WebhookJson> {
  const path = webhookPath(webhookId);
  const { url, status } = await get<WebhookJson>(path);
  return send("PUT", path, { url, status, ...change });
}

// A delivery as a shell command, to replay it to an endpoint.

/** Quotes a text for a POSIX shell. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The headers that the command computes, or that curl adds. */
const isComputed = (name: string): boolean => /signature|timestamp/i.test(name);

/**
 * Builds a command that sends the same request, signed for now with the secret in `WEBHOOK_SECRET`.
 * Without the body it reads `notification.json`.
 */
export function buildCurlCommand(
  { url, headers, body }: DeliveryRequestJson,
  signatureHeader: string,
): string {
  const sent = Object.entries(headers)
    .filter(([name]) => !isComputed(name))
    .map(([name, value]) => `  -H ${quote(`${name}: ${value}`)} \\`);
  return [
    ...(body === null ? [] : [`printf '%s' ${quote(body)} > notification.json`]),
    "t=$(date +%s)",
    `s=$( (printf '%s.' "$t"; cat notification.json) | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" | sed 's/.* //')`,
    `curl ${quote(url)} \\`,
    ...sent,
    `  -H ${quote(`${signatureHeader}: t=`)}"$t, s=$s" \\`,
    "  --data-binary @notification.json",
  ].join("\n");
}

/** The name of the header with the signature; the host may have changed it. */
export const findSignatureHeader = ({ headers }: { headers: DeliveryRequestJson["headers"] }): string =>
  Object.keys(headers).find(
    (name) => /signature/i.test(name) && name.toLowerCase() !== "webhook-signature",
  ) ?? "X-Service-Signature";
