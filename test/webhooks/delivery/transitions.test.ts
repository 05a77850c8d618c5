import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { isPostbellError } from "../../../src/index.js";
import type { OutboundResult } from "../../../src/ports.js";
import {
  ATTEMPT_TIMES,
  clockTime,
  DAY,
  type Harness,
  HOUR,
  held,
  isSignedBy,
  MINUTE,
  openHarness,
  response,
  SECOND,
  START,
  SUBSCRIBER,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

/**
 * No jitter, so that times can be compared as they are; the endpoint is not disabled by the
 * service.
 */
const PUNCTUAL = {
  retry: { jitter: 0 },
  endpoints: { warnAfterMs: 100 * DAY, disableAfterMs: 101 * DAY },
};

const failingHarness = (): Promise<Harness> => startHarness({ answer: () => 500, options: PUNCTUAL });

const minutesOf = (time: string): number => {
  const [hours, minutes] = time.split(":").map(Number);
  return (hours ?? 0) * 60 + (minutes ?? 0);
};

const deliveryOf = async ({ webhooks }: Harness, webhookId: string, eventId: string): Promise<object> =>
  webhooks.deliveries.get(`${webhookId}.${eventId}`);

/** True if the Standard Webhooks header lists the signature that this secret makes. */
function hasStandardSignature(sent: Harness["sent"][number] | undefined, secret: string): boolean {
  if (sent === undefined) return false;
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": header } = sent.headers;
  const signed = `${id}.${timestamp}.${Buffer.from(sent.body).toString()}`;
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const expected = `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  return header?.split(" ").includes(expected) ?? false;
}

describe("a webhook", () => {
  it("is ENABLED when it is created, and its secret is given then and never again", async () => {
    const { webhooks } = openHarness();
    const { webhook, secret } = await webhooks.registrations.create({
      subscriber: SUBSCRIBER,
      url: "https://hooks.example.com/a",
    });
    expect(webhook.status).toBe("ENABLED");
    expect(secret).toMatch(/^whsec_.{43}=$/);
    const shown = [
      await webhooks.registrations.get(webhook.id),
      await webhooks.registrations.list({ account: "clinic" }),
      await webhooks.registrations.update({ id: webhook.id, status: "DISABLED" }),
    ];
    expect(JSON.stringify(shown)).not.toContain("secret");
    expect(JSON.stringify(shown)).not.toContain(secret);
  });

  it.each(ATTEMPT_TIMES.slice(1))(
    "that is disabled when the retry at %s is due skips it, and goes on with the next once enabled again",
    async (time) => {
      const harness = await failingHarness();
      const { id } = await harness.register();
      await harness.emit();
      await harness.runUntil(START + minutesOf(time) * MINUTE - SECOND);
      await harness.webhooks.registrations.update({ id, status: "DISABLED" });
      await harness.run(2 * SECOND);
      await harness.webhooks.registrations.update({ id, status: "ENABLED" });
      await harness.runUntil(START + 4 * DAY);
      expect(harness.times()).toEqual(ATTEMPT_TIMES.filter((each) => each !== time));
    },
  );

  it("that is disabled before the first attempt skips that one too", async () => {
    const { register, emit, webhooks, run, times } = openHarness({ options: PUNCTUAL });
    const { id } = await register();
    await emit();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await webhooks.start();
    await run(MINUTE);
    await webhooks.registrations.update({ id, status: "ENABLED" });
    await run(DAY);
    expect(times()).toEqual(["0:15"]);
  });

  it("that is disabled and enabled again between two retries misses none", async () => {
    const { register, emit, webhooks, runUntil, times } = await failingHarness();
    const { id } = await register();
    await emit();
    await runUntil(START + 16 * MINUTE);
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await runUntil(START + 44 * MINUTE);
    await webhooks.registrations.update({ id, status: "ENABLED" });
    await runUntil(START + 4 * DAY);
    expect(times()).toEqual(ATTEMPT_TIMES);
  });

  it("that stays disabled to the end of the window is sent nothing, and the delivery fails for that", async () => {
    const harness = await failingHarness();
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.runUntil(START + MINUTE);
    await harness.webhooks.registrations.update({ id, status: "DISABLED" });
    await harness.runUntil(START + 71 * HOUR);
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({ state: "pending" });
    await harness.runUntil(START + 4 * DAY);
    expect(harness.sent).toHaveLength(1);
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({
      state: "failed",
      reason: "disabled",
      nextAttemptAt: null,
      endedAt: new Date(START + 71.75 * HOUR),
    });
  });

  it("is enabled again only where fewer than fifteen others are", async () => {
    const { register, webhooks } = openHarness();
    const { id } = await register();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    const others = [];
    for (let count = 0; count < 15; count++)
      others.push(await register(`https://hooks.example.com/${count}`));
    const enable = (): Promise<unknown> => webhooks.registrations.update({ id, status: "ENABLED" });
    await expect(enable()).rejects.toMatchObject({ code: "webhook_limit_reached" });
    expect((await webhooks.registrations.get(id)).status).toBe("DISABLED");
    await webhooks.registrations.remove(others[0]?.id ?? "");
    await expect(enable()).resolves.toMatchObject({ status: "ENABLED" });
  });

  it("that the service disabled skips its retries, and gets those still pending when a user enables it", async () => {
    const { register, emit, webhooks, runUntil, sent } = await startHarness({
      answer: () => 500,
      options: { retry: { jitter: 0 } },
    });
    const { id } = await register();
    await emit();
    await runUntil(START + 95 * HOUR);
    const late = await emit();
    await runUntil(START + 95 * HOUR + 20 * MINUTE);
    await runUntil(START + 120 * HOUR);
    expect((await webhooks.registrations.get(id)).status).toBe("DISABLED");
    const timesOfLate = (): string[] =>
      sent.filter(({ eventId }) => eventId === late).map(({ at }) => clockTime(at - START - 95 * HOUR));
    expect(timesOfLate()).toEqual(["0:00", "0:15", "0:45"]);
    await webhooks.registrations.update({ id, status: "ENABLED" });
    await runUntil(START + 140 * HOUR);
    expect(timesOfLate()).toEqual(["0:00", "0:15", "0:45", "31:45", "39:45"]);
  });

  it.each(["ENABLED", "DISABLED"] as const)("that is %s and deleted is sent nothing more", async (status) => {
    const { register, emit, webhooks, run, sent, store } = await failingHarness();
    const { id } = await register();
    const eventId = await emit();
    await run(MINUTE);
    await webhooks.registrations.update({ id, status });
    await webhooks.registrations.remove(id);
    await run(10 * DAY);
    expect(sent).toHaveLength(1);
    await expect(webhooks.registrations.get(id)).rejects.toMatchObject({ code: "not_found" });
    await expect(webhooks.deliveries.get(`${id}.${eventId}`)).rejects.toMatchObject({ code: "not_found" });
    expect(await store.stats()).toMatchObject({ webhooks: 0, pending: 0, leased: 0, ended: 0 });
  });

  it.each([200, 500])(
    "deleted while it is being sent to is gone for good, though it answers %i",
    async (status) => {
      const answer = held<OutboundResult>();
      const { register, emit, webhooks, quiet, run, sent, store } = await startHarness({
        answer: () => answer.promise,
      });
      const { id } = await register();
      await emit();
      await quiet();
      await webhooks.registrations.remove(id);
      answer.resolve(response(status));
      await run(10 * DAY);
      expect(sent).toHaveLength(1);
      expect(await store.stats()).toMatchObject({ webhooks: 0, pending: 0, leased: 0, ended: 0 });
    },
  );

  it("disabled while it is being sent to skips the next retry, if the attempt fails", async () => {
    const answer = held<OutboundResult>();
    const harness = await startHarness({ answer: () => answer.promise, options: PUNCTUAL });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.quiet();
    await harness.webhooks.registrations.update({ id, status: "DISABLED" });
    answer.resolve(unreachable);
    await harness.run(20 * MINUTE);
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({
      state: "pending",
      attempts: [{ kind: "connect", step: 0 }],
      nextAttemptAt: new Date(START + 45 * MINUTE),
    });
    await harness.webhooks.registrations.update({ id, status: "ENABLED" });
    harness.respond(() => 200);
    await harness.run(DAY);
    expect(harness.times()).toEqual(["0:00", "0:45"]);
  });

  it("disabled while it is being sent to has its delivery delivered, if the attempt succeeds", async () => {
    const answer = held<OutboundResult>();
    const harness = await startHarness({ answer: () => answer.promise });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.quiet();
    await harness.webhooks.registrations.update({ id, status: "DISABLED" });
    answer.resolve(response(200));
    await harness.quiet();
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({ state: "delivered" });
  });

  it("whose url changes gets its pending deliveries there", async () => {
    const { register, emit, webhooks, run, sent } = await failingHarness();
    const { id } = await register("https://hooks.example.com/old");
    await emit();
    await run(20 * MINUTE);
    await webhooks.registrations.update({ id, url: "https://hooks.example.com/new" });
    await run(DAY);
    expect([...new Set(sent.slice(0, 2).map(({ url }) => url))]).toEqual(["https://hooks.example.com/old"]);
    expect([...new Set(sent.slice(2).map(({ url }) => url))]).toEqual(["https://hooks.example.com/new"]);
  });

  it("whose url changes during an attempt is not failing for how the old one answered", async () => {
    const answer = held<OutboundResult>();
    const { register, emit, webhooks, quiet, record } = await startHarness({ answer: () => answer.promise });
    const { id } = await register("https://hooks.example.com/old");
    await emit();
    await quiet();
    await webhooks.registrations.update({ id, url: "https://hooks.example.com/new" });
    answer.resolve(unreachable);
    await quiet();
    expect(await record(id)).toMatchObject({ failingSince: null, noticeAt: null });
  });

  it("whose url changes during an attempt is not well for how the old one answered, but has got that delivery", async () => {
    const answer = held<OutboundResult>();
    const harness = await startHarness({
      answer: ({ url }) => (url.endsWith("old") ? answer.promise : 500),
    });
    const { id } = await harness.register("https://hooks.example.com/old");
    const eventId = await harness.emit();
    await harness.quiet();
    await harness.webhooks.registrations.update({ id, url: "https://hooks.example.com/new" });
    await harness.emit();
    await harness.quiet();
    answer.resolve(response(200));
    await harness.quiet();
    expect(await harness.record(id)).toMatchObject({ failingSince: START });
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({ state: "delivered" });
  });
});

describe("a delivery", () => {
  it.each([200, 201, 202, 204, 226, 299])(
    "is delivered by a %i, and nothing is sent after it",
    async (status) => {
      const harness = await startHarness({ answer: () => status });
      const { id } = await harness.register();
      const eventId = await harness.emit();
      await harness.run(10 * DAY);
      expect(harness.times()).toEqual(["0:00"]);
      expect(harness.sent[0]).toMatchObject({ method: "POST", url: "https://hooks.example.com/a" });
      // Ended, and past the retention.
      await expect(deliveryOf(harness, id, eventId)).rejects.toSatisfy((error) =>
        isPostbellError(error, "not_found"),
      );
    },
  );

  const failures: readonly (number | OutboundResult)[] = [
    ...[100, 199, 300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 410, 429, 500, 503, 600],
    ...(["refused", "dns", "connect", "tls", "timeout", "http"] as const).map(
      (kind): OutboundResult => ({ kind, code: "CODE", message: "message" }),
    ),
  ];
  it.each(
    failures.map((failure) => [typeof failure === "number" ? failure : failure.kind, failure] as const),
  )("stays pending after %s, and is tried again", async (_, failure) => {
    let count = 0;
    const harness = await startHarness({ answer: () => (++count === 1 ? failure : 200), options: PUNCTUAL });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(MINUTE);
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({
      state: "pending",
      nextAttemptAt: new Date(START + 15 * MINUTE),
      attempts: [{ at: new Date(START), step: 0 }],
    });
    await harness.run(HOUR);
    expect(harness.times()).toEqual(["0:00", "0:15"]);
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({
      state: "delivered",
      reason: null,
      attempts: [{}, { step: 1, kind: "delivered", status: 200, code: "HTTP_200", excerpt: null }],
    });
  });

  it("fails after fourteen attempts in three days, at the times of the document", async () => {
    const harness = await failingHarness();
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(3 * DAY);
    expect(harness.times()).toEqual(ATTEMPT_TIMES);
    expect(await deliveryOf(harness, id, eventId)).toMatchObject({
      state: "failed",
      reason: "exhausted",
      endedAt: new Date(START + 71.75 * HOUR),
    });
    await harness.run(30 * DAY);
    expect(harness.sent).toHaveLength(14);
  });

  it("is delayed by Retry-After of a 429 or 503 to the following step at most, by no other response", async () => {
    const wish = (status: number, seconds: string) => (): OutboundResult =>
      response(status, { "retry-after": seconds });
    const { register, emit, respond, run, times } = await startHarness({ options: PUNCTUAL });
    await register();
    respond(wish(429, "1200"));
    await emit();
    await run(SECOND);
    respond(wish(503, "999999"));
    await run(HOUR);
    respond(wish(500, "9000"));
    await run(4 * HOUR);
    expect(times()).toEqual(["0:00", "0:20", "1:45", "3:45"]);
  });

  it("overtakes an earlier one that waits for its retry", async () => {
    const { register, emit, respond, run, sent } = await startHarness({ answer: () => 500 });
    await register();
    const first = await emit();
    await run(MINUTE);
    respond(() => 200);
    const second = await emit();
    await run(HOUR);
    expect(sent.map(({ eventId }) => eventId)).toEqual([first, second, first]);
  });

  it("is the same body in every attempt, each with a new signature", async () => {
    const { register, emit, run, sent } = await failingHarness();
    await register();
    await emit();
    await run(4 * DAY);
    expect(sent).toHaveLength(14);
    expect(new Set(sent.map(({ body }) => Buffer.from(body).toString())).size).toBe(1);
    const signatures = sent.map(({ headers }) => headers["X-Service-Signature"] ?? "");
    expect(new Set(signatures).size).toBe(14);
    const timestamps = signatures.map((signature) =>
      Number(/^t=([0-9]+), s=[0-9a-f]{64}$/.exec(signature)?.[1]),
    );
    expect(timestamps).toEqual(sent.map(({ at }) => at / 1000));
  });

  it("carries the headers of the Standard Webhooks scheme too where the host wants them", async () => {
    const { register, emit, run, sent } = await startHarness({
      answer: () => 500,
      options: { signature: { standardWebhooks: true, header: "X-Signature" } },
    });
    const { secret } = await register();
    const eventId = await emit();
    await run(20 * MINUTE);
    expect(sent).toHaveLength(2);
    for (const { headers, at, body } of sent) {
      expect(headers).toMatchObject({
        "webhook-id": eventId,
        "webhook-timestamp": String(Math.floor(at / 1000)),
      });
      const key = Buffer.from(secret.replace("whsec_", ""), "base64");
      const signed = `${eventId}.${Math.floor(at / 1000)}.${Buffer.from(body).toString()}`;
      expect(headers["webhook-signature"]).toBe(
        `v1,${createHmac("sha256", key).update(signed).digest("base64")}`,
      );
      expect(headers["X-Signature"]).toMatch(/^t=[0-9]+, s=[0-9a-f]{64}$/);
    }
  });

  it("keeps nothing of an answer unless the host asks for it: it may quote the record", async () => {
    const harness = await startHarness({
      answer: () => response(422, {}, "no such family: Chalmers"),
      options: PUNCTUAL,
    });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(MINUTE);
    const delivery = await harness.webhooks.deliveries.get(`${id}.${eventId}`);
    expect(delivery.attempts).toMatchObject([{ status: 422, excerpt: null }]);
    expect(JSON.stringify(delivery)).not.toContain("Chalmers");
  });

  it("keeps the first characters of a refusal, on one line, where the host asks for it, and none of a success", async () => {
    const text = `${"a\r\n\tb\u0000".repeat(100)}`;
    const harness = await startHarness({
      answer: () => response(400, {}, text),
      options: { ...PUNCTUAL, delivery: { excerptCharacters: 200 } },
    });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(MINUTE);
    harness.respond(() => response(400, {}, " \n "));
    await harness.run(20 * MINUTE);
    const { attempts } = await harness.webhooks.deliveries.get(`${id}.${eventId}`);
    expect(attempts.map(({ excerpt }) => excerpt)).toEqual(["a b ".repeat(50), null]);
  });
});

describe("an event emitted while the webhook is disabled", () => {
  it("is not delivered when it is enabled again, and can be recovered, once", async () => {
    const { register, emit, webhooks, run, sent } = await startHarness();
    const { id } = await register();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    const eventId = await emit();
    await webhooks.registrations.update({ id, status: "ENABLED" });
    await run(DAY);
    expect(sent).toEqual([]);
    const since = new Date(START);
    expect(await webhooks.deliveries.recover({ webhookId: id, since })).toEqual({ count: 1 });
    expect(await webhooks.deliveries.recover({ webhookId: id, since })).toEqual({ count: 0 });
    await run(DAY);
    expect(sent.map((one) => one.eventId)).toEqual([eventId]);
    expect(await webhooks.deliveries.recover({ webhookId: id, since })).toEqual({ count: 0 });
  });
});

describe("a secret that is rotated", () => {
  const signer = ({ sent }: Harness, secrets: Record<string, string>): string | undefined => {
    const last = sent.at(-1);
    if (!last) return undefined;
    return Object.entries(secrets).find(([, secret]) => isSignedBy(last, secret))?.[0];
  };

  it("goes on signing until the time for the new one has come", async () => {
    const harness = await startHarness();
    const { id, secret: old } = await harness.register();
    const { secret } = await harness.webhooks.registrations.rotateSecret({ id, overlapMs: HOUR });
    expect(secret).not.toBe(old);
    const signers = [];
    for (const wait of [0, HOUR - 1, 1, DAY]) {
      await harness.run(wait);
      await harness.emit();
      await harness.quiet();
      signers.push(signer(harness, { old, new: secret }));
    }
    expect(signers).toEqual(["old", "old", "new", "new"]);
  });

  it("lists both signatures of Standard Webhooks until then, so that either secret verifies", async () => {
    const harness = await startHarness({ options: { signature: { standardWebhooks: true } } });
    const { id, secret: old } = await harness.register();
    const { secret } = await harness.webhooks.registrations.rotateSecret({ id, overlapMs: HOUR });
    const verified = [];
    for (const wait of [0, HOUR - 1, 1]) {
      await harness.run(wait);
      await harness.emit();
      await harness.quiet();
      verified.push([old, secret].map((known) => hasStandardSignature(harness.sent.at(-1), known)));
    }
    expect(verified).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ]);
    const signatures = harness.sent.map(({ headers }) => headers["webhook-signature"]?.split(" ").length);
    expect(signatures).toEqual([2, 2, 1]);
  });

  it("is replaced at once when the rotation is finished, also in retries of earlier events", async () => {
    const harness = await failingHarness();
    const { id, secret: old } = await harness.register();
    const { secret } = await harness.webhooks.registrations.rotateSecret({ id });
    await harness.emit();
    await harness.run(MINUTE);
    expect(signer(harness, { old, new: secret })).toBe("old");
    await harness.webhooks.registrations.finishRotation(id);
    expect((await harness.webhooks.deliveries.stats(id)).rotatesAt).toBeNull();
    await harness.run(20 * MINUTE);
    expect(signer(harness, { old, new: secret })).toBe("new");
  });

  it("signs no more at once with no overlap, also retries of earlier events", async () => {
    const harness = await failingHarness();
    const { id, secret: old } = await harness.register();
    await harness.emit();
    await harness.run(MINUTE);
    expect(signer(harness, { old })).toBe("old");
    const { secret } = await harness.webhooks.registrations.rotateSecret({ id, overlapMs: 0 });
    await harness.run(20 * MINUTE);
    expect(harness.sent).toHaveLength(2);
    expect(signer(harness, { old, new: secret })).toBe("new");
  });

  it("goes on signing for the first one's time where it is rotated again before", async () => {
    const harness = await startHarness();
    const { id, secret: old } = await harness.register();
    await harness.webhooks.registrations.rotateSecret({ id });
    await harness.run(HOUR);
    const { secret } = await harness.webhooks.registrations.rotateSecret({ id });
    await harness.emit();
    await harness.quiet();
    expect(signer(harness, { old, new: secret })).toBe("old");
    await harness.run(DAY);
    await harness.emit();
    await harness.quiet();
    expect(signer(harness, { old, new: secret })).toBe("new");
  });
});
