/** The list at a glance, the header of a webhook, its charts, and repairing one by keyboard. */

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { answered, HOUR, type PortalHost, startPortalHost } from "./support/portal-host.js";

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

const rows = (page: Page) => page.locator("tbody tr");

describe("the list of webhooks", () => {
  it("calls an endpoint unstable that accepted the last delivery, but not 95 % of the day's", async () => {
    await host.register();
    host.answer(answered(500));
    await host.emit();
    await host.webhooks.idle();
    host.answer(answered(204));
    await host.clock.advance(HOUR);
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    await rows(page).getByText("Unstable").waitFor();
    await page.getByText("1 unstable, 1 of 1 enabled").waitFor();
    const text = await page.getByRole("region", { name: "Needs attention" }).textContent();
    expect(text).toContain("50% of the attempts in the last 24 hours succeeded");
    const spark = rows(page).getByRole("img", { name: /^In 24 hours 1 delivered, 1 failed attempts/ });
    expect(await spark.count()).toBe(1);
  });

  it("keeps its search and its filter in the address, and announces what is left", async () => {
    await host.registerTroubled();
    await host.register("https://ward.example.com/in");
    const { page, faults } = await open(browser, host.origin);
    await page.goto(host.url);
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.getByRole("searchbox").fill("WARD.exa");
    await expect.poll(() => rows(page).count()).toBe(1);
    await page.getByRole("status").getByText("1 endpoint").waitFor({ state: "attached" });
    expect(page.url()).toContain("#/webhooks?q=WARD.exa");
    await page.getByLabel("Health", { exact: true }).selectOption("Failing");
    await page.getByText("0 endpoints of 2").waitFor();
    await page.reload();
    await page.getByText("0 endpoints of 2").waitFor();
    await page.goto(`${host.url}#/webhooks?health=attention&q=%3Cimg%20src=x%3E`);
    await page.getByText("0 endpoints of 2").waitFor();
    await page.getByRole("searchbox").fill("");
    await page.getByText("1 endpoint of 2").waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it("cuts a long address in the middle, and shows it whole on hover and focus", async () => {
    const address = `hooks.example.com/${"long/".repeat(30)}the-end`;
    await host.register(`https://${address}`);
    const { page } = await open(browser, host.origin, { width: 768 });
    await page.goto(host.url);
    const link = rows(page).getByRole("link");
    await link.waitFor();
    const height = async (): Promise<number> => (await link.boundingBox())?.height ?? 0;
    expect(await height()).toBeLessThan(30);
    expect(await link.locator("bdi").getAttribute("title")).toBe(address);
    expect(await link.locator("span").last().textContent()).toBe("long/the-end");
    await rows(page)
      .getByRole("button", { name: `Copy the address of ${address}` })
      .waitFor();
    await page.keyboard.press("Tab");
    await link.focus();
    expect(await height()).toBeGreaterThan(30);
  });

  it("leaves out two columns at 768 px, and becomes cards of two lines on a phone", async () => {
    await host.registerTroubled();
    for (const [width, hidden] of [
      [768, ["p95", "Next"]],
      [375, ["p95", "Next"]],
    ] as const) {
      const { page } = await open(browser, host.origin, { width });
      await page.goto(host.url);
      await rows(page).first().waitFor();
      for (const name of hidden)
        expect(await page.locator(`td[data-column="${name}"]`).first().isVisible(), name).toBe(false);
      expect((await rows(page).first().boundingBox())?.height).toBeLessThan(90);
    }
  });

  it("teaches what an endpoint is while the list is empty", async () => {
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    const steps = page.getByRole("region", { name: "No endpoint yet" });
    await steps.getByText("it receives a signed POST").waitFor();
    expect(await steps.locator("pre").textContent()).toContain("createReceiver({");
    expect(await page.getByRole("searchbox").count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    await steps.getByRole("link", { name: "Add the endpoint" }).click();
    await page.getByLabel("Endpoint URL").waitFor();
  });
});

describe("the header of a webhook", () => {
  it("asks before it disables, and says that events meanwhile create no deliveries", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const more = page.getByRole("button", { name: "More actions" });
    const choose = async (answer: string): Promise<void> => {
      await more.click();
      await page.getByRole("menuitem", { name: "Disable …" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("events that are emitted meanwhile create no deliveries").waitFor();
      await dialog.getByRole("button", { name: answer }).click();
    };
    await choose("Cancel");
    expect((await host.webhooks.registrations.get(id)).status).toBe("ENABLED");
    await choose("Disable the webhook");
    await page.getByRole("status").getByText("The webhook was disabled.").waitFor();
    expect((await host.webhooks.registrations.get(id)).status).toBe("DISABLED");
  });

  it("offers a sample of each type that the endpoint gets, found by typing a part of its name", async () => {
    const id = await host.register();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const menu = page.getByRole("button", { name: "Send a test with a sample" });
    await menu.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Send a test with a sample" });
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual([
      "patient.created",
      "patient.deleted",
      "patient.updated",
    ]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await menu.and(page.locator(":focus")).count()).toBe(1);
    await menu.press("Enter");
    await dialog.getByLabel("Search event types").fill("UPD");
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual(["patient.updated"]);
    await dialog.getByRole("button", { name: "patient.updated" }).press("Enter");
    await page.getByRole("status").getByText("Delivered: HTTP 204").waitFor();
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { body } = await host.webhooks.deliveries.inspect({
      id: deliveries[0]?.id ?? "",
      includeBody: true,
    });
    expect(body).toContain("patient.updated");
    expect(faults).toEqual([]);
  });
});

describe("the overview of a webhook", () => {
  it("quotes why it fails, says when it will be disabled, and leads to the delivery", async () => {
    const id = await host.registerTroubled();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const card = page.getByRole("region", { name: "What is wrong" });
    await card.getByText("database is away").waitFor();
    expect(await card.textContent()).toMatch(
      /HTTP 500 since 12 Jan, 10:00 \(30 h\).*Operator e-mail on 15 Jan, 10:00\. Disabled on 16 Jan, 10:00/,
    );
    await card.getByRole("link", { name: "Open it" }).click();
    await page.getByText("database is away").first().waitFor();
  });

  it("shows its hours as bars that lead to their deliveries, with one stop of the Tab key", async () => {
    const id = await host.registerTroubled();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const chart = page.getByRole("region", { name: "Attempts per hour" });
    await chart.getByRole("img", { name: /^In 24 hours 0 delivered, \d+ failed attempts/ }).waitFor();
    const bars = chart.locator(".chart-slots a");
    const inDay = await bars.count();
    expect(await bars.evaluateAll((links) => links.filter(({ tabIndex }) => tabIndex === 0).length)).toBe(1);
    await chart.getByRole("button", { name: "72 h" }).click();
    await expect.poll(() => bars.count()).toBeGreaterThan(inDay);
    // The first hour has the delivery that succeeded.
    await bars.last().focus();
    await page.keyboard.press("Home");
    expect(await bars.first().and(page.locator(":focus")).count()).toBe(1);
    expect(await bars.first().textContent()).toBe("12 Jan, 08:00–09:00: 1 delivered, 0 failed");
    await page.keyboard.press("ArrowRight");
    expect(await bars.nth(1).textContent()).toMatch(/^12 Jan, 10:00–11:00: 0 delivered, \d+ failed$/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/webhooks\/[^/]+\/deliveries\?/);
    const query = new URLSearchParams(page.url().split("?")[1]);
    expect(Object.fromEntries(query)).toEqual({
      ...{ since: "2026-01-12T10:00:00.000Z", until: "2026-01-12T11:00:00.000Z", state: "pending" },
    });
    expect(faults).toEqual([]);
  });

  it("hatches the bad bars, and has the same numbers as a table", async () => {
    const id = await host.registerTroubled();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const chart = page.getByRole("region", { name: "Attempts per hour" });
    const bad = chart.locator(".chart-plot .bar-bad").first();
    await bad.waitFor();
    const fill = (await bad.getAttribute("fill")) ?? "";
    expect(await chart.locator(`pattern[id="${fill.slice(5, -1)}"] line`).count()).toBe(1);
    await chart.getByRole("button", { name: "Show as table" }).click();
    const bars = await chart.locator("tbody tr").allTextContents();
    expect(bars.at(-1)).toMatch(/^1[23] Jan, \d\d:00–\d\d:00\d+\d+$/);
    expect(await axeFindings(page)).toEqual([]);
    const line = page.getByRole("region", { name: "Answer time" });
    await line.getByRole("button", { name: "Show as table" }).press("Enter");
    expect(await line.locator("thead").textContent()).toBe("Hourp50p95");
  });

  it("shows no charts for a webhook without attempts", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("of 0 in the log").waitFor();
    expect(await page.getByRole("region", { name: "Attempts per hour" }).count()).toBe(0);
  });
});

it("is repaired by keyboard alone, from the list on, with at most 12 presses", async () => {
  const id = await host.registerTroubled();
  host.answer(answered(204));
  const { page, faults } = await open(browser, host.origin);
  await page.goto(host.url);
  await page.getByText("HTTP 500 “database is away”").waitFor();
  let presses = 0;
  const press = async (key: string): Promise<void> => {
    presses += 1;
    await page.keyboard.press(key);
  };
  const tabTo = async (name: RegExp): Promise<void> => {
    const focused = page.locator(":focus");
    do await press("Tab");
    while (
      presses < 30 &&
      !name.test((await focused.getAttribute("aria-label")) ?? (await focused.textContent()) ?? "")
    );
    await press("Enter");
  };
  await tabTo(/^Skip to the content$/);
  await tabTo(/^hooks\.example\.com\/in$/);
  await page.getByRole("heading", { name: "hooks.example.com/in" }).and(page.locator(":focus")).waitFor();
  await tabTo(/^Send 3 now$/);
  await page.getByText("3 events are being sent, one after another.").waitFor();
  await host.clock.advance(HOUR);
  const after = await host.webhooks.deliveries.stats(id);
  expect(after).toMatchObject({ delivered: 4, pending: 0, failed: 0, health: { status: "ok" } });
  expect(presses, "key presses").toBeLessThanOrEqual(12);
  expect(faults).toEqual([]);
});
