/** The list of accounts: each once, in numbers, on pages of bounded work. */

import assert from "node:assert/strict";
import type { AccountSummary } from "../../webhooks/store.js";
import { only, readAllPages, repeat } from "./assertions.js";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { SIMILAR_NAMES } from "./similar-names.js";

const listAccounts = (
  s: Scenario,
  { state, limit = 2 }: { state?: "failing"; limit?: number } = {},
): Promise<AccountSummary[]> => {
  let calls = 0;
  return readAllPages(async (cursor) => {
    const page = await s.alternate(calls++).listAccounts({ state, cursor, limit, now: s.now() });
    assert.ok(page.accounts.length <= limit);
    return { rows: page.accounts, next: page.next };
  });
};

const listNames = async (s: Scenario, options?: { state?: "failing"; limit?: number }): Promise<string[]> =>
  (await listAccounts(s, options)).map(({ account }) => account).sort();

/** Makes the endpoint of an account fail once; its delivery waits for a retry. */
async function failOnce(s: Scenario, account: string): Promise<string> {
  const { id } = await s.register({ account });
  await s.emit({ account });
  const claim = only((await s.claim()).filter(({ webhook }) => webhook.id === id));
  await s.retry(claim, HOUR_MS, {
    endpoint: { ok: false, generation: 0, at: s.now(), noticeAt: s.now() + HOUR_MS, lane: "slow" },
  });
  return id;
}

const INACTIVE = { waiting: 0, lastDay: { succeeded: 0, failed: 0 }, lastEventAt: null };

/** Declares the tests of the list of accounts. */
export function testAccountList(it: DeclareTest): void {
  it("accounts are listed with their webhooks by health, deliveries, attempts and last event", async (s) => {
    const { id } = await s.register({ account: "clinic" });
    await s.register({ account: "clinic", eventTypes: ["consent.*"], status: "DISABLED" });
    await s.register({ account: "hospital" });
    await repeat(3, () => s.emit());
    const [first, second] = await s.claim();
    assert.ok(first && second);
    await s.deliver(first);
    await s.fail(second);
    await s.advance(SECOND_MS);
    const lastEventAt = s.now();
    await s.emit();
    const [clinic, hospital] = (await listAccounts(s)).sort((a, b) => (a.account < b.account ? -1 : 1));
    assert.deepEqual(clinic, {
      account: "clinic",
      endpoints: { ok: 0, failing: 1, warned: 0, disabled: 1 },
      waiting: 2,
      lastDay: { succeeded: 1, failed: 1 },
      lastEventAt,
    });
    assert.deepEqual(hospital, {
      ...INACTIVE,
      account: "hospital",
      endpoints: { ok: 1, failing: 0, warned: 0, disabled: 0 },
    });
    await s.settleHealthStep({ id, failingSince: (await s.readWebhook(id)).failingSince ?? 0 });
    assert.deepEqual((await listAccounts(s)).find(({ account }) => account === "clinic")?.endpoints, {
      ok: 0,
      failing: 0,
      warned: 1,
      disabled: 1,
    });
  });

  it("attempts of more than a day ago are not counted for the last day of an account", async (s) => {
    await s.register();
    await s.emit();
    await s.deliver(only(await s.claim()));
    const attempts = async () => only(await listAccounts(s)).lastDay.succeeded;
    await s.advance(20 * HOUR_MS);
    await s.emit();
    await s.deliver(only(await s.claim()));
    assert.equal(await attempts(), 2);
    await s.advance(6 * HOUR_MS);
    assert.equal(await attempts(), 1);
    await s.advance(20 * HOUR_MS);
    assert.equal(await attempts(), 0);
  });
}

/** Declares the tests of the pages of the list. */
export function testAccountPages(it: DeclareTest): void {
  it("every account with a webhook is listed once, whatever its name and the size of pages", async (s) => {
    for (const account of SIMILAR_NAMES) await repeat(2, () => s.register({ account }));
    await s.emit({ account: "without webhooks" });
    for (const limit of [1, 3, 100])
      assert.deepEqual(await listNames(s, { limit }), SIMILAR_NAMES.toSorted());
    assert.deepEqual(await listNames(s, { state: "failing" }), []);
  });

  it("an account without a webhook left, or erased, is not listed", async (s) => {
    const { id } = await s.register({ account: "clinic" });
    await s.emit({ account: "clinic" });
    await s.register({ account: "hospital" });
    await s.remove(id);
    assert.deepEqual(await listNames(s), ["hospital"]);
    await s.register({ account: "clinic" });
    assert.deepEqual(await listNames(s), ["clinic", "hospital"]);
    let next: string | null | undefined;
    while (next !== null)
      ({ next } = await s.store.eraseAccount({ account: "clinic", cursor: next, now: s.now() }));
    assert.deepEqual(await listNames(s), ["hospital"]);
  });

  it("a cursor of no page is refused", async (s) => {
    for (const state of [undefined, "failing"] as const)
      for (const cursor of ["", "x", "-1", "1.5.2", "' OR 1=1", "9".repeat(300), "\u0000"])
        await assert.rejects(async () => s.store.listAccounts({ state, cursor, limit: 5, now: s.now() }), {
          code: "invalid_argument",
          field: "cursor",
        });
  });
}

/** Declares the tests of the list of failing accounts. */
export function testFailingAccounts(it: DeclareTest): void {
  it("failing accounts are listed once for all their failing webhooks, page by page", async (s) => {
    for (const account of ["a", "b", "c", "d", "e"]) {
      await failOnce(s, account);
      await s.advance(MINUTE_MS);
      await failOnce(s, account);
      await s.register({ account: `healthy ${account}` });
    }
    for (const limit of [1, 2, 100])
      assert.deepEqual(await listNames(s, { state: "failing", limit }), ["a", "b", "c", "d", "e"]);
    const [first] = await listAccounts(s, { state: "failing" });
    assert.deepEqual(first?.endpoints, { ok: 0, failing: 2, warned: 0, disabled: 0 });
  });

  it("an account leaves the failing ones with its last webhook that recovers, moves or is removed", async (s) => {
    const recovered = await failOnce(s, "recovered");
    const moved = await failOnce(s, "moved");
    const removed = await failOnce(s, "removed");
    const disabled = await failOnce(s, "disabled");
    await failOnce(s, "failing");
    await s.update(moved, { url: "https://other.example/hook" });
    await s.remove(removed);
    await s.update(disabled, { status: "DISABLED" });
    await s.advance(HOUR_MS);
    await s.deliver(only((await s.claim()).filter(({ webhook }) => webhook.id === recovered)));
    assert.deepEqual(await listNames(s, { state: "failing" }), ["failing"]);
  });

  it("an account that recovers and fails again is listed once", async (s) => {
    const id = await failOnce(s, "clinic");
    await s.advance(HOUR_MS);
    await s.deliver(only(await s.claim()));
    await s.advance(MINUTE_MS);
    await s.emit();
    const claim = only((await s.claim()).filter(({ webhook }) => webhook.id === id));
    await s.fail(claim);
    for (const limit of [1, 10])
      assert.deepEqual(await listNames(s, { state: "failing", limit }), ["clinic"]);
  });

  it("an account whose webhook was disabled because it failed is among the failing ones", async (s) => {
    const id = await failOnce(s, "clinic");
    const failingSince = (await s.readWebhook(id)).failingSince ?? 0;
    assert.ok(await s.settleHealthStep({ id, failingSince }, { status: "DISABLED", noticeAt: null }));
    const { account, endpoints } = only(await listAccounts(s, { state: "failing" }));
    assert.deepEqual([account, endpoints.disabled], ["clinic", 1]);
    await s.update(id, { status: "ENABLED" });
    assert.deepEqual(await listNames(s, { state: "failing" }), []);
  });
}
