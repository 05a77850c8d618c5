/**
 * The rules in which media differ from other post types: fields, status, the post they belong to,
 * and their files.
 */

import { postPath } from "../posts/post-links.js";
import type { MediaUploads, PermissionView, PostTypeRules } from "../posts/post-type-handler.js";
import type { Values } from "../posts/write-context.js";
import type { SiteIndex } from "../query/site-index.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";
import { mediaFields } from "./media-fields.js";

/**
 * Whoever attaches an item to a post must be allowed to edit that post. As in WordPress, nobody may
 * upload to a post that does not exist.
 */
function authorizeAttaching({ values, given, caller }: RestRequest, { index, may }: PermissionView): void {
  const item = index.post(Number(values["id"] ?? 0));
  // A value that is not valid counts as well: `Allow` then lists no upload.
  const wanted = values["post"] ?? given["post"];
  if (wanted === undefined || wanted === null || Number(wanted) === 0) return;
  const parent = index.post(Number(wanted));
  const isAllowed =
    parent === undefined ? item !== undefined : parent.id === item?.parent || may(caller, "edit", parent);
  if (isAllowed) return;
  throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to upload media to this post.");
}

function assertParentIsPost(values: Values, index: SiteIndex): void {
  if (!values["post"] || index.post(Number(values["post"]))?.type !== "attachment") return;
  throw new RestError(400, "rest_invalid_param", "Invalid parent type.");
}

export const createMediaRules = (uploads: MediaUploads): PostTypeRules => ({
  fields: mediaFields,
  uploads,
  authorizeValues: authorizeAttaching,
  assertConsistent: assertParentIsPost,
  // An item is visible where its post is, unless it is private.
  resolveStatus: (status) => (status === "private" ? "private" : "inherit"),
  listLinks: ({ parent: id }, { index, to }) => {
    const parent = index.post(id);
    if (parent === undefined) return {};
    const link = { embeddable: true, post_type: parent.type, id, href: to(postPath(parent)) };
    return { "wp:attached-to": [link] };
  },
});
