/** Checks the promises of the README, and that the table of options is complete. */

import { describe, expect, it } from "vitest";
import { s3FilesOptions } from "../../adapters/s3.js";
import { sharpImagesOptions } from "../../adapters/sharp/sharp-images.js";
import { smtpNotifierOptions } from "../../adapters/smtp/options.js";
import { OPTIONS_PAGE, updateOptionsPage } from "../../scripts/options-reference.js";
import { nonceOptions } from "../../src/content/hosting/nonces.js";
import { applicationPasswordOptions, contentOptions } from "../../src/content/options.js";
import type { Option, OptionTable } from "../../src/core/options.js";
import { outboxOptions } from "../../src/outbox/options.js";
import { portalOptions } from "../../src/portal/options.js";
import { receiverOptions } from "../../src/receiver/options.js";
import { verifySignature } from "../../src/signature/signature.js";
import { webhooksOptions } from "../../src/webhooks/options.js";
import { memoryStorageOptions } from "../../storage/memory/options.js";
import { postgresStorageOptions } from "../../storage/postgres/options.js";
import { redisStorageOptions } from "../../storage/redis/options.js";
import { sqliteStorageOptions } from "../../storage/sqlite/options.js";
import { blocksOf, guides, homeLinksOf, linksOf, readme } from "../support/markdown.js";

const textOf = (wanted: string): string => {
  const file = guides.find(({ path }) => path === wanted);
  if (!file) throw new Error(`${wanted} is missing`);
  return file.text;
};
const blocks = blocksOf(readme);

describe("the README", () => {
  it("starts with a first screen that a test runs", () => {
    const untilFirstHeading = readme.text.slice(0, readme.text.indexOf("\n## "));
    expect(untilFirstHeading.split("\n").length).toBeLessThan(55);
    expect(blocksOf({ ...readme, text: untilFirstHeading }).map(({ note }) => note)).toEqual(
      blocks.flatMap(({ note }) => (note === "first-screen" ? [note] : [])),
    );
  });

  it("holds the two commands that CI takes from it, each on a line of its own", () => {
    const lines = readme.text.split("\n");
    for (const command of ["npm ci && npm start", "npm ci && npm test"])
      expect(lines.filter((line) => line === command)).toEqual([command]);
  });

  it("has at most 150 lines, and installs the package first", () => {
    expect(readme.text.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
    expect(blocks[0]?.code).toMatch(/^npm install postbell\b/);
  });

  it("links to every guide and reference page", () => {
    const linked = new Set([...linksOf(readme), ...homeLinksOf(readme)].map(({ path }) => path));
    const pages = guides.map(({ path }) => path).filter((path) => /^docs\/(?!README|decisions\/)/.test(path));
    expect(pages.filter((path) => !linked.has(path))).toEqual([]);
  });
});

describe("docs/guides/subscribe.md", () => {
  it("signs the example body as a subscriber expects it", () => {
    const path = "docs/guides/subscribe.md";
    const text = textOf(path);
    const example = blocksOf({ path, text }).find(({ language }) => language === "json")?.code ?? "";
    const header = /X-Service-Signature: (t=.*)/.exec(text)?.[1];
    const secrets = /whsec_[\w+/=]{40,}/.exec(text)?.[0] ?? "";
    const body = JSON.stringify(JSON.parse(example));
    const now = Date.parse("2026-11-20T09:30:00.000Z");
    expect(verifySignature({ body, header, secrets, now })).toMatchObject({ ok: true });
  });
});

describe("docs/options.md", () => {
  /** In the order of the page. */
  const tables = {
    webhooksOptions,
    memoryStorageOptions,
    sqliteStorageOptions,
    postgresStorageOptions,
    redisStorageOptions,
    receiverOptions,
    outboxOptions,
    contentOptions,
    applicationPasswordOptions,
    nonceOptions,
    smtpNotifierOptions,
    sharpImagesOptions,
    s3FilesOptions,
    portalOptions,
  };

  it("has the tables that `npm run docs:options` writes from the docstrings", () => {
    const page = textOf(OPTIONS_PAGE);
    expect(updateOptionsPage(page, tables)).toBe(page);
  });

  it("lists every option with its default and unit, and none besides", () => {
    const rows = [...textOf("docs/options.md").matchAll(/^\| `([\w.]+)` \| (.*?) \| (.*?) \| .*\|$/gm)].map(
      ([, name, shown, unit]) => ({ name, shown, unit }),
    );
    const expected = Object.values(tables).flatMap((table) => rowsOf(table));
    expect(rows.map(({ name, unit }) => [name, unit])).toEqual(
      expected.map(({ name, unit }) => [name, unit]),
    );
    const inWords = expected.map(({ shown }, index) => shown ?? rows[index]?.shown);
    expect(rows.map(({ shown }) => shown)).toEqual(inWords);
  });
});

interface Row {
  readonly name: string;
  readonly unit: string;
  /** `undefined` where the default is a value that only words describe. */
  readonly shown: string | undefined;
}

function rowsOf(table: OptionTable, path = ""): Row[] {
  return Object.entries(table).flatMap(([key, entry]): Row[] => {
    const name = path + key;
    const { default: preset, unit } = entry as Option<unknown>;
    if (typeof entry["expected"] !== "function") return rowsOf(entry as OptionTable, `${name}.`);
    return [{ name, unit, shown: shownDefault(preset) }];
  });
}

const grouped = (value: number): string =>
  String(value).replace(/\B(?=(\d{3})+$)/g, value >= 1000 ? "_" : "");

function shownDefault(preset: unknown): string | undefined {
  if (preset === undefined) return "–";
  if (typeof preset === "number") return `\`${grouped(preset)}\``;
  if (typeof preset === "string" || typeof preset === "boolean") return `\`${preset}\``;
  if (Array.isArray(preset)) return `\`[${preset.map(grouped).join(", ")}]\``;
  return undefined;
}
