/**
 * The delivery log reveals nothing about unreachable hosts that maps the network of the service.
 */

import { describe, expect, it } from "vitest";
import type { WebhooksOptions } from "../../../src/index.js";
import { createPortal } from "../../../src/portal/index.js";
import type { OutboundResult } from "../../../src/ports.js";
import { recordingLogger } from "../../support/registration-api.js";
import { HOUR, MINUTE, response, SUBSCRIBER, startHarness } from "../../support/webhook-harness.js";

type Resolve = NonNullable<NonNullable<WebhooksOptions["destinations"]>["resolve"]>;

const failing =
  (code: string): Resolve =>
  async () => {
    throw Object.assign(new Error(code), { code });
  };

/**
 * The same webhook with the guarded client, where its name resolves so; all that a subscriber sees
 * of a test of it.
 */
async function shownWhere(resolve: Resolve) {
  const { logger, log } = recordingLogger();
  const harness = await startHarness({
    options: { retry: { jitter: 0 }, logger, destinations: { resolve }, delivery: { send: undefined } },
  });
  const { webhooks, clock } = harness;
  const { id } = await harness.register("https://db.corp.example.com/");
  await webhooks.deliveries.test({ webhookId: id });
  await webhooks.idle();
  const portal = createPortal({
    webhooks,
    clock,
    authorize: () => ({ name: "Ada", subscriber: SUBSCRIBER }),
  });
  const ask = async (path: string): Promise<string> => {
    const request = { method: "GET", query: "", headers: { authorization: "Bearer key" }, body: null };
    const baseUrl = "https://host.example";
    const rest = await webhooks.handle({ ...request, path: `/v1${path}`, baseUrl });
    const page = await portal.handle({ ...request, path: `/api/v1${path}`, baseUrl });
    expect([rest?.status, page?.status]).toEqual([200, 200]);
    return [rest, page].map((answer) => (typeof answer?.body === "string" ? answer.body : "")).join(" ");
  };
  const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id });
  const texts = [
    await ask(`/webhooks/${id}/deliveries`),
    await ask(`/webhooks/${id}`),
    await ask(`/webhooks/${id}/deliveries/${deliveries[0]?.id}`),
    JSON.stringify(await webhooks.deliveries.stats(id)),
    JSON.stringify(await webhooks.as(SUBSCRIBER).deliveries.examine({ webhookId: id, evenIfEnabled: true })),
  ];
  expect(texts.at(-1)).toContain('"code":"NO_USABLE_ADDRESS","durationMs":0');
  await webhooks.stop();
  const shown = texts.join("\n").replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>");
  return { shown, log, attempts: deliveries.flatMap(({ attempts }) => attempts) };
}

describe("the log of a webhook whose host has no usable address", () => {
  const cases: readonly (readonly [string, Resolve, object])[] = [
    ["is private", async () => ["10.1.2.3"], { kind: "refused", code: "R5" }],
    ["is one of the cloud platform", async () => ["168.63.129.16"], { kind: "refused", code: "R7" }],
    ["is partly private", async () => ["93.184.216.34", "fd00::1"], { kind: "refused", code: "R5" }],
    ["does not exist", failing("ENOTFOUND"), { kind: "dns", code: "ENOTFOUND" }],
    ["has no address", async () => [], { kind: "dns", code: "ENODATA" }],
    ["fails in its own zone", failing("ESERVFAIL"), { kind: "dns", code: "ESERVFAIL" }],
  ];

  it.each(cases)(
    "is the same in every word where the name %s; the host's own log has the detail",
    async (_, resolve, detail) => {
      const { shown: expected } = await shownWhere(failing("ENOTFOUND"));
      const { shown, attempts, log } = await shownWhere(resolve);
      expect(shown).toBe(expected);
      expect(attempts).toEqual([
        {
          at: expect.any(Date) as unknown,
          durationMs: 0,
          step: 0,
          isExtra: false,
          kind: "dns",
          status: null,
          code: "NO_USABLE_ADDRESS",
          excerpt: null,
        },
      ]);
      expect(log).toMatchObject([
        {
          level: "info",
          fields: {
            account: "clinic",
            webhook: expect.any(String) as unknown,
            delivery: expect.any(String) as unknown,
            status: null,
            ...detail,
          },
          message: "a test failed",
        },
      ]);
    },
  );
});

it("a host's own send is held to the same, and what the text of the URL explains is told", async () => {
  const results: OutboundResult[] = [
    { kind: "refused", code: "R5", message: "" },
    { kind: "refused", code: "BLOCKED_BY_PROXY", message: "" },
    { kind: "dns", code: "EAI_AGAIN", message: "" },
    { kind: "refused", code: "R8", message: "" },
    { kind: "connect", code: "ECONNREFUSED", message: "" },
    { kind: "timeout", code: "DEADLINE", message: "" },
  ];
  const told: (readonly [string, string])[] = [];
  for (const result of results) {
    const harness = await startHarness({ answer: (sent) => (sent.at < 0 ? response(200) : result) });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(MINUTE);
    const { attempts } = await harness.webhooks.deliveries.get(`${id}.${eventId}`);
    told.push(...attempts.map(({ kind, code }) => [kind, code] as const));
    await harness.run(HOUR);
    await harness.stop(0);
  }
  expect(told).toEqual([
    ["dns", "NO_USABLE_ADDRESS"],
    ["dns", "NO_USABLE_ADDRESS"],
    ["dns", "NO_USABLE_ADDRESS"],
    ["refused", "R8"],
    ["connect", "ECONNREFUSED"],
    ["timeout", "DEADLINE"],
  ]);
});
