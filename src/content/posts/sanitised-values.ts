/** Sanitises what a user without `unfiltered_html` writes to a post. */

import type { Json, JsonObject } from "../../schema/types.js";
import { RestError } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import { readRaw } from "./post-field.js";
import type { PostTypeHandler } from "./post-type-handler.js";
import type { SanitisedValues, Values } from "./write-context.js";

/**
 * Resolves with `values` as the caller may store them. Call it before the change begins: other
 * requests run meanwhile.
 *
 * @throws RestError 413 `rest_text_too_large`
 */
export async function sanitiseValues(
  values: Values,
  { caller }: Pick<RestRequest, "caller">,
  { fields, collection }: Pick<PostTypeHandler, "fields" | "collection">,
  site: Pick<Site, "sanitise" | "filteredCharacters">,
): Promise<SanitisedValues> {
  const sanitised: { [name: string]: Json | undefined } = { ...values };
  if (caller.has("unfiltered_html")) return sanitised as SanitisedValues;
  const { filteredCharacters: most } = site;
  const sanitise: Site["sanitise"] = (field, raw) => {
    if (raw.length <= most) return site.sanitise(field, raw);
    throw new RestError(
      413,
      "rest_text_too_large",
      `A text of somebody who may not write unfiltered HTML has at most ${most} characters (got ${raw.length}).`,
    );
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
