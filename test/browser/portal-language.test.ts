/** The portal in German, in a language of the host and with its look. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { portalTexts } from "../../src/portal/index.js";
import { axeFindings, launch, open } from "./support/chromium.js";
import { contentHost } from "./support/content-host.js";
import { answered, type PortalHost, startPortalHost, URL_A } from "./support/portal-host.js";

let browser: Browser;
let host: PortalHost;
let webhookId = "";
let deliveryId = "";

beforeAll(async () => {
  browser = await launch();
  host = await startPortalHost({ auditEntries: 100, canReadRecords: true });
  webhookId = await host.registerTroubled();
  const { items } = await host.webhooks.deliveries.list({ webhookId });
  deliveryId = items[0]?.id ?? "";
});
afterAll(async () => {
  await host.close();
  await browser.close();
});

/** Each view with its heading in German. */
const listViews = (): [view: string, heading: string | RegExp][] => [
  ["/webhooks", "Webhooks"],
  [`/webhooks/${webhookId}`, /^hooks\.example\.com/],
  [`/webhooks/${webhookId}/deliveries`, /^hooks\.example\.com/],
  [`/webhooks/${webhookId}/deliveries/${deliveryId}`, "patient.updated, Patient/p1"],
  [`/webhooks/${webhookId}/settings`, /^hooks\.example\.com/],
  ["/webhooks/new", "Endpunkt hinzufügen"],
  ["/deliveries", "Alle Zustellungen"],
  ["/event-types", "Ereignistypen"],
  ["/activity", "Aktivität"],
];

/** Shows a view once it was read. */
async function show(page: Page, view: string, heading: string | RegExp): Promise<void> {
  await page.goto(`${host.url}#${view}`);
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  await page.locator(".skeleton").waitFor({ state: "detached" });
}

/** Returns what is wider than the window, without what scrolls by itself. */
const findWide = (page: Page): Promise<readonly string[]> =>
  page.evaluate(
    `[document.documentElement, ...document.querySelectorAll('main *, header *')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5 || (element === document.documentElement && element.scrollWidth > innerWidth))
      .filter((element) => !element.closest('.scroll, pre, .unseen, .tabs, .skip, svg *'))
      .map((element) => element.outerHTML.slice(0, 200))`,
  );

/** Views with filters, headers and a rate, with the report of an examination, and with accounts. */
async function startFurther(isOperator: boolean) {
  const further = await startPortalHost({
    isOperator,
    options: {
      events: { "order.paid": {} },
      body: "plain",
      registrations: { filters: true, headers: true, perSecond: true },
    },
  });
  const { webhook } = await further.webhooks.registrations.create({
    subscriber: { id: "key-1", account: "clinic" },
    url: URL_A,
    filter: { "data.amount": { gte: 100 } },
    headers: { "x-api-key": "s3cret" },
    perSecond: 7,
  });
  const { id } = await further.webhooks.emit({
    type: "order.paid",
    account: "clinic",
    subject: "order/1",
    data: { amount: 1 },
  });
  return {
    further,
    views: isOperator
      ? ["/accounts"]
      : [
          `/webhooks/${webhook.id}`,
          `/webhooks/${webhook.id}/settings`,
          `/webhooks/${webhook.id}/diagnosis?event=${id}`,
        ],
  };
}

describe.each(["en-GB", "de-DE"])("options, the diagnosis and accounts in %s", (locale) => {
  it.each([
    ["light", 1_200],
    ["dark", 1_200],
    ["light", 320],
    ["dark", 375],
  ] as const)("have no findings of axe and fit on %s pages of %i px", async (colorScheme, width) => {
    for (const isOperator of [false, true]) {
      const { further, views } = await startFurther(isOperator);
      try {
        const { page, faults } = await open(browser, further.origin, { locale, colorScheme, width });
        for (const view of views) {
          await page.goto(`${further.url}#${view}`);
          await page.getByRole("heading", { level: 1 }).waitFor();
          await page.locator(".skeleton").waitFor({ state: "detached" });
          if (view.includes("/diagnosis")) {
            await page.locator(".answer-card").waitFor();
            await page
              .getByRole("button", { name: /^(?:Examine this endpoint|Diesen Endpunkt prüfen)$/ })
              .click();
            await page
              .getByRole("button", { name: /^(?:Examine the live endpoint|Den aktiven Endpunkt prüfen)$/ })
              .click();
            await page.locator(".report").waitFor();
          }
          expect([await axeFindings(page), await findWide(page)], view).toEqual([[], []]);
        }
        expect(faults).toEqual([]);
      } finally {
        await further.close();
      }
    }
  });
});

describe("the portal in German", () => {
  it.each(["light", "dark"] as const)("has no findings of axe on %s pages", async (colorScheme) => {
    const { page, faults } = await open(browser, host.origin, { locale: "de-DE", colorScheme });
    for (const [view, heading] of listViews()) {
      await show(page, view, heading);
      expect(await page.locator("html").getAttribute("lang")).toBe("de");
      expect(await axeFindings(page), view).toEqual([]);
    }
    expect(faults).toEqual([]);
  });

  it.each([320, 375])("is never wider than a window of %i px", async (width) => {
    const { page } = await open(browser, host.origin, { locale: "de-DE", width });
    for (const [view, heading] of listViews()) {
      await show(page, view, heading);
      expect(await findWide(page), view).toEqual([]);
    }
  });

  it("shows dates, numbers and states as Germans write them, and says results in German", async () => {
    const { page } = await open(browser, host.origin, { locale: "de-DE" });
    await show(page, `/webhooks/${webhookId}`, /^hooks/);
    expect(await page.title()).toBe("Übersicht – hooks.example.com/in – Clinic hooks");
    const card = page.getByRole("region", { name: "Störung" });
    expect(await card.textContent()).toMatch(
      /HTTP 500 seit 12\. Jan\., 10:00 \(30 h\).*Letzter Fehlversuch vor \d+ (?:h|min)\. Öffnen.*Gestört seit/,
    );
    host.answer(answered(204));
    await page.getByRole("button", { name: "Test senden", exact: true }).click();
    await page
      .getByRole("status")
      .getByText(/^Zugestellt: HTTP 204 nach /)
      .waitFor();
    host.answer(answered(500, "database is away"));
  });

  it("has content in German too, without findings of axe, at 320 px", async () => {
    const content = await contentHost(browser);
    try {
      await content.request("editor", "POST /posts", { title: "Urlaub", status: "publish" });
      const page = await content.visit("editor", "/posts", { locale: "de-DE", width: 320 });
      await page.getByText("1 Beitrag.").waitFor();
      expect([await axeFindings(page), await findWide(page)]).toEqual([[], []]);
      await page.getByRole("link", { name: "Urlaub" }).click();
      await page.getByRole("button", { name: "Speichern" }).waitFor();
      expect([await axeFindings(page), await findWide(page)]).toEqual([[], []]);
      await page.getByLabel("Titel", { exact: true }).fill("Ferien");
      await page.getByRole("button", { name: "Speichern" }).click();
      await page.getByText("Gespeichert. Status: Veröffentlicht.").waitFor();
      for (const view of ["/posts/new", "/media"]) {
        const other = await content.visit("editor", view, { locale: "de-DE", width: 320 });
        expect([await axeFindings(other), await findWide(other)], view).toEqual([[], []]);
      }
    } finally {
      await content.close();
    }
  });
});

describe("a language of the host", () => {
  it("is shown to a browser that prefers it", async () => {
    const fr = {
      ...portalTexts.en,
      page: { ...portalTexts.en.page, skip: "Aller au contenu" },
      webhooks: { ...portalTexts.en.webhooks, addEndpoint: "Ajouter une adresse" },
    };
    const french = await startPortalHost({ texts: { fr } });
    try {
      const { page, faults } = await open(browser, french.origin, { locale: "fr-CA" });
      await page.goto(`${french.url}#/webhooks`);
      await page.getByRole("link", { name: "Ajouter une adresse" }).waitFor();
      expect(await page.locator("html").getAttribute("lang")).toBe("fr");
      expect(await page.getByRole("link", { name: "Aller au contenu" }).count()).toBe(1);
      expect(faults).toEqual([]);
    } finally {
      await french.close();
    }
  });

  it("is also that of the error if its texts cannot be read", async () => {
    const { page } = await open(browser, host.origin, { locale: "de-DE" });
    await page.route(/texts-de/, (route) => route.abort());
    await page.goto(host.url);
    await page.getByRole("heading", { name: "Die Seite kann nicht angezeigt werden" }).waitFor();
    expect(await page.getByRole("alert").textContent()).toBe("Der Server ist nicht erreichbar.");
  });
});

describe("a look of the host", () => {
  it.each(["light", "dark"] as const)(
    "can be read on %s pages with one colour for both",
    async (colorScheme) => {
      const theme = { accent: "#c0561a", radius: 12, font: "DejaVu Serif, serif" };
      const themed = await startPortalHost({ theme });
      try {
        const id = await themed.registerTroubled();
        const { page, faults } = await open(browser, themed.origin, { colorScheme });
        for (const view of ["/webhooks", `/webhooks/${id}`, `/webhooks/${id}/settings`]) {
          await page.goto(`${themed.url}#${view}`);
          await page.getByRole("heading", { level: 1 }).waitFor();
          await page.locator(".skeleton").waitFor({ state: "detached" });
          expect(await axeFindings(page), view).toEqual([]);
        }
        await page.getByRole("button", { name: "Save", exact: true }).waitFor();
        const look = await page.evaluate(
          `(({ backgroundColor, borderRadius, fontFamily }) => [backgroundColor, borderRadius, fontFamily])(getComputedStyle(document.querySelector('button.primary')))`,
        );
        expect(look).toEqual(["rgb(192, 86, 26)", "12px", '"DejaVu Serif", serif']);
        expect(faults).toEqual([]);
      } finally {
        await themed.close();
      }
    },
  );
});
