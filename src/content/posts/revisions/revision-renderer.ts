/** Renders revisions. A revision is shown as the post that it would make. */

import type { Context, Json, Schema } from "../../../schema/types.js";
import type { Post, Revision } from "../../records/records.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { createItem } from "../../rest/item.js";
import type { Item } from "../../rest/types.js";
import { postPath } from "../post-links.js";
import { renderFields } from "../post-schema.js";
import type { PostTypeHandler } from "../post-type-handler.js";
import { listRevisionFields, type RevisionView } from "./revision-fields.js";

export interface RevisionRenderer {
  /** The schema of rendered revisions. */
  readonly schema: Schema;
  readonly render: (revision: Revision, parent: Post, request: RenderRevisionRequest) => Promise<Item>;
  /** Renders a draft that took the place of its own autosave. */
  readonly renderPost: (post: Post, request: RenderRevisionRequest) => Promise<Item>;
}

export interface RenderRevisionRequest {
  readonly context: Context;
  readonly url: (path: string) => string;
}

export interface RevisionRendererOptions extends Omit<RevisionView, "collection"> {
  readonly namespace: string;
  /** True for autosaves, which have a link to preview them. */
  readonly hasPreview: boolean;
}

/** Returns the post that the revision would make, with the revision's id and its post as parent. */
function toPost(revision: Revision, parent: Post): Post {
  const { id, author, date, dateGmt, title, content, excerpt, isTrusted, meta } = revision;
  const kind = listAutosaves(parent).has(id) ? "autosave" : "revision";
  return {
    ...parent,
    id,
    author,
    date,
    dateGmt,
    modified: date,
    modifiedGmt: dateGmt,
    slug: `${parent.id}-${kind}-v1`,
    status: "inherit",
    parent: parent.id,
    title,
    content,
    excerpt,
    isTrusted,
    meta,
  };
}

export function createRevisionRenderer(
  type: PostTypeHandler,
  { site, index, namespace, hasPreview }: RevisionRendererOptions,
): RevisionRenderer {
  const { collection } = type;
  const view: RevisionView = { collection, site, index };
  const fields = listRevisionFields(type, hasPreview);

  async function renderPost(post: Post, { context, url }: RenderRevisionRequest): Promise<Item> {
    const values: { [name: string]: Json } = {};
    for (const [name, { schema, read }] of fields) {
      if (!schema.context?.includes(context)) continue;
      values[name] = renderFields(await read(post, view), schema, context);
    }
    const parent = index.post(post.parent);
    if (parent === undefined) return createItem(values, {});
    return createItem(values, { parent: [{ href: url(`/${namespace}${postPath(parent)}`) }] });
  }

  return {
    schema: {
      title: `${collection.type}-revision`,
      type: "object",
      properties: Object.fromEntries(fields.map(([name, { schema }]) => [name, schema])),
    },
    renderPost,
    render: (revision, parent, request) => renderPost(toPost(revision, parent), request),
  };
}
