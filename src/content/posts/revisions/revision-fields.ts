/** A revision as it is answered: its fields, their schema, its link. A revision is shown as the post that it would make. */

import type { Context, Json, JsonObject, Schema } from "../../../schema/types.js";
import { type Collection, getCollection } from "../../collections.js";
import type { SiteIndex } from "../../query/site-index.js";
import type { Post, PostColumns, Revision } from "../../records/records.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { createItem } from "../../rest/item.js";
import { ALL, EDIT, FULL } from "../../rest/record-fields.js";
import type { Item } from "../../rest/types.js";
import type { Site } from "../../site.js";
import { formatDate } from "../../text/dates.js";
import { metaSchema } from "../post-meta.js";
import { renderFields } from "../post-schema.js";

/** What a revision is shown with beside itself. */
export interface RevisionView {
  readonly collection: Collection;
  readonly site: Site;
  readonly index: SiteIndex;
}

interface Field {
  readonly schema: Schema;
  readonly read: (post: Post, view: RevisionView) => Json;
}

/** The revision in the form of a post: its own id, the post that it belongs to as its parent. `kind` stands in its slug. */
function postOf(revision: Revision, parent: Post): Post {
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

const date = (
  description: string,
  context: readonly Context[],
  read: (post: Post, site: Site) => number,
): Field => ({
  schema: { description, type: "string", format: "date-time", context },
  read: (post, { site }) => formatDate(read(post, site)),
});

const HEAD: { readonly [name: string]: Field } = {
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

const guid: Field = {
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

const texts: { readonly [name: string]: (post: Post, site: Site) => string } = {
  title: (post, { render }) => render.title(post),
  content: (post, { render }) => render.content(post),
  // An excerpt is never made from the content here.
  excerpt: (post, { render }) => render.caption(post),
};

function textField(name: "title" | "content" | "excerpt", { type }: Collection): Field {
  const context = name === "content" ? FULL : ALL;
  // Whoever sees a pattern sees its title and content as they are stored.
  const raw = type === "wp_block" && name !== "excerpt" ? FULL : EDIT;
  return {
    schema: {
      type: "object",
      context,
      properties: {
        raw: { description: "As it is stored.", type: "string", context: raw },
        rendered: { description: "As it is shown.", type: "string", context, readonly: true },
      },
    },
    read: (post, { site }) => ({ raw: post[name], rendered: texts[name]?.(post, site) ?? "" }),
  };
}

/** The reference answers `null` for a value that the field's schema does not allow, its default even. */
const meta = ({ meta: fields }: Collection): Field => ({
  schema: { description: "Meta fields.", ...metaSchema(fields), context: FULL },
  read: (post) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, field]): [string, Json] => {
        const value = post.meta[name] ?? field.default;
        return [name, field.enum?.some((allowed) => allowed === value) === false ? null : value];
      }),
    ),
});

/** For those who may edit it: the website shows it to them alone. Empty where the type has no address. */
const previewLink: Field = {
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

function fieldsOf(collection: Collection, hasPreview: boolean): readonly (readonly [string, Field])[] {
  const own = (["title", "content", "excerpt"] as const).filter((name) => collection.fields.includes(name));
  return Object.entries({
    ...HEAD,
    guid,
    ...Object.fromEntries(own.map((name) => [name, textField(name, collection)])),
    meta: meta(collection),
    ...(hasPreview ? { preview_link: previewLink } : {}),
  });
}

export interface RevisionRenderer {
  /** Of what is answered. */
  readonly schema: Schema;
  readonly of: (revision: Revision, parent: Post, request: RenderRevisionRequest) => Item;
  /** A post of its own in the same form: that of a draft which took the place of its autosave. */
  readonly ofPost: (post: Post, request: RenderRevisionRequest) => Item;
}

export interface RenderRevisionRequest {
  readonly context: Context;
  readonly url: (path: string) => string;
}

/** `hasPreview`: of autosaves, which say where they can be looked at. */
export function createRevisionRenderer(
  view: RevisionView,
  { namespace, hasPreview }: { readonly namespace: string; readonly hasPreview: boolean },
): RevisionRenderer {
  const { collection, index } = view;
  const fields = fieldsOf(collection, hasPreview);

  function ofPost(post: Post, { context, url }: RenderRevisionRequest): Item {
    const values: JsonObject = Object.fromEntries(
      fields.flatMap(([name, { schema, read }]): [string, Json][] =>
        schema.context?.includes(context) ? [[name, renderFields(read(post, view), schema, context)]] : [],
      ),
    );
    const parent = index.post(post.parent);
    if (parent === undefined) return createItem(values, {});
    const { base } = getCollection(parent.type);
    return createItem(values, { parent: [{ href: url(`/${namespace}/${base}/${parent.id}`) }] });
  }

  return {
    schema: {
      title: `${collection.type}-revision`,
      type: "object",
      properties: Object.fromEntries(fields.map(([name, { schema }]) => [name, schema])),
    },
    ofPost,
    of: (revision, parent, request) => ofPost(postOf(revision, parent), request),
  };
}
