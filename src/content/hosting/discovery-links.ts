/** Builds the links by which clients find the REST interface and the oEmbed form of a page. */

import { PostbellError } from "../../core/errors.js";
import { parseUrl } from "../../core/parse-url.js";
import { trimEnd } from "../../core/trim-end.js";
import { escapeHtml } from "../embeds/embed.js";

/** The arguments of {@link discoveryLinks}. */
export interface DiscoveryOptions {
  /** The URL of the mounted content service: `https://www.example.org/wp-json`. */
  root: string;
  /** The published post that the page shows. Default: none, as on a page with a list. */
  post?:
    | {
        /** The URL of the page: `link` of the post. */
        link: string;
        /** The URL of the post in the REST interface: `_links.self[0].href`. */
        self: string;
      }
    | undefined;
}

/** The links of a page, for its response and for its HTML. */
export interface DiscoveryLinks {
  /** The value of the header `Link`. */
  readonly header: string;
  /** `<link>` elements for the `<head>`. */
  readonly html: string;
}

/**
 * Returns the links that WordPress puts on its pages. Clients such as `wpapi` and the end-to-end
 * tests of the block editor find the REST interface by them, and other sites find out how to embed
 * a post.
 *
 * @example
 * ```ts
 * const { header, html } = discoveryLinks({ root: "https://www.example.org/wp-json" });
 * // header: <https://www.example.org/wp-json/>; rel="https://api.w.org/"
 * ```
 *
 * @throws PostbellError `invalid_argument` for a URL that is not absolute
 */
export function discoveryLinks({ root, post }: DiscoveryOptions): DiscoveryLinks {
  const base = trimEnd(toHref(root, "root"), "/");
  const links = [`rel="https://api.w.org/" href="${escapeHtml(`${base}/`)}"`];
  if (post === undefined) return build(`<${base}/>; rel="https://api.w.org/"`, links);
  const self = toHref(post.self, "post.self");
  const embed = `${base}/oembed/1.0/embed?url=${encodeURIComponent(toHref(post.link, "post.link"))}`;
  return build(
    `<${base}/>; rel="https://api.w.org/", <${self}>; rel="alternate"; title="JSON"; type="application/json"`,
    [
      ...links,
      `rel="alternate" title="JSON" type="application/json" href="${escapeHtml(self)}"`,
      `rel="alternate" title="oEmbed (JSON)" type="application/json+oembed" href="${escapeHtml(embed)}"`,
      `rel="alternate" title="oEmbed (XML)" type="text/xml+oembed" href="${escapeHtml(`${embed}&format=xml`)}"`,
    ],
  );
}

const build = (header: string, links: string[]): DiscoveryLinks => ({
  header,
  html: links.map((attributes) => `<link ${attributes}>`).join("\n"),
});

/** Serialises the URL, which encodes the characters that would end it in a header or in HTML. */
function toHref(text: string, field: string): string {
  const url = typeof text === "string" ? parseUrl(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new PostbellError("invalid_argument", `${field} must be an absolute URL of http or https`, {
      field,
    });
  return url.href;
}
