/** The names of webhooks on the page, their metadata, and the deliveries of all of them. */

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch, open } from "./support/chromium.js";
import { answered, type PortalHost, startPortalHost, URL_A } from "./support/portal-host.js";

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

const MARKUP = '<img src=x onerror="alert(1)">';

describe("the name of a webhook", () => {
  it("is given at the registration and in the settings, and stands above the address", async () => {
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/new`);
    await page.getByLabel("Endpoint URL").fill(URL_A);
    await page.getByLabel("Name").fill("  Ward 3  ");
    await page.getByLabel("Name").press("Enter");
    await page.getByRole("link", { name: "Go to the webhook" }).click();
    await page.getByRole("heading", { name: "Ward 3", exact: true }).waitFor();
    expect(await page.locator("main").textContent()).toContain("hooks.example.com/in");
    const [webhook] = (await host.webhooks.registrations.list({ account: "clinic" })).items;
    expect(webhook).toMatchObject({ description: "Ward 3", url: URL_A });

    await page.getByRole("link", { name: "Settings" }).click();
    const name = page.getByLabel("Name");
    expect(await name.inputValue()).toBe("Ward 3");
    await name.fill(MARKUP);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { name: MARKUP }).waitFor();
    await page.goto(`${host.url}/#/webhooks`);
    await page.getByRole("link", { name: MARKUP }).waitFor();
    const row = await page.locator("tbody tr").first().textContent();
    expect(row?.startsWith(`${MARKUP}hooks.example.com/in`)).toBe(true);
    expect(await page.locator("main img").count()).toBe(0);

    await page.getByRole("link", { name: MARKUP }).click();
    await page.getByRole("link", { name: "Settings" }).click();
    await name.fill(" ");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { name: "hooks.example.com/in" }).waitFor();
    expect((await host.webhooks.registrations.get(webhook?.id ?? "")).description).toBeNull();
    expect(faults).toEqual([]);
  });

  it("is refused beside the field if the service refuses it", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/${id}/settings`);
    await page.getByLabel("Name").fill("\u202egnp.exe");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const problem = page.locator(".problem:visible");
    await problem.waitFor();
    expect(await problem.textContent()).toMatch(/^description must be one line/);
  });

  it("comes with the metadata, which are only shown", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/${id}`);
    await page.getByRole("heading", { name: "Details", exact: true }).waitFor();
    expect(await page.getByRole("heading", { name: "Metadata" }).count()).toBe(0);
    await host.webhooks.registrations.update({ id, metadata: { team: "ward", note: MARKUP } });
    await page.reload();
    const metadata = page.getByRole("region", { name: "Metadata" });
    await metadata.waitFor();
    expect(await metadata.locator("dl").textContent()).toBe(`note${MARKUP}teamward`);
    expect(await metadata.locator("input, button, img").count()).toBe(0);
  });
});

describe("the deliveries of all webhooks", () => {
  it("are listed with their webhooks, filtered and sent again", async () => {
    const id = await host.register();
    const other = await host.register("https://other.example.com/in");
    await host.webhooks.registrations.update({ id, description: "Ward 3" });
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    const { page, faults } = await open(browser, host.origin, { width: 1_440 });
    await page.goto(host.url);
    await page.getByRole("link", { name: "Deliveries", exact: true }).click();
    await page.getByRole("heading", { name: "All deliveries" }).waitFor();
    const rows = page.locator("tbody tr");
    await page.getByRole("link", { name: "Ward 3" }).waitFor();
    await page.getByRole("link", { name: "other.example.com/in" }).waitFor();
    expect(await rows.count()).toBe(2);
    host.answer(answered(204));
    await rows
      .filter({ hasText: "Ward 3" })
      .getByRole("button", { name: /^Send again/ })
      .click();
    await page.getByText("Delivered: HTTP 204").first().waitFor();
    const state = page.getByRole("group", { name: "State" });
    await state.getByRole("button", { name: /^Delivered/ }).click();
    await expect.poll(() => rows.count()).toBe(1);
    const delivered = await host.webhooks.deliveries.list({ account: "clinic", state: "delivered" });
    expect(delivered.items.map(({ webhookId }) => webhookId)).toEqual([id]);
    await host.webhooks.registrations.update({ id: other, status: "DISABLED" });
    await state.getByRole("button", { name: /^Pending/ }).click();
    // Attempts of a disabled webhook are skipped, so none is announced.
    const row = rows.filter({ hasText: "other.example.com" });
    await row.getByRole("cell", { name: "–", exact: true }).waitFor();
    expect(faults).toEqual([]);
  });
});

describe("an address that has no room", () => {
  const LONG = "https://hooks.example.com/v2/incoming/webhooks/notifications";

  /** Reads the visible text of an address, with `…` for what each part cuts at its end. */
  const READ_VISIBLE = `[...document.querySelector("table .shortened").children].map((part) => {
    const { left, right, width } = part.getBoundingClientRect();
    const text = part.firstChild;
    if (text === null || width < 1) return "";
    const range = document.createRange();
    const seen = [...text.textContent].filter((_, index) => {
      range.setStart(text, index);
      range.setEnd(text, index + 1);
      const box = range.getBoundingClientRect();
      return box.left >= left - 1 && box.right <= right + 1;
    });
    return seen.join("") + (part.scrollWidth > part.clientWidth + 1 ? "…" : "");
  }).join("")`;

  it("keeps its host, and shows the end of its path behind the ellipsis", async () => {
    await host.register(LONG);
    for (const width of [768, 1_280]) {
      const { page } = await open(browser, host.origin, { width });
      await page.goto(`${host.url}/#/webhooks`);
      await page
        .getByRole("table")
        .getByRole("img", { name: LONG.slice("https://".length) })
        .waitFor();
      const seen = await page.evaluate<string>(READ_VISIBLE);
      expect(seen).toMatch(/^hooks\.example\.com.*…/);
      const end = seen.replace(/^.*…/, "");
      expect("/v2/incoming/webhooks/notifications".endsWith(end)).toBe(true);
      await page.context().close();
    }
  });

  it("wraps in a sentence and as the title of a phone, so that nothing of it is cut", async () => {
    await host.close();
    host = await startPortalHost({ auditEntries: 10 });
    const id = await host.register(LONG);
    const { page } = await open(browser, host.origin, { width: 375 });
    for (const view of ["activity", `webhooks/${id}`]) {
      await page.goto(`${host.url}/#/${view}`);
      const name = page.locator("main").getByRole("img", { name: LONG.slice("https://".length) });
      await name.first().waitFor();
      // Parts in a line of text are never cut.
      const parts = name.first().locator("> *");
      const shown = await parts.evaluateAll((all) => all.map((part) => part.clientWidth));
      expect(shown).toEqual([0, 0, 0]);
      expect((await name.first().boundingBox())?.width).toBeLessThan(375);
    }
    await page.context().close();
  });
});

it("shows all tabs of a webhook on a phone, in English and German", async () => {
  const id = await host.register();
  await host.emit();
  for (const locale of ["en-GB", "de-DE"]) {
    const { page } = await open(browser, host.origin, { width: 375, locale });
    await page.goto(`${host.url}/#/webhooks/${id}/diagnosis`);
    const tabs = page.locator(".tabs");
    await tabs.getByRole("link").nth(3).waitFor();
    expect(await tabs.evaluate((bar) => bar.scrollWidth - bar.clientWidth)).toBe(0);
    await page.context().close();
  }
});
