/** An event that nobody gets explains itself: in the result of `emit`, and in the debug log. */

import { describe, expect, it } from "vitest";
import { type Emitted, isPostbellError, type Logger, type WebhooksOptions } from "../../../src/index.js";
import { findUnmatched } from "../../../src/webhooks/emit/unmatched-webhooks.js";
import { recordingLogger, registrationApi, storageWith, URL_1 } from "../../support/registration-api.js";
import { eventLoopTurn } from "../../support/webhook-harness.js";

const KEY = { id: "key-1", account: "clinic" };
const EVENT = {
  type: "patient.updated",
  account: "clinic",
  resource: { resourceType: "Patient", id: "1" },
} as const;

/** A service whose debug lines are recorded, with the number of pages that were read for them. */
function createService(options: Partial<WebhooksOptions> = {}, isDebug = true) {
  const { logger, log } = recordingLogger(isDebug);
  let reads = 0;
  const storage = storageWith((store) => ({
    listWebhooks: (request) => {
      reads += 1;
      return store.listWebhooks(request);
    },
  }));
  const { webhooks, clock } = registrationApi({ storage, logger, ...options });
  const register = async (eventTypes?: readonly string[], isEnabled = true): Promise<string> => {
    const { webhook } = await webhooks.registrations.create({ subscriber: KEY, url: URL_1, eventTypes });
    if (!isEnabled) await webhooks.registrations.update({ id: webhook.id, status: "DISABLED" });
    return webhook.id;
  };
  const emit = async (): Promise<Emitted> => {
    const emitted = await webhooks.emit(EVENT);
    await eventLoopTurn();
    return emitted;
  };
  return { webhooks, clock, register, emit, log, reads: () => reads };
}

describe("the result of emit", () => {
  it("says how many webhooks the account has: none for another spelling", async () => {
    const { webhooks, register, emit } = createService();
    await register();
    await register(["consent.*"]);
    await register(undefined, false);
    expect(await emit()).toMatchObject({ deliveries: [{}], webhooks: 3 });
    expect(await webhooks.emit({ ...EVENT, account: "Clinic" })).toMatchObject({
      deliveries: [],
      webhooks: 0,
    });
    const many = await webhooks.emit([EVENT, { ...EVENT, account: "Clinic" }]);
    expect(many.map((emitted) => emitted.webhooks)).toEqual([3, 0]);
  });
});

describe("the debug log", () => {
  it("says that an account has no webhooks, without asking the storage", async () => {
    const { emit, log, reads } = createService();
    const { id } = await emit();
    expect(log).toEqual([
      {
        level: "debug",
        message: "nobody gets an event: the account has no webhooks",
        fields: { account: "clinic", event: id, eventType: "patient.updated", webhooks: 0, deliveries: 0 },
      },
    ]);
    expect(reads()).toBe(0);
  });

  it("says it once for each account without webhooks, whatever the number of events", async () => {
    const { webhooks, emit, clock, log } = createService();
    for (let count = 0; count < 3; count++) {
      await emit();
      await webhooks.emit([EVENT, { ...EVENT, account: "Clinic" }]);
      await clock.advance(60_000);
    }
    expect(log.map(({ fields }) => (fields as { account: string }).account)).toEqual(["clinic", "Clinic"]);
  });

  it("says in one line which webhooks did not get an event, and why", async () => {
    const { register, emit, log } = createService();
    await register();
    const others = await register(["consent.*", "patient.created"]);
    const disabled = [await register(["patient.*"], false), await register(["consent.*"], false)];
    const { id } = await emit();
    expect(log).toEqual([
      {
        level: "debug",
        message: "some webhooks did not get an event",
        fields: {
          account: "clinic",
          event: id,
          eventType: "patient.updated",
          webhooks: 4,
          deliveries: 1,
          disabled,
          otherTypes: [others],
        },
      },
    ]);
  });

  it("says nothing if every webhook got the event, or if the event is a repetition or a test", async () => {
    const { webhooks, register, log } = createService();
    const id = await register();
    const event = { ...EVENT, id: "3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111" };
    await webhooks.emit(event);
    await register(["consent.*"]);
    await webhooks.emit(event);
    await webhooks.deliveries.test({ webhookId: id });
    await eventLoopTurn();
    expect(log).toEqual([]);
  });

  it("names ten webhooks of a cause, and reads one page of 100", async () => {
    const { register, emit, log, reads } = createService({ limits: { webhooks: 200, enabledWebhooks: 200 } });
    for (let count = 0; count < 150; count++) await register(["consent.*"]);
    await emit();
    const otherTypes = expect.objectContaining({ length: 10 });
    expect(log).toMatchObject([{ fields: { webhooks: 150, deliveries: 0, disabled: [], otherTypes } }]);
    expect(reads()).toBe(1);
  });

  it("has at most 60 lines a minute, and costs no further reads", async () => {
    const { clock, register, emit, log, reads } = createService();
    await register(["consent.*"]);
    for (let count = 0; count < 100; count++) await emit();
    expect([log.length, reads()]).toEqual([60, 60]);
    await clock.advance(1_000);
    await emit();
    expect([log.length, reads()]).toEqual([61, 61]);
  });

  it.each<[string, Logger | false | undefined]>([
    ["its level is off", recordingLogger(false).logger],
    ["there is no logger", false],
    ["the logger is the default one", undefined],
    [
      "the logger's answer about its level throws",
      {
        ...recordingLogger(true).logger,
        isLevelEnabled: () => {
          throw new Error("broken");
        },
      } as Logger,
    ],
  ])("costs nothing if %s", async (_, logger) => {
    const { register, emit, reads } = createService({ logger });
    await register(["consent.*"]);
    expect(await emit()).toMatchObject({ webhooks: 1 });
    expect(reads()).toBe(0);
  });

  it("asks for the level with each event, as a method of the logger", async () => {
    const { logger, log } = recordingLogger();
    const levels = {
      ...logger,
      level: "info",
      isLevelEnabled(name: string): boolean {
        return this.level === name;
      },
    };
    const { emit } = createService({ logger: levels });
    await emit();
    expect(log).toEqual([]);
    levels.level = "debug";
    await emit();
    expect(log).toHaveLength(1);
  });

  it("never fails an emit, though the storage cannot be read for it", async () => {
    const storage = storageWith(() => ({ listWebhooks: () => Promise.reject(new TypeError("defect")) }));
    const { register, emit, log } = createService({ storage });
    await register(["consent.*"]);
    const emitted = await emit().catch((error: unknown) => isPostbellError(error));
    expect(emitted).toMatchObject({ deliveries: [], webhooks: 1 });
    expect(log).toEqual([]);
  });
});

describe("findUnmatched", () => {
  it("counts a DISABLED webhook as disabled, whatever it subscribes to", () => {
    const webhooks = [
      { id: "a", status: "DISABLED", eventTypes: ["consent.*"] },
      { id: "b", status: "ENABLED", eventTypes: ["consent.*"] },
      { id: "c", status: "ENABLED", eventTypes: null },
    ] as const;
    expect(findUnmatched(webhooks, "patient.updated")).toEqual({ disabled: ["a"], otherTypes: ["b"] });
    expect(findUnmatched(webhooks, "consent.created")).toEqual({ disabled: ["a"], otherTypes: [] });
  });
});
