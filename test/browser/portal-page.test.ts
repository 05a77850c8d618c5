/** The page as such: accessibility, narrow screens, sessions, other origins, the host's colours. */

import { createServer } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { listen } from "../support/hosts.js";
import { axeFindings, launch, open } from "./support/chromium.js";
import { type PortalHost, startPortalHost } from "./support/portal-host.js";

let browser: Browser;
let host: PortalHost;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  host = await startPortalHost({ auditEntries: 100 });
});
afterEach(() => host.close());

/** Every view of webhooks, with what is on it once it was read. */
const listViews = async (id: string): Promise<readonly (readonly [path: string, there: string])[]> => {
  const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
  return [
    ["/webhooks", "table"],
    ["/webhooks/new", "form"],
    [`/webhooks/${id}`, ".track"],
    [`/webhooks/${id}/deliveries`, "table"],
    [`/webhooks/${id}/settings`, "form"],
    [`/webhooks/${id}/deliveries/${deliveries[0]?.id}`, ".attempts button"],
    ["/event-types", "details"],
    ["/activity", ".activity li"],
    ["/nothing", "h1"],
  ];
};

describe("the page", () => {
  it.each(["light", "dark"] as const)("gives axe nothing to find, %s", async (colorScheme) => {
    const id = await host.registerTroubled();
    await host.webhooks.registrations.rotateSecret({ id });
    const { page } = await open(browser, host.origin, { colorScheme });
    for (const [path, there] of await listViews(id)) {
      await page.goto(`${host.url}#${path}`);
      await page.locator(`main ${there}:visible`).first().waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      const some = page.getByLabel("Only these");
      if ((await some.count()) > 0) await some.check();
      expect(await axeFindings(page), path).toEqual([]);
    }
  });

  it.each([375, 400])("needs no sideways scrolling at %i px", async (width) => {
    const id = await host.registerTroubled();
    const { page } = await open(browser, host.origin, { width });
    for (const [path, there] of await listViews(id)) {
      await page.goto(`${host.url}#${path}`);
      await page.locator(`main ${there}:visible`).first().waitFor();
      const tooWide =
        "[document.documentElement, ...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length";
      expect(await page.evaluate(tooWide), path).toBe(0);
    }
  });

  it("says that the session has ended, keeps what was typed, and goes on after a new sign-in", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    const url = page.getByLabel("Endpoint URL");
    await url.fill("https://typed.example.com/");
    let answer: object = { status: 302, headers: { location: `${host.origin}/sign-in` } };
    await page.route("**/api/**", (route) => route.fulfill(answer));
    const ended = page.getByText("You are no longer signed in.");
    await page.clock.runFor(6_000);
    await ended.waitFor();
    answer = { status: 401, contentType: "text/html", body: "<h1>Who are you?</h1>" };
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await ended.waitFor();
    await page.unroute("**/api/**");
    await page.clock.runFor(6_000);
    await page.getByText("The page is up to date again.").waitFor();
    expect(await url.inputValue()).toBe("https://typed.example.com/");
  });

  it("takes no change from a page of another origin, whatever it sends along", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    const address = `${host.url}/api/v1/webhooks/${id}`;
    // Of another port, so of the same site: cookies with SameSite go along.
    const elsewhere = await listen(createServer((_request, response) => response.end("Nothing to see here")));
    const foreign = await page.context().newPage();
    await foreign.goto(elsewhere.origin);
    const outcomes = await foreign.evaluate<string[]>(
      `Promise.all([
        fetch("${address}/rotate", { method: "POST", credentials: "include", mode: "no-cors", body: "{}" }),
        fetch("${address}", { method: "DELETE", credentials: "include", headers: { "x-postbell-portal": "1" } }),
        fetch("${address}", { credentials: "include" }),
      ].map((asked) => asked.then(({ type }) => type, () => "refused")))`,
    );
    await elsewhere.close();
    expect(outcomes.filter((outcome) => !["opaque", "refused"].includes(outcome))).toEqual([]);
    // The request reached the portal, but nothing behind it.
    expect(host.answers).toContain("POST 403");
    expect(host.answers).not.toContain("POST 200");
    expect(await host.webhooks.registrations.get(id)).toMatchObject({ id });
  });

  it("shows times in the visitor's zone, and in UTC on request", async () => {
    await host.registerTroubled();
    const context = await browser.newContext({ locale: "en-US", timezoneId: "Asia/Tokyo" });
    const page = await context.newPage();
    await page.goto(host.url);
    await page.getByText("Failing since 12 Jan, 19:00 ·").waitFor();
    const zone = page.getByLabel("Time zone");
    expect(await zone.inputValue()).toBe("local");
    await zone.selectOption("UTC");
    await page.getByText("Failing since 12 Jan, 10:00 ·").waitFor();
    await page.reload();
    await page.getByText("Failing since 12 Jan, 10:00 ·").waitFor();
    expect(await zone.inputValue()).toBe("UTC");
    await context.close();
  });

  it("has the host's colours and logo, and appears in a frame of an origin that the host names", async () => {
    const frames = await listen(
      createServer((_request, response) => {
        response.setHeader("content-type", "text/html");
        response.end(`<!doctype html><iframe src="${host.url}" width="800" height="600"></iframe>`);
      }),
    );
    for (const isAllowed of [true, false]) {
      await host.close();
      host = await startPortalHost({
        theme: {
          accent: "#7a1fa2",
          accentDark: "#d9a6f0",
          logo: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'/%3E",
        },
        ...(isAllowed && { frameAncestors: [frames.origin] }),
      });
      const { page } = await open(browser, host.origin);
      await page.goto(host.url);
      const button = page.getByRole("link", { name: "Add endpoint" });
      await button.waitFor();
      const color = "getComputedStyle(document.querySelector('a.button')).backgroundColor";
      expect(await page.evaluate(color)).toBe("rgb(122, 31, 162)");
      await page.locator("header img").waitFor();
      const outer = await page.context().newPage();
      await outer.goto(frames.origin);
      const inner = outer.frameLocator("iframe").getByRole("heading", { name: "Webhooks" });
      const seen = await inner.waitFor({ timeout: isAllowed ? 15_000 : 1_000 }).then(
        () => true,
        () => false,
      );
      expect(seen).toBe(isAllowed);
    }
    await frames.close();
  });
});
