/**
 * The emitter's side of the ledger: a host that registers and emits, notes what it was promised,
 * and delivers nothing itself.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { createWebhooks, type Emitted, isPostbellError, type Webhooks } from "../../../src/index.js";
import type { Subscriber } from "./ledger-subscriber.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import type { WorkerOptions } from "./worker-host.js";

export const KEY = { id: "key-1", account: "clinic" };

/** As an event about this patient; padded to about so many bytes. */
export const patientEvent = (id = "p1", bytes = 0) => ({
  id: randomUUID(),
  type: "patient.updated",
  account: KEY.account,
  resource: { resourceType: "Patient", id, text: "x".repeat(bytes) },
});

export interface Ledger {
  readonly webhooks: Webhooks;
  /** Ids of all deliveries that an `emit` has resolved with. */
  readonly promised: ReadonlySet<string>;
  /** Registers an endpoint of the subscriber; its id. */
  readonly register: (path: string) => Promise<string>;
  /** Emits once, and notes what it is promised. */
  readonly emit: (event?: ReturnType<typeof patientEvent>) => Promise<Emitted>;
  /** Emits, again and again with the same id while the storage is away. */
  readonly emitUntilStored: (event?: ReturnType<typeof patientEvent>) => Promise<Emitted>;
}

/** Closes with the test that opened it. */
export function openLedger(
  on: StorageUnderTest,
  { storage: address, ca, webhooks: options = {} }: WorkerOptions,
  subscriber: Subscriber,
): Ledger {
  const storage = on.open(address);
  onTestFinished(() => storage.close());
  const webhooks: Webhooks = createWebhooks({
    ...options,
    storage,
    access: { authenticate: () => null, canRead: () => true },
    destinations: { allowPrivateNetworks: true, ca },
  });
  const promised = new Set<string>();
  const emit: Ledger["emit"] = async (event = patientEvent()) => {
    const emitted = await webhooks.emit(event);
    for (const { id } of emitted.deliveries) promised.add(id);
    return emitted;
  };
  return {
    webhooks,
    promised,
    async register(path) {
      const { webhook, secret } = await webhooks.registrations.create({
        subscriber: KEY,
        url: subscriber.url(path),
      });
      subscriber.trust(webhook.id, secret);
      return webhook.id;
    },
    emit,
    async emitUntilStored(event = patientEvent()) {
      for (;;) {
        try {
          return await emit(event);
        } catch (error) {
          if (!isPostbellError(error, "storage_unavailable")) throw error;
          await sleep(50);
        }
      }
    },
  };
}
