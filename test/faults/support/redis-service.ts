/**
 * A whole service on Redis with an HTTPS endpoint behind it, and the comparison of what was
 * promised, what arrived and what is stored.
 */

import { createHmac, randomUUID } from "node:crypto";
import type net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createWebhooks, type Emitted, type Webhooks, type WebhooksOptions } from "../../../src/index.js";
import type { WebhookStore } from "../../../src/webhooks/store.js";
import { type RedisStorage, type RedisStorageOptions, redisStorage } from "../../../storage/redis/index.js";
import { issue, makeAuthority } from "../../support/certificates.js";
import { type Endpoint, type ReceivedRequest, reply, startEndpoint } from "../../support/https-endpoint.js";
import { freshPrefix } from "../../support/redis.js";
import { eventually, type LogEntry, listLogger } from "./store-driver.js";

const ACCOUNT = "clinic";
const SUBSCRIBER = { id: "key-1", account: ACCOUNT };
/** An emit that is made again after a crash has to find the one that was stored. */
const RETENTION = { keepMs: 60_000, events: 10_000 };
/**
 * Far longer than a busy machine holds an answer up: a request that is cut off is sent again, and
 * that is no duplicate of Redis's making.
 */
const DEADLINE_MS = 10_000;
const LEASE_MS = 2 * DEADLINE_MS + 20_000;

/** One request whose signature held. */
export interface Arrival {
  readonly eventId: string;
  readonly webhookId: string;
  readonly at: number;
  readonly timestamp: number;
  readonly status: number;
}

export interface Receiver {
  readonly ca: string;
  readonly url: (path: string) => string;
  /** A signature by another secret is a forgery. */
  readonly trust: (webhookId: string, secret: string) => void;
  readonly arrivals: readonly Arrival[];
  readonly forgeries: () => number;
  /** The status of each answer from now on. Default: 200. */
  readonly answer: (statusOf: (eventId: string) => number) => void;
  readonly close: () => Promise<void>;
}

function readSignature(head: string): { readonly timestamp: string; readonly signature: string } {
  const [, timestamp = "", signature = ""] =
    /^x-service-signature: t=([0-9]+), s=([0-9a-f]{64})$/im.exec(head) ?? [];
  return { timestamp, signature };
}

export async function startReceiver(): Promise<Receiver> {
  const authority = await makeAuthority();
  const certificate = await issue({ authority, names: ["127.0.0.1"] });
  const secrets = new Map<string, string>();
  const arrivals: Arrival[] = [];
  let forgeries = 0;
  let statusOf: (eventId: string) => number = () => 200;

  const respond = (socket: net.Socket, { head, body }: ReceivedRequest): void => {
    const { id, event } = JSON.parse(body.toString()) as { id: string; event: { "hub.topic": string } };
    const webhookId = event["hub.topic"];
    const { timestamp, signature } = readSignature(head);
    const hmac = createHmac("sha256", secrets.get(webhookId) ?? "");
    const isGenuine = hmac.update(`${timestamp}.`).update(body).digest("hex") === signature;
    const status = isGenuine ? statusOf(id) : 401;
    if (isGenuine)
      arrivals.push({ eventId: id, webhookId, at: Date.now(), timestamp: Number(timestamp), status });
    else forgeries++;
    socket.write(reply(status));
  };

  const endpoint: Endpoint = await startEndpoint({ certificate, respond });
  return {
    ca: authority.cert,
    url: (path) => `https://127.0.0.1:${endpoint.port}/${path}`,
    trust: (webhookId, secret) => secrets.set(webhookId, secret),
    arrivals,
    forgeries: () => forgeries,
    answer(next) {
      statusOf = next;
    },
    close: endpoint.close,
  };
}

export interface Figures {
  readonly deliveries: number;
  readonly lost: number;
  readonly duplicates: number;
  /** Entries that the storage still has open, and repairs that a check had to make. */
  readonly books: { readonly pending: number; readonly leased: number; readonly repaired: number };
}

export interface Service {
  readonly webhooks: Webhooks;
  readonly storage: RedisStorage;
  /** The store, as an operator would look at it. */
  readonly store: WebhookStore;
  readonly log: readonly LogEntry[];
  /** Deliveries that emits promised: event and webhook, as the receiver names them. */
  readonly promised: ReadonlySet<string>;
  readonly register: (count: number) => Promise<readonly string[]>;
  readonly emit: (id?: string) => Promise<Emitted>;
  /** Emits again with the same id until it resolves, as the guarantee tells a host to. */
  readonly emitSurely: (id?: string) => Promise<void>;
  /** Waits until nothing is pending. */
  readonly drained: (ms?: number) => Promise<void>;
  readonly figures: () => Promise<Figures>;
  readonly stop: () => Promise<void>;
}

export interface ServiceOptions {
  readonly redis: RedisStorageOptions;
  readonly receiver: Receiver;
  readonly options?: Partial<Omit<WebhooksOptions, "storage" | "access">> | undefined;
  /** Lets a test watch or change the store. */
  readonly change?: ((store: WebhookStore) => Partial<WebhookStore>) | undefined;
}

const pairOf = (eventId: string, webhookId: string): string => `${eventId} ${webhookId}`;

export async function startService({
  redis,
  receiver,
  options = {},
  change = () => ({}),
}: ServiceOptions): Promise<Service> {
  const storage = redisStorage({ prefix: freshPrefix(), ...redis });
  const { logger, log } = listLogger();
  const promised = new Set<string>();
  let store: WebhookStore | undefined;
  const webhooks: Webhooks = createWebhooks({
    access: { authenticate: () => SUBSCRIBER, canRead: () => true },
    destinations: { allowPrivateNetworks: true, ca: receiver.ca },
    retry: { intervalsMs: [100, 200, 400], everyMs: 1_000, windowMs: 60_000, jitter: 0 },
    retention: RETENTION,
    logger,
    ...options,
    delivery: { deadlineMs: DEADLINE_MS, leaseMs: LEASE_MS, perEndpoint: 20, ...options.delivery },
    storage: {
      webhooks(context) {
        store = storage.webhooks(context);
        return { ...store, ...change(store) };
      },
      close: () => storage.close(),
    },
  });
  if (!store) throw new Error("a service opens its store at once");
  const opened = store;

  const emit: Service["emit"] = async (id = randomUUID()) => {
    const emitted = await webhooks.emit({
      id,
      type: "patient.updated",
      account: ACCOUNT,
      resource: { resourceType: "Patient", id: "p1" },
    });
    for (const { webhookId } of emitted.deliveries) promised.add(pairOf(id, webhookId));
    return emitted;
  };

  await webhooks.start();
  return {
    webhooks,
    storage,
    store: opened,
    log,
    promised,
    async register(count) {
      const ids: string[] = [];
      for (let index = 0; index < count; index++) {
        const url = receiver.url(String(index));
        const { webhook, secret } = await webhooks.registrations.create({ subscriber: SUBSCRIBER, url });
        receiver.trust(webhook.id, secret);
        ids.push(webhook.id);
      }
      return ids;
    },
    emit,
    async emitSurely(id = randomUUID()) {
      for (;;) {
        try {
          await emit(id);
          return;
        } catch {
          await sleep(20);
        }
      }
    },
    async drained(ms = 30_000) {
      const isEmpty = async (): Promise<boolean> => {
        const stats = await opened.stats().catch(() => undefined);
        return stats?.pending === 0;
      };
      await eventually(isEmpty, { ms, what: "all deliveries end" });
    },
    async figures() {
      const received = receiver.arrivals
        .filter(({ status }) => status === 200)
        .map(({ eventId, webhookId }) => pairOf(eventId, webhookId))
        .filter((pair) => promised.has(pair));
      const distinct = new Set(received).size;
      const { pending, leased } = await opened.stats();
      const { repaired } = await storage.check();
      return {
        deliveries: promised.size,
        lost: promised.size - distinct,
        duplicates: received.length - distinct,
        books: { pending, leased, repaired },
      };
    },
    async stop() {
      await webhooks.stop({ graceMs: 1_000 });
      await storage.close();
    },
  };
}

export const WHOLE_BOOKS = { pending: 0, leased: 0, repaired: 0 } as const;

/** The line that a run is judged by. */
export function printFigures(
  fault: string,
  { deliveries, lost, duplicates, books }: Figures,
  more = "",
): void {
  const { pending, leased, repaired } = books;
  console.log(
    `${fault}: ${deliveries} deliveries, ${more}${more && ", "}${lost} lost, ${duplicates} duplicates, books: ${pending} pending, ${leased} leased, ${repaired} repaired`,
  );
}
