/** Examining an endpoint: the requests, the report on good and bad endpoints, and the limits. */

import { describe, expect, it } from "vitest";
import type { Subscriber, WebhooksOptions } from "../../../src/index.js";
import type { OutboundResult } from "../../../src/ports.js";
import { createReceiver } from "../../../src/receiver/index.js";
import type { ManualClock } from "../../../src/testing/manual-clock.js";
import type { Examination } from "../../../src/webhooks/delivery/examination.js";
import type { AuditEntry } from "../../../src/webhooks/webhook.js";
import {
  type Answer,
  held,
  isSignedBy,
  MINUTE,
  response,
  type Sent,
  SUBSCRIBER,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

const COLLEAGUE: Subscriber = { id: "key-2", account: SUBSCRIBER.account };
const STRANGER: Subscriber = { id: "key-1", account: "hospital" };

const NAMES = [
  "signed",
  "prompt",
  "wrong_signature",
  "changed_body",
  "unsigned",
  "old_signature",
  "duplicate",
  "unknown_type",
  "slow_body",
  "large_body",
];

async function start(options: Partial<WebhooksOptions> = {}) {
  const entries: AuditEntry[] = [];
  const harness = await startHarness({ options: { audit: (entry) => void entries.push(entry), ...options } });
  const { id: webhookId, secret } = await harness.register();
  const { deliveries } = harness.webhooks;
  const examine = () => deliveries.examine({ webhookId, evenIfEnabled: true });
  return { ...harness, webhookId, secret, entries, examine, deliveries };
}

/** Responds as Postbell's own receiver does, and counts what reaches the host. */
function startReceiver({ clock, secret }: Awaited<ReturnType<typeof start>>, body?: "plain") {
  const handled: string[] = [];
  const receiver = createReceiver({
    secrets: secret,
    clock,
    logger: false,
    body,
    onEvent: ({ id }: { id: string }) => void handled.push(id),
  } as Parameters<typeof createReceiver>[0]);
  const answer = async ({ headers, body: bytes }: Sent): Promise<ReturnType<typeof response>> => {
    const lower = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const result = await receiver.receive({ body: bytes, headers: lower });
    return response(result.ok ? 204 : result.status);
  };
  return { handled, answer };
}

const resultsOf = ({ checks }: Examination): Record<string, string> =>
  Object.fromEntries(checks.map(({ name, result, problem }) => [name, problem ?? result]));

const all = (result: string, others: Record<string, string> = {}): Record<string, string> => ({
  ...Object.fromEntries(NAMES.map((name) => [name, result])),
  ...others,
});

describe("deliveries.examine", () => {
  it("passes a receiver of createReceiver in every check that can be made", async () => {
    const harness = await start();
    const { handled, answer } = startReceiver(harness);
    harness.respond(answer);
    const report = await harness.examine();
    // The function of this host, in place of the client, writes a body at once.
    expect(resultsOf(report)).toEqual(all("passed", { slow_body: "skipped" }));
    expect(report.checks.map(({ name }) => name)).toEqual(NAMES);
    expect(report.isPassed).toBe(true);
    expect(report.checks.every(({ fix }) => fix === null)).toBe(true);
    // The first one, the unknown type and the large one: neither the repetition nor a bad one.
    expect(handled).toHaveLength(3);
  });

  it("passes a receiver of plain events, and marks what it sends as tests", async () => {
    const harness = await start({
      body: "plain",
      events: { "order.paid": {} },
    } as unknown as Partial<WebhooksOptions>);
    const { answer } = startReceiver(harness, "plain");
    harness.respond(answer);
    expect((await harness.examine()).isPassed).toBe(true);
    const bodies = harness.sent.map(({ body }) => JSON.parse(Buffer.from(body).toString()) as object);
    expect(bodies).toHaveLength(8);
    for (const body of bodies) expect(body).toMatchObject({ test: true });
  });

  it("fails an endpoint that accepts everything in the four checks of the signature, with a fix", async () => {
    const harness = await start();
    const report = await harness.examine();
    expect(report.isPassed).toBe(false);
    expect(resultsOf(report)).toEqual(
      all("passed", {
        wrong_signature: "accepted",
        changed_body: "accepted",
        unsigned: "accepted",
        old_signature: "accepted",
        slow_body: "skipped",
      }),
    );
    const failed = report.checks.filter(({ result }) => result === "failed");
    for (const { fix, status, durationMs } of failed) {
      expect(fix).toContain("createReceiver(");
      expect(status).toBe(200);
      expect(durationMs).toBe(0);
    }
  });

  it("sends each request as its name says", async () => {
    const { sent, secret, examine, clock } = await start({ signature: { standardWebhooks: true } });
    await examine();
    const [first, wrong, changed, unsigned, old, duplicate, unknown, large] = sent as [
      Sent,
      Sent,
      Sent,
      Sent,
      Sent,
      Sent,
      Sent,
      Sent,
    ];
    expect(isSignedBy(first, secret)).toBe(true);
    expect(isSignedBy(wrong, secret)).toBe(false);
    expect(isSignedBy(changed, secret)).toBe(false);
    expect(isSignedBy({ ...changed, body: Buffer.concat([changed.body, Buffer.from(" ")]) }, secret)).toBe(
      true,
    );
    expect(Object.keys(unsigned.headers)).toEqual([
      "content-type",
      "user-agent",
      "webhook-id",
      "webhook-timestamp",
    ]);
    expect(isSignedBy(old, secret)).toBe(true);
    expect(old.headers["webhook-timestamp"]).toBe(String(clock.now() / 1000 - 3600));
    expect(duplicate.body).toEqual(first.body);
    expect(Buffer.from(unknown.body).toString()).toContain('"hub.event":"postbell.unknown-type"');
    expect(large.body.length).toBeGreaterThan(260_000);
    expect(large.body.length).toBeLessThanOrEqual(262_144);
    for (const { body } of sent) expect(Buffer.from(body).toString()).toContain("HTEST");
  });

  it("makes no further check if the first one is not accepted", async () => {
    const harness = await start();
    harness.respond(() => 401);
    expect(resultsOf(await harness.examine())).toEqual(all("skipped", { signed: "refused" }));
    harness.respond(() => unreachable);
    const { checks } = await harness.examine();
    expect(checks[0]).toMatchObject({ problem: "unreachable", status: null, code: "ECONNREFUSED" });
    harness.respond(() => 302);
    expect((await harness.examine()).checks[0]).toMatchObject({ problem: "redirected", status: 302 });
    expect(harness.sent).toHaveLength(3);
  });

  it("tells neither which names exist in the network of the host nor how long they took", async () => {
    const harness = await start();
    const failures = [
      { kind: "refused", code: "R5", message: "" },
      { kind: "refused", code: "R7", message: "" },
      { kind: "dns", code: "ENOTFOUND", message: "" },
      { kind: "dns", code: "ENODATA", message: "" },
      { kind: "dns", code: "ESERVFAIL", message: "" },
    ] as const;
    const reports: Examination["checks"][] = [];
    for (const [index, failure] of failures.entries()) {
      harness.respond(
        () => new Promise((resolve) => harness.clock.setTimeout(() => resolve(failure), 10 * index)),
      );
      const examined = harness.examine();
      await harness.run(MINUTE);
      reports.push((await examined).checks);
    }
    expect(reports[0]?.[0]).toMatchObject({ code: "NO_USABLE_ADDRESS", durationMs: 0 });
    for (const checks of reports) expect(checks).toEqual(reports[0]);
  });

  it("reports a slow first response, an error in place of a refusal, and a refused repetition", async () => {
    const harness = await start();
    const { clock } = harness;
    const seen = new Set<string>();
    harness.respond(({ eventId, headers }) => {
      const isSigned = headers["X-Service-Signature"] !== undefined;
      if (!isSigned) return 500;
      if (seen.has(eventId)) return 409;
      seen.add(eventId);
      return seen.size > 1
        ? 200
        : new Promise((resolve) => clock.setTimeout(() => resolve(response(200)), 3_001));
    });
    const examined = harness.examine();
    await harness.run(3_001);
    const results = resultsOf(await examined);
    expect(results).toMatchObject({ prompt: "late", unsigned: "broken", duplicate: "refused" });
  });

  it("advises by the problem: a 5xx in place of a refusal is no open door", async () => {
    const harness = await start();
    harness.respond((sent) => (isSignedBy(sent, harness.secret) ? 200 : 500));
    const { checks } = await harness.examine();
    const wrong = checks.find(({ name }) => name === "wrong_signature");
    expect(wrong).toMatchObject({ result: "failed", problem: "broken", advice: ["broken_refusal"] });
    expect(wrong?.fix).toMatch(/^It did not accept the event\..*respond 400 or 401/);
    harness.respond(() => 500);
    const [first] = (await harness.examine()).checks;
    expect(first).toMatchObject({ problem: "broken", advice: ["broken"] });
    expect(first?.fix).not.toContain("secret");
  });

  it("waits for the first response as long as deliveries do, and advises to respond promptly", async () => {
    const harness = await start();
    const { clock } = harness;
    harness.respond(() => new Promise((resolve) => clock.setTimeout(() => resolve(response(200)), 14_000)));
    const slow = harness.examine();
    await harness.run(MINUTE);
    const { checks } = await slow;
    expect(checks[0]).toMatchObject({ name: "signed", result: "passed", durationMs: 14_000 });
    expect(checks[1]?.fix).toMatch(/^It is slow, but it works/);
    harness.respond(() => new Promise(() => {}));
    const hanging = harness.examine();
    await harness.run(MINUTE);
    const [first] = (await hanging).checks;
    expect(first).toMatchObject({ problem: "late", advice: ["late"] });
    expect(first?.fix).toContain("Respond first, then work");
  });

  it("decides nothing in an outage of its own resolver, and says so", async () => {
    const harness = await start();
    harness.respond(() => ({ kind: "dns", code: "RESOLVER_UNAVAILABLE", message: "" }));
    const report = await harness.examine();
    expect(report.isPassed).toBe(false);
    expect(report.checks[0]).toMatchObject({ result: "skipped", problem: "unavailable" });
    expect(report.checks[0]?.fix).toContain("says nothing about the endpoint");
    expect(harness.sent).toHaveLength(1);
  });

  it.each([
    [404, "unverified"],
    [408, "unverified"],
    [429, "throttled"],
  ])("does not take a %i to a bad signature for its refusal: %s", async (status, problem) => {
    const harness = await start();
    let count = 0;
    harness.respond(() => (count++ === 0 ? 200 : status));
    const { isPassed, checks } = await harness.examine();
    const bad = checks.filter(({ name }) => /signature|changed|unsigned/.test(name));
    expect(bad).toHaveLength(4);
    for (const check of bad) expect(check).toMatchObject({ result: "skipped", problem, status });
    expect(isPassed).toBe(false);
  });

  it("is ended by stop(), sends nothing afterwards, and is refused until the next start", async () => {
    const harness = await start();
    const { webhooks, sent, examine, clock } = harness;
    await webhooks.start();
    let count = 0;
    const answer = () =>
      count++ < 2
        ? 200
        : new Promise<OutboundResult>((resolve) => clock.setTimeout(() => resolve(response(200)), 100));
    harness.respond(answer);
    const ended = examine().catch((error: unknown) => error);
    await harness.quiet();
    expect(sent).toHaveLength(3);
    await harness.stop(0);
    expect(await ended).toMatchObject({ code: "not_started" });
    await harness.run(MINUTE);
    expect(sent).toHaveLength(3);
    await expect(examine()).rejects.toMatchObject({ code: "not_started" });
    await webhooks.start();
    const again = examine();
    await harness.run(MINUTE);
    expect((await again).checks).toHaveLength(10);
  });

  it("is ended by the signal of its caller, with the reason of the signal", async () => {
    const harness = await start();
    const { deliveries, webhookId, sent } = harness;
    const leave = new AbortController();
    harness.respond(() => new Promise(() => {}));
    const request = { webhookId, evenIfEnabled: true, signal: leave.signal };
    const ended = deliveries.examine(request).catch((error: unknown) => error);
    await harness.quiet();
    leave.abort(new Error("left"));
    expect(await ended).toMatchObject({ message: "left" });
    expect(sent).toHaveLength(1);
    harness.respond(() => 200);
    expect((await harness.examine()).checks).toHaveLength(10);
    const wrong = { ...request, signal: 1 as unknown as AbortSignal };
    await expect(deliveries.examine(wrong)).rejects.toMatchObject({ field: "signal" });
  });

  it("takes at most 25 s from the call on, with slow hooks and a slow endpoint", async () => {
    let clock: ManualClock | undefined;
    const slowly = <T>(value: T, ms: number): Promise<T> =>
      new Promise((resolve) => clock?.setTimeout(() => resolve(value), ms));
    const harness = await start({
      access: { authenticate: () => null, canRead: () => true, canActFor: () => slowly(true, 4_500) },
      delivery: { headers: () => slowly({}, 4_500) },
    });
    clock = harness.clock;
    harness.respond(() => slowly(response(200), 4_900));
    const begunAt = clock.now();
    let endedAt = Number.POSITIVE_INFINITY;
    const examined = harness.webhooks
      .as(COLLEAGUE)
      .deliveries.examine({ webhookId: harness.webhookId, evenIfEnabled: true })
      .finally(() => {
        endedAt = harness.clock.now();
      });
    await harness.run(MINUTE);
    const { isPassed, checks } = await examined;
    expect(endedAt - begunAt).toBeLessThanOrEqual(25_000);
    expect(checks.at(-1)).toMatchObject({ result: "skipped", problem: null });
    expect(isPassed).toBe(false);
  });

  it("ends when its time is over, and says that the rest was not checked", async () => {
    const harness = await start();
    const { clock } = harness;
    harness.respond(() => new Promise((resolve) => clock.setTimeout(() => resolve(response(200)), 4_500)));
    const examined = harness.examine();
    await harness.run(MINUTE);
    const results = resultsOf(await examined);
    expect(harness.sent).toHaveLength(5);
    expect(results).toMatchObject({ old_signature: "accepted", duplicate: "skipped", large_body: "skipped" });
  });

  it("stores no delivery, leaves the health alone, and is audited once", async () => {
    const harness = await start();
    const { webhooks, webhookId, entries } = harness;
    harness.respond(() => 500);
    await harness.examine();
    expect((await webhooks.deliveries.list({ webhookId })).items).toEqual([]);
    expect((await webhooks.registrations.get(webhookId)).failingSince).toBeNull();
    const { lastDay } = await webhooks.deliveries.stats(webhookId);
    expect(lastDay.attempts).toBe(0);
    expect(entries.filter(({ action }) => action === "webhook.examined")).toMatchObject([
      { account: "clinic", actor: { type: "host" }, webhookId },
    ]);
  });

  it("refuses an ENABLED webhook unless confirmed, and examines a DISABLED one", async () => {
    const { webhooks, webhookId, deliveries, sent } = await start();
    await expect(deliveries.examine({ webhookId })).rejects.toMatchObject({ code: "webhook_enabled" });
    await expect(
      deliveries.examine({ webhookId, evenIfEnabled: "yes" as unknown as boolean }),
    ).rejects.toMatchObject({ code: "invalid_request", field: "evenIfEnabled" });
    expect(sent).toEqual([]);
    await webhooks.registrations.update({ id: webhookId, status: "DISABLED" });
    expect((await deliveries.examine({ webhookId })).checks).toHaveLength(10);
  });

  it("is for keys that manage the webhook only", async () => {
    const { webhooks, webhookId, sent } = await start();
    const request = { webhookId, evenIfEnabled: true };
    await expect(webhooks.as(COLLEAGUE).deliveries.examine(request)).rejects.toMatchObject({
      code: "webhook_owned_by_another_key",
    });
    await expect(webhooks.as(STRANGER).deliveries.examine(request)).rejects.toMatchObject({
      code: "not_found",
    });
    expect(sent).toEqual([]);
    expect((await webhooks.as(SUBSCRIBER).deliveries.examine(request)).checks).toHaveLength(10);
  });

  it("runs once at a time for an account, and limits.repairsPerMinute times a minute", async () => {
    const harness = await start({ limits: { repairsPerMinute: 2 } });
    const { examine, clock } = harness;
    const hold = held<Answer>();
    harness.respond(() => hold.promise as Promise<ReturnType<typeof response>>);
    const first = examine();
    await harness.quiet();
    const second = examine().catch((error: unknown) => error);
    await harness.quiet();
    // Before the assertion: a second examination that is not refused ends too, and the test fails.
    hold.resolve(response(500));
    expect(await second).toMatchObject({
      code: "rate_limited",
      message: expect.stringContaining("is running") as unknown,
    });
    await first;
    await examine();
    await expect(examine()).rejects.toMatchObject({ code: "rate_limited", retryAfterMs: 30_000 });
    await clock.advance(30_000);
    await examine();
  });

  it("sends the headers of the webhook and of the host, and nothing if the hook fails", async () => {
    let isBroken = false;
    const harness = await start({
      delivery: {
        headers: () => {
          if (isBroken) throw new Error("no headers");
          return { "X-Host": "1" };
        },
      },
    });
    await harness.examine();
    expect(harness.sent.every(({ headers }) => headers["X-Host"] === "1")).toBe(true);
    const { length } = harness.sent;
    isBroken = true;
    await expect(harness.examine()).rejects.toMatchObject({ code: "access_unavailable" });
    expect(harness.sent).toHaveLength(length);
  });

  it("signs with both secrets during a rotation, so that the endpoint accepts either", async () => {
    const harness = await start();
    const { webhooks, webhookId, secret } = harness;
    await webhooks.registrations.rotateSecret({ id: webhookId });
    await harness.examine();
    expect(isSignedBy(harness.sent[0] as Sent, secret)).toBe(true);
  });

  it("costs a REST client nothing while it is refused, and ends when the client leaves", async () => {
    const { webhooks, webhookId, respond, quiet, sent } = await start();
    const costs: number[] = [];
    const post = async (json: object, signal?: AbortSignal) => {
      const request = {
        method: "POST",
        path: `/v1/webhooks/${webhookId}/examination`,
        query: "",
        headers: { "content-type": "application/json" },
        body: Buffer.from(JSON.stringify(json)),
        baseUrl: "https://a.example",
        signal,
      };
      return (await webhooks.as(SUBSCRIBER).handle(request, { onCost: (cost) => costs.push(cost) }))?.status;
    };
    expect(await post({})).toBe(409);
    expect(costs).toEqual([]);
    expect(await post({ even_if_enabled: true })).toBe(200);
    expect(costs).toEqual([9]);
    const before = sent.length;
    respond(() => new Promise(() => {}));
    const leave = new AbortController();
    const left = post({ even_if_enabled: true }, leave.signal);
    await quiet();
    leave.abort();
    expect(await left).toBe(400);
    expect(costs).toEqual([9, 9]);
    expect(sent).toHaveLength(before + 1);
  });

  it("responds over REST with the report, or 409 without the confirmation", async () => {
    const { webhooks, webhookId } = await start();
    const post = async (json: object) => {
      const answer = await webhooks.as(SUBSCRIBER).handle({
        method: "POST",
        path: `/v1/webhooks/${webhookId}/examination`,
        query: "",
        headers: { "content-type": "application/json" },
        body: Buffer.from(JSON.stringify(json)),
        baseUrl: "https://a.example",
      });
      return [answer?.status, JSON.parse(answer?.body as string)] as const;
    };
    expect(await post({})).toMatchObject([
      409,
      { error: { code: "webhook_enabled", field: "even_if_enabled" } },
    ]);
    expect(await post({ even_if_enabled: 1 })).toMatchObject([400, { error: { field: "even_if_enabled" } }]);
    const [status, report] = await post({ even_if_enabled: true });
    expect(status).toBe(200);
    expect(report).toMatchObject({ isPassed: false, checks: NAMES.map((name) => ({ name })) });
  });
});
