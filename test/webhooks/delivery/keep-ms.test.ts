/** Events that are kept for a time of their own: `emit({ keepMs })`. */

import { describe, expect, it } from "vitest";
import type { EventInput } from "../../../src/webhooks/service.js";
import { memorySource, outbox } from "../../../storage/outbox/index.js";
import { DAY, HOUR, MINUTE, SECOND, startHarness } from "../../support/webhook-harness.js";

const YEAR = 365 * DAY;
const changed = (fields: object = {}) =>
  ({
    type: "patient.updated",
    account: "clinic",
    resource: { resourceType: "Patient", id: "1" },
    ...fields,
  }) as EventInput<"patient.updated">;

async function startScene() {
  const harness = await startHarness({ options: { retry: { jitter: 0 } } });
  const { id: webhookId } = await harness.register();
  const { webhooks } = harness;
  const emit = async (fields?: object) => {
    const { id, duplicate } = await webhooks.emit(changed(fields));
    await harness.run(SECOND);
    return { id, duplicate };
  };
  const listIds = async () => {
    const { items } = await webhooks.deliveries.list({ webhookId, limit: 100 });
    return items.map(({ eventId }) => eventId);
  };
  return { ...harness, webhookId, emit, listIds };
}

describe("an event with a keepMs", () => {
  it("is gone that long after its last delivery ended, and others stay", async () => {
    const { webhooks, webhookId, emit, run, listIds, sent } = await startScene();
    const { id: plain } = await emit();
    const { id } = await emit({ keepMs: HOUR, idempotencyKey: "login-1" });
    await run(HOUR - 2 * SECOND);
    expect(await listIds()).toEqual([id, plain]);

    await run(2 * SECOND);
    expect(await listIds()).toEqual([plain]);
    const explanation = await webhooks.deliveries.explain({ eventId: id, webhookId });
    expect(explanation.reason).toBe("event_unknown");
    const feed = await webhooks.deliveries.listEvents({ webhookId });
    expect(feed.items.map(({ eventId }) => eventId)).toEqual([plain]);
    const all = { webhookId, since: new Date(0), until: new Date(4_000_000_000_000), dryRun: true };
    expect(await webhooks.deliveries.replay(all)).toMatchObject({ count: 1 });
    // The key is still remembered, and brings nothing back.
    expect(await emit({ keepMs: HOUR, idempotencyKey: "login-1" })).toEqual({ id, duplicate: true });
    expect(sent).toHaveLength(2);
  });

  it("is replayed after the retention of the others, and its time then begins again", async () => {
    const { webhooks, webhookId, clock, emit, run, listIds, sent } = await startScene();
    await emit();
    const { id } = await emit({ keepMs: 30 * DAY });
    await run(30 * DAY - MINUTE);
    expect(await listIds()).toEqual([id]);

    const { count } = await webhooks.deliveries.replay({
      webhookId,
      since: new Date(0),
      until: new Date(clock.now()),
    });
    await run(MINUTE);
    expect([count, sent.at(-1)?.eventId]).toEqual([1, id]);
    await run(30 * DAY - 2 * MINUTE);
    expect(new Set(await listIds())).toEqual(new Set([id]));
    await run(2 * MINUTE);
    expect(await listIds()).toEqual([]);
  });

  it("stays as long as a delivery is retried, and keepMs from its end on", async () => {
    const { respond, emit, run, listIds, clock, sent } = await startScene();
    respond(() => 500);
    const { id } = await emit({ keepMs: SECOND });
    await run(2 * DAY);
    respond(() => 200);
    expect(await listIds()).toEqual([id]);
    await run(8 * HOUR);
    expect(sent.at(-1)?.at).toBeGreaterThan(clock.now() - 8 * HOUR);
    expect(await listIds()).toEqual([]);
  });

  it("is duplicate with another keepMs, which changes nothing", async () => {
    const { emit, run, listIds } = await startScene();
    const { id } = await emit({ keepMs: HOUR, idempotencyKey: "login-1" });
    expect(await emit({ keepMs: YEAR, idempotencyKey: "login-1" })).toEqual({ id, duplicate: true });
    expect(await emit({ idempotencyKey: "login-1" })).toEqual({ id, duplicate: true });
    await run(HOUR);
    expect(await listIds()).toEqual([]);
  });

  it.each<[unknown, string]>([
    [0, "0"],
    [-1, "-1"],
    [1.5, "1.5"],
    [YEAR + 1, String(YEAR + 1)],
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [null, "null"],
    ["3600000", "a string"],
    [10n, "a bigint"],
    [{}, "a object"],
  ])("is refused for %s, and nothing of its list is stored", async (keepMs, seen) => {
    const { webhooks, listIds } = await startScene();
    const message = `keepMs must be a whole number of milliseconds from 1 to ${YEAR}, which is a year (got ${seen}).`;
    await expect(webhooks.emit(changed({ keepMs }))).rejects.toMatchObject({
      code: "invalid_argument",
      field: "keepMs",
      message,
    });
    await expect(webhooks.emit([changed(), changed({ keepMs })])).rejects.toMatchObject({
      code: "invalid_argument",
      field: "[1].keepMs",
      message: `[1]: ${message}`,
    });
    expect(await listIds()).toEqual([]);
  });

  it("is kept for exactly a year at most", async () => {
    const { emit, run, listIds } = await startScene();
    const { id } = await emit({ keepMs: YEAR });
    await run(YEAR - MINUTE);
    expect(await listIds()).toEqual([id]);
    await run(MINUTE);
    expect(await listIds()).toEqual([]);
  });
});

describe("an event of the outbox", () => {
  it("keeps its keepMs", async () => {
    const { clock, webhooks, run, listIds } = await startScene();
    const source = memorySource({ clock });
    const box = outbox({ webhooks, source, clock, logger: false });
    const added = [changed({ keepMs: HOUR }), changed()];
    const [, plain] = await source.add(added);
    await box.start();
    await box.idle();
    await run(MINUTE);
    expect(await listIds()).toHaveLength(2);
    await run(HOUR);
    expect(await listIds()).toEqual([plain]);
    await box.stop();
  });

  it("is refused in the host's transaction with a keepMs that cannot be used", async () => {
    const source = memorySource();
    await expect(source.add(changed({ keepMs: 0 }))).rejects.toMatchObject({
      code: "invalid_argument",
      field: "keepMs",
    });
  });
});
