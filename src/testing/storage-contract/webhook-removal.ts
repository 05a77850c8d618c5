/** Removing webhooks. */

import assert from "node:assert/strict";
import { repeat } from "./assertions.js";
import { HOUR_MS, MINUTE_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A removed webhook leaves no deliveries and cannot come back. */
export function testWebhookRemoval(it: DeclareTest): void {
  it("removing a webhook removes its deliveries and no others", async (s) => {
    const gone = await s.register();
    const remaining = await s.register();
    await s.emit();
    await s.emit();
    assert.equal(await s.remove(gone.id), true);
    assert.equal(await s.remove(gone.id), false);
    assert.equal(await s.store.getWebhook(gone.id), undefined);
    assert.deepEqual((await s.store.listDeliveries({ webhookId: gone.id, limit: 5 })).deliveries, []);
    assert.equal((await s.update(gone.id, { status: "ENABLED" })).result, "not_found");
    const claims = await s.claim();
    assert.deepEqual(new Set(claims.map(({ webhook }) => webhook.id)), new Set([remaining.id]));
    await s.tidy();
    assert.equal((await s.store.stats()).pending, 2);
  });

  it("settling a delivery after its webhook was removed returns gone and stores nothing", async (s) => {
    const { id } = await s.register();
    await repeat(3, () => s.emit());
    const [first, second, third] = await s.claim();
    assert.ok(first && second && third);
    await s.remove(id);
    assert.equal(await s.deliver(first), "gone");
    assert.equal(await s.retry(second, MINUTE_MS), "gone");
    assert.equal(await s.fail(third), "gone");
    await s.advance(HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    await s.tidy();
    const stats = await s.store.stats();
    assert.deepEqual([stats.webhooks, stats.pending, stats.leased, stats.ended], [0, 0, 0, 0]);
  });

  it(
    "an event whose last webhook was removed is kept for the retention period",
    async (s) => {
      const { id } = await s.register();
      const { id: newer } = await s.register({ status: "DISABLED" });
      await s.emit();
      await s.remove(id);
      await s.advance(HOUR_MS - 1);
      await s.tidy();
      assert.equal((await s.store.stats()).events, 1);
      assert.equal((await s.recover(newer))?.count, 1);
      assert.equal((await s.store.listDeliveries({ webhookId: newer, limit: 5 })).deliveries.length, 1);
    },
    { retention: { keepMs: HOUR_MS, events: 10_000 } },
  );
}
