/** Examining an endpoint on the page, and asking why it did not get an event. */

import { randomUUID } from "node:crypto";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { OutboundRequest } from "../../src/ports.js";
import { createReceiver } from "../../src/receiver/index.js";
import { axeFindings, launch, open } from "./support/chromium.js";
import { answered, HOUR, startPortalHost, URL_A } from "./support/portal-host.js";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const SUBSCRIBER = { id: "key-1", account: "clinic" };

async function start(options: object = {}, view: { width?: number; colorScheme?: "dark" } = {}) {
  const host = await startPortalHost({ auditEntries: 100, options });
  onTestFinished(() => host.close());
  const watched = await open(browser, host.origin, view);
  return { ...host, ...watched };
}

const examine = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Examine this endpoint" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Examine the live endpoint" }).click();
};

describe("examining an endpoint", () => {
  it("shows a row for each check, all passed, for a receiver of createReceiver", async () => {
    const host = await start();
    const { webhooks, clock, page, url, faults } = host;
    const { webhook, secret } = await webhooks.registrations.create({ subscriber: SUBSCRIBER, url: URL_A });
    const receiver = createReceiver({ secrets: secret, clock, logger: false, onEvent: () => {} });
    host.answer(async ({ headers, body }: OutboundRequest) => {
      const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
      const received = { body: body ?? "", headers: Object.fromEntries(lower) as Record<string, string> };
      const result = await receiver.receive(received);
      return answered(result.ok ? 204 : result.status);
    });
    await page.goto(`${url}#/webhooks/${webhook.id}`);
    await page.getByRole("link", { name: "Diagnose" }).click();
    await examine(page);
    const report = page.getByRole("region", { name: /^Report of / });
    await report.getByText("The endpoint passed every check.").waitFor();
    expect(await report.getByRole("listitem").count()).toBe(10);
    expect(await report.getByText("Passed", { exact: true }).count()).toBe(9);
    // This host's own function sends the requests, which cannot be slow.
    await report.getByRole("listitem").filter({ hasText: "over two seconds" }).getByText("Skipped").waitFor();
    await page.getByRole("status").getByText("The endpoint passed every check.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("says of an endpoint that accepts everything what is wrong and which line repairs it", async () => {
    const host = await start();
    const { page, url, faults, webhooks } = host;
    const id = await host.register();
    await page.goto(`${url}#/webhooks/${id}/diagnosis`);
    await examine(page);
    const report = page.getByRole("region", { name: /^Report of / });
    await report.getByText("4 checks failed.").waitFor();
    const row = report.getByRole("listitem").filter({ hasText: "A signature with another secret" });
    await row.getByText("Failed", { exact: true }).waitFor();
    await row.getByText("HTTP 204 in 0 ms").waitFor();
    await row.getByText("Should answer with 4xx, such as 400 or 401.").waitFor();
    await row.getByText("createReceiver({ secrets, onEvent })").waitFor();
    expect(await report.getByText("Failed", { exact: true }).count()).toBe(4);
    expect(await axeFindings(page)).toEqual([]);
    const { items } = await webhooks.audit.list({ account: "clinic" });
    expect(items.map(({ action }) => action)).toEqual(["webhook.examined", "webhook.created"]);
    await page.goto(`${url}#/activity`);
    await page.getByText(/ examined /).waitFor();
    expect(faults).toEqual([]);
  });

  it("asks twice before an enabled endpoint, and once before a disabled one", async () => {
    const host = await start();
    const { page, url, webhooks, answers } = host;
    const id = await host.register();
    await page.goto(`${url}#/webhooks/${id}/diagnosis`);
    const button = page.getByRole("button", { name: "Examine this endpoint" });
    await button.click();
    const dialog = page.getByRole("dialog", { name: "This endpoint is in use. Examine it all the same?" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(answers.filter((line) => line.startsWith("POST"))).toEqual([]);
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await page.reload();
    await button.click();
    await page.getByRole("heading", { name: "4 checks failed." }).waitFor();
    expect(await dialog.count()).toBe(0);
  });
});

/** Asks about an event by its ID, and returns the answer. */
async function askFor(page: Page, text: string) {
  await page.getByLabel("Event ID or subject").fill(text);
  await page.getByRole("button", { name: "Explain" }).click();
  return page.locator(".answer-card");
}

const PLAIN = {
  events: { "order.paid": {}, "order.sent": {} },
  body: "plain",
  registrations: { filters: true },
};

/** A host of plain events, with an endpoint that gets paid orders of 100 and more. */
async function startShop() {
  const shop = await start(PLAIN);
  const { webhook } = await shop.webhooks.registrations.create({
    subscriber: SUBSCRIBER,
    url: URL_A,
    eventTypes: ["order.paid"],
    filter: { "data.amount": { gte: 100 } },
  });
  const emit = async (type: string, amount: number): Promise<string> =>
    (await shop.webhooks.emit({ type, account: "clinic", data: { amount } })).id;
  await shop.page.goto(`${shop.url}#/webhooks/${webhook.id}/diagnosis`);
  return { ...shop, id: webhook.id, emit };
}

describe("asking why an endpoint did not get an event", () => {
  it("answers: delivered, with a link to the delivery", async () => {
    const { page, emit, faults, webhooks } = await startShop();
    const eventId = await emit("order.paid", 100);
    await webhooks.idle();
    const answer = await askFor(page, eventId);
    await answer.getByText("It was delivered.").waitFor();
    await answer.getByText("Last attempt: Delivered: HTTP 204 in 0 ms.").waitFor();
    expect(page.url()).toContain(`?event=${eventId}`);
    expect(await axeFindings(page)).toEqual([]);
    await answer.getByRole("link", { name: "Open the delivery" }).click();
    await page.getByRole("heading", { name: /order\.paid/ }).waitFor();
    expect(faults).toEqual([]);
  });

  it("answers: type not subscribed and filtered out, with a link to the settings", async () => {
    const { page, emit } = await startShop();
    const other = await askFor(page, await emit("order.sent", 100));
    await other.getByText("The webhook does not subscribe to the type of this event.").waitFor();
    const filtered = await askFor(page, await emit("order.paid", 99));
    await filtered.getByText("The filter of the webhook does not let this event pass.").waitFor();
    await filtered.getByRole("link", { name: "Open the settings" }).click();
    await page.getByRole("heading", { name: "Signing secret" }).waitFor();
    expect(page.url()).toMatch(/settings$/);
  });

  it("answers: waiting until when, and what the last attempt was", async () => {
    const shop = await startShop();
    const { page, emit, webhooks } = shop;
    shop.answer(answered(500));
    const eventId = await emit("order.paid", 100);
    await webhooks.idle();
    const answer = await askFor(page, eventId);
    await answer.getByText("Not yet: an attempt failed, and another one is planned.").waitFor();
    await answer.getByText("Last attempt: Failed: HTTP 500 in 0 ms.").waitFor();
    const next = answer.getByText(/^The next attempt is in 1\d min \(12 Jan, 08:1\d\)\.$/);
    await expect.poll(() => next.count()).toBe(1);
  });

  it("answers: disabled since, and unknown event", async () => {
    const { page, id, emit, webhooks, clock } = await startShop();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await clock.advance(HOUR);
    const disabled = await askFor(page, await emit("order.paid", 100));
    await disabled.getByText("The webhook is disabled, or was when the event was due.").waitFor();
    await disabled.getByRole("link", { name: "Open the webhook" }).waitFor();
    const unknown = await askFor(page, randomUUID());
    await unknown.getByText("There is no such event, or it is no longer kept.").waitFor();
    expect(await unknown.getByRole("link").count()).toBe(0);
  });

  it("finds the newest event of a record, and refuses a record without events", async () => {
    const host = await start();
    const { page, url, webhooks } = host;
    const id = await host.register();
    await host.emit();
    await webhooks.idle();
    await page.goto(`${url}#/webhooks/${id}/diagnosis`);
    await askFor(page, "Patient/p2");
    await page.getByText("No event with this subject was found.").waitFor();
    const answer = await askFor(page, "Patient/p1");
    await answer.getByText("It was delivered.").waitFor();
    await page.getByLabel("Event ID or subject").fill(" ");
    await page.getByRole("button", { name: "Explain" }).click();
    const problem = page.getByText("Type the ID or the subject of an event.");
    await expect.poll(() => problem.count()).toBe(1);
  });
});
