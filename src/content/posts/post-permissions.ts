/** Who may do what to the posts of a collection, in the order in which the reference asks. Each check throws the error it is answered with. */

import type { Context } from "../../schema/types.js";
import type { Caller, PostAction } from "../auth/caller.js";
import { canEditSomething } from "../auth/capabilities.js";
import type { Collection } from "../collections.js";
import type { SiteIndex } from "../query/site-index.js";
import type { PostColumns } from "../records/records.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";
import { getTaxonomy } from "../terms/taxonomies.js";

const FORBIDDEN = "Sorry, you are not allowed to do that.";

export interface PostPermissions {
  /** The post behind an id of this collection. Errors: 404 `rest_post_invalid_id`. */
  readonly find: (id: number) => PostColumns & { readonly version: number };
  readonly may: (caller: Caller, action: PostAction, post: PostColumns) => boolean;
  readonly list: (request: RestRequest) => void;
  /**
   * These judge `post`, or where it is left out the one that the request names, as the index has it. What is answered or written is judged again when it is
   * in hand: between the two, somebody may have made it another one. `isOpen`: false where the client gave a password that is wrong.
   */
  readonly read: (request: RestRequest, post?: PostColumns, isOpen?: boolean) => void;
  readonly create: (request: RestRequest) => void;
  readonly update: (request: RestRequest, post?: PostColumns) => void;
  readonly delete: (request: RestRequest, post?: PostColumns) => void;
}

export function createPostPermissions(collection: Collection, index: SiteIndex): PostPermissions {
  const { type, taxonomies, labels } = collection;
  const isMenuItem = type === "nav_menu_item";

  const find = (id: number): PostColumns & { readonly version: number } => {
    const post = index.post(id);
    if (post?.type === type) return post;
    throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
  };

  const may = (caller: Caller, action: PostAction, post: PostColumns): boolean =>
    caller.may(action, post, post.status === "inherit" ? index.post(post.parent) : undefined);

  /** Menus are shown to whoever edits anything. */
  const refuseMenus = (caller: Caller): void => {
    if (!isMenuItem || canEditSomething(caller)) return;
    throw refusal(caller, "rest_cannot_view", "Sorry, you are not allowed to view menu items.");
  };

  /** What the written fields ask for beside the right to write at all. */
  function refuseFields({ values, caller, isGiven }: RestRequest): void {
    const { author } = values;
    const isOther = isGiven("author") && author !== null && author !== 0 && author !== caller.id;
    if (isOther && collection.fields.includes("author") && !caller.canOf(type, "edit_others_posts")) {
      throw refusal(
        caller,
        "rest_cannot_edit_others",
        `Sorry, you are not allowed to create or update ${labels.name.toLowerCase()} as this user.`,
      );
    }
    const attachedTo = type === "attachment" ? index.post(Number(values["post"] ?? 0)) : undefined;
    const isMoved =
      attachedTo !== undefined && attachedTo.id !== index.post(Number(values["id"] ?? 0))?.parent;
    if (isMoved && !may(caller, "edit", attachedTo)) {
      throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to upload media to this post.");
    }
    const isSticking = values["sticky"] === true && collection.fields.includes("sticky");
    if (isSticking && !(caller.canOf(type, "edit_others_posts") && caller.canOf(type, "publish_posts"))) {
      throw refusal(caller, "rest_cannot_assign_sticky", "Sorry, you are not allowed to make posts sticky.");
    }
  }

  function refuseTerms({ values, caller, isGiven }: RestRequest): void {
    for (const taxonomy of taxonomies) {
      const { base } = getTaxonomy(taxonomy);
      const value = values[base];
      if (!isGiven(base) || value === null || value === undefined) continue;
      const ids = Array.isArray(value) ? (value as readonly number[]) : [Number(value)];
      const known = ids.filter((id) => index.term(id)?.taxonomy === taxonomy);
      if (known.length > 0 && !caller.canOf(taxonomy, "assign_terms")) {
        throw refusal(
          caller,
          "rest_cannot_assign_term",
          "Sorry, you are not allowed to assign the provided terms.",
        );
      }
    }
  }

  return {
    find,
    may,
    list({ values, caller }) {
      if (values["context"] === "edit" && !caller.canOf(type, "edit_posts")) {
        throw refusal(
          caller,
          "rest_forbidden_context",
          "Sorry, you are not allowed to edit posts in this post type.",
        );
      }
      refuseMenus(caller);
    },
    read({ values, caller }, post = find(Number(values["id"])), isOpen = true) {
      if ((values["context"] as Context) === "edit" && !may(caller, "edit", post)) {
        throw refusal(caller, "rest_forbidden_context", "Sorry, you are not allowed to edit this post.");
      }
      if (!isOpen) {
        throw new RestError(403, "rest_post_incorrect_password", "Incorrect post password.");
      }
      if (post.status === "publish") refuseMenus(caller);
      if (!may(caller, "read", post)) throw refusal(caller, "rest_forbidden", FORBIDDEN);
    },
    create(request) {
      const { given, caller } = request;
      if (given["id"]) {
        throw new RestError(400, "rest_post_exists", "Cannot create existing post.");
      }
      refuseFields(request);
      if (!caller.canOf(type, "create_posts")) {
        throw refusal(
          caller,
          "rest_cannot_create",
          "Sorry, you are not allowed to create posts as this user.",
        );
      }
      refuseTerms(request);
    },
    update(request, post = find(Number(request.values["id"]))) {
      const { caller } = request;
      if (!may(caller, "edit", post)) {
        throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to edit this post.");
      }
      refuseFields(request);
      refuseTerms(request);
    },
    delete({ values, caller }, post = find(Number(values["id"]))) {
      if (!may(caller, "delete", post)) {
        throw refusal(caller, "rest_cannot_delete", "Sorry, you are not allowed to delete this post.");
      }
    },
  };
}
