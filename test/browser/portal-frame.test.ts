/** The frame of the page: navigation, jump box, colours, loading, errors, and targets to hit. */

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { type PortalHost, startPortalHost, URL_A } from "./support/portal-host.js";

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

const visit = async (path: string, options: Parameters<typeof open>[2] = {}): Promise<Page> => {
  const { page } = await open(browser, host.origin, options);
  await page.goto(`${host.url}#${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
};

const sizeOf = (page: Page, selector: string): Promise<readonly number[]> =>
  page.evaluate<number[]>(
    `(({ width, height }) => [width, height])(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`,
  );

/** The element with the focus: its name, or its text. */
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>(
    "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent",
  );

/** The page with a finger in place of a mouse. */
const touch = async (path: string): Promise<Page> => {
  const context = await browser.newContext({
    hasTouch: true,
    isMobile: true,
    viewport: { width: 375, height: 800 },
  });
  const page = await context.newPage();
  await page.goto(`${host.url}#${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
};

describe("the jump box", () => {
  const box = (page: Page) => page.getByRole("combobox", { name: "Jump to a page" });

  it("goes to an endpoint by its address, without a mouse", async () => {
    const id = await host.register("https://lab.example.com/in/results");
    await host.register("https://ward.example.com/in");
    const page = await visit("/activity");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("LAB results");
    await page.getByRole("option", { name: "lab.example.com/in/results" }).waitFor();
    await expect.poll(() => page.getByRole("option", { name: "ward" }).count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "lab.example.com/in/results" }).waitFor();
    expect(page.url()).toMatch(new RegExp(`#/webhooks/${id}$`));
    expect(await page.getByRole("dialog").count()).toBe(0);
    await expect.poll(() => focused(page)).toBe("lab.example.com/in/results");
  });

  it("moves through its results by arrows, round both ends, and tells their number", async () => {
    const page = await visit("/webhooks");
    await page.keyboard.press("Control+k");
    const active = () =>
      page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).textContent",
      );
    await page.getByText("4 results").waitFor({ state: "attached" });
    expect(await active()).toBe("Webhooks");
    await page.keyboard.press("ArrowDown");
    expect(await active()).toBe("Deliveries");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    expect(await active()).toBe("Activity");
    await page.keyboard.type("zzz");
    await page.getByText("1 result").waitFor({ state: "attached" });
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/deliveries\?q=zzz$/);
  });

  it("takes an event ID to the deliveries of it, on all endpoints", async () => {
    const id = await host.register();
    await host.emit();
    await host.clock.advance(1_000);
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const eventId = deliveries[0]?.eventId ?? "";
    const page = await visit("/webhooks");
    await page.getByRole("button", { name: "Jump to …" }).click();
    await page.getByRole("combobox", { name: "Jump to" }).fill(`  ${eventId} `);
    await page.getByRole("option", { name: `Deliveries with “${eventId}”` }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toMatch(new RegExp(`#/deliveries\\?q=${eventId}$`));
  });

  it("closes by Escape and gives the focus back", async () => {
    const page = await visit("/webhooks");
    await page.getByRole("button", { name: "Jump to …" }).focus();
    await page.keyboard.press("Enter");
    await box(page).waitFor();
    await page.keyboard.press("Escape");
    await box(page).waitFor({ state: "detached" });
    expect(await focused(page)).toMatch(/^Jump to …/);
  });

  it("reads the endpoints once each time, shows a dozen, and takes no text for HTML", async () => {
    for (let index = 0; index < 30; index += 1)
      await host.webhooks.registrations.create({
        subscriber: { id: "key-1", account: "clinic" },
        url: `https://e${index}.example.com/`,
        description: "<img src=x onerror=alert(1)>",
      });
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/event-types`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    let reads = 0;
    page.on("request", (request) => {
      if (request.url().includes("event_types")) reads += 1;
    });
    await page.keyboard.press("Control+k");
    await box(page).fill("<img");
    await page.getByText("12 results").waitFor({ state: "attached" });
    await box(page).fill(`${"<script>alert(1)</script> ".repeat(50)}`);
    await page.getByText("1 result").waitFor({ state: "attached" });
    await box(page).fill("[](){}*+?.\\^$|");
    await page.getByText("1 result").waitFor({ state: "attached" });
    expect((await box(page).inputValue()).length).toBeLessThanOrEqual(200);
    expect(reads).toBe(1);
    expect(faults).toEqual([]);
  });

  it("says that endpoints could not be read, and finds pages nevertheless", async () => {
    const page = await visit("/event-types");
    await page.route("**/v1/webhooks*", (route) => route.fulfill({ status: 503, body: "{}" }));
    await page.keyboard.press("Control+k");
    await page.getByText("The endpoints could not be read.").waitFor();
    await page.keyboard.type("activ");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.title()).toBe("Activity – Clinic hooks");
  });
});

describe("the colours", () => {
  const background = (page: Page) => page.evaluate("getComputedStyle(document.body).backgroundColor");

  it.each([
    ["light", "Dark", "rgb(15, 18, 22)"],
    ["dark", "Light", "rgb(255, 255, 255)"],
  ] as const)(
    "of a %s system give way to what the visitor chose, and it stays",
    async (colorScheme, label, color) => {
      await host.registerTroubled();
      const page = await visit("/webhooks", { colorScheme });
      const before = await background(page);
      expect(before).not.toBe(color);
      await page.getByLabel("Colours").selectOption({ label });
      expect(await background(page)).toBe(color);
      const accent = label === "Dark" ? "rgb(139, 188, 255)" : "rgb(11, 87, 181)";
      expect(
        await page.evaluate("getComputedStyle(document.querySelector('a.button')).backgroundColor"),
      ).toBe(accent);
      await page.reload();
      await page.getByRole("table").waitFor();
      expect(await background(page)).toBe(color);
      expect(await axeFindings(page)).toEqual([]);
      await page.getByLabel("Colours").selectOption({ label: "System" });
      expect(await background(page)).toBe(before);
    },
  );

  it("are those of the system if the browser keeps something else, or nothing", async () => {
    const { page } = await open(browser, host.origin);
    await page.addInitScript(
      "localStorage.setItem('postbell-theme', '\"><img>'); localStorage.setItem('postbell-zone', '{}')",
    );
    await page.goto(host.url);
    expect(await page.getByLabel("Colours").inputValue()).toBe("system");
    const { page: without } = await open(browser, host.origin);
    await without.addInitScript(
      "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })",
    );
    await without.goto(host.url);
    await without.getByLabel("Colours").selectOption({ label: "Dark" });
    expect(await background(without)).toBe("rgb(15, 18, 22)");
  });
});

describe("the menu of a narrow screen", () => {
  it("has the navigation, opens and closes by keyboard, and closes when it was used", async () => {
    await host.registerTroubled();
    const page = await visit("/webhooks", { width: 375 });
    expect(await page.getByRole("navigation", { name: "Parts of this page" }).count()).toBe(0);
    const menu = page.getByRole("button", { name: "Menu", exact: true });
    await menu.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Menu" });
    await dialog.getByRole("link", { name: "Webhooks 1 need attention" }).waitFor();
    await dialog.getByText("Signed in as Ada").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await focused(page)).toBe("Menu");
    await menu.click();
    await dialog.getByRole("link", { name: "Event types" }).click();
    await page.getByRole("heading", { level: 1, name: "Event types" }).waitFor();
    await dialog.waitFor({ state: "detached" });
  });
});

describe("a view", () => {
  it("shows that it is being read, says why it cannot be, and reads again on request", async () => {
    await host.registerTroubled();
    let isAway = true;
    let asked = 0;
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { page } = await open(browser, host.origin);
    await page.route("**/v1/webhooks?*", async (route) => {
      asked += 1;
      await held;
      if (isAway) await route.fulfill({ status: 503, body: "away" });
      else await route.continue();
    });
    await page.goto(`${host.url}#/webhooks`);
    await page.locator(".skeleton").waitFor();
    expect(await page.locator(".skeleton").textContent()).toBe("Loading …");
    answer();
    await page.getByRole("alert").getByText("The server responded with 503.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    const retry = page.getByRole("button", { name: "Retry" });
    await retry.click();
    await retry.waitFor();
    isAway = false;
    await retry.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("table").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await focused(page)).toBe("Webhooks");
    expect(asked).toBeGreaterThan(2);
  });

  it("has a title of its own, and so has each tab", async () => {
    const id = await host.registerTroubled();
    const page = await visit("/webhooks");
    const titles: string[] = [];
    for (const path of [
      "/webhooks",
      "/deliveries",
      "/event-types",
      "/activity",
      `/webhooks/${id}`,
      `/webhooks/${id}/deliveries`,
      `/webhooks/${id}/settings`,
      "/webhooks/new",
      "/nothing",
    ]) {
      await page.goto(`${host.url}#${path}`);
      await expect.poll(() => page.title()).not.toBe(titles.at(-1) ?? "Clinic hooks");
      await expect.poll(() => page.title()).not.toMatch(/^Webhook –/);
      titles.push(await page.title());
    }
    expect(titles.every((title) => title.endsWith(" – Clinic hooks"))).toBe(true);
    expect(new Set(titles).size).toBe(titles.length);
    expect(titles[6]).toMatch(/^Settings – hooks\.example\.com/);
  });

  it("has at most 25 stops before the rows of the list, and none at a table that does not scroll", async () => {
    await host.registerTroubled();
    const page = await visit("/webhooks");
    await page.getByRole("table").waitFor();
    expect(await page.locator(".scroll[tabindex]").count()).toBe(0);
    let stops = 0;
    const isInRow = "document.activeElement.closest('tbody tr') !== null";
    do {
      await page.keyboard.press("Tab");
      stops += 1;
    } while (stops < 60 && !(await page.evaluate(isInRow)));
    expect(stops).toBeLessThanOrEqual(25);
    await page.evaluate("document.querySelector('table').style.minWidth = '3000px'");
    await page.locator(".scroll[tabindex='0']").waitFor();
    await page.evaluate("document.querySelector('table').style.minWidth = ''");
    await page.locator(".scroll:not([tabindex])").waitFor();
  });

  it("skips the navigation on request", async () => {
    const page = await visit("/webhooks");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await focused(page)).toBe("Webhooks");
  });

  it("tells results in a region that was there before, and moves nothing for it", async () => {
    const id = await host.register();
    const page = await visit(`/webhooks/${id}/settings`);
    const status = page.locator("main > [role=status]");
    expect(await status.textContent()).toBe("");
    const heading = () => page.evaluate("document.querySelector('h1').getBoundingClientRect().top + scrollY");
    const before = await heading();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await status.locator(".outcome.done").waitFor();
    expect(await heading()).toBe(before);
    await page.getByRole("button", { name: "Dismiss" }).click();
    expect(await status.textContent()).toBe("");
  });
});

describe("what a finger or a mouse hits", () => {
  it("is 28 px for a copy button and 18 px for a box, and 44 px where fingers are used", async () => {
    const id = await host.registerTroubled();
    await host.webhooks.registrations.rotateSecret({ id });
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const delivery = `/webhooks/${id}/deliveries/${deliveries[0]?.id}`;
    const copy = "button[aria-label^='Copy the']";
    const page = await visit(delivery);
    await page.locator(copy).first().waitFor();
    for (const length of await sizeOf(page, copy)) expect(length).toBeGreaterThanOrEqual(28);
    await page.goto(`${host.url}#/webhooks/new`);
    await page.locator("input[type=checkbox], input[type=radio]").first().waitFor();
    expect(await sizeOf(page, "main input:is([type=checkbox], [type=radio])")).toEqual([18, 18]);

    const phone = await touch(delivery);
    await phone.locator(copy).first().waitFor();
    for (const length of await sizeOf(phone, copy)) expect(length).toBeGreaterThanOrEqual(44);
    await phone.goto(`${host.url}#/webhooks/new`);
    await phone.locator("main label input:is([type=checkbox], [type=radio])").first().waitFor();
    const [, height = 0] = await sizeOf(phone, "main label:has(> input:is([type=checkbox], [type=radio]))");
    expect(height).toBeGreaterThanOrEqual(44);
    await phone.context().close();
  });
});

describe("the files of the page", () => {
  it("come compressed, and are not asked for again", async () => {
    await host.register(URL_A);
    const { page } = await open(browser, host.origin);
    const responses: string[] = [];
    page.on("response", (response) => {
      const { pathname } = new URL(response.url());
      if (!/\/(app|theme)-[\w-]{22}\.(js|css)$/.test(pathname)) return;
      const { "content-encoding": encoding = "identity", "cache-control": caching = "" } = response.headers();
      responses.push(`${pathname.replace(/.*\/(\w+)-.*\.(\w+)$/, "$1.$2")} ${encoding} ${caching}`);
    });
    await page.goto(host.url);
    await page.getByRole("table").waitFor();
    expect([...responses].sort()).toEqual([
      expect.stringMatching(/^app\.css (br|gzip) public, max-age=31536000, immutable$/),
      expect.stringMatching(/^app\.js (br|gzip) public, max-age=31536000, immutable$/),
      "theme.css identity public, max-age=31536000, immutable",
    ]);
    await page.goto("about:blank");
    await page.goto(host.url);
    await page.getByRole("table").waitFor();
    const transferred = await page.evaluate(
      "performance.getEntriesByType('resource').filter(({ name }) => /-[\\w-]{22}\\./.test(name)).map(({ transferSize }) => transferSize)",
    );
    expect(transferred).toEqual([0, 0, 0, 0]);
  });
});
