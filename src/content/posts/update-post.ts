/** Updates a post. */

import { toText } from "../../schema/text-of.js";
import type { Arguments } from "../../schema/types.js";
import type { RestRequest, RestResponse } from "../rest/types.js";
import { resolvePostDates } from "./post-dates.js";
import { assertAuthorExists, type PostResource } from "./post-resource.js";
import type { PostRoutesOptions } from "./post-route-options.js";
import { itemSchema, orUnchanged, writeArguments } from "./post-schema.js";
import type { PostTypeHandler } from "./post-type-handler.js";
import { assertUnmodified, parsePrecondition } from "./precondition.js";
import { sanitiseValues } from "./sanitised-values.js";

/** Returns the arguments that update an item. */
export function updateArguments(
  type: PostTypeHandler,
  { repository, site }: Pick<PostRoutesOptions, "repository" | "site">,
): Arguments {
  const { status = {} } = itemSchema(type).properties ?? {};
  return writeArguments(type, {
    status: { validate: orUnchanged(status, (id) => repository.index.post(id)?.status) },
    template: {
      accepted: { type: "string", enum: ["", ...site.templates] },
      validate: (value, name) =>
        value === "" || site.templates.includes(toText(value))
          ? undefined
          : { code: "rest_invalid_param", message: `${name} is not a template of this site.` },
    },
    slug: { sanitize: (value) => (value === null ? null : site.slug(toText(value))) },
  });
}

export function createUpdatePost(
  resource: PostResource,
  { repository, site, users, keepRevision }: PostRoutesOptions,
): (request: RestRequest) => Promise<RestResponse> {
  const { type, permissions, load } = resource;
  return async (request) => {
    await assertAuthorExists(request, type, users);
    const id = Number(request.values["id"]);
    const dates = resolvePostDates(request.values, site);
    const values = await sanitiseValues(request.values, request, type, site);
    await repository.changeTogether(async (transaction) => {
      const previous = await load(id);
      // Judges the version that the change replaces.
      permissions.update(request, previous);
      assertUnmodified(parsePrecondition(request.headers), previous);
      const post = type.write({ values, previous, id, dates }, resource.createWriteContext(request));
      transaction.putPost(await keepRevision(transaction, post, request.caller.id));
      resource.expectUnchangedAncestors(transaction, post);
    });
    return { status: 200, headers: {}, body: await resource.respondWritten(id, request) };
  };
}
