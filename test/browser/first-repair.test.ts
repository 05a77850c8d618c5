/**
 * "Your first repair" of docs/guides/repair.md, as a reader follows it: examples/portal.js, and
 * nothing but what the page shows.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, open } from "./support/chromium.js";

const example = join(resolve(import.meta.dirname, "../.."), "examples", "portal.js");

let browser: Browser;
let host: ChildProcess;
let origin: string;

beforeAll(async () => {
  browser = await launch();
  host = spawn(process.execPath, [example], { env: { ...process.env, PORT: "0" }, stdio: "pipe" });
  origin = await new Promise<string>((found, fail) => {
    let output = "";
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      const address = /(http:\S+)\/endpoints/.exec(output)?.[1];
      if (address) found(address);
    };
    host.stdout?.on("data", read);
    host.stderr?.on("data", read);
    host.once("exit", () => fail(new Error(`The example ended:\n${output}`)));
  });
});
afterAll(async () => {
  host.kill();
  await browser.close();
});

const sendAgain = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Send again" }).click();
  await page.getByText("It is attempted once more now").waitFor();
};

it("repairs an endpoint that fails and one that was disabled, and gets both their events", async () => {
  const { page, faults } = await open(browser, origin);
  const subscribers = await page.context().newPage();
  await subscribers.goto(`${origin}/endpoints`);
  const arrivedAt = async (path: string): Promise<number> => {
    await subscribers.reload();
    return subscribers.getByRole("listitem").filter({ hasText: path }).count();
  };
  await page.goto(`${origin}/login`);

  await page
    .getByRole("row", { name: /\/lab Failing/ })
    .getByRole("link")
    .click();
  await page
    .getByRole("row", { name: /Pending/ })
    .first()
    .getByRole("link")
    .click();
  await page.getByText("The database of the lab is full.").first().waitFor();
  expect(await arrivedAt("/lab")).toBe(2);
  await subscribers.getByRole("button", { name: "Empty the database of the lab" }).click();
  await sendAgain(page);
  await page.getByRole("link", { name: /\/lab$/ }).click();
  await page
    .getByRole("row", { name: /Pending/ })
    .getByRole("link")
    .click();
  await sendAgain(page);
  await expect.poll(() => arrivedAt("/lab"), { timeout: 10_000 }).toBe(4);

  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("row", { name: /\/lab Well/ }).waitFor();
  await page
    .getByRole("row", { name: /\/old-archive Disabled/ })
    .getByRole("link")
    .click();
  await page
    .getByRole("region", { name: /Deliveries/ })
    .getByRole("link")
    .click();
  await page.getByText("notifications go to /archive now").first().waitFor();
  await page.getByRole("link", { name: /\/old-archive$/ }).click();
  await page.getByText("Change address and event types").click();
  const address = page.getByLabel("Address of the endpoint");
  await address.fill((await address.inputValue()).replace("old-archive", "archive"));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The webhook was changed.").waitFor();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText("The webhook was enabled.").waitFor();
  await page.getByText("To be tested").waitFor();
  expect(await arrivedAt("/archive")).toBe(0);
  // The page offers to recover all missed events, also for somebody who opens it only now.
  await page.reload();
  await page.getByText("To be tested").waitFor();
  const recover = page.getByRole("button", { name: "Recover", exact: true });
  if (!(await recover.isVisible())) await page.getByText("Recover events", { exact: true }).click();
  await recover.click();
  await page.getByText("4 events are sent").waitFor();
  await expect.poll(() => arrivedAt("/archive"), { timeout: 10_000 }).toBe(4);
  await page.getByText("Well").waitFor();
  await page.getByRole("link", { name: "sent again" }).waitFor();
  expect(faults).toEqual([]);
}, 120_000);
