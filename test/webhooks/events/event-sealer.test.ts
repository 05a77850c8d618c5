import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { PostbellError } from "../../../src/core/errors.js";
import { createWebhooks } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/index.js";
import type { ServiceBase } from "../../../src/webhooks/config/config.js";
import { EventAppender } from "../../../src/webhooks/emit/event-appender.js";
import { EventSealer } from "../../../src/webhooks/events/event-sealer.js";
import type { DataKeyStore, EventRecord, WebhookStore } from "../../../src/webhooks/store.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile } from "../../support/sqlite.js";
import { START } from "../../support/webhook-harness.js";

/** Keys in memory, whose reads end when the test lets them. */
class KeyStore implements DataKeyStore {
  readonly sealsDataKeys = true;
  keys = new Map<string, string>();
  erased = new Set<string>();
  /** Reads that wait until they are called. */
  held: (() => void)[] = [];
  isHeld = false;

  async readDataKeys(accounts: readonly string[]) {
    const found = accounts.map((account) => this.keys.get(account));
    if (this.isHeld) await new Promise<void>((resolve) => this.held.push(resolve));
    return found;
  }
  async addDataKey({ account, key }: { account: string; key: string }) {
    this.keys.set(account, this.keys.get(account) ?? key);
    return { key: this.keys.get(account) ?? key, isCommitted: true };
  }
  async eraseDataKey({ account }: { account: string }) {
    this.keys.delete(account);
    this.erased.add(account);
  }
  async isDataKeyErased({ account }: { account: string }) {
    return this.erased.has(account);
  }
}

const createSealer = (store: DataKeyStore) => {
  const clock = manualClock(START);
  return { clock, sealer: new EventSealer({ store, clock, seals: true, isShared: true }) };
};

const newEvent = (account = "clinic"): EventRecord =>
  ({ id: randomUUID(), account, payload: '{"v":2}', digest: "digest" }) as EventRecord;

const sealOne = async (sealer: EventSealer, event: EventRecord): Promise<EventRecord> => {
  const { events } = await sealer.seal([event]);
  if (events[0] === undefined) throw new Error("one event was passed");
  return events[0];
};

describe("a sealed event", () => {
  it("opens with a key that was created during an earlier read of it", async () => {
    const store = new KeyStore();
    const { sealer: reader } = createSealer(store);
    store.isHeld = true;
    const early = reader.open({ ...newEvent(), payload: "sealed.1.aaaaaaaa.text" }).catch(() => "no key");
    await Promise.resolve();
    await Promise.resolve();
    const writer = createSealer(store).sealer;
    store.isHeld = false;
    const sealed = await sealOne(writer, newEvent());
    expect(await reader.open(sealed)).toBe('{"v":2}');
    for (const end of store.held) end();
    expect(await early).toBe("no key");
  });

  it("opens again once the process that had its lost key emits", async () => {
    const store = new KeyStore();
    const { sealer, clock } = createSealer(store);
    const sealed = await sealOne(sealer, newEvent());
    store.keys.clear();
    const other = createSealer(store).sealer;
    await expect(other.open(sealed)).rejects.toMatchObject({ code: "storage_unavailable" });
    await clock.advance(11_000);
    await sealOne(sealer, newEvent());
    expect(await other.open(sealed)).toBe('{"v":2}');
  });

  it("does not get a key back that was erased", async () => {
    const store = new KeyStore();
    const { sealer, clock } = createSealer(store);
    const sealed = await sealOne(sealer, newEvent());
    await store.eraseDataKey({ account: "clinic" });
    await clock.advance(11_000);
    await sealOne(sealer, newEvent());
    await expect(createSealer(store).sealer.open(sealed)).rejects.toMatchObject({ reason: "key_erased" });
  });

  it("is refused if one character of it was changed in place", async () => {
    const { sealer } = createSealer(new KeyStore());
    const sealed = await sealOne(sealer, newEvent());
    const last = sealed.payload.at(-3) === "A" ? "B" : "A";
    const payload = `${sealed.payload.slice(0, -3)}${last}${sealed.payload.slice(-2)}`;
    await expect(sealer.open({ ...sealed, payload })).rejects.toMatchObject({ reason: "payload_unreadable" });
  });
});

describe("a list of events that ends in a conflict", () => {
  const appendWith = (responses: object[]) => {
    const stored: string[] = [];
    const store = {
      append: async ({ events }: { events: readonly EventRecord[] }) => {
        stored.push(events.map(({ payload }) => payload).join());
        return responses.shift() ?? { results: [] };
      },
    };
    const { sealer } = createSealer(new KeyStore());
    const appender = new EventAppender({ store: store as unknown as WebhookStore, sealer } as ServiceBase);
    const request = { events: [newEvent(), newEvent()], rememberMs: 1, now: START };
    return {
      result: appender.resolveConflict(request, { results: [{ result: "conflict" }] } as never),
      stored,
    };
  };

  it("is stored no further after an event that the second comparison refuses", async () => {
    const error = new PostbellError("storage_full", "full");
    const { result, stored } = appendWith([{ results: [{ result: "refused", error }] }]);
    expect((await result).results).toEqual([{ result: "refused", error }]);
    expect(stored).toHaveLength(1);
  });
});

describe("the storage of the keys", () => {
  const file = createDatabaseFile();
  afterEach(() => file.destroy());

  it("is refused if it loses the keys of events that another storage keeps", async () => {
    const storage = sqliteStorage({ file: file.path, sealKeys: [Buffer.alloc(32, 1)] });
    const create = () =>
      createWebhooks({
        storage,
        keyStorage: memoryStorage(),
        sealEvents: true,
        events: { "order.paid": {} },
        access: { authenticate: () => null },
      });
    expect(create).toThrow(expect.objectContaining({ code: "invalid_option", field: "keyStorage" }));
    await storage.close();
  });
});
