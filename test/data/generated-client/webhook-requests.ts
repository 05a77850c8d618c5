/**
 * Requests of a client that is generated from the OpenAPI document of the webhook service, as
 * `content-requests.ts` is of a site's.
 */

import createClient from "openapi-fetch";
import type { paths } from "./webhook-types.js";

export async function useWebhooks(baseUrl: string, apiKey: string) {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${apiKey}` } });
  const created = await client.POST("/v1/webhooks", { body: { url: "https://example.com/hook" } });
  if (created.data === undefined) throw new Error(created.error.error.code);
  const { webhook, secret } = created.data;
  const params = { path: { webhookId: webhook.id } };
  const tested = await client.POST("/v1/webhooks/{webhookId}/test", { params });
  const listed = await client.GET("/v1/webhooks/{webhookId}/deliveries", { params });
  const refused = await client.POST("/v1/webhooks", { body: { url: "http://127.0.0.1/" } });
  return {
    isSecret: secret.startsWith("whsec_"),
    tested: tested.response.status,
    listed: listed.data?.deliveries.length,
    refused: refused.error?.error.code,
  };
}

/** The compiler refuses what the document does. Never called. */
export async function misuseWebhooks(client: ReturnType<typeof createClient<paths>>): Promise<void> {
  // @ts-expect-error A webhook needs a URL.
  await client.POST("/v1/webhooks", { body: {} });
  // @ts-expect-error The method does not exist.
  await client.PUT("/v1/webhooks");
}
