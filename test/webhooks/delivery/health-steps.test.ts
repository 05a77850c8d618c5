import { describe, expect, it } from "vitest";
import { failing, type Notification, type Watched } from "../../support/failing-endpoint.js";
import { DAY, forever, HOUR, held, MINUTE, SECOND, START } from "../../support/webhook-harness.js";

describe("a health step that is overtaken", () => {
  /** Has `meanwhile` happen just before the service sets DISABLED. */
  async function overtaken(
    meanwhile: (service: Watched["webhooks"], id: string) => Promise<unknown>,
  ): Promise<Watched> {
    const watched = await failing({
      change: (store) => ({
        async settleHealthNotification(request) {
          if (request.status === "DISABLED") await meanwhile(watched.webhooks, watched.id);
          return store.settleHealthNotification(request);
        },
      }),
    });
    await watched.emit();
    await watched.runUntil(START + 10 * DAY);
    return watched;
  }

  it.each([
    ["a user disables the endpoint himself", { status: "DISABLED" as const }],
    ["gives it a new url", { url: "https://hooks.example.com/new" }],
  ])("is not taken where %s in the last moment, and nothing is announced", async (_, change) => {
    const { webhooks, id, told } = await overtaken((service, webhook) =>
      service.registrations.update({ id: webhook, ...change }),
    );
    expect(told.map(([kind]) => kind)).toEqual(["warning"]);
    expect(await webhooks.registrations.get(id)).toMatchObject({ ...change, failingSince: null });
  });

  it("is not taken of a webhook that is deleted in the last moment, before or after it is recorded", async () => {
    const before = await overtaken((service, id) => service.registrations.remove(id));
    expect(before.told.map(([kind]) => kind)).toEqual(["warning"]);
    const after = await failing({
      change: (store) => ({
        async settleHealthNotification(request) {
          const isSettled = await store.settleHealthNotification(request);
          if (request.status === "DISABLED") {
            const { id, account, now } = request;
            await store.removeWebhook({ id, account, now });
          }
          return isSettled;
        },
      }),
    });
    await after.emit();
    await after.runUntil(START + 10 * DAY);
    expect(after.told.map(([kind]) => kind)).toEqual(["warning"]);
  });

  it("is not taken where the endpoint recovered while it was being looked up", async () => {
    let isLate = false;
    const { emit, runUntil, told, record, id } = await failing({
      change: (store) => ({
        async claimHealthNotifications(request) {
          const claimed = await store.claimHealthNotifications(request);
          if (!isLate) return claimed;
          const webhooks = claimed.webhooks.map((webhook) => ({ ...webhook, failingSince: null }));
          return { ...claimed, webhooks };
        },
      }),
    });
    await emit();
    await runUntil(START + 71 * HOUR);
    isLate = true;
    await runUntil(START + 5 * DAY);
    expect(told).toEqual([]);
    expect(await record(id)).toMatchObject({ status: "ENABLED", warnedAt: null });
  });
});

describe("an endpoint that was failing before the host changed its mind", () => {
  it("is warned of when the new time has come, also where that is later", async () => {
    const first = await failing();
    await first.emit();
    await first.runUntil(START + HOUR);
    await first.webhooks.stop();
    const { told, runUntil } = await failing({
      storage: first.storage,
      clock: first.clock,
      options: { endpoints: { warnAfterMs: 5 * DAY, disableAfterMs: 6 * DAY } },
    });
    // `options` took the notifiers' place: what is told is seen in the record.
    expect(told).toEqual([]);
    await runUntil(START + 5 * DAY - 1);
    expect(await first.record(first.id)).toMatchObject({ warnedAt: null, noticeAt: START + 5 * DAY });
    await runUntil(START + 5 * DAY);
    expect(await first.record(first.id)).toMatchObject({ warnedAt: START + 5 * DAY });
    await runUntil(START + 6 * DAY);
    expect(await first.record(first.id)).toMatchObject({ status: "DISABLED" });
  });
});

describe("a notifier of the host", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("mail server away");
      },
    ],
    ["rejects", () => Promise.reject(new Error("mail server away"))],
    ["hangs", () => forever()],
  ])("that %s is called again a minute later, until it worked", async (_, fail: () => unknown) => {
    const { emit, runUntil, told, log } = await failing({}, (count) =>
      count === 1 || count === 3 ? fail() : undefined,
    );
    await emit();
    await runUntil(START + 10 * DAY);
    expect(told.map(([kind, at]) => `${kind} ${at}`)).toEqual([
      "warning 72:00",
      "warning 72:01",
      "disabled 96:01",
      "disabled 96:02",
    ]);
    expect(log.filter((line) => line.includes("a notifier of the host failed"))).toHaveLength(2);
  });

  it("that never works is given up when the endpoint would have been disabled: that comes a day later, with an alarm", async () => {
    const { emit, runUntil, told, log, id, webhooks } = await failing({}, () => {
      throw new Error("mail server away");
    });
    await emit();
    await runUntil(START + 96 * HOUR - 1);
    expect(told).toHaveLength(24 * 60);
    await runUntil(START + 120 * HOUR - 1);
    expect(told).toHaveLength(24 * 60 + 1);
    const alarm = "error a failing endpoint will be disabled though no notifier took the warning";
    expect(log.filter((line) => line === alarm)).toHaveLength(1);
    const { health } = await webhooks.deliveries.stats(id);
    expect(health).toMatchObject({ status: "warned", disableAt: new Date(START + 120 * HOUR) });
    expect((await webhooks.registrations.get(id)).status).toBe("ENABLED");
    await runUntil(START + 120 * HOUR);
    expect((await webhooks.registrations.get(id)).status).toBe("DISABLED");
    expect(told.at(-1)).toEqual(["disabled", "120:00", "0:00"]);
  });

  it("that hangs keeps no attempt waiting", async () => {
    const { emit, runUntil, told, sent } = await failing({}, () => forever());
    await emit();
    await runUntil(START + 72 * HOUR + SECOND);
    expect(told).toHaveLength(1);
    const before = sent.length;
    await emit();
    await runUntil(START + 72 * HOUR + 2 * SECOND);
    expect(sent).toHaveLength(before + 1);
  });
});

describe("two services on one storage", () => {
  it("warn once and disable once", async () => {
    const one = await failing();
    const two = await failing({ storage: one.storage, clock: one.clock });
    await one.webhooks.registrations.remove(two.id);
    await one.emit();
    await one.runUntil(START + 10 * DAY);
    const told = [...one.told, ...two.told].map(([kind, at]) => `${at} ${kind}`);
    // Either service may have been the one that told.
    expect(told.sort()).toEqual(["72:00 warning", "96:00 disabled"]);
  });

  it("do not miss the warning where the one that saw the failures is gone", async () => {
    const one = await failing();
    let isFirst = true;
    const two = await failing({
      storage: one.storage,
      clock: one.clock,
      change: (store) => ({
        claim: async (request) => (isFirst ? { claims: [], nextAt: null } : store.claim(request)),
      }),
    });
    await one.webhooks.registrations.remove(two.id);
    await one.emit();
    await one.runUntil(START + 71 * HOUR + 50 * MINUTE);
    await one.webhooks.stop();
    isFirst = false;
    await two.runUntil(START + 10 * DAY);
    const at = told(two, "warning");
    expect(one.told).toEqual([]);
    expect(at).toBeGreaterThanOrEqual(72);
    expect(at).toBeLessThanOrEqual(73);
    expect(told(two, "disabled")).toBeLessThanOrEqual(97);
  });

  it("announce the disabling also where the first one died right after it", async () => {
    const dead = held<undefined>();
    let isDisabled = false;
    const one = await failing({
      change: (store) => ({
        async settleHealthNotification(request) {
          const result = await store.settleHealthNotification(request);
          isDisabled ||= request.status === "DISABLED";
          return isDisabled ? dead.promise.then(() => result) : result;
        },
      }),
    });
    await one.emit();
    await one.runUntil(START + 96 * HOUR);
    expect(isDisabled).toBe(true);
    expect(one.told.map(([kind]) => kind)).toEqual(["warning"]);
    await one.stop(0);

    const two = await failing({ storage: one.storage, clock: one.clock });
    await two.run(10 * DAY);
    expect(two.told).toEqual([["disabled", "96:01", "0:00"]]);
    expect((await two.webhooks.registrations.get(one.id)).status).toBe("DISABLED");
  });

  it("do not announce what a user re-enabled in between", async () => {
    const one = await failing({
      change: (store) => ({
        async settleHealthNotification(request) {
          const isSettled = await store.settleHealthNotification(request);
          return request.status === "DISABLED" ? forever() : isSettled;
        },
      }),
    });
    await one.emit();
    await one.runUntil(START + 96 * HOUR);
    await one.stop(0);
    await one.webhooks.registrations.update({ id: one.id, status: "ENABLED" });
    const two = await failing({ storage: one.storage, clock: one.clock });
    await two.run(10 * DAY);
    expect(two.told).toEqual([]);
  });
});

describe("a storage that is away when a health step is due", () => {
  it("is called again, and the step is taken then", async () => {
    let isAway = false;
    const away = (): Promise<never> => Promise.reject(new Error("storage away"));
    const { emit, runUntil, told, log } = await failing({
      change: (store) => ({
        claimHealthNotifications: (request) => (isAway ? away() : store.claimHealthNotifications(request)),
      }),
    });
    await emit();
    await runUntil(START + 71 * HOUR);
    isAway = true;
    await runUntil(START + 72 * HOUR + MINUTE);
    expect(told).toEqual([]);
    isAway = false;
    await runUntil(START + 10 * DAY);
    expect(told).toEqual([
      ["warning", "72:01:01", "0:00"],
      ["disabled", "96:01:01", "0:00"],
    ]);
    expect(log).toContain("error the storage could not be asked for due health notifications");
  });

  it("makes the host hear the warning again where it could not be recorded", async () => {
    let failures = 1;
    const { emit, runUntil, told, log } = await failing({
      change: (store) => ({
        settleHealthNotification: (request) =>
          failures-- > 0
            ? Promise.reject(new Error("storage away"))
            : store.settleHealthNotification(request),
      }),
    });
    await emit();
    await runUntil(START + 10 * DAY);
    expect(told.map(([kind, at]) => `${kind} ${at}`)).toEqual([
      "warning 72:00",
      "warning 72:01",
      "disabled 96:01",
    ]);
    expect(log).toContain("error a health step could not be recorded");
  });
});

/** Hours after the start at which the host was told, of the one time it should have been. */
function told({ told: all }: Watched, wanted: Notification[0]): number {
  const times = all.filter(([kind]) => kind === wanted).map(([, at]) => at);
  expect(times).toHaveLength(1);
  const [hours, minutes, seconds = "0"] = (times[0] ?? "").split(":");
  return Number(hours) + Number(minutes) / 60 + Number(seconds) / 3600;
}
