/** The field `meta`, whose members differ between post types. */

import type { JsonObject } from "../../schema/types.js";
import { FULL } from "../rest/record-fields.js";
import type { FieldView, PostField } from "./post-field.js";
import { metaSchema, readMeta } from "./post-meta.js";
import { isHidden } from "./text-fields.js";

/** Footnotes are part of the text that a password protects. WordPress shows them. */
export const readShownMeta = (view: FieldView): JsonObject => {
  const { meta } = view.post;
  return readMeta(isHidden(view) ? { ...meta, footnotes: "" } : meta, view.collection.meta);
};

export const metaField: PostField = {
  schema: { description: "Meta fields.", type: "object", context: FULL },
  schemaOfType: ({ meta }) => metaSchema(meta),
  // The argument checks the outer form alone. Like in WordPress, `writeMeta` checks the members.
  argument: {
    validate: (value) =>
      typeof value === "object"
        ? undefined
        : { code: "rest_invalid_param", message: "meta must be an object." },
    sanitize: (value) => value,
  },
  read: readShownMeta,
};
