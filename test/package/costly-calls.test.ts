import ts from "typescript";
import { describe, expect, it } from "vitest";
import { MAX_URL_LENGTH, parseUrl } from "../../src/core/parse-url.js";
import { eachNode, type SourceFile, sourceFiles } from "../support/source-files.js";

/** Built-in functions whose time grows faster than their text, and what bounds it. */
const COSTLY: { readonly [call: string]: string } = {
  "new URL": "parseUrl",
  "URL.canParse": "parseUrl",
  domainToASCII: "a maximum of the text",
  domainToUnicode: "a maximum of the text",
  ".normalize": "normaliseBounded",
  ".localeCompare": "a maximum of the text",
  "Intl.Collator": "a maximum of the text",
  "Intl.Segmenter": "a maximum of the text",
  BigInt: "a maximum of the text",
};

/** Files that call one themselves, and why no request can make it slow. */
const ALLOWED: { readonly [fileAndCall: string]: string } = {
  "src/core/parse-url.ts new URL": "judges the length first",
  "src/content/text/normalise.ts .normalize": "bounds the runs of marks first",
  "adapters/smtp/options.ts domainToASCII": "judges the length first",
  "src/content/options.ts new URL": "an option of the host",
  "src/content/options.ts URL.canParse": "an option of the host",
  "src/content/embeds/own.ts new URL": "the site's own URLs, whose slugs are bounded",
  "src/content/posts/revisions/revision-renderer.ts new URL": "the site's own address of a post",
  "src/receiver/catch-up.ts new URL": "an option of the host, judged when it was read",
  "src/webhooks/registrations/endpoint-settings.ts new URL": "URLs that were judged before",
  "src/core/telemetry.ts new URL": "the URL of a webhook, judged when it was registered",
  "adapters/smtp/mail.ts new URL": "the URL of a webhook, judged when it was registered",
  "adapters/smtp/options.ts new URL": "an option of the host",
  "adapters/smtp/options.ts URL.canParse": "an option of the host",
  "adapters/s3.ts new URL": "an option of the host",
  "adapters/s3.ts URL.canParse": "an option of the host",
  "adapters/s3-requests.ts new URL": "an option of the host, and the name of a stored file",
  "adapters/smtp/mail-sender.ts new URL": "an option of the host",
  "adapters/smtp/index.ts new URL": "what a function of the host gives",
  "adapters/smtp/index.ts URL.canParse": "what a function of the host gives",
  "storage/postgres/options.ts URL.canParse": "an option of the host",
  "storage/redis/options.ts URL.canParse": "an option of the host",
  "adapters/fetch.ts new URL": "the URL of a Request, which has been parsed: its host is in ASCII",
  "adapters/cli/command.ts new URL": "an argument of whoever runs the command",
  "adapters/cli/command.ts URL.canParse": "an argument of whoever runs the command",
  "adapters/cli/http-message.ts new URL": "an argument of whoever runs the command",
  "src/portal/app/api.ts new URL": "runs in the browser of who asks",
  "src/portal/app/main.tsx new URL": "runs in the browser of who asks",
  "src/portal/app/webhooks/deliveries.tsx new URL": "runs in the browser of who asks",
  "src/content/rendering/block-parts.ts .localeCompare": "the names of terms, which are bounded",
  "src/content/rendering/list-blocks.ts .localeCompare": "the titles of pages, which are bounded",
  "src/portal/app/webhooks/event-types.ts .localeCompare": "runs in the browser of who asks",
  "src/portal/app/webhooks/wording.ts URL.canParse": "runs in the browser of who asks",
  "src/portal/app/webhooks/wording.ts new URL": "runs in the browser of who asks",
};

function costlyCallsIn(file: SourceFile): readonly string[] {
  const calls: string[] = [];
  eachNode(file, (node) => {
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return;
    const { expression } = node;
    const called = ts.isNewExpression(node) ? `new ${expression.getText()}` : expression.getText();
    const method = ts.isPropertyAccessExpression(expression) ? `.${expression.name.text}` : "";
    for (const name of new Set([called, called.replace(/^new /, ""), method]))
      if (Object.hasOwn(COSTLY, name)) calls.push(`${file.path} ${name}`);
  });
  return calls;
}

const found = new Set(sourceFiles().flatMap(costlyCallsIn));

describe("functions that are slow on long texts", () => {
  it("are called where the text is bounded", () => {
    expect([...found].filter((call) => !Object.hasOwn(ALLOWED, call))).toEqual([]);
  });

  it("have no exception that is gone", () => {
    expect(Object.keys(ALLOWED).filter((call) => !found.has(call))).toEqual([]);
  });

  it("are found however they are called", () => {
    const text =
      'new URL(a); URL.canParse(b); c.d().normalize("NFC"); new Intl.Collator("de"); domainToASCII(e);';
    expect(costlyCallsIn({ path: "x.ts", text })).toEqual([
      "x.ts new URL",
      "x.ts URL.canParse",
      "x.ts .normalize",
      "x.ts Intl.Collator",
      "x.ts domainToASCII",
    ]);
  });
});

describe("parseUrl", () => {
  it("parses a URL, also one relative to another", () => {
    expect(parseUrl("HTTPS://Example.org/a")?.href).toBe("https://example.org/a");
    expect(parseUrl("../b", "https://example.org/a/c")?.href).toBe("https://example.org/b");
    expect(parseUrl("no URL")).toBeUndefined();
  });

  it("refuses a URL that is too long", () => {
    const base = "https://example.org/";
    const longest = base + "a".repeat(MAX_URL_LENGTH - base.length);
    expect(parseUrl(longest)?.href).toBe(longest);
    expect(parseUrl(`${longest}a`)).toBeUndefined();
  });
});
