/** The delivery log on the page: searching it, sending again, and looking into a delivery. */

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch, open } from "./support/chromium.js";
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

describe("the deliveries of a webhook", () => {
  it("are filtered by state, and come in pages", async () => {
    const id = await host.register();
    for (let count = 0; count < 30; count++) await host.emit();
    await host.webhooks.idle();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const rows = page.getByRole("region", { name: LOG }).locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(25);
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText("Page 2").waitFor();
    await expect.poll(() => rows.count()).toBe(6);
    await page.getByLabel("State").selectOption("Pending or retrying");
    await page.getByRole("button", { name: "Filter" }).click();
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.textContent()).toMatch(/patient\.updated.*Retrying.*Failed: HTTP 500/);
  });

  it("are found by the event's ID, and any other text is refused beside the field", async () => {
    const id = await host.register();
    for (let count = 0; count < 30; count++) await host.emit();
    await host.webhooks.idle();
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id, limit: 100 });
    const wanted = deliveries.at(-1)?.eventId ?? "";
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const field = page.getByLabel("Event ID", { exact: true });
    await field.fill("not an ID");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("Paste the whole event ID").waitFor();
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    await field.fill(wanted.toUpperCase());
    await page.getByRole("button", { name: "Filter" }).click();
    const rows = page.getByRole("region", { name: LOG }).locator("tbody tr");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.textContent()).toContain(wanted.slice(0, 8));
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
    await page.getByLabel("State").selectOption("Failed");
    await page.getByRole("button", { name: "Filter" }).click();
    const rows = page.getByRole("region", { name: LOG }).locator("tbody tr");
    await rows.filter({ hasText: "HTTP 410" }).waitFor();
    expect(await rows.count()).toBe(1);
  });

  it("take times in 24 hours, and say how to write one", async () => {
    const id = await host.register();
    await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries`);
    const from = page.getByLabel("From (UTC)");
    await from.fill("tomorrow");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("Write the time like 2026-11-22 14:05.").waitFor();
    await from.fill("2026-01-12 08:01");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("No delivery here.").waitFor();
    await from.fill("2026-01-12 08:00");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("region", { name: LOG }).waitFor();
    expect(await page.getByRole("region", { name: LOG }).locator("tbody tr").count()).toBe(1);
  });

  it("are sent again once, however often the button is pressed, with the result beside it", async () => {
    const id = await host.registerTroubled();
    host.answer(answered(204));
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
    const again = page.getByRole("button", { name: /^Send again: patient\.updated, 2026-01-13T00/ });
    await again.click();
    await again.dispatchEvent("click");
    await again.press("Enter");
    expect(await again.getAttribute("aria-disabled")).toBe("true");
    release();
    await page.getByText("Sending now. The retry schedule is unchanged.").waitFor();
    expect(await again.getAttribute("aria-disabled")).toBe("true");
    await host.clock.advance(1_000);
    await page.getByRole("status").getByText("Delivered: HTTP 204").waitFor();
    expect(posts).toBe(1);
    expect((await host.webhooks.deliveries.stats({ webhookId: id })).delivered).toBe(2);
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
    expect((await host.webhooks.deliveries.list({ webhookId: id })).deliveries).toHaveLength(1);
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
    expect((await host.webhooks.deliveries.stats({ webhookId: id })).delivered).toBe(4);
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
    await page.getByText("The server answered with 503.").waitFor();
    await page.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 deliveries are being sent again.").waitFor();
    expect(posts).toBe(4);
    await host.clock.advance(1_000);
    expect((await host.webhooks.deliveries.stats({ webhookId: id })).delivered).toBe(4);
  });
});

describe("one delivery", () => {
  it("is read again after the first read failed", async () => {
    const id = await host.register();
    await host.emit();
    await host.webhooks.idle();
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    let isDown = true;
    await page.route("**/deliveries/*", (route) =>
      isDown ? route.fulfill({ status: 503, body: "" }) : route.continue(),
    );
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
    const error = page.locator("main").getByText("The server answered with 503.");
    await error.waitFor();
    isDown = false;
    await page.clock.runFor(6_000);
    await page.getByRole("region", { name: "Attempts" }).waitFor();
    expect(await error.count()).toBe(0);
  });

  it("shows what is sent, and the body only to who may read records", async () => {
    for (const canReadRecords of [false, true]) {
      await host.close();
      host = await startPortalHost({ canReadRecords });
      const id = await host.register();
      await host.emit();
      await host.webhooks.idle();
      const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
      const { page, faults } = await open(browser, host.origin);
      await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
      const request = page.getByRole("region", { name: "Request" });
      await request.getByText("POST https://hooks.example.com/in").waitFor();
      await request.getByText(/^\d[\d,]* bytes of JSON/).waitFor();
      await page.getByText("Patient/p1").waitFor();
      const show = request.getByRole("button", { name: "Show the body" });
      expect(await show.count()).toBe(canReadRecords ? 1 : 0);
      expect(await page.locator("main").textContent()).not.toContain('"resourceType"');
      if (canReadRecords) {
        await show.click();
        await request.getByText('"resourceType":"Patient"').first().waitFor();
      }
      await request.getByText("Send it yourself with curl").click();
      expect(await request.locator("details").first().textContent()).toContain("openssl dgst -sha256");
      await request.getByText("Verify its signature").click();
      await request.getByLabel("Verify signatures in").selectOption("Python");
      await request.getByText("hmac.compare_digest").waitFor();
      expect(faults).toEqual([]);
    }
  });

  it("shows what an endpoint answers as text, and says if nothing of it was kept", async () => {
    const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    for (const excerptCharacters of [200, 0]) {
      await host.close();
      host = await startPortalHost({ excerptCharacters });
      const id = await host.register("https://hooks.example.com/?q=%3Cimg%20src=x%3E'<b>");
      host.answer(answered(500, hostile));
      await host.emit();
      await host.clock.advance(1_000);
      const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
      const { page, faults } = await open(browser, host.origin);
      for (const path of ["", `/${id}`, `/${id}/deliveries`, `/${id}/deliveries/${deliveries[0]?.id}`]) {
        await page.goto(`${host.url}#/webhooks${path}`);
        await page.getByText("HTTP 500").or(page.getByText("Failing since")).first().waitFor();
        expect(await page.locator("main img, main script, main b").count()).toBe(0);
        expect(await page.title()).not.toBe("owned");
      }
      const attempts = page.getByRole("region", { name: "Attempts" });
      expect(await attempts.textContent()).toContain(excerptCharacters === 0 ? "not kept" : hostile);
      expect(await page.getByText("delivery.excerptCharacters").count()).toBe(
        excerptCharacters === 0 ? 1 : 0,
      );
      expect(faults).toEqual([]);
    }
  });
});
