/** The list and page parts that a support engineer reads at a glance, at every width. */

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
  host = await startPortalHost({ auditEntries: 500 });
});
afterEach(() => host.close());

const LONG = "https://hooks-lab.example.com/v2/incoming/of/the/whole/laboratory/events";

/** Returns the hosts of endpoints that are cut. `scrollWidth` counts whole pixels. */
const findCutHosts = (page: Page): Promise<string[]> =>
  page
    .locator(".shortened > strong")
    .evaluateAll((hosts) =>
      hosts
        .filter((element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0)
        .map((element) => element.textContent ?? ""),
    );

describe("the name of an endpoint", () => {
  it("keeps its host at every width, and loses the middle of its path first", async () => {
    await host.register(LONG);
    await host.emit();
    await host.webhooks.idle();
    for (const width of [375, 768, 1_024, 1_280, 1_440, 1_920]) {
      const { page } = await open(browser, host.origin, { width });
      for (const path of ["/webhooks", "/deliveries"]) {
        await page.goto(`${host.url}#${path}`);
        const name = page.locator("tbody .shortened").first();
        await name.waitFor();
        expect({ width, path, cut: await findCutHosts(page) }).toEqual({ width, path, cut: [] });
        const visible = await name.evaluate((element) => element.getBoundingClientRect().width);
        expect(visible).toBeGreaterThanOrEqual(170);
      }
      await page.context().close();
    }
  });

  it("stays in the list of all deliveries when one of them is open", async () => {
    await host.register(LONG);
    await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin, { width: 1_440 });
    await page.goto(`${host.url}#/deliveries`);
    await page.getByRole("rowheader").getByRole("link").click();
    await page.getByRole("complementary", { name: "Delivery" }).waitFor();
    const endpoint = await page.locator("td.endpoint").first().boundingBox();
    expect(endpoint?.width).toBeGreaterThanOrEqual(200);
    expect(await findCutHosts(page)).toEqual([]);
  });
});

describe("a delivery in the list", () => {
  it("opens wherever its row is pressed, but for its controls", async () => {
    await host.register();
    await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/deliveries`);
    await page.getByRole("checkbox", { name: /^Select patient\.updated/ }).check();
    expect(page.url()).toMatch(/#\/deliveries$/);
    const state = await page.getByRole("cell", { name: "Delivered" }).boundingBox();
    await page.mouse.click((state?.x ?? 0) + 4, (state?.y ?? 0) + 4);
    await page.getByRole("heading", { name: "patient.updated, Patient/p1" }).waitFor();
  });

  it("has filters in one row, with the states as a list where buttons have no room", async () => {
    await host.registerTroubled();
    for (const [width, isNarrow] of [
      [768, true],
      [1_280, false],
      [1_920, false],
    ] as const) {
      const { page } = await open(browser, host.origin, { width });
      await page.goto(`${host.url}#/deliveries?state=pending`);
      await page.getByRole("rowheader").first().waitFor();
      expect(await page.getByRole("combobox", { name: "State" }).count()).toBe(isNarrow ? 1 : 0);
      const bottoms = await page
        .locator(".filter-row > *")
        .evaluateAll((fields) => fields.map((field) => Math.round(field.getBoundingClientRect().bottom)));
      expect(new Set(bottoms).size).toBe(1);
      await page.context().close();
    }
  });
});

it("finds a record among thousands by its subject, however long ago it was sent", async () => {
  await host.register();
  const emit = (id: string) =>
    host.webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient", id },
    });
  await emit("wanted");
  for (let count = 0; count < 700; count += 1) await emit(`p${count}`);
  await host.webhooks.idle();
  const { page } = await open(browser, host.origin);
  await page.goto(`${host.url}#/deliveries`);
  await page.getByLabel("Event ID or subject").fill("Patient wanted");
  await page.getByLabel("Event ID or subject").press("Enter");
  await page.getByRole("link", { name: "patient.updated, Patient/wanted" }).waitFor();
  expect(await page.locator(".log-table tbody tr").count()).toBe(1);
});

describe("the list of webhooks", () => {
  it("has rows of 40 px, and one line for each that needs attention", async () => {
    await host.registerTroubled();
    host.answer(answered(503, "<html><head><title>503 Busy</title></head><body><h1>503</h1></body></html>"));
    await host.emit();
    await host.clock.advance(HOUR);
    const { page } = await open(browser, host.origin, { width: 1_280 });
    await page.goto(host.url);
    const item = page.getByRole("region", { name: "Needs attention" }).getByRole("listitem");
    await item.getByText("HTTP 503 “503 Busy”").waitFor();
    expect(await item.evaluate((element) => element.clientHeight)).toBeLessThanOrEqual(41);
    const row = page.locator(".endpoints tbody tr");
    expect(await row.evaluate((element) => element.clientHeight)).toBeLessThanOrEqual(41);
  });
});

describe("a disabled webhook", () => {
  it("says when it was disabled and by whom, and is no alarm if a person did it", async () => {
    const id = await host.register();
    await host.webhooks.registrations.update({ id, status: "DISABLED" });
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("Disabled 12 Jan, 08:00 by the application. Nothing is sent.").waitFor();
    expect(await page.locator(".badge.bad", { hasText: "Disabled" }).count()).toBe(0);
    expect(await page.locator(".badge.neutral", { hasText: "Disabled" }).count()).toBe(1);
  });

  it("says after how long Postbell gave it up", async () => {
    const id = await host.registerTroubled();
    await host.clock.advance(80 * HOUR);
    await expect.poll(async () => (await host.webhooks.registrations.get(id)).status).toBe("DISABLED");
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText(/Disabled 16 Jan, \d\d:\d\d after 4 days of failures\. Nothing is sent\./).waitFor();
    expect(await page.locator(".badge.bad", { hasText: "Disabled" }).count()).toBeGreaterThan(0);
  });
});

describe("the activity", () => {
  it("folds equal entries in a row into one line with their number", async () => {
    const id = await host.register();
    for (let count = 0; count < 12; count += 1)
      await host.webhooks.registrations.update({ id, description: `Ward ${count}` });
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/activity`);
    await page.getByText("The application changed the settings of").waitFor();
    expect(await page.locator(".activity li").allTextContents()).toEqual([
      expect.stringMatching(/changed the settings of Ward 11: name\.12 times$/),
      expect.stringMatching(/registered Ward 11\.$/),
    ]);
  });
});

/** Finds elements that reach beyond the page, which then scrolls sideways. */
const WIDER = `[...document.querySelectorAll("main *, header *")]
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && element.closest(".scroll, .unseen, pre, svg, .tabs") === null)
  .map((element) => element.outerHTML.slice(0, 120))`;

it("has targets that a finger meets, at the narrowest widths", async () => {
  const id = await host.registerTroubled();
  for (const width of [320, 375]) {
    const { page } = await open(browser, host.origin, { width });
    for (const path of ["/webhooks", "/webhooks/new", `/webhooks/${id}`, `/webhooks/${id}/settings`]) {
      await page.goto(`${host.url}#${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      if (path.endsWith("new")) await page.getByLabel("Only these").check();
      await page.getByText("Loading …").waitFor({ state: "detached" });
      expect(await axeFindings(page, ["target-size"])).toEqual([]);
      expect(await page.evaluate(WIDER)).toEqual([]);
    }
    await page.context().close();
  }
});
