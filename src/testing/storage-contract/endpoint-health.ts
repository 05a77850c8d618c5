/** The health of an endpoint, which settlements report. */

import assert from "node:assert/strict";
import { only, repeat } from "./assertions.js";
import { buildEndpointReport, HEALTHY, HOUR_MS, MINUTE_MS, NOTICE_MS, SECOND_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** The first failure sets `failingSince`, and a success clears it. */
export function testEndpointReports(it: DeclareTest): void {
  it("the first failure sets failingSince, later ones keep it, and a success clears it", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    const { updatedAt } = await s.readWebhook(webhookId);
    await s.advance(SECOND_MS);
    const since = s.now();
    await s.retry(claim, 0);
    assert.deepEqual(await s.readHealth(webhookId), {
      failingSince: since,
      warnedAt: null,
      noticeAt: since + NOTICE_MS,
    });
    await s.advance(MINUTE_MS);
    await s.retry(only(await s.claim()), 0);
    assert.equal((await s.readWebhook(webhookId)).failingSince, since);
    assert.equal((await s.readWebhook(webhookId)).noticeAt, since + NOTICE_MS);
    await s.deliver(only(await s.claim()));
    assert.deepEqual(await s.readHealth(webhookId), HEALTHY);
    assert.ok((await s.readWebhook(webhookId)).updatedAt >= updatedAt);
  });

  it("a late success reports on the endpoint too", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    await s.fail(claim);
    assert.notEqual((await s.readWebhook(webhookId)).failingSince, null);
    await s.deliver(claim);
    assert.deepEqual(await s.readHealth(webhookId), HEALTHY);
  });

  it("a settlement without an endpoint report leaves the health unchanged", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    await s.postpone(claim, 0);
    assert.deepEqual(await s.readHealth(webhookId), HEALTHY);
  });

  it("a report on an earlier url leaves the health unchanged", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    await repeat(6, () => s.emit());
    await s.update(webhookId, { url: "https://subscriber.example/moved" });
    await s.retry(claim, HOUR_MS, {
      endpoint: buildEndpointReport(claim, s.now(), { ok: false, lane: "fast" }),
    });
    assert.deepEqual(await s.readHealth(webhookId), HEALTHY);
    const claims = await s.claim({ room: { fast: 0 } });
    assert.equal(claims.length, 5);
    const [current, other] = claims;
    assert.ok(current && other);
    await s.retry(current, HOUR_MS);
    const failing = await s.readHealth(webhookId);
    await s.deliver(other, { endpoint: buildEndpointReport(claim, s.now()) });
    assert.deepEqual(await s.readHealth(webhookId), failing);
  });

  it("a webhook that its owner disabled does not start to fail", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    await s.update(webhookId, { status: "DISABLED" });
    await s.retry(claim, HOUR_MS);
    assert.deepEqual(await s.readHealth(webhookId), HEALTHY);
  });
}
