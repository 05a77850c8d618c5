/** Deletes a revision. */

import type { ContentRepository, StoredRevision } from "../../repository/content-repository.js";
import { RestError } from "../../rest/error.js";
import type { RestRequest, RestResponse } from "../../rest/types.js";
import { removeRevision } from "./keep-revisions.js";
import type { RevisionResource } from "./revision-resource.js";

/** `findRemovable` throws unless the caller may remove the revision that the request names. */
export function createDeleteRevision(
  { renderer, loadParent }: RevisionResource,
  findRemovable: (request: RestRequest) => Promise<StoredRevision>,
  repository: ContentRepository,
): (request: RestRequest) => Promise<RestResponse> {
  return async (request) => {
    if (request.values["force"] !== true) {
      throw new RestError(
        501,
        "rest_trash_not_supported",
        "Revisions do not support trashing. Set 'force=true' to delete.",
      );
    }
    const previous = await repository.change(async (transaction) => {
      // Checks the newest state once more.
      const revision = await findRemovable(request);
      const parent = await loadParent(revision.parent);
      removeRevision(transaction, parent, revision);
      return (await renderer.render(revision, parent, { context: "view", url: request.url })).fields;
    });
    return { status: 200, headers: {}, body: { json: { deleted: true, previous } } };
  };
}
