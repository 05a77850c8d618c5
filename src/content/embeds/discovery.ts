/**
 * Finds in a page where its embed is: `<link rel="alternate" type="application/json+oembed"
 * href="…">` in its head.
 */

import { parseUrl } from "../../core/parse-url.js";
import { boundedParser } from "./parse.js";

const TYPES: readonly string[] = ["application/json+oembed", "text/xml+oembed"];

/**
 * The address that the page names, absolute, JSON rather than XML; `undefined` where it names none.
 * Reads the head alone: what follows is left unread, and `page` is then left. What cannot be read
 * counts as the end. Nothing is said of the address: judge it before it is asked.
 */
export async function discoverEndpoint(
  page: AsyncIterable<Uint8Array>,
  pageUrl: string,
): Promise<string | undefined> {
  const found = new Map<string, string>();
  let isOver = false;
  const parser = boundedParser("html", {
    open(name, attributes) {
      if (name === "body") isOver = true;
      if (name !== "link" || isOver) return;
      const { rel = "", type = "", href = "" } = attributes;
      const kind = type.trim().toLowerCase();
      const isAlternate = rel.toLowerCase().split(/\s+/).includes("alternate");
      if (!isAlternate || !TYPES.includes(kind) || found.has(kind)) return;
      const endpoint = parseUrl(href, pageUrl);
      if (endpoint !== undefined) found.set(kind, endpoint.href);
    },
    close(name) {
      if (name === "head") isOver = true;
    },
  });
  try {
    const decoder = new TextDecoder();
    for await (const chunk of page) {
      parser.write(decoder.decode(chunk, { stream: true }));
      if (isOver || found.has(TYPES[0] as string)) break;
    }
  } catch {
    // Cut off, or nonsense: what the head has named so far is as good as ever.
  }
  return TYPES.map((type) => found.get(type)).find((url) => url !== undefined);
}
