/** The store of a service: each call has a time limit, and none is made during an outage. */

import { PostbellError } from "../core/errors.js";
import { createStorageCircuit, type GuardCall, type StorageCircuit } from "../core/storage-circuit.js";
import { countStoreErrors, type Telemetry } from "../core/telemetry.js";
import type { WebhooksConfig } from "./config/config.js";
import { EventSealer } from "./events/event-sealer.js";
import type { AuditLogStore, DataKeyStore, StorageContext, WebhookStore } from "./store.js";

/** The methods of the audit log, which a storage need not have. */
function guardAuditLog(store: WebhookStore, bounded: GuardCall): AuditLogStore {
  if (store.addAuditEntries === undefined) return {};
  return {
    addAuditEntries: bounded(async (request) => store.addAuditEntries?.(request)),
    listAuditEntries: bounded(
      async (request) => (await store.listAuditEntries?.(request)) ?? { entries: [], next: null },
    ),
  };
}

/** The methods for data keys, which a storage need not have. */
function guardDataKeys(store: DataKeyStore, bounded: GuardCall): DataKeyStore {
  const read = store.readDataKeys?.bind(store);
  const add = store.addDataKey?.bind(store);
  const erase = store.eraseDataKey?.bind(store);
  const isErased = store.isDataKeyErased?.bind(store);
  if (read === undefined || add === undefined || erase === undefined || isErased === undefined) return {};
  return {
    sealsDataKeys: store.sealsDataKeys,
    losesDataKeys: store.losesDataKeys,
    readDataKeys: bounded(read),
    addDataKey: bounded(add),
    eraseDataKey: bounded(erase),
    isDataKeyErased: bounded(isErased),
  };
}

/** Returns the same store with a time limit on each call, and without calls during an outage. */
export function guardWebhookStore(store: WebhookStore, circuit: StorageCircuit): WebhookStore {
  const bounded = circuit.connect({
    // Reads a webhook that does not exist.
    ping: () => store.getWebhook(store.newWebhookId("ping")),
    connectionProblem: () => store.connectionProblem?.(),
  });
  return Object.freeze<WebhookStore>({
    maxSleepMs: store.maxSleepMs,
    joinsTransactions: store.joinsTransactions,
    now: store.now.bind(store),
    watch: store.watch.bind(store),
    partitionOf: store.partitionOf.bind(store),
    newWebhookId: store.newWebhookId.bind(store),
    createWebhook: bounded(store.createWebhook.bind(store)),
    getWebhook: bounded(store.getWebhook.bind(store)),
    listWebhooks: bounded(store.listWebhooks.bind(store)),
    updateWebhook: bounded(store.updateWebhook.bind(store)),
    removeWebhook: bounded(store.removeWebhook.bind(store)),
    append: bounded(store.append.bind(store)),
    claim: bounded(store.claim.bind(store)),
    settle: bounded(store.settle.bind(store)),
    getDelivery: bounded(store.getDelivery.bind(store)),
    getEvent: bounded(store.getEvent.bind(store)),
    listDeliveries: bounded(store.listDeliveries.bind(store)),
    readDeliveriesAfter: bounded(store.readDeliveriesAfter.bind(store)),
    findEvents: bounded(store.findEvents.bind(store)),
    deliveryStats: bounded(store.deliveryStats.bind(store)),
    resend: bounded(store.resend.bind(store)),
    recover: bounded(store.recover.bind(store)),
    claimHealthNotifications: bounded(store.claimHealthNotifications.bind(store)),
    settleHealthNotification: bounded(store.settleHealthNotification.bind(store)),
    eraseAccount: bounded(store.eraseAccount.bind(store)),
    eraseEvents: bounded(store.eraseEvents.bind(store)),
    listAccounts: bounded(store.listAccounts.bind(store)),
    stats: bounded(store.stats.bind(store)),
    ...guardAuditLog(store, bounded),
    ...guardDataKeys(store, bounded),
  });
}

/**
 * Creates the sealer of a service, on the store of the service or on that of `keyStorage`, which
 * may have an outage of its own.
 *
 * @throws `invalid_option` if `sealEvents` is on and the keys would be stored in plain text, or if
 * they would end with the process, and the events would not.
 */
export function createSealer(
  { sealEvents: seals, storage, keyStorage, clock }: WebhooksConfig,
  context: StorageContext,
  store: WebhookStore,
  telemetry: Telemetry | undefined,
): EventSealer {
  const keys =
    keyStorage === undefined ? store : guardKeyStore(keyStorage.webhooks(context), context, telemetry);
  if (seals && keys.sealsDataKeys !== true) {
    const name = keyStorage === undefined ? "storage" : "keyStorage";
    throw new PostbellError(
      "invalid_option",
      `createWebhooks: sealEvents needs a ${name} with sealKeys, since the key of each account is stored there: pass sealKeys to sqliteStorage, postgresStorage or redisStorage.`,
      { field: "sealEvents" },
    );
  }
  const isShared = keyStorage === undefined || keyStorage === storage;
  if (!isShared && keys.losesDataKeys === true) {
    throw new PostbellError(
      "invalid_option",
      "createWebhooks: keyStorage loses its keys when the process ends, and with them every event in storage that was sealed: pass a keyStorage that lasts, or leave it out.",
      { field: "keyStorage" },
    );
  }
  return new EventSealer({ store: keys, clock, seals, isShared });
}

function guardKeyStore(
  store: WebhookStore,
  { clock, logger }: StorageContext,
  telemetry: Telemetry | undefined,
): DataKeyStore {
  const circuit = createStorageCircuit({ clock, logger, service: "data keys" });
  const bounded = circuit.connect({
    ping: async () => store.readDataKeys?.(["ping"]),
    connectionProblem: () => store.connectionProblem?.(),
  });
  return countStoreErrors(guardDataKeys(store, bounded), telemetry, "webhooks");
}
