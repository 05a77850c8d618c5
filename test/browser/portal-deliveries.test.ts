/** The delivery log on the page: searching it, sending again, and looking into a delivery. */

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

const LOG = "Deliveries, newest first";

const rowsOf = (page: Page) => page.getByRole("region", { name: LOG }).locator("tbody tr");
const state = (page: Page, name: RegExp) =>
  page.getByRole("group", { name: "State" }).getByRole("button", { name });
const statusLine = (page: Page) => page.getByRole("status");
const addressOf = (page: Page): string => new URL(page.url()).hash;

describe("the deliveries of a webhook", () => {
  it("are filtered at once, with the filters in the address", async () => {
    const id = await host.register();
    for (let count = 0; count < 3; count++) await host.emit();
    await host.webhooks.idle();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    await expect.poll(() => rowsOf(page).count()).toBe(4);
    await state(page, /^Pending 1$/).click();
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    expect(await rowsOf(page).textContent()).toMatch(/Retrying.*patient\.updated.*Patient\/p1.*500 · /);
    await rowsOf(page).getByRole("rowheader", { name: "patient.updated, Patient/p1", exact: true }).waitFor();
    expect(addressOf(page)).toBe(`#/webhooks/${id}/deliveries?state=pending`);
    expect(await state(page, /^Pending/).getAttribute("aria-pressed")).toBe("true");
    await statusLine(page).getByText("1 delivery", { exact: true }).waitFor({ state: "attached" });
    await page.getByLabel("Event type").selectOption("webhook.test");
    await page.getByText("No delivery matches these filters.").waitFor();
    await statusLine(page).getByText("No delivery", { exact: true }).waitFor({ state: "attached" });
    await page.reload();
    await page.getByText("No delivery matches these filters.").waitFor();
    expect(await page.getByLabel("Event type").inputValue()).toBe("webhook.test");
    await page.goBack();
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    await page.getByRole("button", { name: "Clear" }).click();
    await expect.poll(() => rowsOf(page).count()).toBe(4);
    expect(addressOf(page)).toBe(`#/webhooks/${id}/deliveries`);
    expect(await page.getByRole("button", { name: "Clear" }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it("come in pages, and a page begins at its top", async () => {
    const id = await host.register();
    for (let count = 0; count < 105; count++) await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    await expect.poll(() => rowsOf(page).count()).toBe(50);
    const heading = page.getByRole("heading", { level: 2, name: /^Deliveries: / });
    expect(await heading.textContent()).toBe("Deliveries: 1–50 of 105 deliveries");
    const first = addressOf(page);
    for (const expected of ["51–100 of 105 deliveries", "101–105 of 105 deliveries"]) {
      await page.getByRole("button", { name: "Older" }).click();
      await heading.getByText(expected).waitFor();
      await statusLine(page).getByText(expected).waitFor({ state: "attached" });
      await expect.poll(() => heading.evaluate((element) => element.matches(":focus"))).toBe(true);
      expect((await heading.boundingBox())?.y).toBeGreaterThanOrEqual(0);
      expect(addressOf(page)).toMatch(/\?after=/);
    }
    expect(await page.getByRole("button", { name: "Older" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Newer" }).click();
    await heading.getByText("51–100 of 105").waitFor();
    await page.getByRole("button", { name: "Newer" }).click();
    await heading.getByText("1–50 of 105").waitFor();
    expect(addressOf(page)).toBe(first);
  });

  it("are shown where the visitor was before a delivery was opened", async () => {
    const id = await host.register();
    for (let count = 0; count < 60; count++) await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries?state=delivered`);
    for (const back of ["key", "link"]) {
      const link = rowsOf(page).nth(40).getByRole("link");
      await link.waitFor();
      await link.scrollIntoViewIfNeeded();
      const top = await page.evaluate("scrollY");
      expect(top).toBeGreaterThan(500);
      await link.click();
      await page.getByRole("region", { name: "Attempts" }).waitFor();
      if (back === "key") await page.goBack();
      else await page.getByRole("link", { name: "Deliveries of this webhook" }).click();
      await expect.poll(() => link.evaluate((element) => element.matches(":focus"))).toBe(true);
      expect(addressOf(page)).toBe(`#/webhooks/${id}/deliveries?state=delivered`);
      expect(await page.evaluate("scrollY")).toBe(top);
    }
  });

  it("are found by the event's ID and by a record", async () => {
    const id = await host.register();
    for (let count = 0; count < 30; count++) await host.emit();
    await host.webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient", id: "other-1" },
    });
    await host.webhooks.idle();
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id, limit: 100 });
    const wanted = deliveries.at(-1)?.eventId ?? "";
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const field = page.getByLabel("Event ID or subject");
    await field.fill(wanted.toUpperCase());
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    expect(await rowsOf(page).getByRole("link").getAttribute("href")).toContain(wanted);
    await field.fill("patient/OTHER");
    await field.press("Enter");
    await rowsOf(page).getByRole("link", { name: "patient.updated, Patient/other-1" }).waitFor();
    expect(await rowsOf(page).count()).toBe(1);
    expect(addressOf(page)).toBe(`#/webhooks/${id}/deliveries?q=patient%2FOTHER`);
    await field.fill("<img src=x>");
    await page.getByText("No delivery matches these filters.").waitFor();
  });

  it("have a page for whatever an address says", async () => {
    const id = await host.register();
    await host.emit();
    await host.webhooks.idle();
    const { page, faults } = await open(browser, host.origin);
    const hostile = "<img src=x onerror=document.title='owned'>";
    const at = async (query: string): Promise<void> => {
      await page.goto("about:blank");
      await page.goto(`${host.url}#/webhooks/${id}/deliveries?${query}`);
    };
    await at(
      `state=constructor&since=tomorrow&period=__proto__&q=${"x".repeat(5_000)}&after=${"1".repeat(5_000)}`,
    );
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    await at(`type=${encodeURIComponent(hostile)}`);
    await page.locator("main").getByText("event type").first().waitFor();
    await at("after=nonsense");
    await page.locator("main").getByText("cursor").first().waitFor();
    await page.getByRole("button", { name: "Clear" }).or(state(page, /^All/)).first().click();
    await at(`q=${encodeURIComponent(hostile)}&open=${encodeURIComponent(hostile)}`);
    await page.getByRole("heading", { name: "Delivery" }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    expect(faults).toEqual([]);
  });

  it("that failed are found below thousands that did not", async () => {
    const id = await host.register();
    host.answer(answered(410));
    await host.emit();
    await host.clock.advance(73 * HOUR);
    host.answer(answered(204));
    for (let count = 0; count < 2_000; count++) await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    await state(page, /^Failed 1$/).click();
    const rows = rowsOf(page);
    await rows.filter({ hasText: "410 · " }).waitFor();
    expect(await rows.count()).toBe(1);
  });

  it("take times in 24 hours, and say how to write one without moving a field", async () => {
    const id = await host.register();
    await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    await page.getByLabel("Created").selectOption("Between …");
    const from = page.getByLabel("From (UTC)");
    const apply = page.getByRole("button", { name: "Apply" });
    const places = async () => [
      await from.boundingBox(),
      await apply.boundingBox(),
      (await rowsOf(page).first().boundingBox())?.y,
    ];
    const before = await places();
    await from.fill("tomorrow");
    await apply.click();
    await page.getByText("Write the time like 2026-11-22 14:05.").waitFor();
    expect(await from.getAttribute("aria-invalid")).toBe("true");
    expect(await places()).toEqual(before);
    await from.fill("2026-01-12 08:01");
    await apply.click();
    await page.getByText("No delivery matches these filters.").waitFor();
    expect(addressOf(page)).toContain("since=2026-01-12T08%3A01%3A00.000Z");
    await page.getByRole("button", { name: "Remove the period 12 Jan, 08:01 to …" }).click();
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    expect(addressOf(page)).not.toContain("since");
    await page.getByLabel("Created").selectOption("Last hour");
    await expect.poll(() => addressOf(page)).toContain("period=1h");
    await expect.poll(() => rowsOf(page).count()).toBe(1);
  });

  it("have labels with a gap above the fields, and a whole last column at 768 px", async () => {
    const id = await host.registerTroubled();
    for (const [width, path] of [
      [768, `/webhooks/${id}/deliveries`],
      [768, "/deliveries"],
      [1_024, "/deliveries"],
    ] as const) {
      const { page } = await open(browser, host.origin, { width });
      await page.goto(`${host.url}#${path}`);
      await rowsOf(page).first().waitFor();
      for (const name of ["Event ID or subject", "Event type", "Created"]) {
        const field = page.getByLabel(name, { exact: true });
        const label = page.locator("label", { hasText: name });
        const [box, above] = [await field.boundingBox(), await label.boundingBox()];
        expect((box?.y ?? 0) - (above?.y ?? 0) - (above?.height ?? 0)).toBeGreaterThanOrEqual(4);
      }
      const region = page.getByRole("region", { name: LOG });
      expect(await region.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
      const menus = region.getByRole("button", { name: /^Actions: / });
      const last = await menus.last().boundingBox();
      expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual(width - 24);
      const heights = await rowsOf(page).evaluateAll((rows) => rows.map((row) => row.clientHeight));
      expect(Math.max(...heights)).toBeLessThanOrEqual(41);
      await page.context().close();
    }
  });

  it("are sent again once, however often the button is pressed, with the result beside it", async () => {
    const id = await host.registerTroubled();
    let end = (): void => {};
    host.answer(
      new Promise((answer) => {
        end = () => answer(answered(204));
      }),
    );
    const { page } = await open(browser, host.origin);
    let posts = 0;
    let release = () => {};
    const held = new Promise<void>((answer) => {
      release = answer;
    });
    await page.route("**/resend", async (route) => {
      posts += 1;
      await held;
      await route.continue();
    });
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const again = page.getByRole("button", {
      name: /^Send again: patient\.updated, Patient\/p1, 13 Jan, 00:00/,
    });
    await again.click();
    await again.dispatchEvent("click");
    await again.press("Enter");
    expect(await again.getAttribute("aria-disabled")).toBe("true");
    release();
    await page.getByText("Sending now. The retry schedule is unchanged.").waitFor();
    expect(await again.getAttribute("aria-disabled")).toBe("true");
    end();
    await host.clock.advance(1_000);
    await statusLine(page).getByText("Delivered: HTTP 204").waitFor();
    expect(posts).toBe(1);
    expect((await host.webhooks.deliveries.stats(id)).delivered).toBe(2);
  });

  it("are refused by the service while an attempt is in flight", async () => {
    const id = await host.register();
    let end = () => {};
    host.answer(
      new Promise((answer) => {
        end = () => answer(answered(204));
      }),
    );
    await host.emit();
    await host.clock.advance(10);
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    await page.getByRole("button", { name: /Send again/ }).click();
    await page.getByText("An attempt of this delivery is in flight").waitFor();
    end();
    await host.webhooks.idle();
    expect((await host.webhooks.deliveries.list({ webhookId: id })).items).toHaveLength(1);
  });

  it("are selected and sent again together", async () => {
    const id = await host.registerTroubled();
    host.answer(answered(204));
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const choices = page.getByRole("checkbox", { name: /^Select/ });
    await choices.first().waitFor();
    const bulk = page.getByRole("button", { name: /Send selected again|Send \d+ again/ });
    expect(await bulk.getAttribute("aria-disabled")).toBe("true");
    for (const index of [0, 1, 2]) await choices.nth(index).check();
    await page.getByRole("button", { name: "Send 3 again" }).click();
    await page.getByText("3 deliveries are being sent again.").waitFor();
    await host.clock.advance(1_000);
    expect((await host.webhooks.deliveries.stats(id)).delivered).toBe(4);
  });

  it("stay selected only if they were not sent when sending several is interrupted", async () => {
    const id = await host.registerTroubled();
    host.answer(answered(204));
    const { page } = await open(browser, host.origin);
    let posts = 0;
    await page.route("**/resend", (route) => {
      posts += 1;
      return posts === 2 ? route.fulfill({ status: 503, body: "" }) : route.continue();
    });
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const choices = page.getByRole("checkbox", { name: /^Select/ });
    await choices.first().waitFor();
    for (const index of [0, 1, 2]) await choices.nth(index).check();
    await page.getByRole("button", { name: "Send 3 again" }).click();
    await page.getByText("The server responded with 503.").waitFor();
    await page.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 deliveries are being sent again.").waitFor();
    expect(posts).toBe(4);
    await host.clock.advance(1_000);
    expect((await host.webhooks.deliveries.stats(id)).delivered).toBe(4);
  });

  it("that are refused are named when several are sent again, with one result for all", async () => {
    const id = await host.registerTroubled();
    host.answer(answered(204));
    const { page } = await open(browser, host.origin);
    await page.addInitScript(
      "navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }",
    );
    let posts = 0;
    await page.route("**/resend", (route) => {
      posts += 1;
      const error = { code: "attempt_in_flight", message: "An attempt of this delivery is in flight <b>." };
      return posts === 2 ? route.fulfill({ status: 409, body: JSON.stringify({ error }) }) : route.continue();
    });
    await page.goto(`${host.url}#/deliveries`);
    await page.getByRole("checkbox", { name: "Select all 4" }).check();
    await page.getByRole("button", { name: "Copy IDs" }).click();
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    expect(await page.evaluate("copied")).toBe(deliveries.map((delivery) => delivery.id).join("\n"));
    await page.getByRole("button", { name: "Send 4 again" }).click();
    await statusLine(page).getByText("3 deliveries are being sent again. 1 refused.").waitFor();
    const refused = page.getByRole("region", { name: "Not sent again" }).getByRole("listitem");
    expect(await refused.allTextContents()).toEqual([
      "patient.updated, Patient/p1: An attempt of this delivery is in flight <b>.",
    ]);
  });

  it("have their actions in a menu, which the keyboard opens and closes", async () => {
    await host.registerTroubled();
    host.answer(answered(204));
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/deliveries`);
    const button = page.getByRole("button", { name: "Actions: patient.updated, Patient/p1" }).first();
    await button.press("Enter");
    const items = page.getByRole("menu").getByRole("menuitem");
    expect(await items.allTextContents()).toEqual([
      "Send again",
      "Copy event ID",
      "Copy delivery ID",
      "Copy address",
    ]);
    const isFocused = (place: number) => items.nth(place).evaluate((item) => item.matches(":focus"));
    expect(await isFocused(0)).toBe(true);
    await page.keyboard.press("ArrowUp");
    expect(await isFocused(3)).toBe(true);
    await page.keyboard.press("Escape");
    await expect.poll(() => items.count()).toBe(0);
    expect(await button.evaluate((element) => element.matches(":focus"))).toBe(true);
    await button.press("Enter");
    await page.keyboard.press("Enter");
    await host.clock.advance(1_000);
    await statusLine(page).getByText("Delivered: HTTP 204").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("are moved through with keys, but not while somebody types", async () => {
    await host.registerTroubled();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/deliveries`);
    const links = rowsOf(page).getByRole("rowheader").getByRole("link");
    await links.first().waitFor();
    const focused = () =>
      page.evaluate<string>("document.activeElement.dataset.row ?? document.activeElement.tagName");
    const ids = await links.evaluateAll((all) => all.map((link) => link.getAttribute("data-row")));
    await page.keyboard.press("j");
    expect(await focused()).toBe(ids[0]);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    expect(await focused()).toBe(ids[1]);
    await page.keyboard.press("x");
    expect(await rowsOf(page).nth(1).getByRole("checkbox").isChecked()).toBe(true);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Escape");
    const field = page.getByLabel("Event ID or subject");
    await field.click();
    await page.keyboard.type("jkx?");
    expect(await field.inputValue()).toBe("jkx?");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await field.fill("");
    await expect.poll(() => links.count()).toBe(4);
    await links.nth(1).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Attempts" }).waitFor();
    expect(addressOf(page)).toMatch(/^#\/webhooks\/[^/]+\/deliveries\/[^/]+$/);
  });

  it("open beside the list where there is room, at an address of their own", async () => {
    const id = await host.registerTroubled();
    const { page, faults } = await open(browser, host.origin, { width: 1_440 });
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const links = rowsOf(page).getByRole("rowheader").getByRole("link");
    await links.first().click();
    const panel = page.getByRole("complementary", { name: "Delivery" });
    await panel.getByRole("region", { name: "Attempts" }).waitFor();
    expect(await panel.evaluate((element) => element.matches(":focus"))).toBe(true);
    const ids = await links.evaluateAll((all) => all.map((link) => link.getAttribute("data-row") ?? ""));
    const openId = () => new URLSearchParams(addressOf(page).split("?")[1]).get("open");
    expect(openId()).toBe(ids[0]);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await expect.poll(openId).toBe(ids[2]);
    await expect.poll(() => links.nth(2).getAttribute("aria-current")).toBe("true");
    await page.reload();
    await panel.getByRole("region", { name: "Attempts" }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    expect(addressOf(page)).toBe(`#/webhooks/${id}/deliveries`);
    expect(await links.nth(2).evaluate((element) => element.matches(":focus"))).toBe(true);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries?open=${ids[1]}`);
    await panel.waitFor();
    await page.setViewportSize({ width: 1_000, height: 900 });
    await page.getByRole("heading", { level: 1, name: "patient.updated, Patient/p1" }).waitFor();
    expect(addressOf(page)).toBe(`#/webhooks/${id}/deliveries/${ids[1]}`);
    expect(faults).toEqual([]);
  });
});
