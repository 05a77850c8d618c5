import { join, resolve } from "node:path";
import type { Browser, Locator } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { answered, type PortalHost, SUBSCRIBER, startPortalHost } from "./support/portal-host.js";

const root = resolve(import.meta.dirname, "../..");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const URL_A = "https://hooks.example.com/in";

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

const register = async (url = URL_A): Promise<string> => {
  const { webhook } = await host.webhooks.registrations.create(SUBSCRIBER, {
    url,
    eventTypes: ["patient.*"],
  });
  return webhook.id;
};

/** An endpoint that has failed for 30 hours, with a delivery before and three since. */
const troubled = async (): Promise<string> => {
  const id = await register();
  await host.emit();
  await host.clock.advance(2 * HOUR);
  host.answer(answered(500, "database is away"));
  for (const pauseMs of [5 * HOUR, 9 * HOUR, 16 * HOUR]) {
    await host.emit();
    await host.clock.advance(pauseMs);
  }
  return id;
};

const hasFocus = async (locator: Locator): Promise<boolean> =>
  (await locator.and(locator.page().locator(":focus")).count()) === 1;

describe("the portal in a browser", () => {
  it("lets an operator find a failing endpoint, repair it and recover its events", async () => {
    const id = await troubled();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(host.url);
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
    await expect(page.getByRole("row", { name: URL_A }).textContent()).resolves.toMatch(
      /Failing since 12 Jan, 10:00\. Will be warned 15 Jan, 10:00\. Will be disabled 16 Jan, 10:00/,
    );

    await page.getByRole("link", { name: URL_A }).click();
    const plot = page.getByRole("img", { name: /Time axis/ });
    await expect(plot.getAttribute("aria-label")).resolves.toMatch(
      /4 deliveries on the time axis, 3 of them failing\. Next attempt 13 Jan, .*Will be disabled 16 Jan, 10:00/,
    );
    expect(await plot.locator("line.warn, line.disable, line.now").count()).toBe(3);
    expect(await plot.locator("circle.good").count()).toBe(1);
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const failed = deliveries.flatMap(({ attempts }) => attempts.filter(({ kind }) => kind === "http"));
    expect(await plot.locator("path.bad").count()).toBe(failed.length);
    expect(await plot.locator("circle.planned").count()).toBeGreaterThanOrEqual(3 * 5);
    await page.screenshot({ path: join(root, "docs", "portal.png"), fullPage: true });

    const log = page.getByRole("region", { name: "Deliveries, the newest first" });
    await log.getByRole("link").first().click();
    const attempts = page.getByRole("region", { name: /Attempts/ });
    await attempts.getByText("HTTP 500, the endpoint answered with an error").first().waitFor();
    expect(await attempts.textContent()).toContain("database is away");
    host.answer(answered(204));
    await page.getByRole("button", { name: "Send again" }).click();
    await page.getByText("It is attempted once more now").waitFor();
    await host.clock.advance(1_000);
    await page.reload();
    await page.locator(".badge.delivered").waitFor();

    // Disabled meanwhile: an event that is emitted now gets no delivery until it is recovered.
    await page.getByRole("link", { name: URL_A }).click();
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("status").getByText("The webhook was disabled.").waitFor();
    await host.emit();
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByText("The webhook was enabled.").waitFor();
    await page.getByText("Recover events").click();
    await page.getByLabel("Since").fill("2026-01-12T09:00");
    await page.getByRole("button", { name: "Recover", exact: true }).click();
    await page.getByText("1 event is delivered again").waitFor();
    await host.clock.advance(12 * HOUR);
    await page.reload();
    await page.getByText("The endpoint answers.").waitFor();
    const after = await host.webhooks.deliveries.stats({ webhookId: id });
    expect(after).toMatchObject({ delivered: 5, pending: 0, failed: 0, health: { status: "ok" } });
    expect(faults).toEqual([]);
  });

  it("registers with the keyboard alone, says what is wrong beside the field, and shows the secret once", async () => {
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/new`);
    const address = page.getByLabel("Address of the endpoint");
    await address.waitFor();
    const focused = () =>
      page.evaluate<string>("document.activeElement.textContent || document.activeElement.id");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("Register a webhook");
    await page.keyboard.press("Tab");
    await page.keyboard.type("http://hooks.example.com/in");
    await page.keyboard.press("Enter");
    const problem = page.locator(".problem:visible");
    await problem.waitFor();
    expect(await problem.textContent()).toMatch(/https/i);
    expect(await address.getAttribute("aria-invalid")).toBe("true");
    expect(await hasFocus(address)).toBe(true);

    await page.keyboard.press("Control+A");
    await page.keyboard.type(URL_A);
    await page.keyboard.press("Enter");
    const secret = page.getByLabel("Secret", { exact: true });
    await secret.waitFor();
    const shown = await secret.inputValue();
    expect(shown).toMatch(/^whsec_/);
    expect(await hasFocus(secret)).toBe(true);
    await page.getByRole("link", { name: "Go to the webhook" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: URL_A }).waitFor();
    expect(await page.content()).not.toContain(shown);
    expect(faults).toEqual([]);
  });

  it("sends a test, rotates the secret, changes types and deletes after a question", async () => {
    const id = await register();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText("A test was sent").waitFor();
    await host.clock.advance(1_000);

    await page.getByText("Rotate the secret").click();
    await page.getByLabel("The old secret goes on signing for").selectOption("1 hour");
    await page.getByRole("button", { name: "Make a new secret" }).click();
    expect(await page.getByLabel("Secret", { exact: true }).inputValue()).toMatch(/^whsec_/);

    await page.getByText("Change address and event types").click();
    await page.getByLabel("All types, also future ones").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The webhook was changed.").waitFor();
    expect(await host.webhooks.registrations.get(id)).toMatchObject({ eventTypes: ["*"] });
    await page.getByRole("link", { name: "webhook.test" }).waitFor();

    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect(host.webhooks.registrations.get(id)).resolves.toMatchObject({ id });
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByText("There is no webhook yet.").waitFor();
    await expect(host.webhooks.registrations.get(id)).rejects.toMatchObject({ code: "not_found" });
    expect(faults).toEqual([]);
  });

  it("filters and turns the pages of the deliveries", async () => {
    const id = await register();
    for (let count = 0; count < 30; count++) await host.emit();
    await host.webhooks.idle();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const rows = page.getByRole("region", { name: "Deliveries, the newest first" }).locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(25);
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText("Page 2 of the deliveries.").waitFor();
    expect(await rows.count()).toBe(6);
    await page.getByLabel("State").selectOption("pending");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("The deliveries were filtered.").waitFor();
    expect(await rows.allTextContents()).toEqual([
      expect.stringMatching(/patient\.updatedPending.*HTTP 500/),
    ]);
  });

  it("stays up to date without taking the focus", async () => {
    const id = await register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("No delivery yet.").waitFor();
    const test = page.getByRole("button", { name: "Send a test" });
    await test.focus();
    await host.emit();
    await host.clock.advance(1_000);
    await page.getByRole("img", { name: /1 delivery on the time axis/ }).waitFor();
    expect(await hasFocus(test)).toBe(true);
  });

  it.each(["light", "dark"] as const)("gives axe nothing to find, %s", async (colorScheme) => {
    const id = await troubled();
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { page } = await open(browser, host.origin, { colorScheme });
    const views = [
      ["/webhooks", "table"],
      ["/webhooks/new", "form"],
      [`/webhooks/${id}`, "table"],
      [`/webhooks/${id}/deliveries/${deliveries[0]?.id}`, "table"],
      ["/nothing", "h1"],
    ];
    for (const [path, there = ""] of views) {
      await page.goto(`${host.url}#${path}`);
      await page.locator(`main ${there}:visible`).first().waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      expect(await axeFindings(page), path).toEqual([]);
    }
  });

  it("needs no sideways scrolling at 200 % of a small screen", async () => {
    const id = await troubled();
    const { page } = await open(browser, host.origin, { width: 400 });
    for (const path of ["/webhooks", "/webhooks/new", `/webhooks/${id}`]) {
      await page.goto(`${host.url}#${path}`);
      await page.locator("main table:visible, main form:visible").first().waitFor();
      const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      expect(await page.evaluate(beyond), path).toBe(0);
    }
  });
});
