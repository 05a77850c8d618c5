import { createServer } from "node:http";
import { join, resolve } from "node:path";
import type { Browser, Locator } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { listen } from "../support/hosts.js";
import { axeFindings, launch, open } from "./support/chromium.js";
import { answered, type PortalHost, SUBSCRIBER, startPortalHost } from "./support/portal-host.js";

const root = resolve(import.meta.dirname, "../..");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const URL_A = "https://hooks.example.com/in";

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

const register = async (url = URL_A): Promise<string> => {
  const { webhook } = await host.webhooks.registrations.create(SUBSCRIBER, {
    url,
    eventTypes: ["patient.*"],
  });
  return webhook.id;
};

/** An endpoint that has failed for 30 hours, with a delivery before and three since. */
const troubled = async (): Promise<string> => {
  const id = await register();
  await host.emit();
  await host.clock.advance(2 * HOUR);
  host.answer(answered(500, "database is away"));
  for (const pauseMs of [5 * HOUR, 9 * HOUR, 16 * HOUR]) {
    await host.emit();
    await host.clock.advance(pauseMs);
  }
  return id;
};

const hasFocus = async (locator: Locator): Promise<boolean> =>
  (await locator.and(locator.page().locator(":focus")).count()) === 1;

describe("the portal in a browser", () => {
  it("lets an operator find a failing endpoint, repair it and recover its events", async () => {
    const id = await troubled();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(host.url);
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
    await expect(page.getByRole("row", { name: URL_A }).textContent()).resolves.toMatch(
      /Failing since 12 Jan, 10:00\. Warning e-mail on 15 Jan, 10:00\. Will be disabled 16 Jan, 10:00/,
    );

    await page.getByRole("link", { name: URL_A }).click();
    const plot = page.getByRole("img", { name: /Time axis/ });
    await expect(plot.getAttribute("aria-label")).resolves.toMatch(
      /4 deliveries on the time axis: 3 failing and tried again, 0 failed for good\. Next attempt 13 Jan, .*Will be disabled 16 Jan, 10:00/,
    );
    expect(await plot.locator("line.warn, line.disable, line.now").count()).toBe(3);
    expect(await plot.locator("circle.good").count()).toBe(1);
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const failed = deliveries.flatMap(({ attempts }) => attempts.filter(({ kind }) => kind === "http"));
    expect(await plot.locator("path.bad").count()).toBe(failed.length);
    expect(await plot.locator("circle.planned").count()).toBeGreaterThanOrEqual(3 * 5);
    // The picture in the README is made on request only, because no two machines draw the same.
    if (process.env["SCREENSHOT"])
      await page.screenshot({ path: join(root, "docs", "portal.png"), fullPage: true });

    const log = page.getByRole("region", { name: "Deliveries, the newest first" });
    await log.getByRole("link").first().click();
    const attempts = page.getByRole("region", { name: /Attempts/ });
    await attempts.getByText("HTTP 500, the endpoint answered with an error").first().waitFor();
    expect(await attempts.textContent()).toContain("database is away");
    host.answer(answered(204));
    await page.getByRole("button", { name: "Send again" }).click();
    await page.getByText("It is attempted once more now").waitFor();
    await host.clock.advance(1_000);
    await page.reload();
    await page.locator(".badge.delivered").waitFor();

    // Disabled meanwhile: an event that is emitted now gets no delivery until it is recovered.
    await page.getByRole("link", { name: URL_A }).click();
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("status").getByText("The webhook was disabled.").waitFor();
    await host.emit();
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByText("The webhook was enabled.").waitFor();
    await page.getByText("Recover events").click();
    await page.getByLabel("Since").fill("2026-01-12T09:00");
    await page.getByRole("button", { name: "Recover", exact: true }).click();
    await page.getByText("1 event is sent").waitFor();
    await host.clock.advance(12 * HOUR);
    await page.reload();
    await page.getByText("The endpoint answers.").waitFor();
    const after = await host.webhooks.deliveries.stats({ webhookId: id });
    expect(after).toMatchObject({ delivered: 5, pending: 0, failed: 0, health: { status: "ok" } });
    expect(faults).toEqual([]);
  });

  it("registers with the keyboard alone, says what is wrong beside the field, and shows the secret once", async () => {
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/new`);
    const address = page.getByLabel("Address of the endpoint");
    await address.waitFor();
    const focused = () =>
      page.evaluate<string>("document.activeElement.textContent || document.activeElement.id");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("Register a webhook");
    await page.keyboard.press("Tab");
    await page.keyboard.type("http://hooks.example.com/in");
    await page.keyboard.press("Enter");
    const problem = page.locator(".problem:visible");
    await problem.waitFor();
    expect(await problem.textContent()).toMatch(/https/i);
    expect(await address.getAttribute("aria-invalid")).toBe("true");
    expect(await hasFocus(address)).toBe(true);

    await page.keyboard.press("Control+A");
    await page.keyboard.type(URL_A);
    await page.keyboard.press("Enter");
    const secret = page.getByLabel("Secret", { exact: true });
    await secret.waitFor();
    const shown = await secret.inputValue();
    expect(shown).toMatch(/^whsec_/);
    expect(await hasFocus(secret)).toBe(true);
    await page.getByRole("link", { name: "Go to the webhook" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: URL_A }).waitFor();
    expect(await page.content()).not.toContain(shown);
    expect(faults).toEqual([]);
  });

  it("sends a test, rotates the secret, changes types and deletes after a question", async () => {
    const id = await register();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText("A test was sent").waitFor();
    await host.clock.advance(1_000);

    await page.getByText("Rotate the secret").click();
    await page.getByLabel("The old secret goes on signing for").selectOption("1 hour");
    await page.getByRole("button", { name: "Make a new secret" }).click();
    expect(await page.getByLabel("Secret", { exact: true }).inputValue()).toMatch(/^whsec_/);

    await page.getByText("Change address and event types").click();
    await page.getByLabel("All types, also future ones").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The webhook was changed.").waitFor();
    expect(await host.webhooks.registrations.get(id)).toMatchObject({ eventTypes: ["*"] });
    await page.getByRole("link", { name: "webhook.test" }).waitFor();

    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect(host.webhooks.registrations.get(id)).resolves.toMatchObject({ id });
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByText("There is no webhook yet.").waitFor();
    await page.getByRole("status").getByText("The webhook was deleted.").waitFor();
    await page.getByRole("link", { name: "Register", exact: true }).click();
    await page.getByRole("heading", { name: "Register a webhook" }).waitFor();
    expect(await page.getByRole("status").textContent()).toBe("");
    await expect(host.webhooks.registrations.get(id)).rejects.toMatchObject({ code: "not_found" });
    expect(faults).toEqual([]);
  });

  it("filters and turns the pages of the deliveries", async () => {
    const id = await register();
    for (let count = 0; count < 30; count++) await host.emit();
    await host.webhooks.idle();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const rows = page.getByRole("region", { name: "Deliveries, the newest first" }).locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(25);
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText("Page 2 of the deliveries.").waitFor();
    expect(await rows.count()).toBe(6);
    await page.getByLabel("State").selectOption("pending");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("The deliveries were filtered.").waitFor();
    expect(await rows.allTextContents()).toEqual([
      expect.stringMatching(/patient\.updatedPending.*HTTP 500/),
    ]);
  });

  it("finds what failed below thousands that did not", async () => {
    await host.close();
    host = await startPortalHost();
    const id = await register();
    host.answer(answered(410));
    await host.emit();
    await host.clock.advance(73 * HOUR);
    host.answer(answered(204));
    for (let count = 0; count < 2_000; count++) await host.emit();
    await host.webhooks.idle();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page
      .getByRole("img", { name: /20 of 2001 deliveries on the time axis: .* 1 failed for good/ })
      .waitFor();
    await page.getByLabel("State").selectOption("failed");
    await page.getByRole("button", { name: "Filter" }).click();
    const rows = page.getByRole("region", { name: "Deliveries, the newest first" }).locator("tbody tr");
    await rows.filter({ hasText: "HTTP 410" }).waitFor();
    expect(await rows.count()).toBe(1);
  });

  it("shows what fails behind many that wait for their first attempt", async () => {
    const id = await register();
    host.answer(answered(500));
    await host.emit();
    await host.clock.advance(1_000);
    let end = () => {};
    host.answer(
      new Promise((resolve) => {
        end = () => resolve(answered(204));
      }),
    );
    for (let count = 0; count < 60; count++) await host.emit();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    const axis = page.getByRole("img", {
      name: /20 of 61 deliveries on the time axis: 1 failing and tried again/,
    });
    await axis.waitFor();
    expect(await axis.count()).toBe(1);
    end();
  });

  it("sends again from the list, and once however often it is pressed while it waits", async () => {
    const id = await troubled();
    host.answer(answered(204));
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    let posts = 0;
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route("**/resend", async (route) => {
      posts += 1;
      await held;
      await route.continue();
    });
    await page.goto(`${host.url}#/webhooks/${id}`);
    const again = page.getByRole("button", { name: "Send again: patient.updated, 13 Jan, 00:00" });
    await again.click();
    // The page renews itself meanwhile.
    await host.emit();
    await page.clock.runFor(6_000);
    await page.getByRole("img", { name: /5 deliveries/ }).waitFor();
    expect(await again.getAttribute("aria-disabled")).toBe("true");
    await again.dispatchEvent("click");
    answer();
    await page.getByText("It is attempted once more now, and keeps its schedule.").waitFor();
    expect(posts).toBe(1);
    await host.clock.advance(1_000);
    await page.clock.runFor(6_000);
    await again.waitFor({ state: "detached" });
    expect((await host.webhooks.deliveries.stats({ webhookId: id })).delivered).toBe(3);
  });

  it("changes what the visitor has changed, and nothing that somebody else has meanwhile", async () => {
    const id = await register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("Change address and event types").click();
    const save = page.getByRole("button", { name: "Save" });
    await save.click();
    await page.getByText("There is nothing to save.").waitFor();
    await host.webhooks.registrations.update(id, { url: "https://new.example.com/" });
    await page.getByLabel("All types, also future ones").check();
    await save.click();
    await page.getByText("The webhook was changed.").waitFor();
    expect(await host.webhooks.registrations.get(id)).toMatchObject({
      url: "https://new.example.com/",
      eventTypes: ["*"],
    });
  });

  it("turns the pages of more webhooks than fit on one", async () => {
    await host.close();
    host = await startPortalHost({ webhooks: 200 });
    for (let count = 1; count <= 101; count++) await register(`https://hooks.example.com/${count}`);
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    const rows = page.locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(100);
    await page.getByRole("button", { name: "More webhooks" }).press("Enter");
    await page.getByText("Page 2 of the webhooks.").waitFor();
    expect(await rows.allTextContents()).toEqual([expect.stringContaining("/101")]);
    expect(await hasFocus(page.getByRole("button", { name: "Back" }))).toBe(true);
  });

  it("shows what an endpoint answers as text, and says where nothing of it was kept", async () => {
    const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    for (const excerptCharacters of [200, 0]) {
      await host.close();
      host = await startPortalHost({ excerptCharacters });
      const id = await register("https://hooks.example.com/?q=%3Cimg%20src=x%3E'<b>");
      host.answer(answered(500, hostile));
      await host.emit();
      await host.clock.advance(1_000);
      const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
      const { page, faults } = await open(browser, host.origin);
      for (const path of [
        "/webhooks",
        `/webhooks/${id}`,
        `/webhooks/${id}/deliveries/${deliveries[0]?.id}`,
      ]) {
        await page.goto(`${host.url}#${path}`);
        await page.locator("main table:visible").first().waitFor();
        expect(await page.locator("main img, main script, main b").count()).toBe(0);
        expect(await page.title()).not.toBe("owned");
      }
      const cell = page
        .getByRole("region", { name: /Attempts/ })
        .locator("tbody td")
        .first();
      expect(await cell.textContent()).toContain(excerptCharacters === 0 ? "not shown" : hostile);
      expect(await page.getByText("delivery.excerptCharacters").count()).toBe(
        excerptCharacters === 0 ? 1 : 0,
      );
      expect(faults).toEqual([]);
    }
  });

  it("has all of a table within a narrow screen", async () => {
    const id = await troubled();
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { page } = await open(browser, host.origin);
    await page.setViewportSize({ width: 375, height: 800 });
    for (const path of ["", `/${id}`, `/${id}/deliveries/${deliveries[0]?.id}`]) {
      await page.goto(`${host.url}#/webhooks${path}`);
      await page
        .getByRole("cell", { name: /HTTP 500|Failing/ })
        .first()
        .waitFor();
      const tooWide = await page.evaluate(
        "[document.documentElement, ...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length",
      );
      expect([path, tooWide]).toEqual([path, 0]);
    }
  });

  it("says that the session has ended, keeps what was typed, and goes on after a new sign-in", async () => {
    const id = await register();
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("Change address and event types").click();
    const address = page.getByLabel("Address of the endpoint");
    await address.fill("https://typed.example.com/");
    let answer: object = { status: 302, headers: { location: `${host.origin}/sign-in` } };
    await page.route("**/api/**", (route) => route.fulfill(answer));
    const ended = page.getByText("You are not signed in any more.");
    await page.clock.runFor(6_000);
    await ended.waitFor();
    answer = { status: 401, contentType: "text/html", body: "<h1>Who are you?</h1>" };
    await page.getByRole("button", { name: "Save" }).click();
    await ended.waitFor();
    await page.unroute("**/api/**");
    await page.clock.runFor(6_000);
    await page.getByText("The page is up to date again.").waitFor();
    expect(await address.inputValue()).toBe("https://typed.example.com/");
  });

  it("takes no change from a page of another origin, whatever it sends along", async () => {
    const id = await register();
    const { page } = await open(browser, host.origin);
    await page.goto(host.url);
    const address = `${host.url}/api/webhooks/${id}`;
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

  it("stays up to date without taking the focus", async () => {
    const id = await register();
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("No delivery yet.").waitFor();
    const test = page.getByRole("button", { name: "Send a test" });
    await test.focus();
    await host.emit();
    await host.clock.advance(1_000);
    await page.clock.runFor(6_000);
    await page.getByRole("img", { name: /1 delivery on the time axis/ }).waitFor();
    expect(await hasFocus(test)).toBe(true);
  });

  it.each(["light", "dark"] as const)("gives axe nothing to find, %s", async (colorScheme) => {
    const id = await troubled();
    const { deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { page } = await open(browser, host.origin, { colorScheme });
    const views = [
      ["/webhooks", "table"],
      ["/webhooks/new", "form"],
      [`/webhooks/${id}`, "table"],
      [`/webhooks/${id}/deliveries/${deliveries[0]?.id}`, "table"],
      ["/nothing", "h1"],
    ];
    for (const [path, there = ""] of views) {
      await page.goto(`${host.url}#${path}`);
      await page.locator(`main ${there}:visible`).first().waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      expect(await axeFindings(page), path).toEqual([]);
    }
  });

  it("needs no sideways scrolling at 200 % of a small screen", async () => {
    const id = await troubled();
    const { page } = await open(browser, host.origin, { width: 400 });
    for (const path of ["/webhooks", "/webhooks/new", `/webhooks/${id}`]) {
      await page.goto(`${host.url}#${path}`);
      await page.locator("main table:visible, main form:visible").first().waitFor();
      const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      expect(await page.evaluate(beyond), path).toBe(0);
    }
  });
});
