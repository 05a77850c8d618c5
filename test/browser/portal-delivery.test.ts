/** One delivery on the page: its attempts, what was answered, what was sent, and sending again. */

import type { Browser } from "playwright-core";
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
  host = await startPortalHost();
});
afterEach(() => host.close());

describe("one delivery", () => {
  it("is read again after the first read failed", async () => {
    const id = await host.register();
    await host.emit();
    await host.webhooks.idle();
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    let isDown = true;
    await page.route("**/deliveries/*", (route) =>
      isDown ? route.fulfill({ status: 503, body: "" }) : route.continue(),
    );
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
    const error = page.locator("main").getByText("The server responded with 503.");
    await error.waitFor();
    isDown = false;
    await page.clock.runFor(6_000);
    await page.getByRole("region", { name: "Attempts" }).waitFor();
    expect(await error.count()).toBe(0);
  });

  it("shows what is sent, and the body only to who may read records", async () => {
    for (const canReadRecords of [false, true]) {
      await host.close();
      host = await startPortalHost({ canReadRecords });
      const id = await host.register();
      await host.emit();
      await host.webhooks.idle();
      const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
      const { page, faults } = await open(browser, host.origin);
      await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
      const request = page.getByRole("region", { name: "Request" });
      await request.getByText("POST https://hooks.example.com/in").waitFor();
      await request.getByText(/^\d[\d,]* bytes of JSON/).waitFor();
      await page.getByText("Patient/p1", { exact: true }).waitFor();
      const body = request.getByRole("treeitem", { name: /^event:/ });
      await expect.poll(() => body.count()).toBe(canReadRecords ? 1 : 0);
      if (canReadRecords) {
        await request.getByRole("button", { name: "Raw" }).click();
        await request.getByText('"resourceType":"Patient"').first().waitFor();
      }
      await request.getByText("Send it yourself with curl").click();
      expect(await request.locator("details").nth(1).textContent()).toContain("openssl dgst -sha256");
      await request.getByText("Verify its signature").click();
      await request.getByLabel("Verify signatures in").selectOption("Python");
      await request.getByText("hmac.compare_digest").waitFor();
      expect(faults).toEqual([]);
    }
  });

  it("shows what an endpoint answers as text, and says if nothing of it was kept", async () => {
    const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    for (const excerptCharacters of [200, 0]) {
      await host.close();
      host = await startPortalHost({ excerptCharacters });
      const id = await host.register("https://hooks.example.com/?q=%3Cimg%20src=x%3E'<b>");
      host.answer(answered(500, hostile));
      await host.emit();
      await host.clock.advance(1_000);
      const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
      const { page, faults } = await open(browser, host.origin);
      for (const path of ["", `/${id}`, `/${id}/deliveries`, `/${id}/deliveries/${deliveries[0]?.id}`]) {
        await page.goto(`${host.url}#/webhooks${path}`);
        await page
          .getByText(/HTTP 500|500 · |500 Internal/)
          .or(page.getByText("Failing since"))
          .first()
          .waitFor();
        expect(await page.locator("main img, main script, main b").count()).toBe(0);
        expect(await page.title()).not.toBe("owned");
      }
      const response = page.getByRole("region", { name: "Response" });
      expect(await response.textContent()).toContain(excerptCharacters === 0 ? "not kept" : hostile);
      expect(await page.getByText("delivery.excerptCharacters").count()).toBe(
        excerptCharacters === 0 ? 1 : 0,
      );
      expect(faults).toEqual([]);
    }
  });

  it("shows fifty attempts in one screen, newest first, with equal answers folded", async () => {
    const id = await host.register();
    host.answer(answered(500, "full"));
    await host.emit();
    await host.clock.advance(1_000);
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const deliveryId = deliveries[0]?.id ?? "";
    for (let count = 0; count < 40; count++) {
      if (count === 20) host.answer(answered(503, "away"));
      await host.webhooks.deliveries.resend({ id: deliveryId });
      await host.clock.advance(10_000);
    }
    const { attempts } = await host.webhooks.deliveries.get(deliveryId);
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveryId}`);
    const list = page.getByRole("region", { name: "Attempts" });
    await list.getByRole("button").first().waitFor();
    const rows = await list.getByRole("button").allTextContents();
    const last = attempts.length;
    const change = attempts.findIndex(({ status }) => status === 503);
    expect(rows.map((row) => /attempt ([\d–]+) (\d+)/.exec(row)?.slice(1))).toEqual([
      [String(last), "503"],
      [`${last - 1}–${change + 1}`, "503"],
      [`${change}–1`, "500"],
    ]);
    const height = await list.evaluate((element) => element.clientHeight);
    expect(height).toBeLessThan(900);
    const response = page.getByRole("region", { name: "Response" });
    await response.getByText("503 Service Unavailable · ").waitFor();
    await list.getByRole("button", { name: `${change}–1` }).click();
    await response.getByText("500 Internal Server Error · ").waitFor();
    await response.getByText(`The same answer to ${change} attempts`).click();
    expect(await response.getByRole("listitem").count()).toBe(change);
    expect(await axeFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("is sent again once however fast the button is pressed, and rests after the result", async () => {
    const id = await host.registerTroubled();
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    let end = (): void => {};
    host.answer(
      new Promise((answer) => {
        end = () => answer(answered(500, "database is away"));
      }),
    );
    const { page } = await open(browser, host.origin);
    let posts = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/resend")) posts += 1;
    });
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
    const again = page.getByRole("button", { name: /^Send again: / });
    await again.click();
    await again.dispatchEvent("click");
    await again.press("Enter");
    const status = page.getByRole("status");
    await status.getByText("Sending now. The retry schedule is unchanged.").waitFor();
    end();
    await host.clock.advance(1_000);
    await page.clock.runFor(1_000);
    await status.getByText(/^Failed: HTTP 500 in .*\(patient\.updated, Patient\/p1\)$/).waitFor();
    expect(await page.getByText("Sending now").count()).toBe(0);
    expect(await again.textContent()).toBe("Sent");
    await again.dispatchEvent("click");
    await page.clock.runFor(1_900);
    expect(await again.getAttribute("aria-disabled")).toBe("true");
    await again.dispatchEvent("click");
    expect(posts).toBe(1);
    await page.clock.runFor(200);
    await expect.poll(() => again.getAttribute("aria-disabled")).toBe("false");
    await again.click();
    await expect.poll(() => posts).toBe(2);
  });

  it("rests on the page of the new delivery too, where the result of a completed one is shown", async () => {
    const id = await host.register();
    host.answer(answered(410));
    await host.emit();
    await host.clock.advance(73 * HOUR);
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
    await host.webhooks.registrations.update({ id, status: "ENABLED" });
    const again = page.getByRole("button", { name: /^Send again: / });
    await again.click();
    await host.clock.advance(1_000);
    await page.clock.runFor(1_000);
    await page.getByRole("status").getByText("Failed: HTTP 410").waitFor();
    await expect.poll(() => page.url()).toMatch(/\.1$/);
    await expect.poll(() => again.textContent()).toBe("Sent");
    await again.dispatchEvent("click");
    expect((await host.webhooks.deliveries.list({ webhookId: id })).items).toHaveLength(2);
  });
});

describe("an answer in JSON", () => {
  const show = async (answer: string) => {
    await host.close();
    host = await startPortalHost({ excerptCharacters: 10_000 });
    const id = await host.register();
    host.answer(answered(500, answer));
    await host.emit();
    await host.clock.advance(1_000);
    const { items: deliveries } = await host.webhooks.deliveries.list({ webhookId: id });
    const watched = await open(browser, host.origin);
    const { page } = watched;
    await page.addInitScript(
      "navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }",
    );
    await page.goto(`${host.url}#/webhooks/${id}/deliveries/${deliveries[0]?.id}`);
    await page.getByRole("region", { name: "Response" }).waitFor();
    return { ...watched, tree: page.getByRole("tree", { name: "answer" }) };
  };

  it("is a tree that the keyboard moves through, with the path and the value to copy", async () => {
    const text =
      '{"error":{"code":"E_FULL","weights":[1.10,12345678901234567890]},"a b":null,"more":{"x":{"y":{"z":1}}}}';
    const { page, tree, faults } = await show(text);
    const items = tree.getByRole("treeitem");
    await items.first().focus();
    const current = () => tree.locator("[aria-selected=true]").textContent();
    for (const [key, expected] of [
      ["ArrowDown", "error: {"],
      ["ArrowRight", 'code: "E_FULL"'],
      ["ArrowDown", "weights: ["],
      ["ArrowLeft", "weights: [ 2 ]"],
      ["ArrowRight", "weights: ["],
      ["End", "y: { 1 }"],
      ["Enter", "y: {"],
      ["ArrowRight", "z: 1"],
      ["ArrowLeft", "y: {"],
      ["Home", "{"],
    ] as const) {
      await page.keyboard.press(key);
      expect(await current(), key).toBe(expected);
    }
    await items.filter({ hasText: "1: 12345678901234567890" }).click();
    await page.getByRole("button", { name: "Copy path" }).click();
    expect(await page.evaluate("copied")).toBe("$.error.weights[1]");
    await items.filter({ hasText: "weights" }).click();
    await page.getByRole("button", { name: "Copy value" }).click();
    expect(await page.evaluate("copied")).toBe("[1.10,12345678901234567890]");
    await items.filter({ hasText: "a b" }).click();
    await page.getByRole("button", { name: "Copy path" }).click();
    expect(await page.evaluate("copied")).toBe('$["a b"]');
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Raw" }).click();
    expect(await page.getByRole("region", { name: "Response" }).locator("pre").textContent()).toBe(text);
    expect(faults).toEqual([]);
  });

  it("is bounded, and executes nothing", async () => {
    const markup = "<img src=x onerror=document.title='owned'>";
    const hostile = { [markup]: markup, __proto: { constructor: 1 }, "\u202egnp.exe": "\u202e\u0000" };
    for (const [answer, isTree] of [
      [JSON.stringify(hostile).replace("__proto", "__proto__"), true],
      ["[".repeat(4_000) + "]".repeat(4_000), false],
      [`{"a":${"[".repeat(60)}1${"]".repeat(60)}}`, true],
      [`[${"[1,2,3,4,5],".repeat(800)}0]`, true],
      ['{"cut":"off', false],
      [`"${markup}"`, false],
    ] as const) {
      const { page, tree, faults } = await show(answer);
      expect(await tree.count(), answer.slice(0, 40)).toBe(isTree ? 1 : 0);
      expect(await page.getByRole("treeitem").count()).toBeLessThan(800);
      expect(await page.locator("main img").count()).toBe(0);
      expect(await page.title()).not.toBe("owned");
      expect(faults).toEqual([]);
      await page.context().close();
    }
  });

  it("shows the rest of a long list on request", async () => {
    const { tree } = await show(JSON.stringify(Array.from({ length: 250 }, (_, index) => index)));
    const items = tree.getByRole("treeitem");
    expect(await items.count()).toBe(102);
    await items.last().click();
    expect(await items.count()).toBe(202);
    await items.last().getByText("Show 50 more of 50").click();
    expect(await items.count()).toBe(251);
  });
});
