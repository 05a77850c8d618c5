import { describe, expect, it } from "vitest";
import type { HttpResponse } from "../../src/ports.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import {
  DAY,
  forever,
  MINUTE,
  openHarness,
  SECOND,
  START,
  SUBSCRIBER,
  startHarness,
} from "../support/webhook-harness.js";

/** A harness whose storage hangs in the named method while `isHanging`. */
async function hangingIn(method: keyof WebhookStore) {
  const hang = { isHanging: false };
  const harness = await startHarness({
    change: (store) => ({
      [method]: (...given: unknown[]) =>
        hang.isHanging ? forever() : (store[method] as (...all: unknown[]) => unknown)(...given),
    }),
  });
  const { id } = await harness.register();
  return { ...harness, hang, id };
}

type Hanging = Awaited<ReturnType<typeof hangingIn>>;

const request = ({ webhooks }: Hanging, method: string, path: string): Promise<HttpResponse | undefined> =>
  webhooks.handle({
    method,
    path,
    query: "",
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    body:
      method === "GET" || method === "DELETE"
        ? null
        : Buffer.from(
            JSON.stringify({
              url: "https://a.example.com/",
              ...(method === "PUT" ? { status: "ENABLED" } : {}),
            }),
          ),
    baseUrl: "https://api.example.com",
  });

const calls: readonly [method: keyof WebhookStore, call: (hanging: Hanging) => PromiseLike<unknown>][] = [
  [
    "createWebhook",
    ({ webhooks }) =>
      webhooks.registrations.create({ subscriber: SUBSCRIBER, url: "https://a.example.com/" }),
  ],
  ["getWebhook", ({ webhooks, id }) => webhooks.registrations.get(id)],
  ["listWebhooks", ({ webhooks }) => webhooks.registrations.list({ account: SUBSCRIBER.account })],
  ["updateWebhook", ({ webhooks, id }) => webhooks.registrations.update({ id, status: "DISABLED" })],
  ["removeWebhook", ({ webhooks, id }) => webhooks.registrations.remove(id)],
  ["append", ({ emit }) => emit()],
  ["listDeliveries", ({ webhooks, id }) => webhooks.deliveries.list({ webhookId: id })],
  ["readDeliveriesAfter", ({ webhooks, id }) => webhooks.deliveries.listEvents({ webhookId: id })],
  ["getDelivery", ({ webhooks, id }) => webhooks.deliveries.get(`${id}.${id}`)],
  [
    "getEvent",
    async ({ webhooks, id, hang, emit }) => {
      hang.isHanging = false;
      const delivery = `${id}.${await emit()}`;
      hang.isHanging = true;
      return webhooks.deliveries.inspect({ id: delivery });
    },
  ],
  ["recover", ({ webhooks, id }) => webhooks.deliveries.recover({ webhookId: id, since: new Date(START) })],
];

describe("a storage call that never settles", () => {
  it.each(calls)("rejects after four seconds: %s", async (method, call) => {
    const hanging = await hangingIn(method);
    hanging.hang.isHanging = true;
    const refused = call(hanging).then(undefined, (error: unknown) => error);
    await hanging.clock.advance(4 * SECOND);
    expect(await refused).toMatchObject({ code: "storage_unavailable" });
    hanging.hang.isHanging = false;
    await expect(hanging.webhooks.registrations.get(hanging.id)).resolves.toMatchObject({ id: hanging.id });
  });

  it.each([
    ["createWebhook", "POST", ""],
    ["listWebhooks", "GET", ""],
    ["getWebhook", "GET", "/x"],
    ["updateWebhook", "PUT", "/x"],
    ["removeWebhook", "DELETE", "/x"],
  ] as const)("is answered 503 with Retry-After within five seconds: %s", async (method, verb, suffix) => {
    const hanging = await hangingIn(method);
    hanging.hang.isHanging = true;
    const answer = request(hanging, verb, `/v1/webhooks${suffix && `/${hanging.id}`}`);
    await hanging.clock.advance(5 * SECOND);
    expect(await answer).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
  });

  it.each(["claim", "claimHealthNotifications"] as const)("does not stop the loop: %s", async (method) => {
    const hanging = await hangingIn(method);
    hanging.hang.isHanging = true;
    await hanging.emit();
    await hanging.run(MINUTE);
    hanging.hang.isHanging = false;
    await hanging.run(2 * MINUTE);
    expect(await hanging.store.stats()).toMatchObject({ pending: 0, ended: 1 });
  });

  it("does not keep stop() from resolving, nor a later start() from delivering", async () => {
    const hanging = await hangingIn("settle");
    hanging.hang.isHanging = true;
    await hanging.emit();
    await hanging.quiet();
    const stopped = hanging.webhooks.stop({ graceMs: 0 });
    await hanging.clock.advance(10 * SECOND);
    await stopped;
    hanging.hang.isHanging = false;
    await hanging.webhooks.start();
    await hanging.run(5 * MINUTE);
    expect(await hanging.store.stats()).toMatchObject({ pending: 0, ended: 1 });
  });
});

describe("a storage that hangs while attempts hang", () => {
  it("keeps stop() for four seconds after the grace, and not longer", async () => {
    const hanging = await hangingIn("settle");
    hanging.respond(() => forever());
    await hanging.emit();
    await hanging.quiet();
    hanging.hang.isHanging = true;
    const stopped = hanging.webhooks.stop({ graceMs: SECOND });
    await hanging.clock.advance(SECOND);
    await hanging.clock.advance(4 * SECOND);
    await stopped;
    expect(await hanging.store.stats()).toMatchObject({ pending: 1, leased: 1 });
  });
});

describe("start and stop", () => {
  it("end in the state of the last call, in any order of calls", async () => {
    const { webhooks, register, emit, quiet, sent } = openHarness();
    await register();
    await webhooks.start();
    const calls = [webhooks.stop(), webhooks.start(), webhooks.stop()];
    await Promise.all(calls);
    await emit();
    await quiet();
    expect(sent).toEqual([]);
    await Promise.all([webhooks.stop(), webhooks.start(), webhooks.stop(), webhooks.start()]);
    await quiet();
    expect(sent).toHaveLength(1);
  });
});

describe("idle", () => {
  it("waits for a health notification that takes longer than the deliveries", async () => {
    let told = (): void => {};
    const { webhooks, register, emit, clock } = await startHarness({
      answer: () => 500,
      options: {
        notify: {
          warning: () =>
            new Promise<void>((resolve) => {
              told = resolve;
            }),
        },
        limits: { hookMs: 60_000 },
      },
    });
    await register();
    await emit();
    await webhooks.idle();
    await clock.advance(3 * DAY);
    const idle = webhooks.idle();
    await clock.advance(SECOND);
    told();
    await expect(idle).resolves.toBeUndefined();
  });
});

describe("an event whose process dies at every attempt", () => {
  it("fails at the end of its window, after ever longer pauses", async () => {
    const { webhooks, register, emit, run, sent } = await startHarness({
      answer: () => 500,
      // No attempt is ever settled, because the process has died by then.
      change: (store) => ({
        settle: (settlements) =>
          settlements.some(({ attempt }) => attempt)
            ? Promise.reject(new Error("dead"))
            : store.settle(settlements),
      }),
    });
    const { id } = await register();
    const eventId = await emit();
    await run(5 * DAY);
    const { state, reason } = await webhooks.deliveries.get(`${id}.${eventId}`);
    expect({ state, reason }).toEqual({ state: "failed", reason: "crashed" });
    expect(sent.length).toBeGreaterThan(10);
    expect(sent.length).toBeLessThan(25);
  });
});

describe("an account", () => {
  it("cannot fill the service with DISABLED webhooks", async () => {
    const { webhooks } = await startHarness({ options: { limits: { webhooks: 20 } } });
    const create = async (): Promise<void> => {
      const { webhook } = await webhooks.registrations.create({
        subscriber: SUBSCRIBER,
        url: "https://a.example.com/",
      });
      await webhooks.registrations.update({ id: webhook.id, status: "DISABLED" });
    };
    for (let count = 0; count < 20; count++) await create();
    await expect(create()).rejects.toMatchObject({ code: "webhook_limit_reached" });
    await expect(
      webhooks.registrations.create({
        subscriber: { id: "key-2", account: "hospital" },
        url: "https://a.example.com/",
      }),
    ).resolves.toMatchObject({ webhook: { status: "ENABLED" } });
  });
});
