/** Renders revisions. A revision is shown as the post that it would make. */

import type { Context, Json, Schema } from "../../../schema/types.js";
import type { ContentBase } from "../../content-base.js";
import type { SiteIndex } from "../../query/site-index.js";
import type { Collection } from "../../records/content-model.js";
import type { Post, PostColumns, Revision } from "../../records/records.js";
import type { RenderBudget } from "../../render-budget.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { ALL, EDIT, FULL } from "../../rest/record-fields.js";
import { createItem } from "../../rest/serialise.js";
import type { Item } from "../../rest/types.js";
import type { Site } from "../../site.js";
import { formatDate } from "../../text/dates.js";
import { postPath } from "../post-links.js";
import { type PostTypeHandler, renderFields } from "../post-type-handler.js";
import { metaSchema, readMeta } from "../text-fields.js";
import { REVISIONED_TEXTS } from "./keep-revisions.js";

export interface RevisionRenderer {
  /** The schema of rendered revisions. */
  schema: Schema;
  render: (revision: Revision, parent: Post, request: RenderRevisionRequest) => Promise<Item>;
  /** Renders a draft that took the place of its own autosave. */
  renderPost: (post: Post, request: RenderRevisionRequest) => Promise<Item>;
}

export interface RenderRevisionRequest {
  context: Context;
  url: (path: string) => string;
  /** Shared by the revisions of one response. Default: that of one revision. */
  budget?: RenderBudget | undefined;
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
  { site, repository, namespace }: ContentBase,
  /** Autosaves have a link to preview them. */
  { hasPreview }: { hasPreview: boolean },
): RevisionRenderer {
  const { collection } = type;
  const { index } = repository;
  const fields = listRevisionFields(type, hasPreview);

  async function renderPost(post: Post, { context, url, budget }: RenderRevisionRequest): Promise<Item> {
    const view: RevisionView = { collection, site, index, budget };
    const values: { [name: string]: Json } = {};
    for (const [name, { schema, read }] of fields) {
      if (!schema.context?.includes(context)) continue;
      values[name] = renderFields(await read(post, view), schema, context);
    }
    const parent = index.post(post.parent);
    if (parent === undefined) return createItem(values, {});
    return createItem(values, { parent: [{ href: url(`/${namespace}${postPath(parent, index)}`) }] });
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

/** The input of `RevisionField.read` beside the revision. */
interface RevisionView {
  collection: Collection;
  site: Site;
  index: SiteIndex;
  budget: RenderBudget | undefined;
}

interface RevisionField {
  schema: Schema;
  /** `post`: the revision in the form of a post. */
  read: (post: Post, view: RevisionView) => Json | Promise<Json>;
}

const date = (
  description: string,
  context: Context[],
  read: (post: Post, site: Site) => number,
): RevisionField => ({
  schema: { description, type: "string", format: "date-time", context },
  read: (post, { site }) => formatDate(read(post, site)),
});

const HEAD: { [name: string]: RevisionField } = {
  author: {
    schema: { description: "The ID for the author of the revision.", type: "integer", context: ALL },
    read: ({ author }) => author,
  },
  date: date("The date the revision was made, in the site's timezone.", ALL, (post) => post.date),
  date_gmt: date(
    "The date the revision was made, as GMT.",
    FULL,
    (post, { zone }) => post.dateGmt ?? zone.toUtc(post.date),
  ),
  id: {
    schema: { description: "Unique identifier for the revision.", type: "integer", context: ALL },
    read: ({ id }) => id,
  },
  modified: date(
    "The date the revision was last modified, in the site's timezone.",
    FULL,
    ({ modified }) => modified,
  ),
  modified_gmt: date(
    "The date the revision was last modified, as GMT.",
    FULL,
    ({ modifiedGmt }) => modifiedGmt,
  ),
  parent: {
    schema: { description: "The ID for the parent of the revision.", type: "integer", context: ALL },
    read: ({ parent }) => parent,
  },
  slug: {
    schema: {
      description: "An alphanumeric identifier for the revision unique to its type.",
      type: "string",
      context: ALL,
    },
    read: ({ slug }) => slug,
  },
};

const guid: RevisionField = {
  schema: {
    description: "GUID for the revision, as it exists in the database.",
    type: "object",
    context: FULL,
    readonly: true,
    properties: {
      raw: { type: "string", context: EDIT, readonly: true },
      rendered: { type: "string", context: FULL, readonly: true },
    },
  },
  read: (post, { site }) => {
    // A revision of any type has the address of a post.
    const address = site.guid(post.status === "inherit" ? { ...post, type: "post" } : post);
    return { rendered: address, raw: address };
  },
};

const renderText: {
  [name in (typeof REVISIONED_TEXTS)[number]]: (
    post: Post,
    site: Site,
    budget: RenderBudget | undefined,
  ) => Promise<string>;
} = {
  title: (post, { render }) => render.title(post),
  content: (post, { render }, budget) => render.content(post, budget),
  // An excerpt is never generated from the content here.
  excerpt: (post, { render }) => render.caption(post),
};

function textField(name: keyof typeof renderText, { fields }: PostTypeHandler): RevisionField {
  const context = name === "content" ? FULL : ALL;
  return {
    schema: {
      type: "object",
      context,
      properties: {
        raw: {
          description: "As it is stored.",
          type: "string",
          context: fields.get(name)?.schema.properties?.["raw"]?.context ?? EDIT,
        },
        rendered: { description: "As it is shown.", type: "string", context, readonly: true },
      },
    },
    read: async (post, { site, budget }) => ({
      raw: post[name],
      rendered: await renderText[name](post, site, budget),
    }),
  };
}

/** Like WordPress, returns `null` for a value that the schema forbids, even for the default. */
const metaOfRevision = ({ meta: fields }: Collection): RevisionField => ({
  schema: { description: "Meta fields.", ...metaSchema(fields) },
  read: (post) =>
    Object.fromEntries(
      Object.entries(readMeta(post.meta, fields)).map(([name, value]): [string, Json] => {
        const choices = fields[name]?.schema.enum;
        return [name, choices?.some((allowed) => allowed === value) === false ? null : value];
      }),
    ),
});

/** Only editors see it, like the preview itself. Empty if the type is not viewable. */
const previewLink: RevisionField = {
  schema: {
    description: "Preview link for the post.",
    type: "string",
    format: "uri",
    context: EDIT,
    readonly: true,
  },
  read: (post, { collection, site, index }) => {
    const isRevision = post.status === "inherit";
    const previewed: PostColumns | undefined = isRevision ? index.post(post.parent) : post;
    if (!collection.isViewable || previewed === undefined) return "";
    const link = new URL(site.link(previewed, index));
    if (isRevision) link.searchParams.set("preview_id", String(previewed.id));
    link.searchParams.set("preview", "true");
    return link.href;
  },
};

/** Returns the fields in the order of responses. `hasPreview`: true for autosaves. */
function listRevisionFields(type: PostTypeHandler, hasPreview: boolean): [string, RevisionField][] {
  const texts = REVISIONED_TEXTS.filter((name) => type.fields.has(name));
  return Object.entries({
    ...HEAD,
    guid,
    ...Object.fromEntries(texts.map((name) => [name, textField(name, type)])),
    meta: metaOfRevision(type.collection),
    ...(hasPreview ? { preview_link: previewLink } : {}),
  });
}
