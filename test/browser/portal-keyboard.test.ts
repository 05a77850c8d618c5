/** From the list to a repaired endpoint by keyboard: the presses are counted. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { launch, open } from "./support/chromium.js";
import { answered, startPortalHost } from "./support/portal-host.js";

const MAX_PRESSES = 10;

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Presses a key and waits until the page has shown the result. */
class Keyboard {
  presses: string[] = [];
  #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  async press(key: string): Promise<string> {
    await this.#page.keyboard.press(key);
    const focused = await this.#page.evaluate<string>(
      "(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent || '').trim()",
    );
    this.presses.push(`${key}: ${focused}`);
    return focused;
  }

  /** Presses Tab until something with this name has the focus. */
  async tabTo(name: RegExp): Promise<void> {
    for (let count = 0; count < 2 * MAX_PRESSES; count++) if (name.test(await this.press("Tab"))) return;
    expect.fail(`never reached ${name}: ${this.presses.join(", ")}`);
  }
}

it("takes at most ten presses from the list to an endpoint that got all it missed", async () => {
  const host = await startPortalHost({ auditEntries: 100 });
  onTestFinished(() => host.close());
  const id = await host.registerTroubled();
  for (const name of ["a", "b", "c"]) await host.register(`https://hooks.example.org/${name}`);
  const { page, faults } = await open(browser, host.origin);
  await page.goto(`${host.url}/#/webhooks`);
  await page.getByRole("heading", { name: "Needs attention" }).waitFor();
  host.answer(answered(204));
  const keyboard = new Keyboard(page);
  await keyboard.tabTo(/^Skip to the content$/);
  await keyboard.press("Enter");
  await keyboard.tabTo(/hooks\.example\.com\/in/);
  await keyboard.press("Enter");
  await page.getByRole("button", { name: /^Send \d+ now$/ }).waitFor();
  await keyboard.tabTo(/^Send \d+ now$/);
  await keyboard.press("Enter");
  await page.getByText(/being sent, one after another/).waitFor();
  await host.clock.advance(60_000);
  expect((await host.webhooks.deliveries.stats(id)).pending).toBe(0);
  const { items } = await host.webhooks.audit.list({ account: "clinic" });
  expect(items.filter(({ action }) => action === "webhook.recovered")).toHaveLength(1);
  expect(keyboard.presses.length, keyboard.presses.join(", ")).toBeLessThanOrEqual(MAX_PRESSES);
  expect(faults).toEqual([]);
});
