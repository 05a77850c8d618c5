/** Reads the alternative text in the XMP metadata of an image. Pure. */

import { tidyText } from "./metadata-text.js";

const ELEMENT = "Iptc4xmpCore:AltTextAccessibility";

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);

/**
 * Returns the text in the default language, or else the first one; an empty text if the packet has
 * no such element.
 *
 * Guarantee: never throws, and is linear in the length of `packet`.
 */
export function readXmpAltText(packet: string): string {
  const start = packet.indexOf(`<${ELEMENT}`);
  const texts = start === -1 ? "" : packet.slice(start, packet.indexOf(`</${ELEMENT}`, start));
  const chosen = texts.slice(Math.max(texts.indexOf("<rdf:li"), texts.indexOf('"x-default"'), 0));
  const text = chosen.slice(chosen.indexOf(">") + 1, Math.max(chosen.indexOf("</rdf:li"), 0));
  return tidyText(text.replace(/&(\w{2,4});/g, (reference, name: string) => ENTITIES.get(name) ?? reference));
}
