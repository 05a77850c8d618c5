/** Errors of the API as the page shows them, in the language of the page. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiError, parseError } from "../../../src/portal/app/api.js";
import { chooseTexts } from "../../../src/portal/app/texts.js";
import { german } from "../../../src/portal/texts/de.js";
import { english } from "../../../src/portal/texts/en.js";
import { apiErrors } from "../../../src/webhooks/api/operation.js";

const show = (status: number, error: object): [message: string, detail: string | undefined] => {
  const { message, detail } = parseError(status, JSON.stringify({ error }));
  return [message, detail];
};

const FILTER = {
  code: "invalid_request",
  message: "filter['data.a'] has no operator.",
  field: "filter['data.a']",
};
const OTHER_KEY = { code: "webhook_owned_by_another_key", message: "Another API key owns it." };

describe("errors on a page in German", () => {
  beforeAll(() => chooseTexts("de", german as unknown as typeof english));
  afterAll(() => chooseTexts("en", english));

  it.each([
    ["field", 400, FILTER, "Dieser Filter ist nicht möglich."],
    ["code", 403, OTHER_KEY, "Dieser Webhook gehört zu einem anderen API-Schlüssel des Kontos."],
    ["code", 400, { code: "invalid_url", message: "No.", field: "url" }, german.errors.byCode.invalid_url],
    ["status", 403, { code: "rest_cannot_edit", message: "No." }, "Dazu fehlt die Berechtigung."],
    [
      "status",
      400,
      { code: "invalid_request", message: "No.", field: "constructor" },
      "Diese Eingabe ist ungültig.",
    ],
    ["message", 418, { code: "constructor", message: "I am a teapot." }, "I am a teapot."],
  ])("are said by their %s: %i %j", (_, status, error, text) => {
    const detail = text === error.message ? undefined : error.message;
    expect(show(status, error)).toEqual([text, detail]);
  });

  it("have a text for each status and field that the API responds with", () => {
    for (const status of Object.keys(apiErrors)) {
      // The page asks for what there is, and a 401 ends the session.
      if (status === "405" || status === "401") continue;
      const [message] = show(Number(status), { code: "new_code", message: "English" });
      expect(message, status).not.toBe("English");
    }
  });

  it("keep their code and field, and those of the page itself stay as they are", () => {
    expect(parseError(400, JSON.stringify({ error: FILTER }))).toMatchObject({
      status: 400,
      code: "invalid_request",
      field: "filter['data.a']",
    });
    expect(parseError(401, "").message).toMatch(/^Die Anmeldung ist abgelaufen/);
    expect(parseError(502, "<html>").message).toBe("Der Server hat mit 502 geantwortet.");
    expect(new ApiError(503, { code: "unavailable", message: "x" }).message).toBe("x");
  });
});

describe("errors on a page in English", () => {
  it.each([FILTER, OTHER_KEY])("are the messages of the API: %j", (error) => {
    chooseTexts("en", english);
    expect(show(400, error)).toEqual([error.message, undefined]);
  });
});
