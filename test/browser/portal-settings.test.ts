/** Registering and changing a webhook on the page: event types, secrets, status, deletion. */

import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { axeFindings, launch, open } from "./support/chromium.js";
import { answered, HOUR, type PortalHost, startPortalHost, URL_A } from "./support/portal-host.js";

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

const focused = (page: Page): Promise<string> =>
  page.evaluate<string>("document.activeElement.textContent || document.activeElement.id");

describe("registering", () => {
  it("works with the keyboard alone, says what is wrong beside the field, and shows the secret once", async () => {
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/new`);
    const url = page.getByLabel("Endpoint URL");
    await url.waitFor();
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await focused(page)).toBe("Add endpoint");
    await page.keyboard.press("Tab");
    await page.keyboard.type("http://hooks.example.com/in");
    await page.keyboard.press("Enter");
    const problem = page.locator(".problem:visible");
    await problem.waitFor();
    expect(await problem.textContent()).toMatch(/https/i);
    expect(await url.getAttribute("aria-invalid")).toBe("true");
    await expect.poll(() => focused(page)).toBe(await url.getAttribute("id"));

    await page.keyboard.press("Control+A");
    await page.keyboard.type(URL_A);
    await page.keyboard.press("Enter");
    const secret = page.getByRole("textbox", { name: "Signing secret" });
    await secret.waitFor();
    const shown = await secret.inputValue();
    expect(shown).toMatch(/^whsec_/);
    await expect.poll(() => focused(page)).toBe(await secret.getAttribute("id"));
    const code = page.getByRole("region", { name: "Verify what arrives" }).locator("pre");
    for (const [language, part] of [
      ["Node", "timingSafeEqual"],
      ["Python", "hmac.compare_digest"],
      ["PHP", "hash_equals"],
      ["Go", "hmac.Equal"],
    ] as const) {
      await page.getByLabel("Verify signatures in").selectOption(language);
      await code.filter({ hasText: part }).waitFor();
    }
    await page.getByRole("link", { name: "Go to the webhook" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "hooks.example.com/in" }).waitFor();
    expect(await page.content()).not.toContain(shown);
    expect(faults).toEqual([]);
  });

  it.each([375, 1_280, 1_920])("shows all fifty event types, at %i px", async (width) => {
    const { page } = await open(browser, host.origin, { width });
    await page.goto(`${host.url}/#/webhooks/new`);
    await page.getByLabel("Only these").check();
    const types = host.webhooks.eventTypes();
    expect(types).toHaveLength(50);
    await page.getByText("0 of 50 types chosen").waitFor();
    for (const type of types) {
      const box = await page.getByRole("checkbox", { name: type, exact: true }).boundingBox();
      expect(box, type).not.toBeNull();
      expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= width, type).toBe(true);
    }
    const scrolls =
      "[...document.querySelectorAll('*')].filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible').length";
    expect(await page.evaluate(scrolls)).toBe(0);
  });

  it("counts what is chosen of each record, and shows what an event looks like", async () => {
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/new`);
    await page.getByLabel("Only these").check();
    const patient = page.getByRole("group", { name: /^Patient / });
    await patient.getByText("0 of 3").waitFor();
    await patient.getByRole("checkbox", { name: "patient.created" }).check();
    await patient.getByText("1 of 3").waitFor();
    await patient.getByRole("checkbox", { name: "All of Patient (patient.*)" }).check();
    await patient.getByText("3 of 3").waitFor();
    await patient.getByText("What does it look like?").click();
    await patient.getByText('"hub.event": "patient.created"').waitFor();
    await patient.getByLabel("Sample of Patient").selectOption("patient.updated");
    await patient.getByText('"hub.event": "patient.updated"').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("takes all types of a record as a wildcard, and single ones by a search", async () => {
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}/#/webhooks/new`);
    await page.getByLabel("Endpoint URL").fill(URL_A);
    await page.getByLabel("Only these").check();
    await page.getByRole("button", { name: "Add endpoint" }).click();
    await page.locator(".problem:visible").waitFor();
    await page.getByRole("checkbox", { name: "All of Patient (patient.*)" }).check();
    expect(await page.getByRole("checkbox", { name: "patient.created" }).isDisabled()).toBe(true);
    await page.getByLabel("Search event types").fill("consent");
    await page.getByRole("checkbox", { name: "patient.created" }).waitFor({ state: "detached" });
    await page.getByRole("checkbox", { name: "consent.created" }).check();
    await page.getByText("4 of 50 types chosen").waitFor();
    await page.getByRole("button", { name: "Add endpoint" }).click();
    await page.getByRole("textbox", { name: "Signing secret" }).waitFor();
    const { items: webhooks } = await host.webhooks.registrations.list({ account: "clinic" });
    expect(webhooks.map(({ eventTypes }) => eventTypes)).toEqual([["consent.created", "patient.*"]]);
  });
});

describe("rotating the secret", () => {
  it("says that both secrets must be accepted until when, and how to end it sooner", async () => {
    const id = await host.register();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    await page.getByText("Until then your endpoint must accept both.").waitFor();
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    await page.getByText("There is a new secret. The old one signs until 13 Jan, 08:00 UTC.").waitFor();
    const secret = await page.getByRole("textbox", { name: "Signing secret" }).inputValue();
    expect(secret).toMatch(/^whsec_/);
    await page.getByText("Do not remove the old one yet.").waitFor();
    await page.getByRole("heading", { name: "Rotation pending until 13 Jan, 08:00 UTC" }).waitFor();
    await page.getByText("It signs from 13 Jan, 08:00 UTC, or now.").waitFor();

    await page.goto(`${host.url}#/webhooks/${id}`);
    await page.getByText("Your endpoint must accept both secrets until then.").waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.getByRole("button", { name: "Sign with the new secret now" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    const stats = () => host.webhooks.deliveries.stats(id);
    expect((await stats()).rotatesAt).not.toBeNull();
    await page.getByRole("button", { name: "Sign with the new secret now" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Sign with the new secret now" }).click();
    await page.getByText("The new secret signs from now on.").waitFor();
    expect((await stats()).rotatesAt).toBeNull();
    await page.getByRole("heading", { name: /Rotation pending/ }).waitFor({ state: "detached" });
    expect(faults).toEqual([]);
  });

  it("gives code that takes both secrets, and accepts a signature by either of them", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    await page.getByText("[oldSecret, newSecret]").waitFor();
    const code = page.getByRole("list").filter({ hasText: "Let your endpoint accept both" }).locator("pre");
    for (const [language, part] of [
      ["Python", "secrets: list[str]"],
      ["PHP", "array $secrets"],
      ["Go", "secrets []string"],
      ["Node", "isGenuine(body, header, secrets)"],
    ] as const) {
      await page.getByLabel("Verify signatures in").selectOption(language);
      await code.filter({ hasText: part }).waitFor();
    }
    const program = (await code.textContent()) ?? "";
    const now = String(Math.floor(Date.now() / 1_000));
    const signature = createHmac("sha256", "whsec_old").update(`${now}.{}`).digest("hex");
    const accepts = (secrets: string): boolean =>
      spawnSync(process.execPath, ["--input-type=module", "-e", program], {
        input: "{}",
        env: { SIGNATURE: `t=${now},s=${signature}`, WEBHOOK_SECRET: secrets },
      }).status === 0;
    expect(
      ["whsec_old", "whsec_old whsec_new", "whsec_new whsec_old", "whsec_new", "whsec_a whsec_b"].map(
        accepts,
      ),
    ).toEqual([...[true, true, true, false, false]]);
  });

  it("warns that a leaked secret is replaced at once", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    await page.getByLabel("The old secret continues to sign for").selectOption("0");
    await page.getByText("The new secret signs at once.").waitFor();
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    const question = page.getByRole("dialog");
    await question.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByText("There is a new secret").count()).toBe(0);
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    await question.getByRole("button", { name: "Replace it at once" }).click();
    await page.getByText("There is a new secret, and it signs from now on.").waitFor();
    expect(await page.getByText("Do not remove the old one yet.").count()).toBe(0);
    expect((await host.webhooks.deliveries.stats(id)).rotatesAt).toBeNull();
  });
});

describe("the settings of a webhook", () => {
  it("change its event types, disable and enable it, and delete it after a question", async () => {
    const id = await host.register();
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    await page.getByLabel("All event types, also future ones").check();
    await page.getByRole("button", { name: "Save the event types" }).click();
    await page.getByText("Saved. New events are chosen by the new types.").waitFor();
    expect(await host.webhooks.registrations.get(id)).toMatchObject({ eventTypes: ["*"] });

    await page.getByRole("button", { name: "Disable …" }).click();
    const dialog = page.getByRole("dialog", { name: "Disable this webhook?" });
    await dialog.getByText("events that are emitted meanwhile create no deliveries").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await expect(host.webhooks.registrations.get(id)).resolves.toMatchObject({ status: "ENABLED" });
    await page.getByRole("button", { name: "Disable …" }).click();
    await dialog.getByRole("button", { name: "Disable the webhook" }).click();
    await page.getByText("The webhook was disabled.").waitFor();
    await page.getByRole("main").getByRole("button", { name: "Enable" }).last().click();
    await page.getByText("The webhook was enabled.").waitFor();

    await page.getByRole("button", { name: "Delete …" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect(host.webhooks.registrations.get(id)).resolves.toMatchObject({ id });
    await page.getByRole("button", { name: "Delete …" }).click();
    const typed = page.getByLabel("Type hooks.example.com to delete it");
    await expect.poll(() => focused(page)).toBe(await typed.getAttribute("id"));
    await typed.fill("hooks.example");
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByText("This is not the host of the endpoint.").waitFor();
    await expect(host.webhooks.registrations.get(id)).resolves.toMatchObject({ id });
    await typed.fill("hooks.example.com");
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByRole("heading", { name: "No endpoint yet" }).waitFor();
    await page.getByRole("status").getByText("The webhook was deleted.").waitFor();
    await page.getByRole("link", { name: "Add endpoint" }).click();
    await page.getByRole("heading", { name: "Add endpoint" }).waitFor();
    expect(await page.getByRole("status").first().textContent()).toBe("");
    await expect(host.webhooks.registrations.get(id)).rejects.toMatchObject({ code: "not_found" });
    expect(faults).toEqual([]);
  });

  it("change what the visitor has changed, and nothing that somebody else has meanwhile", async () => {
    const id = await host.register();
    const { page } = await open(browser, host.origin);
    await page.clock.install();
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    const save = page.getByRole("button", { name: "Save the event types" });
    await save.click();
    await page.getByText("There is nothing to save.").waitFor();
    await host.webhooks.registrations.update({ id, url: "https://new.example.com/" });
    await page.getByLabel("All event types, also future ones").check();
    await save.click();
    await page.getByText("Saved.").waitFor();
    expect(await host.webhooks.registrations.get(id)).toMatchObject({
      url: "https://new.example.com/",
      eventTypes: ["*"],
    });
  });

  it("say what a new URL does to what is pending", async () => {
    const id = await host.registerTroubled();
    const { page } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    await page.getByLabel("Endpoint URL").fill("https://new.example.com/in");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page
      .getByText("Saved. Pending deliveries go to the new URL; the failure timer restarts.")
      .waitFor();
    host.answer(answered(204));
    await host.clock.advance(24 * HOUR);
    expect(await host.webhooks.deliveries.stats(id)).toMatchObject({
      pending: 0,
      health: { status: "ok" },
    });
  });
});

describe("hostile names and addresses", () => {
  it("are text in the settings, also where the host must be typed", async () => {
    const id = await host.register("https://hooks.example.com/%3Cimg%20src=x%20onerror=alert(1)%3E");
    const hostile = "<img src=x onerror=\"document.title='owned'\">";
    await host.webhooks.registrations.update({
      id,
      url: "https://hooks.example.com/x",
      description: hostile,
    });
    const { page, faults } = await open(browser, host.origin);
    await page.goto(`${host.url}#/webhooks/${id}/settings`);
    expect(await page.getByLabel("Name").inputValue()).toBe(hostile);
    await page.getByRole("button", { name: "Delete …" }).click();
    await page.getByLabel("Type hooks.example.com to delete it").waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    expect(await axeFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
