/** Test events, which are appended for a single webhook. */

import assert from "node:assert/strict";
import { only } from "./assertions.js";
import { RETENTION } from "./builders.js";
import { type DeclareTest, readDeliveryLog } from "./fixture.js";

/** A test event goes to its webhook alone and is never recovered. */
export function testTestEvents(it: DeclareTest): void {
  it("a test event goes to one webhook only, whatever it subscribes to, and is never recovered", async (s) => {
    const { id } = await s.register({ eventTypes: ["consent.*"] });
    const other = await s.register();
    const event = s.buildEvent({ type: "webhook.test" });
    const response = await s.append(event, { webhookId: id });
    assert.ok(response.result === "stored");
    const delivery = only(response.deliveries);
    assert.deepEqual(delivery, { id: `${id}.${event.id}`, webhookId: id });
    assert.equal((await s.append(event, { webhookId: id, by: s.peer })).result, "duplicate");
    const record = await s.readDelivery(delivery.id);
    assert.deepEqual([record.state, record.type, record.dueAt], ["pending", "webhook.test", s.now()]);
    assert.deepEqual(await readDeliveryLog(s, { webhookId: id, type: "webhook.test" }), [record]);
    assert.equal(await s.resend(delivery.id), delivery.id);
    const claim = only(await s.claim());
    assert.deepEqual([claim.id, claim.event, claim.isExtra], [delivery.id, event, false]);
    assert.equal(await s.fail(claim), "settled");
    for (const webhookId of [id, other.id]) assert.equal((await s.recover(webhookId))?.count, 0);
    assert.equal(await s.resend(delivery.id), `${delivery.id}.1`);
    await s.deliver(only(await s.claim()));
    assert.deepEqual(await readDeliveryLog(s, { webhookId: other.id }), []);
    assert.deepEqual(
      (await readDeliveryLog(s, { webhookId: id })).map(({ state }) => state),
      ["delivered", "failed"],
    );
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    const { events, ended } = await s.store.stats();
    assert.deepEqual({ events, ended }, { events: 0, ended: 0 });
  });

  it("a test event for a webhook that is disabled, unknown or of another account is not stored", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const { id: foreign } = await s.register({ account: "hospital" });
    const before = await s.store.stats();
    for (const webhookId of [id, foreign, s.store.newWebhookId("clinic")]) {
      const response = await s.append(s.buildEvent(), { webhookId });
      assert.ok(response.result === "stored");
      assert.deepEqual(response.deliveries, []);
    }
    assert.deepEqual(await s.store.stats(), before);
    await s.update(id, { status: "ENABLED" });
    assert.equal((await s.recover(id))?.count, 0);
  });

  it("removing a webhook removes its test events", async (s) => {
    const { id } = await s.register();
    const empty = await s.store.stats();
    await s.append(s.buildEvent(), { webhookId: id });
    await s.deliver(only(await s.claim()));
    await s.append(s.buildEvent(), { webhookId: id });
    await s.remove(id);
    await s.tidy();
    assert.deepEqual(await s.claim(), []);
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    assert.deepEqual(await s.store.stats(), {
      ...empty,
      webhooks: 0,
      endpoints: empty.endpoints && { ...empty.endpoints, ok: 0 },
    });
  });
}
