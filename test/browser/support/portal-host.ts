/**
 * A host with a portal on loopback: time is a manual clock, and the endpoints answer what the test
 * says.
 */

import { createServer } from "node:http";
import { nodeAdapter } from "../../../adapters/node.js";
import type { Service } from "../../../src/http/types.js";
import { createWebhooks, type Webhooks, type WebhooksOptions } from "../../../src/index.js";
import { createPortal, type PortalOptions } from "../../../src/portal/index.js";
import type { OutboundRequest, OutboundResult } from "../../../src/ports.js";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { listen } from "../../support/hosts.js";

const START = Date.UTC(2026, 0, 12, 8);
const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
const SUBSCRIBER = { id: "key-1", account: "clinic" };
export const URL_A = "https://hooks.example.com/in";

type Responder = (request: OutboundRequest) => Promise<OutboundResult>;

export interface PortalHost {
  readonly origin: string;
  /** Where the portal is mounted. */
  readonly url: string;
  readonly clock: ManualClock;
  readonly webhooks: Webhooks;
  /** Responses of the portal so far, such as `POST 403`. */
  readonly answers: readonly string[];
  /** Sets the response of every endpoint from now on. */
  answer(result: OutboundResult | Promise<OutboundResult> | Responder): void;
  /** Emits a change of a patient. */
  emit(): Promise<void>;
  /** Registers an endpoint for all events of patients, and returns its id. */
  register(url?: string): Promise<string>;
  /** Registers an endpoint that has failed for 30 hours, with a delivery before and three since. */
  registerTroubled(): Promise<string>;
  close(): Promise<void>;
}

export const answered = (status: number, body = ""): OutboundResult => ({
  kind: "response",
  status,
  headers: {},
  body: Buffer.from(body),
  complete: true,
});

const PREFIX = "/tools/portal";

export async function startPortalHost({
  excerptCharacters = 200,
  webhooks: most = 100,
  canReadRecords = false,
  auditEntries = 0,
  isOperator = false,
  options = {},
  ...branding
}: {
  excerptCharacters?: number;
  webhooks?: number;
  canReadRecords?: boolean;
  auditEntries?: number;
  isOperator?: boolean;
  /** Further options of the service. */
  options?: object;
} & Pick<PortalOptions, "language" | "texts" | "theme" | "frameAncestors"> = {}): Promise<PortalHost> {
  const clock = manualClock(START);
  let result: OutboundResult | Promise<OutboundResult> | Responder = answered(204);
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    delivery: {
      send: async (request) => (typeof result === "function" ? result(request) : result),
      excerptCharacters,
    },
    limits: { webhooks: most, enabledWebhooks: most, auditEntries },
    clock,
    ...options,
  } as WebhooksOptions);
  const portal = createPortal({
    webhooks,
    title: "Clinic hooks",
    authorize: () =>
      isOperator ? { name: "Olga", operator: true } : { name: "Ada", subscriber: SUBSCRIBER, canReadRecords },
    clock,
    ...branding,
  });
  await webhooks.start();
  const answers: string[] = [];
  const handle: Service["handle"] = async (request) => {
    const response = await portal.handle(request);
    answers.push(`${request.method} ${response?.status}`);
    return response;
  };
  const server = await listen(createServer(nodeAdapter({ handle }, { prefix: PREFIX })));
  const answer = (next: typeof result): void => {
    result = next;
  };
  const emit = async (): Promise<void> => {
    const resource = { resourceType: "Patient", id: "p1" };
    await webhooks.emit({ type: "patient.updated", account: SUBSCRIBER.account, resource });
  };
  const register = async (url = URL_A): Promise<string> => {
    const { webhook } = await webhooks.registrations.create({
      subscriber: SUBSCRIBER,
      url,
      eventTypes: ["patient.*"],
    });
    return webhook.id;
  };
  return {
    origin: server.origin,
    url: `${server.origin}${PREFIX}`,
    clock,
    webhooks,
    answers,
    answer,
    emit,
    register,
    async registerTroubled() {
      const id = await register();
      await emit();
      await clock.advance(2 * HOUR);
      answer(answered(500, "database is away"));
      for (const pauseMs of [5 * HOUR, 9 * HOUR, 16 * HOUR]) {
        await emit();
        await clock.advance(pauseMs);
      }
      return id;
    },
    async close() {
      await webhooks.stop({ graceMs: 0 });
      await server.close();
    },
  };
}
