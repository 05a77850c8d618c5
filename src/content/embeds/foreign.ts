/**
 * Reads what another site answers about an embed: JSON or XML, and of it the fields that oEmbed
 * knows. Nothing of it is trusted yet.
 */

import { boundedParser } from "./parse.js";

/** As the other site wrote them; absent where it wrote neither a text nor a number. */
export interface ForeignEmbed {
  readonly type?: string;
  readonly title?: string;
  readonly author_name?: string;
  readonly author_url?: string;
  readonly provider_name?: string;
  readonly provider_url?: string;
  readonly cache_age?: string;
  readonly thumbnail_url?: string;
  readonly thumbnail_width?: string;
  readonly thumbnail_height?: string;
  readonly width?: string;
  readonly height?: string;
  readonly url?: string;
  readonly html?: string;
}

type Name = keyof ForeignEmbed;

const NAMES: ReadonlySet<string> = new Set<Name>([
  "type",
  "title",
  "author_name",
  "author_url",
  "provider_name",
  "provider_url",
  "cache_age",
  "thumbnail_url",
  "thumbnail_width",
  "thumbnail_height",
  "width",
  "height",
  "url",
  "html",
]);

const JSON_TYPE = /^(?:application\/(?:[\w.-]+\+)?json(?:\+oembed)?|text\/(?:json|javascript))$/;
const XML_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?xml(?:\+oembed)?$/;

/** `undefined` for what is neither, by `contentType` and by its text. Never throws. Linear. */
export function readForeign(bytes: Uint8Array, contentType: string): ForeignEmbed | undefined {
  const type = (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
  const text = new TextDecoder().decode(bytes);
  try {
    if (JSON_TYPE.test(type)) return fromJson(text);
    return XML_TYPE.test(type) ? fromXml(text) : undefined;
  } catch {
    return undefined;
  }
}

function fromJson(text: string): ForeignEmbed | undefined {
  const json: unknown = JSON.parse(text);
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
  const fields = Object.entries(json).filter(
    ([name, value]) => NAMES.has(name) && (typeof value === "string" || typeof value === "number"),
  );
  return Object.fromEntries(fields.map(([name, value]) => [name, String(value)]));
}

function fromXml(text: string): ForeignEmbed | undefined {
  const fields = new Map<string, string>();
  let root = "";
  let field = "";
  const parser = boundedParser("xml", {
    open(name, _attributes, depth) {
      if (depth === 1) root ||= name;
      field = depth === 2 && NAMES.has(name) && !fields.has(name) ? name : "";
    },
    close() {
      field = "";
    },
    text(data, depth) {
      if (field !== "" && depth === 2) fields.set(field, (fields.get(field) ?? "") + data);
    },
  });
  parser.write(text);
  parser.end();
  return root === "oembed" ? Object.fromEntries(fields) : undefined;
}
