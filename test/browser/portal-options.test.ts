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

async function start(registrations: object, locale = "en-GB") {
  const options = { events: { "order.paid": {} }, body: "plain", registrations };
  const host = await startPortalHost({ options });
  onTestFinished(() => host.close());
  const { webhook } = await host.webhooks.registrations.create({
    subscriber: { id: "key-1", account: "clinic" },
    url: URL_A,
  });
  const { page, faults } = await open(browser, host.origin, { locale });
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
    await page.getByText("This is not valid JSON: check the quotes and commas.").waitFor();
    await page.getByRole("textbox", { name: "Filter" }).fill('{ "data.amount": { "gte": 100 } }');
    await page.getByRole("button", { name: "Save the filter" }).click();
    await page.getByRole("status").getByText("Saved.").waitFor();
    await page
      .getByRole("textbox", { name: "Secret headers" })
      .fill("X-Api-Key: s3cret-value\nX-Team: orders");
    await page.getByRole("button", { name: "Save the headers" }).click();
    await page.getByText("Set: x-api-key, x-team. Their values are never shown.").waitFor();
    await page.getByRole("textbox", { name: "Deliveries per second" }).fill("7");
    await page.getByRole("button", { name: "Save the rate" }).click();
    await expect
      .poll(() => registrations.get(id))
      .toMatchObject({
        filter: { "data.amount": { gte: 100 } },
        headerNames: ["x-api-key", "x-team"],
        perSecond: 7,
      });
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.getByRole("textbox", { name: "Secret headers" }).inputValue()).toBe("");

    await page.goto(`${url}#/webhooks/${id}`);
    const details = page.getByRole("region", { name: "Details" });
    await details.getByText('{"data.amount":{"gte":100}}').waitFor();
    await details.getByText("x-api-key, x-team").waitFor();
    await details.getByText("7", { exact: true }).waitFor();

    await page.goto(`${url}#/webhooks/${id}/settings`);
    await page.getByRole("button", { name: "Remove all headers" }).click();
    await page.getByText("None is set.").waitFor();
    await page.getByRole("textbox", { name: "Deliveries per second" }).fill("");
    await page.getByRole("button", { name: "Save the rate" }).click();
    await expect.poll(async () => (await registrations.get(id)).perSecond).toBeUndefined();
    expect((await registrations.get(id)).headerNames).toBeUndefined();
    expect(faults).toEqual([]);
  });

  it("are refused if a header is there twice, or the rate is out of range", async () => {
    const { page, registrations, id } = await start({ headers: true, perSecond: true });
    await page.getByRole("textbox", { name: "Secret headers" }).fill("X-Api-Key: a\nx-api-key: b");
    await page.getByRole("button", { name: "Save the headers" }).click();
    await page.getByText("The header x-api-key is there twice. Remove one of the lines.").waitFor();
    await page.getByRole("textbox", { name: "Deliveries per second" }).fill("10001");
    await page.getByRole("button", { name: "Save the rate" }).click();
    await page.getByText("This must be a whole number from 1 to 10,000.").waitFor();
    expect((await registrations.get(id)).headerNames).toBeUndefined();
  });

  it("have errors in the language of the page, with the message of the API below", async () => {
    const { page } = await start({ filters: true }, "de-DE");
    const field = page.getByRole("textbox", { name: "Filter" });
    await field.fill('{ "data.amount": {} }');
    await page.getByRole("button", { name: "Filter speichern" }).click();
    await page.getByText("Dieser Filter ist nicht möglich.").waitFor();
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    const detail = page.locator(".problem [lang=en]");
    expect(await detail.textContent()).toContain("filter['data.amount']");
    expect(await axeFindings(page)).toEqual([]);
  });

  it("are absent where the service does not offer them", async () => {
    const { page } = await start({});
    await page.getByRole("heading", { name: "Signing secret" }).waitFor();
    expect(await page.getByText("Filter, headers and rate").count()).toBe(0);
  });
});
