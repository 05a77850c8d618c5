/** The members of an oEmbed response, of this and other sites: https://oembed.com, section 2.3. */

import type { Schema } from "../../schema/types.js";

export interface Embed {
  version: "1.0";
  type: "photo" | "video" | "link" | "rich";
  provider_name?: string;
  provider_url?: string;
  author_name?: string;
  author_url?: string;
  title?: string;
  /** Pixels. */
  width?: number;
  height?: number;
  html?: string;
  /** Of a photo. */
  url?: string;
  thumbnail_url?: string;
  thumbnail_width?: number;
  thumbnail_height?: number;
}

const text = { type: "string" } as const;
const pixels = { type: "integer" } as const;

export const embedSchema: Schema = {
  title: "oembed",
  type: "object",
  required: ["version", "type"],
  properties: {
    version: { type: "string", enum: ["1.0"] },
    type: { type: "string", enum: ["photo", "video", "link", "rich"] },
    provider_name: text,
    provider_url: text,
    author_name: text,
    author_url: text,
    title: text,
    width: pixels,
    height: pixels,
    html: text,
    url: text,
    thumbnail_url: text,
    thumbnail_width: pixels,
    thumbnail_height: pixels,
  },
  additionalProperties: false,
};

/** Text, or an attribute's value in double quotes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Nothing else may stand in XML 1.0 (section 2.2), and a lone surrogate has no UTF-8. */
const NOT_IN_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** The embed, or an error, as an XML document; characters that XML cannot hold are left out. */
export const toXml = (embed: object): string =>
  `<?xml version="1.0"?>\n<oembed>${toElements(embed)}</oembed>\n`;

function toElements(members: object): string {
  const elements = Object.entries(members).map(([name, value]) => {
    const isNested = typeof value === "object" && value !== null;
    const inside = isNested ? toElements(value) : escapeHtml(String(value).replace(NOT_IN_XML, ""));
    return `<${name}>${inside}</${name}>`;
  });
  return elements.join("");
}
