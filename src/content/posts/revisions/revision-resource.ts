/** The revisions of one post type over REST: what the handlers of their routes share. */

import type { Post } from "../../records/records.js";
import type { ContentRepository } from "../../repository/content-repository.js";
import { RestError } from "../../rest/error.js";
import type { ListLimits } from "../../rest/list-limits.js";
import type { RestRequest } from "../../rest/types.js";
import type { Site } from "../../site.js";
import type { PostTypeHandler } from "../post-type-handler.js";
import { createRevisionPermissions, type RevisionPermissions } from "./revision-permissions.js";
import { createRevisionRenderer, type RevisionRenderer } from "./revision-renderer.js";

export interface RevisionRoutesOptions {
  readonly repository: ContentRepository;
  readonly site: Site;
  /** `core/v2` */
  readonly namespace: string;
  readonly lists: ListLimits;
}

export interface RevisionResource {
  readonly permissions: RevisionPermissions;
  readonly renderer: RevisionRenderer;
  /** @throws RestError 404 `rest_post_invalid_parent` */
  readonly loadParent: (id: number) => Promise<Post>;
  readonly permitRead: (request: RestRequest) => void;
}

export function createRevisionResource(
  type: PostTypeHandler,
  { repository, site, namespace }: RevisionRoutesOptions,
): RevisionResource {
  const { index } = repository;
  const permissions = createRevisionPermissions(type.collection.type, { repository, what: "revisions" });
  return {
    permissions,
    renderer: createRevisionRenderer(type, { site, index, namespace, hasPreview: false }),
    async loadParent(id) {
      const [post] = await repository.posts([id]);
      if (post !== undefined) return post;
      throw new RestError(404, "rest_post_invalid_parent", "Invalid post parent ID.");
    },
    permitRead: ({ values, caller }) => void permissions.read(Number(values["parent"]), caller),
  };
}
