/** The language of the portal's page: chosen by the browser or by the host. */

import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { HttpResponse } from "../../src/http/types.js";
import { createPortal, type PortalOptions, type PortalTexts, portalTexts } from "../../src/portal/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { contentSite } from "../support/content-site.js";
import { listen } from "../support/hosts.js";
import { send } from "../support/http-client.js";

const portalOf = (changes: Partial<PortalOptions> = {}) =>
  createPortal({
    content: contentSite({ clock: manualClock(0) }),
    authorize: () => ({ name: "Ada", userId: 1 }),
    logger: false,
    ...changes,
  });

const ask = async (portal: ReturnType<typeof portalOf>, path: string, language?: string) =>
  portal.handle({
    method: "GET",
    path,
    query: "",
    headers: language === undefined ? {} : { "accept-language": language },
    body: null,
    baseUrl: "https://host.example",
  });

const textOf = (response: HttpResponse | undefined): string =>
  typeof response?.body === "string" ? response.body : "";

/** The language of the page, and that of the texts that it loads. */
async function readLanguage(portal: ReturnType<typeof portalOf>, language?: string): Promise<string> {
  const html = textOf(await ask(portal, "/", language));
  const [, lang, texts] = /<html lang="([^"]+)" data-texts="texts-([\w-]+)-[\w-]{22}\.json"/.exec(html) ?? [];
  expect(lang).toBe(texts);
  return lang ?? "";
}

const french: PortalTexts = structuredClone(portalTexts.en);

describe("the language of the page", () => {
  it.each([
    [undefined, "en"],
    ["", "en"],
    ["de", "de"],
    ["de-AT,de;q=0.9,en;q=0.8", "de"],
    ["en-GB,en;q=0.9,de;q=0.8", "en"],
    ["ja,de;q=0.5,en;q=0.4", "de"],
    ["ja,pt;q=0.5", "pt-BR"],
    ["DE", "de"],
    ["ja,de;q=0", "en"],
    ["*", "en"],
    ["d<script>e", "en"],
    [`${"de,".repeat(200)}de`, "en"],
  ])("for Accept-Language %j is %s", async (header, expected) => {
    expect(await readLanguage(portalOf({ texts: { "pt-BR": french } }), header)).toBe(expected);
  });

  it("is that of the host, whatever the browser prefers", async () => {
    expect(await readLanguage(portalOf({ language: "de" }), "en")).toBe("de");
    const portal = portalOf({ language: "fr", texts: { fr: french } });
    expect(await readLanguage(portal, "de")).toBe("fr");
    // The others are not loaded by anybody, so there are no such files.
    expect(await ask(portal, "/texts-de.json")).toBeUndefined();
  });

  it("has texts that the host replaces", async () => {
    const texts = {
      en: { ...portalTexts.en, views: { ...portalTexts.en.views, webhooks: "Notifications" } },
    };
    const response = await ask(portalOf({ texts }), "/texts-en.json");
    expect(response?.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(textOf(response)).views.webhooks).toBe("Notifications");
  });

  it("is also that of the page for a visitor without a session, and for a browser without scripts", async () => {
    const html = textOf(await ask(portalOf(), "/", "de"));
    expect(html).toContain("<noscript><p>Diese Seite benötigt JavaScript.</p></noscript>");
    const refused = await ask(portalOf({ authorize: () => null }), "/", "de");
    expect(refused?.status).toBe(401);
    expect(refused?.body).toContain(
      "<h1>Sie sind nicht angemeldet oder dürfen diese Seite nicht sehen.</h1>",
    );
    const failing = portalOf({ authorize: () => Promise.reject(new Error("down")) });
    expect((await ask(failing, "/", "de"))?.body).toContain(
      "Die Anmeldung kann gerade nicht geprüft werden.",
    );
  });

  it("leaves the responses of the API in English: the page translates their errors", async () => {
    const refused = await ask(portalOf({ authorize: () => null }), "/api/session", "de");
    expect(textOf(refused)).toContain("You are not signed in");
  });

  it("loads the texts of one language, under a name that a browser keeps", async () => {
    const server = await listen(createServer(nodeAdapter(portalOf())));
    try {
      const { text } = await send(server.origin, "/", { headers: { "accept-language": "de" } });
      const [, name = ""] = /data-texts="([^"]+)"/.exec(text) ?? [];
      const file = await send(server.origin, `/${name}`);
      expect([file.status, file.headers["cache-control"]]).toEqual([
        200,
        "public, max-age=31536000, immutable",
      ]);
      expect(file.json).toEqual(portalTexts.de);
    } finally {
      await server.close();
    }
  });
});

describe("the option texts", () => {
  const refusal = (options: object): unknown => {
    try {
      portalOf(options);
    } catch (error) {
      return error;
    }
    return undefined;
  };

  it("refuses a table that is incomplete, and names what is missing", () => {
    const { frame: _, ...rest } = french;
    expect(refusal({ texts: { fr: rest } })).toMatchObject({
      code: "invalid_option",
      field: "texts.fr",
      message: expect.stringMatching(
        /texts\.fr lacks frame\.closeMenu, frame\.colours, .* and 1 more\. Copy them from portalTexts\.en/,
      ),
    });
    expect(refusal({ texts: { pl: french } })).toMatchObject({ message: expect.stringContaining(".few") });
  });

  it.each([
    [{ language: "fr" }, "language", "must be auto or one of en, de (got fr)"],
    [{ language: "../x" }, "language", "auto, or a language tag"],
    [{ language: 1 }, "language", "auto, or a language tag"],
    [{ texts: { 'x"y': french } }, 'texts.x"y', "is named by no language tag"],
    [{ texts: [] }, "texts", "an object with a table"],
    [{ texts: { fr: null } }, "texts.fr", "lacks"],
    [
      { texts: { fr: { ...french, page: { ...french.page, skip: 1 } } } },
      "texts.fr",
      "page.skip must be a text",
    ],
  ])("refuses %.60j", (options, field, message) => {
    expect(refusal(options)).toMatchObject({ field, message: expect.stringContaining(message) });
  });
});
