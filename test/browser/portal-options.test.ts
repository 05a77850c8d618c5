/** The filter, the secret headers and the rate of an endpoint on the page. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { startPortalHost, URL_A } from "./support/portal-host.js";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

async function start(registrations: object) {
  const options = { events: { "order.paid": {} }, body: "plain", registrations };
  const host = await startPortalHost({ options });
  onTestFinished(() => host.close());
  const { webhook } = await host.webhooks.registrations.create({
    subscriber: { id: "key-1", account: "clinic" },
    url: URL_A,
  });
  const { page, faults } = await open(browser, host.origin);
  await page.goto(`${host.url}#/webhooks/${webhook.id}/settings`);
  return { page, faults, url: host.url, id: webhook.id, registrations: host.webhooks.registrations };
}

describe("the settings of an endpoint that the service offers", () => {
  it("are set, shown without the values of headers, and removed", async () => {
    const { page, faults, url, id, registrations } = await start({
      filters: true,
      headers: true,
      perSecond: true,
    });
    await page.getByRole("textbox", { name: "Filter" }).fill('{ "data.amount": { "gte": 100 } ');
    await page.getByRole("button", { name: "Save the filter" }).click();
    await page.getByText("This is no JSON: check the quotes and commas.").waitFor();
    await page.getByRole("textbox", { name: "Filter" }).fill('{ "data.amount": { "gte": 100 } }');
    await page.getByRole("button", { name: "Save the filter" }).click();
    await page.getByRole("status").getByText("Saved.").waitFor();
    await page
      .getByRole("textbox", { name: "Secret headers" })
      .fill("X-Api-Key: s3cret-value\nX-Team: orders");
    await page.getByRole("button", { name: "Save the headers" }).click();
    await page.getByText("Set: x-api-key, x-team. Their values are never shown.").waitFor();
    await page.getByRole("textbox", { name: "Deliveries in a second" }).fill("7");
    await page.getByRole("button", { name: "Save the rate" }).click();
    await expect
      .poll(() => registrations.get(id))
      .toMatchObject({
        filter: { "data.amount": { gte: 100 } },
        headerNames: ["x-api-key", "x-team"],
        perSecond: 7,
      });
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.content()).not.toContain("s3cret-value");

    await page.goto(`${url}#/webhooks/${id}`);
    const details = page.getByRole("region", { name: "Details" });
    await details.getByText('{"data.amount":{"gte":100}}').waitFor();
    await details.getByText("x-api-key, x-team").waitFor();
    await details.getByText("7", { exact: true }).waitFor();

    await page.goto(`${url}#/webhooks/${id}/settings`);
    await page.getByRole("button", { name: "Remove all headers" }).click();
    await page.getByText("None is set.").waitFor();
    await page.getByRole("textbox", { name: "Deliveries in a second" }).fill("");
    await page.getByRole("button", { name: "Save the rate" }).click();
    await expect.poll(async () => (await registrations.get(id)).perSecond).toBeUndefined();
    expect((await registrations.get(id)).headerNames).toBeUndefined();
    expect(faults).toEqual([]);
  });

  it("are absent where the service does not offer them", async () => {
    const { page } = await start({});
    await page.getByRole("heading", { name: "Signing secret" }).waitFor();
    expect(await page.getByText("Filter, headers and rate").count()).toBe(0);
  });
});
