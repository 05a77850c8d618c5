/** All accounts, as an operator sees them, and the portal of one of them. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { HOUR, startPortalHost } from "./support/portal-host.js";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it("leads an operator from what fails to the repair, under the operator's name", async () => {
  const host = await startPortalHost({ isOperator: true, auditEntries: 100 });
  const id = await host.registerTroubled();
  await host.webhooks.registrations.create({
    subscriber: { id: "key-9", account: "shop & co" },
    url: "https://shop.example.com/in",
  });
  for (const width of [375, 1_280]) {
    const { page, faults } = await open(browser, host.origin, { width });
    await page.goto(host.url);
    await page.getByRole("heading", { name: "Accounts" }).waitFor();
    const rows = page.getByRole("region", { name: "Accounts" }).locator("tbody tr");
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringMatching(/^clinic.*1 failing.*3/)]);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByLabel("Show").selectOption("All accounts");
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel("Account, endpoint, event ID or subject").fill("shop.example");
    await page.getByLabel("Account, endpoint, event ID or subject").press("Enter");
    await page.getByRole("link", { name: "an endpoint of shop & co" }).click();
    await page.getByRole("heading", { name: "shop.example.com/in" }).waitFor();
    await page.getByText("You are viewing the account shop & co as Olga.").waitFor();
    await page.getByRole("link", { name: "All accounts" }).click();
    await page.getByRole("heading", { name: "Accounts" }).waitFor();
    await page.getByRole("link", { name: "clinic" }).click();
    await page.getByText("You are viewing the account clinic as Olga.").waitFor();
    expect(await page.getByRole("link", { name: "Add endpoint" }).count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.context().close();
  }

  const { page } = await open(browser, host.origin);
  await page.goto(`${host.url}/?account=clinic#/webhooks/${id}`);
  await page.getByRole("button", { name: /^Send \d+ now$/ }).click();
  await page.getByText(/events? (is|are) being sent, one after another\./).waitFor();
  await host.clock.advance(HOUR);
  await page.goto(`${host.url}/?account=clinic#/activity`);
  await page.getByText("Olga (operator) recovered missed events of").first().waitFor();
  await host.close();
}, 60_000);
