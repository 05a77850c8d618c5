/** Sanitises what a user without `unfiltered_html` writes to a post. */

import type { Json, JsonObject } from "../../schema/types.js";
import { countSanitised } from "../rest/sanitised-characters.js";
import type { RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import { readRaw } from "./post-field.js";
import type { PostTypeHandler } from "./post-type-handler.js";
import type { SanitisedValues, Values } from "./write-context.js";

/**
 * Resolves with `values` as the caller may store them. Other requests run meanwhile, so call it
 * before the change begins if the texts are known by then.
 *
 * @throws RestError 413 `rest_text_too_large` or `rest_too_much_text`
 */
export async function sanitiseValues(
  values: Values,
  request: Pick<RestRequest, "caller" | "sanitised">,
  { fields, collection }: Pick<PostTypeHandler, "fields" | "collection">,
  site: Pick<Site, "sanitise" | "filteredCharacters">,
): Promise<SanitisedValues> {
  const sanitised: { [name: string]: Json | undefined } = { ...values };
  if (request.caller.has("unfiltered_html")) return sanitised as SanitisedValues;
  const sanitise: Site["sanitise"] = (field, raw) => {
    countSanitised(raw, request, site.filteredCharacters);
    return site.sanitise(field, raw);
  };
  for (const [name, { html }] of fields) {
    const raw = readRaw(values[name] ?? null);
    if (html === undefined || raw === undefined) continue;
    const text = await sanitise(html, raw);
    // A harmless value keeps its form: an object with an empty title keeps the stored title.
    if (text !== raw) sanitised[name] = text;
  }
  const meta = (values["meta"] ?? {}) as JsonObject;
  const { footnotes } = meta;
  if (typeof footnotes === "string" && Object.hasOwn(collection.meta, "footnotes")) {
    sanitised["meta"] = { ...meta, footnotes: await sanitise("footnotes", footnotes) };
  }
  return sanitised as SanitisedValues;
}
