/** The tests of `sealEvents` on a storage: what it must hide, and what must work all the same. */

import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { PostbellError } from "../../src/core/errors.js";
import { silentLogger } from "../../src/core/logger.js";
import { createWebhooks, type Storage, type Webhooks, type WebhooksOptions } from "../../src/index.js";
import type { OutboundRequest } from "../../src/outbound/types.js";
import { manualClock } from "../../src/testing/index.js";
import type { EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import { DAY, HOUR, response, SECOND, START } from "./webhook-harness.js";

/** The data of one storage, which several processes use. */
export interface SealedData {
  /** Opens the data as another process does. Memory ignores the keys. */
  connect(sealKeys: Buffer[]): Storage;
  /** Returns all that is stored, as one text. */
  dump(): Promise<string>;
  destroy(): unknown;
}

export interface SealedStorage {
  name: string;
  /** False for memory, which needs none. */
  hasSealKeys: boolean;
  open: () => SealedData | Promise<SealedData>;
}

/** Texts of a body, which nobody may find. */
const BODY = { family: "Zaphodquux", note: "sealedquuxnote" } as const;
const PATIENT = { resourceType: "Patient", id: "7", name: [{ family: BODY.family }] };
const SUBSCRIBER = { id: "key-1", account: "clinic" };

const [FIRST_KEY, SECOND_KEY, FOREIGN_KEY] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [
  Buffer,
  Buffer,
  Buffer,
];

const EVENTS = { "patient.updated": "Patient", "order.paid": {} } as const;

/** Declares the tests. */
export function testSealedEvents({ name, hasSealKeys, open }: SealedStorage): void {
  const cleanUp: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of cleanUp.splice(0).reverse()) await end();
  });

  const openData = async (): Promise<SealedData> => {
    const data = await open();
    cleanUp.push(() => data.destroy());
    return data;
  };

  /** Creates one process: a service on a connection of its own. */
  const createProcess = (data: SealedData, options: Partial<WebhooksOptions> & { keys?: Buffer[] } = {}) => {
    const { keys = [FIRST_KEY], ...others } = options;
    const time = manualClock(START);
    let onKeyWait = (): void => {};
    /** Resolves when a timer of ten seconds is set from now on. */
    const whenWaiting = () =>
      new Promise<void>((resolve) => {
        onKeyWait = resolve;
      });
    const clock: typeof time = {
      ...time,
      setTimeout(callback: () => void, ms: number) {
        const timer = time.setTimeout(callback, ms);
        if (ms === 10 * SECOND) onKeyWait();
        return timer;
      },
    };
    const storage = data.connect(keys);
    cleanUp.push(() => storage.close());
    const bodies: string[] = [];
    const webhooks: Webhooks = createWebhooks({
      storage,
      events: EVENTS,
      access: { authenticate: () => null, canRead: () => true },
      registrations: { filters: true },
      delivery: {
        send: async ({ body }: OutboundRequest) => {
          bodies.push(Buffer.from(body ?? "").toString());
          return response(200);
        },
      },
      logger: false,
      clock,
      sealEvents: true,
      ...others,
    } as never);
    const retention = { keepMs: 3 * DAY, events: 10_000 };
    const store = storage.webhooks({ clock, logger: silentLogger, perEndpoint: 5, retention });
    const deliver = async (): Promise<string[]> => {
      bodies.length = 0;
      await webhooks.start();
      await webhooks.idle();
      await webhooks.stop();
      return [...bodies];
    };
    return { webhooks, store, clock, whenWaiting, deliver };
  };

  const eraseKey = (store: WebhookStore) =>
    store.eraseDataKey?.({ account: "clinic", now: store.now(), forgetAt: store.now() + DAY });

  /** Erases the account, which waits until no process has its key. */
  const eraseAccount = async ({ webhooks, clock, whenWaiting }: ReturnType<typeof createProcess>) => {
    const isWaiting = whenWaiting();
    const erased = webhooks.accounts.erase("clinic");
    await Promise.race([erased, isWaiting]);
    await clock.advance(10 * SECOND);
    await erased;
  };

  const register = async ({ webhooks }: { webhooks: Webhooks }, settings: object = {}) => {
    const { webhook } = await webhooks.registrations.create({
      subscriber: SUBSCRIBER,
      url: "https://hooks.example.com/a",
      ...settings,
    });
    return webhook;
  };

  const emitPlain = ({ webhooks }: { webhooks: Webhooks }, fields: object = {}) =>
    webhooks.emit({
      type: "order.paid",
      account: "clinic",
      subject: "order/1",
      data: { note: BODY.note, kind: "a" },
      ...fields,
    });

  const findOnly = async ({ webhooks }: { webhooks: Webhooks }, eventId: string) => {
    const { items } = await webhooks.deliveries.list({ account: "clinic", eventId });
    expect(items).toHaveLength(1);
    return items[0] as NonNullable<(typeof items)[0]>;
  };

  describe(`sealed events on ${name}`, () => {
    it("are kept for their keepMs", async () => {
      const process = createProcess(await openData());
      await register(process);
      const { id: short } = await emitPlain(process, { keepMs: HOUR });
      const { id: plain } = await emitPlain(process);
      expect(await process.deliver()).toHaveLength(2);
      const list = async () => {
        const { items } = await process.webhooks.deliveries.list({ account: "clinic", subject: "order/1" });
        return items.map(({ eventId }) => eventId);
      };
      expect(new Set(await list())).toEqual(new Set([short, plain]));
      await process.clock.advance(HOUR);
      await process.webhooks.start();
      await process.webhooks.idle();
      await process.webhooks.stop();
      expect(await list()).toEqual([plain]);
    });

    it("leave no text of a body in the storage, and the same bytes are delivered as without sealing", async () => {
      const event = { id: randomUUID(), occurredAt: new Date(START) };
      const bodiesOf = async (sealEvents: boolean) => {
        const data = await openData();
        const process = createProcess(data, { sealEvents });
        const { id } = await register(process);
        await emitPlain(process, event);
        await process.webhooks.emit({ type: "patient.updated", account: "clinic", resource: PATIENT });
        const dump = await data.dump();
        return { dump, id, bodies: await process.deliver(), after: await data.dump() };
      };
      const plain = await bodiesOf(false);
      const sealed = await bodiesOf(true);
      for (const text of Object.values(BODY)) {
        expect(plain.dump).toContain(text);
        expect(sealed.dump).not.toContain(text);
        expect(sealed.after).not.toContain(text);
      }
      expect(sealed.bodies.find((body) => body.includes(BODY.note))).toBe(
        plain.bodies.find((body) => body.includes(BODY.note)),
      );
      const readResource = ({ bodies }: typeof plain) =>
        JSON.parse(bodies.find((body) => body.includes(BODY.family)) ?? "").event.context[0].resource.entry[0]
          .resource;
      expect(readResource(sealed)).toEqual(readResource(plain));
      expect(sealed.bodies).toHaveLength(2);
    });

    it("are found, inspected, listed in the feed, filtered, resent, recovered and tested as others", async () => {
      const process = createProcess(await openData());
      const { webhooks, clock, deliver } = process;
      const { id: webhookId } = await register(process, {
        eventTypes: ["order.paid"],
        filter: { "data.kind": { eq: "a" } },
      });
      const { id } = await emitPlain(process);
      await emitPlain(process, { data: { kind: "b" } });
      expect(await deliver()).toHaveLength(1);
      const { items } = await webhooks.deliveries.list({ account: "clinic", subject: "order/1" });
      expect(items.map(({ eventId }) => eventId)).toEqual([id]);
      const deliveryId = items[0]?.id ?? "";
      const inspected = await webhooks.deliveries.inspect({ id: deliveryId, includeBody: true });
      expect(inspected.body).toContain(BODY.note);
      await clock.advance(HOUR);
      const feed = await webhooks.deliveries.listEvents({ webhookId });
      expect(feed.items.map(({ body }) => body)).toEqual([inspected.body]);
      await webhooks.deliveries.resend({ id: deliveryId });
      expect(await deliver()).toEqual([inspected.body]);
      const states = ["delivered", "missed"] as const;
      const replay = { webhookId, since: new Date(START), until: new Date(START + HOUR), states };
      // The event that the filter refuses is left out.
      expect(await webhooks.deliveries.replay(replay as never)).toEqual({ count: 1 });
      await clock.advance(SECOND);
      expect(await deliver()).toEqual([inspected.body]);
      await webhooks.deliveries.test({ webhookId });
      expect((await deliver()).join()).toContain("test");
    });

    it("are read by a service without the option, which stores plain ones that the other reads", async () => {
      const data = await openData();
      const [sealing, plain] = [createProcess(data), createProcess(data, { sealEvents: false })];
      await register(sealing);
      await emitPlain(sealing);
      expect((await plain.deliver()).join()).toContain(BODY.note);
      await emitPlain(plain);
      expect((await sealing.deliver()).join()).toContain(BODY.note);
    });

    it("are duplicates of the same events that were emitted before the option was turned on or off", async () => {
      const data = await openData();
      const sealing = createProcess(data);
      const plain = createProcess(data, { sealEvents: false });
      await register(sealing);
      for (const [before, after] of [
        [plain, sealing],
        [sealing, plain],
        [sealing, sealing],
      ] as const) {
        const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
        await emitPlain(before, { id: first });
        expect(await emitPlain(after, { id: first })).toMatchObject({ id: first, duplicate: true });
        const other = emitPlain(after, { id: first, data: { note: "other" } });
        await expect(other).rejects.toMatchObject({ code: "event_conflict" });
        await emitPlain(before, { id: second });
        const event = { type: "order.paid", account: "clinic", subject: "order/1" } as const;
        const emitted = await after.webhooks.emit(
          [first, second, third].map((id) => ({ ...event, id, data: { note: BODY.note, kind: "a" } })),
        );
        expect(emitted.map(({ duplicate }) => duplicate)).toEqual([true, true, false]);
      }
    });

    it("end as key_erased, unsent and after one claim, once the key of the account is gone", async () => {
      const data = await openData();
      const process = createProcess(data);
      const { webhooks, store, clock, deliver } = process;
      const { id: webhookId } = await register(process);
      const { id } = await emitPlain(process);
      const other = createProcess(data);
      expect(await other.webhooks.deliveries.inspect({ id: (await findOnly(other, id)).id })).toBeDefined();
      await eraseKey(store);
      // A process keeps the key for ten seconds.
      await clock.advance(10 * SECOND);
      expect(await deliver()).toEqual([]);
      const ended = await findOnly(process, id);
      expect(ended).toMatchObject({ state: "failed", reason: "key_erased", attempts: [] });
      await expect(webhooks.deliveries.inspect({ id: ended.id })).rejects.toMatchObject({
        code: "not_found",
      });
      const explained = await webhooks.deliveries.explain({ eventId: id, webhookId });
      expect(explained.text).toContain("key_erased");
      await clock.advance(HOUR);
      expect((await webhooks.deliveries.listEvents({ webhookId })).items).toEqual([]);
      // A new event gets a new key, which another process reads although it still has the old one.
      const [holder, fresh] = [createProcess(data), createProcess(data)];
      for (const at of [holder.clock, fresh.clock]) await at.advance(2 * HOUR);
      await emitPlain(holder);
      await eraseKey(store);
      await emitPlain(fresh);
      expect(await holder.deliver()).toHaveLength(2);
    });

    it("cannot be opened by the process that erased the account, from the moment it resolves", async () => {
      const data = await openData();
      const process = createProcess(data);
      await register(process);
      const { id } = await emitPlain(process);
      const copy = (await process.store.getEvent({ account: "clinic", id })) as EventRecord;
      await eraseAccount(process);
      expect(await process.store.readDataKeys?.(["clinic"])).toEqual([undefined]);
      expect(await data.dump()).not.toContain(copy.payload);
      // As a backup that was restored.
      await register(process);
      await process.store.append({ events: [copy], rememberMs: DAY, now: process.store.now() });
      expect(await process.deliver()).toEqual([]);
      expect(await findOnly(process, id)).toMatchObject({ state: "failed", reason: "key_erased" });
    });

    it("are refused in the place of another event, and if a character was changed", async () => {
      const process = createProcess(await openData());
      await register(process);
      const { id } = await emitPlain(process);
      const stored = (await process.store.getEvent({ account: "clinic", id })) as EventRecord;
      const { storedAt: _, ...record } = stored as EventRecord & { storedAt: number };
      const middle = Math.floor(record.payload.length / 2);
      const changed = `${record.payload.slice(0, middle)}${record.payload[middle] === "A" ? "B" : "A"}${record.payload.slice(middle + 1)}`;
      const [moved, damaged] = [
        { ...record, id: randomUUID() },
        { ...record, id: randomUUID(), payload: changed },
      ];
      const events = [moved, damaged, { ...moved, id: randomUUID(), payload: record.payload.slice(0, 30) }];
      await process.store.append({ events, rememberMs: DAY, now: process.store.now() });
      expect(await process.deliver()).toHaveLength(1);
      for (const event of events)
        expect(await findOnly(process, event.id)).toMatchObject({
          state: "failed",
          reason: "payload_unreadable",
        });
    });

    it("do not open for another account", async () => {
      const process = createProcess(await openData());
      await register(process);
      await register(process, { subscriber: { id: "key-2", account: "hospital" } });
      const { id } = await emitPlain(process);
      // With a key of its own, it would not open in any case.
      const [key = ""] = (await process.store.readDataKeys?.(["clinic"])) ?? [];
      await process.store.addDataKey?.({ account: "hospital", key: String(key) });
      await emitPlain(process, { account: "hospital" });
      const { payload } = (await process.store.getEvent({ account: "clinic", id })) as EventRecord;
      const stolen = { id, account: "hospital", type: "order.paid", digest: "digest", payload };
      await process.store.append({ events: [stolen], rememberMs: DAY, now: process.store.now() });
      expect(await process.deliver()).toHaveLength(2);
      const { items } = await process.webhooks.deliveries.list({ account: "hospital", eventId: id });
      expect(items.map(({ state, reason }) => [state, reason])).toEqual([["failed", "payload_unreadable"]]);
    });

    it("wait while their key is missing and was not erased, and are delivered once it is back", async () => {
      const data = await openData();
      let isLost = true;
      const storage = data.connect([FIRST_KEY]);
      cleanUp.push(() => storage.close());
      // As a Redis after a failover to a replica that had not got the key yet.
      const losing: Storage = {
        webhooks(context) {
          const store = storage.webhooks(context);
          return Object.freeze({
            ...store,
            readDataKeys: async (names: readonly string[]) =>
              isLost ? names.map(() => undefined) : ((await store.readDataKeys?.(names)) ?? []),
          });
        },
        close: async () => {},
      };
      const holder = createProcess(data);
      await register(holder);
      const { id } = await emitPlain(holder);
      const other = createProcess({ ...data, connect: () => losing });
      expect(await other.deliver()).toEqual([]);
      expect(await findOnly(other, id)).toMatchObject({ state: "pending", attempts: [] });
      isLost = false;
      await other.clock.advance(HOUR);
      expect(await other.deliver()).toHaveLength(1);
    });

    it("of two processes that emit the first events of an account at once have one key", async () => {
      const data = await openData();
      const processes = [createProcess(data), createProcess(data), createProcess(data)];
      const [first = createProcess(data)] = processes;
      await register(first);
      await Promise.all(processes.flatMap((process) => [emitPlain(process), emitPlain(process)]));
      const another = createProcess(data);
      expect(await another.deliver()).toHaveLength(6);
    });

    it("wait while their key cannot be read, without an attempt, and are delivered afterwards", async () => {
      const data = await openData();
      const process = createProcess(data);
      await register(process);
      const { id } = await emitPlain(process);
      const storage = data.connect([FIRST_KEY]);
      cleanUp.push(() => storage.close());
      let isAway = true;
      const failing: Storage = {
        webhooks(context) {
          const store = storage.webhooks(context);
          return Object.freeze({
            ...store,
            readDataKeys: async (names: readonly string[]) => {
              if (isAway) throw new PostbellError("storage_unavailable", "away", { isOutage: false });
              return (await store.readDataKeys?.(names)) ?? [];
            },
          });
        },
        close: async () => {},
      };
      const other = createProcess({ ...data, connect: () => failing });
      expect(await other.deliver()).toEqual([]);
      expect(await findOnly(other, id)).toMatchObject({ state: "pending", attempts: [] });
      isAway = false;
      await other.clock.advance(HOUR);
      expect(await other.deliver()).toHaveLength(1);
    });

    it("are one call of the storage for the keys of many accounts", async () => {
      const data = await openData();
      const process = createProcess(data);
      const accounts = Array.from({ length: 20 }, (_, index) => `account ${index}`);
      for (const account of accounts) await register(process, { subscriber: { id: "key-1", account } });
      const event = { type: "order.paid", data: { note: BODY.note } } as const;
      await process.webhooks.emit(accounts.map((account) => ({ ...event, account })));
      const storage = data.connect([FIRST_KEY]);
      cleanUp.push(() => storage.close());
      const calls: string[][] = [];
      const counting: Storage = {
        webhooks(context) {
          const store = storage.webhooks(context);
          return Object.freeze({
            ...store,
            readDataKeys: async (names: readonly string[]) => {
              calls.push([...names]);
              return (await store.readDataKeys?.(names)) ?? [];
            },
          });
        },
        close: async () => {},
      };
      const other = createProcess({ ...data, connect: () => counting });
      expect(await other.deliver()).toHaveLength(20);
      expect(calls.flat().sort()).toEqual([...accounts].sort());
      // Fast and slow endpoints are claimed in turn, so there may be several passes.
      expect(calls.length).toBeLessThan(10);
    });
  });

  if (!hasSealKeys) return;

  describe(`the keys that seal data keys on ${name}`, () => {
    it("are required by sealEvents", async () => {
      const data = await openData();
      const field = "sealEvents";
      expect(() => createProcess(data, { keys: [] })).toThrow(
        expect.objectContaining({ code: "invalid_option", field }),
      );
      expect(() => createProcess(data, { keys: [], sealEvents: false })).not.toThrow();
    });

    it("are in no stored text, and neither are data keys", async () => {
      const data = await openData();
      const process = createProcess(data);
      await register(process);
      await emitPlain(process);
      const [key = ""] = (await process.store.readDataKeys?.(["clinic"])) ?? [];
      const dump = await data.dump();
      expect(key).toHaveLength(44);
      for (const secret of [key, FIRST_KEY.toString("base64"), FIRST_KEY.toString("base64url")])
        expect(dump).not.toContain(secret);
    });

    it("are rotated: the old one opens, the next use seals with the new one, which then is enough", async () => {
      const data = await openData();
      const old = createProcess(data);
      await register(old);
      const { id } = await emitPlain(old);
      const both = createProcess(data, { keys: [SECOND_KEY, FIRST_KEY] });
      const [first] = (await old.store.readDataKeys?.(["clinic"])) ?? [];
      const isSealedAgain = async () =>
        typeof (await createProcess(data, { keys: [SECOND_KEY] }).store.readDataKeys?.(["clinic"]))?.[0] ===
        "string";
      const { id: deliveryId } = await findOnly(both, id);
      const shown = await both.webhooks.deliveries.inspect({ id: deliveryId, includeBody: true });
      expect(shown.body).toContain(BODY.note);
      await expect.poll(isSealedAgain).toBe(true);
      // The secrets of the webhook are still sealed with the old key.
      const next = createProcess(data, { keys: [SECOND_KEY] });
      expect(await next.store.readDataKeys?.(["clinic"])).toEqual([first]);
      const before = createProcess(data, { keys: [FIRST_KEY] });
      expect(await before.store.readDataKeys?.(["clinic"])).toMatchObject([{ field: "sealKeys" }]);
    });

    it("are missing: emits reject, the storage keeps the data key, and once they are back all works", async () => {
      const data = await openData();
      const process = createProcess(data);
      await register(process);
      const { id } = await emitPlain(process);
      const wrong = createProcess(data, { keys: [FOREIGN_KEY] });
      const refused = { code: "storage_unavailable", message: expect.stringContaining("sealKeys") };
      expect(await wrong.store.readDataKeys?.(["clinic", "hospital"])).toMatchObject([refused, undefined]);
      await expect(emitPlain(wrong)).rejects.toMatchObject({ code: "storage_unavailable" });
      const { id: deliveryId } = await findOnly(process, id);
      const again = createProcess(data);
      expect(await again.deliver()).toHaveLength(1);
      expect((await process.webhooks.deliveries.get(deliveryId)).state).toBe("delivered");
    });
  });

  describe(`a keyStorage next to ${name}`, () => {
    it("has all data keys, so that a copy of the storage opens nothing of an erased account", async () => {
      const [data, keyData] = [await openData(), await openData()];
      const keyStorage = keyData.connect([FIRST_KEY]);
      cleanUp.push(() => keyStorage.close());
      const process = createProcess(data, { keys: [], keyStorage });
      await register(process);
      const { id } = await emitPlain(process);
      expect(await process.store.readDataKeys?.(["clinic"])).toEqual([undefined]);
      expect((await process.deliver()).join()).toContain(BODY.note);
      const copy = (await process.store.getEvent({ account: "clinic", id })) as EventRecord;
      await eraseAccount(process);
      await register(process);
      await process.store.append({ events: [copy], rememberMs: DAY, now: process.store.now() });
      expect(await process.deliver()).toEqual([]);
      expect(await findOnly(process, id)).toMatchObject({ state: "failed", reason: "key_erased" });
      const refused = () =>
        createProcess(data, { keys: [], keyStorage: keyData.connect([]), sealEvents: true });
      expect(refused).toThrow(expect.objectContaining({ code: "invalid_option", field: "sealEvents" }));
    });
  });
}
