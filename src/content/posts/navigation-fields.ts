/**
 * The fields of navigation menus (`wp_navigation`) that differ from posts: an editor embeds a menu
 * in the response of its fallback route, so the context `embed` shows the stored texts too.
 */

import type { Schema } from "../../schema/types.js";
import { ALL } from "../rest/record-fields.js";
import type { PostFields } from "./post-field.js";
import { postFields } from "./post-fields.js";
import { readProtectedContent, textFields } from "./text-fields.js";

/** Shows the named members of an object wherever the object is shown. */
const showMembers = ({ properties = {}, ...schema }: Schema, names: readonly string[]): Schema => ({
  ...schema,
  context: ALL,
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [
      name,
      names.includes(name)
        ? { ...member, context: ["edit", "embed"] as const }
        : name === "rendered"
          ? { ...member, context: ALL }
          : member,
    ]),
  ),
});

export const navigationFields: PostFields = {
  status: { ...postFields.status, schema: { ...postFields.status.schema, context: ALL } },
  title: { ...textFields.title, schema: showMembers(textFields.title.schema, ["raw"]) },
  content: {
    ...textFields.content,
    schema: showMembers(textFields.content.schema, ["raw", "block_version"]),
    read: readProtectedContent,
  },
};
