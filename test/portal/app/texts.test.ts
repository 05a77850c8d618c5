/** The texts of the page: values, plurals, dates and durations in the language of the page. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chooseTexts } from "../../../src/portal/app/texts.js";
import {
  formatDuration,
  formatExactTime,
  formatNumber,
  formatRelativeTime,
  formatTime,
} from "../../../src/portal/app/times.js";
import {
  describeAction,
  describeDisabling,
  formatSuccessRate,
  summariseWebhooks,
} from "../../../src/portal/app/webhooks/wording.js";
import { german } from "../../../src/portal/texts/de.js";
import { english } from "../../../src/portal/texts/en.js";
import { findTextFaults } from "../../../src/portal/texts/languages.js";
import { createTexts, type TranslationOf } from "../../../src/portal/texts/table.js";
import { failedAttempt, HOUR, healthyStats, toIso } from "./support.js";

const table = {
  menu: "Menu",
  group: { signedIn: "Signed in as {name}", sent: "{done} of {total}" },
  files: { one: "{count} file", other: "{count} files" },
} as const;

describe("a table of texts", () => {
  const texts = createTexts("en", table);

  it("gives texts, and functions of the values that they name", () => {
    expect(texts.menu).toBe("Menu");
    expect(texts.group.signedIn({ name: "{name} $&" })).toBe("Signed in as {name} $&");
    expect(texts.group.sent({ done: 1, total: 1_872 })).toBe("1 of 1,872");
  });

  it("gives parts if a value is no text, such as a link", () => {
    const link = { href: "/" };
    expect(texts.group.signedIn({ name: link })).toEqual(["Signed in as ", link, ""]);
  });

  it("chooses the plural form of the language, or the last one that there is", () => {
    expect([0, 1, 2].map((count) => texts.files({ count }))).toEqual(["0 files", "1 file", "2 files"]);
    const polish = createTexts("pl", {
      files: { one: "{count} plik", few: "{count} pliki", many: "{count} plików", other: "{count} pliku" },
    });
    expect([1, 3, 5, 22].map((count) => polish.files({ count }))).toEqual([
      "1 plik",
      "3 pliki",
      "5 plików",
      "22 pliki",
    ]);
    expect(createTexts("pl", table).files({ count: 3 })).toBe("3 files");
  });

  it("has types that refuse a missing text, a missing value and a wrong value", () => {
    const whole: TranslationOf<typeof table> = {
      menu: "Menü",
      group: { signedIn: "{name} ist da", sent: "{total}: {done}" },
      files: { other: "{count} Dateien" },
    };
    // @ts-expect-error `menu` is missing.
    const withoutText: TranslationOf<typeof table> = { group: whole.group, files: whole.files };
    const withoutValue: TranslationOf<typeof table> = {
      ...whole,
      // @ts-expect-error `signedIn` has no `{name}`.
      group: { ...whole.group, signedIn: "Angemeldet" },
    };
    // @ts-expect-error A plural has at least the form `other`.
    const withoutForm: TranslationOf<typeof table> = { ...whole, files: { one: "eine Datei" } };
    // @ts-expect-error The value is called `name`.
    const wrong = texts.group.signedIn({ nam: "Ada" });
    // @ts-expect-error A plural needs a number.
    const withoutCount = texts.files({ count: "1" });
    expect([withoutText, withoutValue, withoutForm, wrong, withoutCount]).toHaveLength(5);
  });
});

describe("the check of a table", () => {
  it("finds nothing in those of the package", () => {
    for (const [language, each] of [
      ["en", english],
      ["de", german],
    ] as const)
      expect(findTextFaults(language, each)).toEqual({ missing: [], wrong: [] });
  });

  it("names what is missing, also plural forms that the language needs", () => {
    const { menu: _, ...frame } = english.frame;
    const { missing } = findTextFaults("pl", { ...english, frame, jump: undefined });
    expect(missing).toEqual(expect.arrayContaining(["frame.menu", "jump.title", "jump.resultCount.few"]));
    expect(findTextFaults("fr", english).missing).toEqual([]);
    expect(findTextFaults("de", null).missing.length).toBeGreaterThan(400);
  });

  it.each([
    [{ menu: 1 }, "frame.menu must be a text of at most 2000 characters"],
    [{ menu: "x".repeat(2_001) }, "frame.menu must be a text of at most 2000 characters"],
    [{ signedInAs: "Da" }, "frame.signedInAs must contain {name}"],
    [{ signedInAs: "{name} {nom}" }, "frame.signedInAs has no value {nom}"],
    [{ menue: "Menü" }, "there is no text frame.menue"],
  ])("says what is wrong with %j", (change, fault) => {
    const { wrong } = findTextFaults("de", { ...german, frame: { ...german.frame, ...change } });
    expect(wrong).toEqual([fault]);
  });

  it.each([
    ["fr", { many: 7 }, "jump.resultCount.many must be a text of at most 2000 characters"],
    ["fr", { many: "{nombre}" }, "jump.resultCount.many has no value {nombre}"],
    ["fr", { few: "x" }, "jump.resultCount has no plural form few; use many, one, other"],
    ["de", { mny: "x" }, "jump.resultCount has no plural form mny; use one, other"],
  ])("checks each plural form that a table in %s has: %j", (language, forms, fault) => {
    const resultCount = { ...english.jump.resultCount, ...forms };
    const { missing, wrong } = findTextFaults(language, {
      ...english,
      jump: { ...english.jump, resultCount },
    });
    expect({ missing, wrong }).toEqual({ missing: [], wrong: [fault] });
  });

  it("takes a plural form that a language has for large numbers only", () => {
    const resultCount = { ...english.jump.resultCount, many: "{count} de résultats" };
    const { missing, wrong } = findTextFaults("fr", { ...english, jump: { ...english.jump, resultCount } });
    expect({ missing, wrong }).toEqual({ missing: [], wrong: [] });
  });
});

describe("a page in German", () => {
  beforeAll(() => chooseTexts("de", german as unknown as typeof english));
  afterAll(() => chooseTexts("en", english));
  const AT = Date.UTC(2026, 10, 22, 14, 5, 9);

  it("writes dates and numbers as Germans do", () => {
    expect(formatTime(AT, "UTC")).toBe("22. Nov., 14:05");
    expect(formatExactTime(AT, "UTC")).toBe("22. Nov. 2026, 14:05:09 UTC");
    expect([formatNumber(28_000), formatSuccessRate({ attempts: 1_000, succeeded: 985 })]).toEqual([
      "28.000",
      "98,5 %",
    ]);
  });

  it("says durations alone and with the ending that they have after a preposition", () => {
    expect([340, 1_240, 5 * 60_000, 4 * 24 * HOUR].map(formatDuration)).toEqual([
      "340 ms",
      "1,2 s",
      "5 min",
      "4 Tage",
    ]);
    const from = (ms: number) => formatRelativeTime(AT + ms, AT);
    expect([0, -5 * 60_000, 8 * HOUR, -4 * 24 * HOUR, 3 * 24 * HOUR].map(from)).toEqual([
      "gerade eben",
      "vor 5 min",
      "in 8 h",
      "vor 4 Tagen",
      "in 3 Tagen",
    ]);
  });

  it("puts the name of a webhook within the sentence", () => {
    const entry = {
      at: toIso(0),
      action: "webhook.rotation_finished",
      actor: { type: "key", id: "ada" },
      webhookId: "w",
    } as unknown as Parameters<typeof describeAction>[0];
    expect(describeAction(entry).join("W")).toBe(
      "Schlüssel ada hat das neue Geheimnis von W in Kraft gesetzt.",
    );
    const { health } = healthyStats();
    expect(describeDisabling(entry, health, "UTC")).toBe(
      "Am 1. Jan., 00:00 von ada deaktiviert. Es wird nichts gesendet.",
    );
  });

  it("sums up webhooks", () => {
    const failing = healthyStats({ health: { ...healthyStats().health, status: "failing" } });
    const stats = [failing, healthyStats({ lastAttempt: failedAttempt })];
    expect(summariseWebhooks(stats.map((each) => ({ status: "ENABLED", stats: each })))).toBe(
      "1 gestört, 1 zu testen, 2 von 2 aktiv",
    );
  });
});
