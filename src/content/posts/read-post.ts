/** Reads one post. A client can unlock the texts of a protected post with its password. */

import type { JsonObject } from "../../schema/types.js";
import { readContext } from "../rest/record-fields.js";
import type { RestEndpoint, RestRequest, RestResponse } from "../rest/types.js";
import type { PostBase } from "./post-base.js";
import type { PostResource } from "./post-resource.js";

/**
 * Returns the password that unlocks a protected text. Like in WordPress, only the query counts: a
 * body may write a new password.
 */
export const readPassword = ({ password }: JsonObject): string | undefined =>
  typeof password === "string" && password !== "" ? password : undefined;

export function createReadPost(
  { permissions, load, render }: PostResource,
  { renderer, passwords }: Pick<PostBase, "renderer" | "passwords">,
): Pick<RestEndpoint, "permit" | "handle"> {
  /**
   * Compares the password once per request, although `permit` may run several times: each wrong one
   * counts. A request of another method has no state, so it tries no password and learns nothing
   * about it from `Allow`.
   */
  const isUnlocked = async ({ query, values, caller, state }: RestRequest): Promise<boolean> => {
    const given = readPassword(query);
    if (given === undefined || state === undefined) return true;
    if (state.matchedPassword === undefined) {
      const post = await load(Number(values["id"]));
      // Any password is wrong for a caller who could not read the post with the right one either.
      const isRight = permissions.may(caller, "read", post) && passwords.open([post], given).has(post.id);
      state.matchedPassword = isRight ? post.password : null;
    }
    return state.matchedPassword !== null;
  };

  return {
    permit: async (request) => permissions.read(request, undefined, await isUnlocked(request)),
    async handle(request): Promise<RestResponse> {
      const { values, caller, url, query, isGiven } = request;
      const id = Number(values["id"]);
      const context = readContext(request);
      const isPlain = readPassword(query) === undefined && !isGiven("excerpt_length");
      // The post may have changed since `permit`: what is returned is judged again.
      permissions.read(request);
      const cached = isPlain ? renderer.getCached(id, { context, caller, url }) : undefined;
      if (cached !== undefined) return { status: 200, headers: {}, body: { item: cached } };
      const post = await load(id);
      permissions.read(request, post);
      return { status: 200, headers: {}, body: { item: await render(post, request, context) } };
    },
  };
}
