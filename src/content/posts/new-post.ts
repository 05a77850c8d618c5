/** The record of a post before anything is written to it. */

import type { Post } from "../records/records.js";
import type { WriteContext } from "./write-context.js";

export function createPost(context: WriteContext): Omit<Post, "id"> {
  const { collection, caller, site, now, defaultCategory } = context;
  const local = site.zone.toLocal(now);
  const isCategorised = collection.taxonomies[0] === "category" && defaultCategory !== undefined;
  return {
    version: 0,
    type: collection.type,
    author: caller.id,
    date: local,
    dateGmt: null,
    modified: local,
    modifiedGmt: now,
    slug: "",
    title: "",
    content: "",
    excerpt: "",
    password: "",
    hasPassword: false,
    parent: 0,
    menuOrder: 0,
    sticky: false,
    format: "standard",
    terms: isCategorised ? { category: [defaultCategory] } : {},
    mimeType: "",
    target: "",
    template: "",
    featuredMedia: 0,
    meta: {},
    isTrusted: false,
    beforeTrash: null,
    revisions: [],
    autosaves: {},
    menuItem: null,
    media: null,
    // Last: members after a spread take ten times as long.
    ...collection.newPost,
  };
}
