/** A host with a portal on loopback: time is a manual clock, and the endpoints answer what the test says. */

import { createServer } from "node:http";
import { nodeAdapter } from "../../../adapters/node.js";
import { createPortal } from "../../../portal/index.js";
import { createWebhooks, type OutboundResult, type Webhooks } from "../../../src/index.js";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { listen } from "../../support/hosts.js";

export const START = Date.UTC(2026, 0, 12, 8);
export const SUBSCRIBER = { id: "key-1", account: "clinic" };

export interface PortalHost {
  readonly origin: string;
  /** Where the portal is mounted. */
  readonly url: string;
  readonly clock: ManualClock;
  readonly webhooks: Webhooks;
  /** What every endpoint answers from now on. */
  answer(result: OutboundResult): void;
  /** Emits a change of a patient. */
  emit(): Promise<void>;
  close(): Promise<void>;
}

export const answered = (status: number, body = ""): OutboundResult => ({
  kind: "response",
  status,
  headers: {},
  body: Buffer.from(body),
  complete: true,
});

export async function startPortalHost(prefix = "/tools/portal"): Promise<PortalHost> {
  const clock = manualClock(START);
  let result = answered(204);
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    delivery: { send: async () => result, excerptCharacters: 200 },
    clock,
  });
  const portal = createPortal({
    webhooks,
    title: "Clinic hooks",
    authorize: () => ({ name: "Ada", subscriber: SUBSCRIBER }),
    clock,
  });
  await webhooks.start();
  const { origin, close } = await listen(createServer(nodeAdapter(portal, { prefix })));
  return {
    origin,
    url: `${origin}${prefix}`,
    clock,
    webhooks,
    answer(next) {
      result = next;
    },
    async emit() {
      const resource = { resourceType: "Patient", id: "p1" };
      await webhooks.emit({ type: "patient.updated", account: SUBSCRIBER.account, resource });
    },
    async close() {
      await webhooks.stop({ graceMs: 0 });
      await close();
    },
  };
}
