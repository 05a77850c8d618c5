/**
 * A host that keeps its tenant in an `AsyncLocalStorage`: hooks run in the context of `start()`,
 * whichever request caused the work, and those of `emit` in the context of its caller.
 */

import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { expect, it, onTestFinished } from "vitest";
import { createWebhooks, type Storage } from "../../src/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { eventLoopTurn, held, response, START } from "./webhook-harness.js";

const MINUTE = 60_000;
const TENANTS = ["clinic-a", "clinic-b"];
const URL_1 = "https://hooks.example.com/a";

/** A clock whose timers keep the context in which they were set, as those of Node do. */
function contextClock() {
  const clock = manualClock(START);
  return {
    ...clock,
    setTimeout: (callback: () => void, ms: number) => clock.setTimeout(AsyncResource.bind(callback), ms),
  };
}

/** The storage, and a function that waits until no call of it runs. Time stands still meanwhile. */
function countCalls(storage: Storage) {
  let running = 0;
  const counted: Storage = {
    webhooks: (context) =>
      new Proxy(
        { ...storage.webhooks(context) },
        {
          get(store, name: keyof WebhookStore) {
            const member = store[name];
            if (typeof member !== "function") return member;
            return (...given: unknown[]): unknown => {
              const result: unknown = Reflect.apply(member, store, given);
              if (!(result instanceof Promise)) return result;
              running += 1;
              return result.finally(() => {
                running -= 1;
              });
            };
          },
        },
      ),
    close: () => storage.close(),
  };
  const calm = async (): Promise<void> => {
    for (let turns = 0; turns < 10; turns++) {
      await eventLoopTurn();
      if (running > 0) turns = -1;
    }
  };
  return { counted, calm };
}

/**
 * A service whose hooks and logger note which tenant they see. Its endpoint is held at first.
 *
 * @param sends true if the host replaces the HTTP client.
 */
function openHost(storage: Storage, sends: boolean) {
  const tenants = new AsyncLocalStorage<string>();
  const clock = contextClock();
  const { counted, calm } = countCalls(storage);
  const seen = new Map<string, Set<string | undefined>>();
  const note = (hook: string): void => {
    seen.set(hook, (seen.get(hook) ?? new Set()).add(tenants.getStore()));
  };
  const line = (_: object, message: string): void => note(`logger: ${message}`);
  const gate = held<undefined>();
  const webhooks = createWebhooks({
    storage: counted,
    clock,
    access: {
      authenticate: () => null,
      async canRead() {
        note("canRead");
        return true;
      },
    },
    async resolveReference(_, { account }) {
      note(`resolveReference of ${account}`);
      return null;
    },
    delivery: {
      ...{ concurrency: 2, slowConcurrency: 2 },
      async headers() {
        note("delivery.headers");
        return {};
      },
      ...(sends && {
        async send() {
          note("delivery.send");
          await gate.promise;
          return response(500);
        },
      }),
    },
    destinations: {
      async resolve() {
        note("destinations.resolve");
        await gate.promise;
        return [];
      },
    },
    audit: ({ action }) => note(`audit: ${action}`),
    telemetry: {
      record: (name) => note(`telemetry.record: ${name}`),
      observe: () => () => {},
      begin({ name }) {
        note(`telemetry.begin: ${name}`);
        return undefined;
      },
    },
    retry: { intervalsMs: [MINUTE], everyMs: MINUTE, windowMs: 3 * MINUTE, jitter: 0 },
    endpoints: { warnAfterMs: MINUTE, disableAfterMs: 2 * MINUTE },
    notify: {
      warning: () => note("notify.warning"),
      disabled: () => note("notify.disabled"),
      exhausted: () => note("notify.exhausted"),
      close: () => note("notify.close"),
    },
    logger: { debug() {}, info: line, warn: line, error: line },
  });
  const emit = (account: string): Promise<unknown> =>
    tenants.run(account, () => {
      const managingOrganization = { reference: "Organization/1" };
      const resource = { resourceType: "Patient", id: "1", managingOrganization } as const;
      return webhooks.emit({ type: "patient.updated", account, resource });
    });
  const runUntil = async (time: number): Promise<void> => {
    await calm();
    for (let at = clock.nextTimerAt(); at !== undefined && at <= time; at = clock.nextTimerAt()) {
      await clock.advance(at - clock.now());
      await calm();
    }
  };
  return { tenants, seen, webhooks, emit, runUntil, respond: () => gate.resolve(undefined) };
}

/** @param open opens a storage with the time of the service's clock. The test closes it. */
export function testHookContexts(name: string, open: () => Storage | Promise<Storage>): void {
  it.each([
    ["with delivery.send", true, "delivery.send"],
    ["with the HTTP client", false, "destinations.resolve"],
  ])(
    `a delivery's hooks run in the context of start(), whichever tenant emits: ${name}, %s`,
    async (_, sends, sender) => {
      const storage = await open();
      onTestFinished(() => storage.close());
      const { tenants, seen, webhooks, emit, runUntil, respond } = openHost(storage, sends);
      for (const account of TENANTS)
        await tenants.run(account, () =>
          webhooks.registrations.create({ subscriber: { id: "key", account }, url: URL_1 }),
        );
      await tenants.run("service", () => webhooks.start());
      // More than there are slots: later ones are claimed when one is freed.
      await Promise.all([...TENANTS, ...TENANTS, ...TENANTS, ...TENANTS].map(emit));
      respond();
      await tenants.run("idle", () => webhooks.idle());
      await runUntil(START + 5 * MINUTE);
      await tenants.run("stop", () => webhooks.stop());
      const contexts = Object.fromEntries([...seen].map(([hook, found]) => [hook, [...found]]));
      const service = ["service"];
      expect(contexts).toMatchObject({
        canRead: service,
        "delivery.headers": service,
        [sender]: service,
        "notify.warning": service,
        "notify.disabled": service,
        "notify.exhausted": service,
        "notify.close": service,
        "audit: webhook.created": TENANTS,
        "audit: webhook.disabled": service,
        "telemetry.begin: attempt": service,
        "telemetry.record: attemptDuration": service,
        "telemetry.begin: claim": service,
        "telemetry.begin: emit": TENANTS,
        "logger: a delivery attempt failed": service,
        "resolveReference of clinic-a": ["clinic-a"],
        "resolveReference of clinic-b": ["clinic-b"],
      });
    },
  );
}
