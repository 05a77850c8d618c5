/** The fields for when a post was published and last modified. */

import type { Context } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { Post } from "../records/records.js";
import { ALL, FULL } from "../rest/record-fields.js";
import type { Site } from "../site.js";
import { formatDate } from "../text/dates.js";
import { type PostFields, type SharedPostField, STANDARD_TYPES } from "./post-field.js";

const dateField = (
  description: string,
  context: readonly Context[],
  read: (post: Post, site: Site) => number,
): SharedPostField => ({
  types: STANDARD_TYPES,
  schema: { description, type: "string", format: "date-time", maxLength: LENGTHS.date, context },
  read: ({ post, site }) => formatDate(read(post, site)),
});

/** `applyPostValues` writes dates, since they depend on the status. `null` resets the date. */
const writableDate = (field: SharedPostField): SharedPostField => ({
  ...field,
  schema: { ...field.schema, type: ["string", "null"] },
  isAutosaved: true,
});

const readonlyDate = (field: SharedPostField): SharedPostField => ({
  ...field,
  schema: { ...field.schema, readonly: true },
});

export const dateFields = {
  date: writableDate(
    dateField("The date the post was published, in the site's timezone.", ALL, ({ date }) => date),
  ),
  date_gmt: writableDate(
    dateField(
      "The date the post was published, as GMT.",
      FULL,
      ({ date, dateGmt }, { zone }) => dateGmt ?? zone.toUtc(date),
    ),
  ),
  modified: readonlyDate(
    dateField(
      "The date the post was last modified, in the site's timezone.",
      FULL,
      ({ modified }) => modified,
    ),
  ),
  modified_gmt: readonlyDate(
    dateField("The date the post was last modified, as GMT.", FULL, ({ modifiedGmt }) => modifiedGmt),
  ),
} as const satisfies PostFields;
