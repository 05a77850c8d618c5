/** The list and the overview of a webhook: finding a failing endpoint, repairing it, testing it. */

import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { answered, HOUR, type PortalHost, startPortalHost } from "./support/portal-host.js";

const root = resolve(import.meta.dirname, "../..");

let browser: Browser;
let host: PortalHost;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  host = await startPortalHost();
});
afterEach(() => host.close());

const openTab = (page: Page, name: string): Promise<void> =>
  page.getByRole("navigation", { name: "Webhook" }).getByRole("link", { name }).click();

describe("the list of webhooks", () => {
  it("sums up, shows problems first, and says what will happen to them", async () => {
    const old = await host.register("https://old.example.com/archive");
    await host.webhooks.registrations.update({ id: old, status: "DISABLED" });
    await host.registerTroubled();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(host.url);
    await page.getByText("1 failing, 1 disabled, 1 of 2 enabled").waitFor();
    const attention = page.getByRole("region", { name: "Needs attention" });
    await attention.getByText("HTTP 500 “database is away”").waitFor();
    // The other one was disabled on purpose.
    expect(await attention.getByRole("listitem").allTextContents()).toEqual([
      expect.stringMatching(
        /Failing.*hooks\.example\.com\/in.*Failing since 12 Jan, 10:00 · .* · disabled on 16 Jan, 10:00 unless it recovers/,
      ),
    ]);
    const [first] = await page.locator("tbody tr").allTextContents();
    expect(first).toMatch(/^hooks\.example\.com\/in.*Failing/);
    expect(faults).toEqual([]);
  });

  it("shows the success rate and what waits", async () => {
    const id = await host.register();
    await host.emit();
    await host.webhooks.idle();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    const { lastDay } = await host.webhooks.deliveries.stats(id);
    expect(lastDay).toMatchObject({ attempts: 2, succeeded: 1 });
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    const row = page.getByRole("row", { name: /hooks\.example\.com/ });
    await row.getByText("50%").waitFor();
    expect(await row.locator("td.number").allTextContents()).toEqual(["50%", expect.any(String), "1"]);
  });

  it("keeps the query of an address to itself, which may hold a token", async () => {
    await host.register("https://hooks.example.com/in?token=s3cret");
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    await page.getByRole("link", { name: "hooks.example.com/in?…" }).waitFor();
    expect(await page.locator("main").textContent()).not.toContain("s3cret");
  });

  it("turns the pages of more webhooks than fit on one", async () => {
    await host.close();
    host = await startPortalHost({ webhooks: 200 });
    for (let count = 1; count <= 101; count++) await host.register(`https://hooks.example.com/${count}`);
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    const rows = page.locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(100);
    await page.getByRole("button", { name: "More webhooks" }).press("Enter");
    await page.getByText("Page 2").waitFor();
    await page.getByRole("link", { name: "hooks.example.com/101" }).waitFor();
    expect(await rows.count()).toBe(1);
  });
});

describe("one webhook", () => {
  it("lets an operator find what fails, repair it and retry what was missed", async () => {
    const id = await host.registerTroubled();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(host.url);
    await page.getByRole("row").getByRole("link", { name: "hooks.example.com/in" }).click();
    const timeline = page.getByRole("region", { name: "Retries" });
    await timeline.getByText("4 deliveries: 3 retrying, 0 failed.").waitFor();
    // The picture in the README is made on request only, because no two machines draw the same.
    if (process.env["SCREENSHOT"])
      await page.screenshot({ path: join(root, "docs", "portal.png"), fullPage: true });

    await openTab(page, "Deliveries");
    const log = page.getByRole("region", { name: "Deliveries, newest first" });
    await log.getByRole("link").first().click();
    await page.getByText("database is away").first().waitFor();
    host.answer(answered(204));
    // Its result takes the place of "Sending now", here within milliseconds.
    await page.getByRole("button", { name: /Send again/ }).click();
    await host.clock.advance(1_000);
    await page
      .getByText(/^Delivered: HTTP 204/)
      .first()
      .waitFor();

    // Disabled meanwhile: an event that is emitted now gets no delivery until it is recovered.
    await host.webhooks.registrations.update({ id, status: "DISABLED" });
    await host.emit();
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByRole("status").getByText("The webhook was enabled.").waitFor();
    await openTab(page, "Deliveries");
    await page.getByText("Retry all failed since").click();
    await page.getByLabel("Since (UTC)").fill("2026-01-12 09:00");
    await page.getByRole("button", { name: "Retry all failed" }).click();
    await page.getByText("1 event is being sent, one after another.").waitFor();
    await host.clock.advance(12 * HOUR);
    const after = await host.webhooks.deliveries.stats(id);
    expect(after).toMatchObject({ delivered: 5, pending: 0, failed: 0, health: { status: "ok" } });
    expect(faults).toEqual([]);
  });

  it("draws past and planned attempts, and the whole schedule on demand", async () => {
    const id = await host.registerTroubled();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const timeline = page.getByRole("region", { name: "Retries" });
    const tracks = timeline.locator(".track");
    await tracks.first().waitFor();
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const since = host.clock.now() - 2 * HOUR;
    const failed = deliveries
      .flatMap(({ attempts }) => attempts)
      .filter(({ kind, at }) => kind === "http" && at.getTime() >= since);
    expect(await tracks.locator(".mark.bad").count()).toBe(failed.length);
    const planned = tracks.locator(".mark.planned");
    const near = await planned.count();
    expect(near).toBeGreaterThan(0);
    expect(await tracks.locator("line.disable").count()).toBe(0);

    await page.getByLabel("Show").selectOption("The whole schedule");
    // A line has no width, so it counts as hidden.
    await expect.poll(() => tracks.locator("line.disable").count()).toBe(deliveries.length);
    expect(await planned.count()).toBeGreaterThan(near);
    expect(await tracks.locator("line.now").count()).toBe(deliveries.length);
    const [name] = await timeline.getByRole("listitem").allTextContents();
    expect(name).toContain(`patient.updated Patient/p1 ${deliveries[0]?.eventId.slice(0, 8)}`);
  });

  it("shows what fails behind many that wait for their first attempt", async () => {
    const id = await host.register();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    let end = () => {};
    host.answer(
      new Promise((answer) => {
        end = () => answer(answered(204));
      }),
    );
    for (let count = 0; count < 60; count++) await host.emit();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const timeline = page.getByRole("region", { name: "Retries" });
    // Too many to open by itself.
    await timeline.getByRole("button", { name: "Retries 61 pending, 0 failed" }).click();
    await timeline
      .getByText("20 deliveries of 61, those with a problem first: 1 retrying, 0 failed.")
      .waitFor();
    expect(await timeline.locator(".track[aria-label*='Failed: HTTP 500']").count()).toBe(1);
    end();
  });

  it("sends a test, waits for its result, and never counts it as a failed delivery", async () => {
    const id = await host.register();
    let end = () => {};
    host.answer(
      new Promise((answer) => {
        end = () => answer(answered(500));
      }),
    );
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const send = page.getByRole("button", { name: /^(?:Send test|Sending …)$/ });
    await send.click();
    await page.getByText("Sending …").waitFor();
    expect(await send.getAttribute("aria-disabled")).toBe("true");
    await send.dispatchEvent("click");
    end();
    await page.getByRole("status").getByText("Failed: HTTP 500").waitFor();
    expect(await page.locator(".outcome.done").count()).toBe(0);
    // It rests: whoever presses again at once does not send twice.
    expect(await send.getAttribute("aria-disabled")).toBe("true");
    await send.dispatchEvent("click");
    expect(await host.webhooks.deliveries.stats(id)).toMatchObject({ failed: 0 });
    await openTab(page, "Deliveries");
    await page.getByText("Test failed").waitFor();
    expect(await page.locator("main").textContent()).not.toMatch(/attempts of the schedule/);
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    expect(deliveries).toHaveLength(1);
  });

  it("says why an action is disabled", async () => {
    const id = await host.register();
    await host.webhooks.registrations.update({ id, status: "DISABLED" });
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const send = page.getByRole("button", { name: "Send test", exact: true });
    await send.waitFor();
    expect(await send.getAttribute("aria-disabled")).toBe("true");
    const reason = await send.getAttribute("aria-describedby");
    expect(await page.locator(`[id="${reason}"]`).textContent()).toBe(
      "The webhook is disabled: enable it first.",
    );
    await send.dispatchEvent("click");
    await openTab(page, "Deliveries");
    await page.getByText("Nothing has been sent yet.").waitFor();
    expect((await host.webhooks.deliveries.list({ webhookId: id })).items).toEqual([]);
  });

  it("plans no attempt of a disabled webhook, in the list, on its page, in its deliveries", async () => {
    const id = await host.registerTroubled();
    await host.webhooks.registrations.update({ id, status: "DISABLED" });
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const pending = deliveries.find(({ nextAttemptAt }) => nextAttemptAt !== null);
    expect(pending).toBeDefined();
    const { page, faults } = await open(browser, host.origin);
    const cellOf = async (name: string): Promise<string | undefined> => {
      const header = page.getByRole("columnheader", { name });
      await header.waitFor();
      const index = await header.evaluate((cell) => [...(cell.parentElement?.children ?? [])].indexOf(cell));
      return page.locator(`tbody tr:first-child > :nth-child(${index + 1})`).innerText();
    };
    await page.goto(host.url);
    await page.locator(".badge").getByText("Disabled", { exact: true }).waitFor();
    expect(await cellOf("Next")).toBe("–");
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("planned, but the webhook is disabled by then").waitFor();
    expect(await page.locator("main").textContent()).not.toContain("Next attempt");
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    await page.getByText("Deliveries, newest first").waitFor({ state: "attached" });
    expect(await cellOf("Next")).toBe("–");
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${encodeURIComponent(pending?.id ?? "")}`);
    await page.getByRole("heading", { name: "Attempts" }).waitFor();
    expect(await page.locator("main").textContent()).not.toContain("Next attempt");
    expect(faults).toEqual([]);
  });

  it("stays up to date without taking the focus", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}`);
    const retries = page.getByRole("button", { name: "Retries" });
    await retries.getByText("0 pending, 0 failed").waitFor();
    await retries.click();
    await page.getByText("No delivery yet.").waitFor();
    const test = page.getByRole("button", { name: "Send test", exact: true });
    await test.focus();
    await host.emit();
    await host.clock.advance(1_000);
    await page.clock.runFor(6_000);
    await page.getByText("1 delivery: 0 retrying, 0 failed.").waitFor();
    expect(await test.and(page.locator(":focus")).count()).toBe(1);
  });

  it("is read in words by somebody who sees no timeline", async () => {
    const id = await host.registerTroubled();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const track = page.getByRole("img", { name: /failed attempts, the last one: HTTP 500/ }).first();
    await track.waitFor();
    expect(await track.getAttribute("aria-label")).toMatch(/Next attempt 13 Jan, \d\d:\d\d\./);
  });
});

describe("the catalogue of event types", () => {
  it("shows who gets a type, and a sample that is read when it is opened", async () => {
    await host.register();
    await host.register("https://hooks.example.com/other?token=s3cret");
    const named = await host.register("https://hooks.example.com/third");
    await host.webhooks.registrations.update({ id: named, description: "Ward 3", status: "DISABLED" });
    const { page, faults } = await open(browser, host.origin);
    const samples: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/sample")) samples.push(request.url());
    });
    await page.goto(host.url);
    expect(await page.getByRole("link", { name: "Activity" }).count()).toBe(0);
    await page.getByRole("link", { name: "Event types" }).click();
    await page.getByLabel("Search event types").fill("PATIENT.cre");
    await page.getByText("patient.created").click();
    await page.getByText('"code": "HTEST"').waitFor();
    expect(await page.locator("details").count()).toBe(1);
    expect(await page.locator("details li").allTextContents()).toEqual([
      "hooks.example.com/in",
      "hooks.example.com/other?…",
      "Ward 3 (disabled)",
    ]);
    const shown = JSON.parse(await page.locator("details pre").innerText()) as unknown;
    expect(shown).toEqual(await host.webhooks.deliveries.sample({ type: "patient.created" }));
    expect(samples).toHaveLength(1);
    const endpoints = page.getByLabel("Send as a test to");
    // The disabled one cannot be tested.
    expect(await endpoints.locator("option").count()).toBe(2);
    await endpoints.selectOption("hooks.example.com/other?…");
    await page.getByRole("button", { name: "Send test" }).click();
    await page.getByRole("status").getByText("Delivered: HTTP 204").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByLabel("Search event types").fill("consent.created");
    await page.getByText("consent.created").click();
    await page.getByText("No webhook", { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });
});

describe("the activity of an account", () => {
  it("shows what was done, by whom, and leads to the webhook while it exists", async () => {
    await host.close();
    host = await startPortalHost({ auditEntries: 100 });
    const id = await host.register();
    const gone = await host.register("https://gone.example.com/");
    await host.webhooks.registrations.remove(gone);
    await host.webhooks.registrations.update({ id, description: "Ward 3" });
    await host.webhooks
      .as({ id: "key-7", account: "clinic" })
      .registrations.update({ id, status: "DISABLED" });
    const { page, faults } = await open(browser, host.origin);
    await page.goto(host.url);
    await page.getByRole("link", { name: "Activity" }).click();
    await page.getByRole("heading", { name: "Today, 12 Jan" }).waitFor();
    const entries = page.getByRole("region", { name: "Today, 12 Jan" }).getByRole("listitem");
    const deleted = `${gone.slice(0, 8)} (deleted)`;
    expect(await entries.allTextContents()).toEqual([
      "08:00Key key-7 disabled Ward 3.",
      "08:00The application changed the settings of Ward 3: name.",
      `08:00The application deleted ${deleted}.`,
      `08:00The application registered ${deleted}.`,
      "08:00The application registered Ward 3.",
    ]);
    await page.getByLabel("Action").selectOption("Registered");
    await expect.poll(() => entries.count()).toBe(2);
    expect(new URL(page.url()).hash).toBe("#/activity?action=webhook.created");
    await page.reload();
    await expect.poll(() => entries.count()).toBe(2);
    expect(await page.getByLabel("Action").inputValue()).toBe("webhook.created");
    expect(await axeFindings(page)).toEqual([]);
    await page.goBack();
    await expect.poll(() => entries.count()).toBe(5);
    await page.getByRole("link", { name: "Ward 3" }).first().click();
    await page.getByRole("heading", { name: "Ward 3" }).waitFor();
    expect(faults).toEqual([]);
  });

  it("has a heading for each day of the zone, and older entries behind a button", async () => {
    await host.close();
    host = await startPortalHost({ auditEntries: 200 });
    const id = await host.register("https://hooks.example.com/?a=<img>");
    for (let count = 1; count <= 60; count += 1) {
      if (count === 58) await host.clock.advance(24 * HOUR);
      // Equal entries in a row would be one line.
      const eventTypes = [`patient.${count % 4 < 2 ? "created" : "updated"}`];
      const change = count % 2 === 0 ? { description: `<b>Ward</b> ${count}` } : { eventTypes };
      await host.webhooks.registrations.update({ id, ...change });
    }
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/activity`);
    await page.getByRole("heading", { name: "Today, 13 Jan" }).waitFor();
    const entries = page.locator(".activity li");
    expect(await page.locator("main h2").allTextContents()).toEqual(["Today, 13 Jan UTC", "12 Jan UTC"]);
    expect(await entries.count()).toBe(50);
    expect(await page.locator("main img, main b").count()).toBe(0);
    await page.getByRole("button", { name: "Older" }).click();
    await expect.poll(() => entries.count()).toBe(11);
    // A filter reads on until it has enough.
    await page.goto(`${host.url}/#/activity?action=webhook.created`);
    await expect
      .poll(() => entries.allTextContents())
      .toEqual(["08:00The application registered <b>Ward</b> 60."]);
    await page.goto(`${host.url}/#/activity?action=webhook.painted`);
    await expect.poll(() => entries.count()).toBe(50);
    expect(faults).toEqual([]);
  });
});
