/** Creates a post, with its file if it is a media item. */

import type { RestRequest, RestResponse } from "../rest/types.js";
import { resolvePostDates } from "./post-dates.js";
import { assertAuthorExists, type PostResource } from "./post-resource.js";
import type { PostRoutesOptions } from "./post-route-options.js";
import type { NewMediaFile } from "./post-type-handler.js";
import { sanitiseValues } from "./sanitised-values.js";

export function createCreatePost(
  resource: PostResource,
  { repository, site, users, namespace }: PostRoutesOptions,
): (request: RestRequest) => Promise<RestResponse> {
  const { type, permissions } = resource;

  const store = async (request: RestRequest, file: NewMediaFile | undefined): Promise<number> => {
    const given = { ...request.values, ...file?.values };
    const values = await sanitiseValues(given, request, type, site);
    return repository.changeTogether(async (transaction) => {
      const dates = resolvePostDates(values, site);
      const id = await transaction.newId("post");
      const post = type.write({ values, previous: null, id, dates }, resource.createWriteContext(request));
      transaction.putPost(file === undefined ? post : file.complete(post));
      resource.expectUnchangedAncestors(transaction, post);
      return id;
    });
  };

  return async (request) => {
    // Like WordPress, looks for the record 0 then.
    if (request.isGiven("id") && request.given["id"] !== null) permissions.find(0);
    await assertAuthorExists(request, type, users);
    const file = await type.uploads?.take(request);
    const id = await store(request, file).catch(async (error: unknown) => {
      await file?.discard();
      throw error;
    });
    return {
      status: 201,
      headers: { location: request.url(`/${namespace}/${type.collection.base}/${id}`) },
      body: await resource.respondWritten(id, request),
    };
  };
}
