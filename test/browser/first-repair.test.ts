/**
 * "Your first repair" of docs/guides/repair.md, as a reader follows it: examples/portal.js, and
 * nothing but what the page shows.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
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

it("repairs an endpoint that fails and one that was disabled, and gets both their events", async () => {
  const { page, faults } = await open(browser, origin);
  const subscribers = await page.context().newPage();
  await subscribers.goto(`${origin}/endpoints`);
  const arrivedAt = async (path: string): Promise<number> => {
    await subscribers.reload();
    return subscribers.getByRole("listitem").filter({ hasText: path }).count();
  };
  const openTab = (name: string): Promise<void> =>
    page.getByRole("navigation", { name: "Webhook" }).getByRole("link", { name }).click();
  await page.goto(`${origin}/login`);

  await page.getByText("1 failing, 1 disabled, 2 of 3 enabled").waitFor();
  const attention = page.getByRole("region", { name: "Needs attention" });
  await attention.getByText("HTTP 500 “The database of the lab is full.”").waitFor();
  await attention.getByRole("link", { name: /\/lab/ }).click();
  await openTab("Deliveries");
  const deliveries = page.getByRole("region", { name: "Deliveries, newest first" });
  const retrying = deliveries.getByRole("row", { name: /Retrying/ });
  await retrying.first().getByRole("link").click();
  await page.getByText("The database of the lab is full.").first().waitFor();
  expect(await arrivedAt("/lab")).toBe(2);
  await subscribers.getByRole("button", { name: "Empty the database of the lab" }).click();
  await page.getByRole("button", { name: /Send again/ }).click();
  await page
    .getByText(/^Delivered: HTTP 204/)
    .first()
    .waitFor();
  await page.getByRole("link", { name: "Deliveries of this webhook" }).click();
  await retrying.getByRole("button", { name: /Send again/ }).click();
  await retrying.waitFor({ state: "detached" });
  await expect.poll(() => arrivedAt("/lab"), { timeout: 10_000 }).toBe(4);

  await page.getByRole("link", { name: "Webhooks" }).click();
  // It accepts deliveries again, but not 95 % of those of the day.
  await page.getByRole("row", { name: /\/lab.*Unstable/ }).waitFor();
  await attention.getByRole("link", { name: /\/old-archive/ }).click();
  await openTab("Deliveries");
  await deliveries.getByRole("link").click();
  await page.getByText("notifications go to /archive now").first().waitFor();
  await page.getByRole("link", { name: "Deliveries of this webhook" }).click();
  await openTab("Settings");
  const url = page.getByLabel("Endpoint URL");
  await url.fill((await url.inputValue()).replace("old-archive", "archive"));
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved. Pending deliveries go to the new URL").waitFor();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText("The webhook was enabled.").waitFor();
  await page.getByText("Needs a test").waitFor();
  expect(await arrivedAt("/archive")).toBe(0);
  await openTab("Overview");
  await page.getByRole("button", { name: "Send test", exact: true }).click();
  await page.getByRole("status").getByText("Delivered: HTTP 204").waitFor();
  await page.locator(".badge").getByText("Healthy").waitFor();
  const tests = await arrivedAt("/archive");
  await page.getByRole("button", { name: "Send 1 now" }).click();
  await page.getByText("4 events are being sent, one after another.").waitFor();
  await expect.poll(() => arrivedAt("/archive"), { timeout: 10_000 }).toBe(4 + tests);
  await openTab("Deliveries");
  await page.getByText("Sent again since").waitFor();
  expect(faults).toEqual([]);
}, 120_000);
